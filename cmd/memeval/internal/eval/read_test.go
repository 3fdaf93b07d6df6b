package eval

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTimesOfSessions(t *testing.T) {
	for written, want := range map[string]string{
		"9:05 am on 3 March, 2024":  "2024-03-03T09:05:00Z",
		"12:10 am on 3 March, 2024": "2024-03-03T00:10:00Z",
		"2024年3月3日上午9:05":           "2024-03-03T09:05:00Z",
		"2024年3月3日 晚上9:05":          "2024-03-03T21:05:00Z",
		"2024年3月3日，下午12:30":         "2024-03-03T12:30:00Z",
		"2024年3月3日凌晨12:10":          "2024-03-03T00:10:00Z",
		"2024年3月3日中午1:10":           "2024-03-03T13:10:00Z",
		"2024-03-03T10:05:00+08:00": "2024-03-03T02:05:00Z",
	} {
		got, err := parseTime(written)
		if err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%s: %s, %v, want %s", written, got.Format(time.RFC3339), err, want)
		}
	}
	for _, written := range []string{"", "yesterday", "2024年2月30日上午9:05", "2024年3月3日下午9:75"} {
		if got, err := parseTime(written); err == nil {
			t.Errorf("%q is parsed as %s", written, got)
		}
	}
}

// A translation spells names differently, but there are still two speakers.
func TestNamesSpelledDifferently(t *testing.T) {
	two := [2]string{"安娜", "博里斯"}
	for _, test := range []struct {
		names []string
		want  []int
	}{
		{[]string{"安娜", "博里斯", "安娜"}, []int{0, 1, 0}},
		{[]string{"鲍里斯", "安娜"}, []int{1, 0}},
		{[]string{"博里斯", "安妮"}, []int{1, 0}},
		{[]string{"Anna", "Boris", "Anna"}, []int{0, 1, 0}},
	} {
		var turns []rawTurn
		for _, name := range test.names {
			turns = append(turns, rawTurn{Speaker: name})
		}
		by := sides(turns, two)
		var got []int
		for _, name := range test.names {
			got = append(got, by[name])
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%v: %v, want %v", test.names, got, test.want)
		}
	}
}

func TestMalformedConversations(t *testing.T) {
	const head = `[{"sample_id": "one", "conversation": {"speaker_a": "Nora", "speaker_b": "Pavel", `
	for _, test := range []struct{ text, says string }{
		{"{\"a\":\n 1", ":2: unexpected end of JSON input"},
		{`{"qa": []}`, "a LoCoMo file is a JSON array of conversations"},
		{`[]`, "holds no conversation"},
		{"[\n{\"sample_id\": \"one\", \"conversation\": {\"speaker_a\": \"Nora\"}}]", ":2: conversation one: speaker_b is missing"},
		{head + `"x": 1}}]`, "there is no session_1"},
		{head + `"session_1": [{"speaker": "Nora", "dia_id": "D1:1", "text": "Hi"}]}}]`, "session_1_date_time is missing"},
		{head + `"session_1": [{"speaker": "Nora", "dia_id": "D1:1"}], "session_1_date_time": "noon"}}]`, `the time "noon": write it as`},
		{head + `"session_1": [{"speaker": "Nora"}], "session_1_date_time": "2024-03-03"}}]`, "turn 1 has no dia_id"},
		{
			head + `"session_1": [{"speaker": "Nora", "dia_id": "D1:1"}, {"speaker": "Nora", "dia_id": "D1:1"}], "session_1_date_time": "2024-03-03"}}]`,
			`the dia_id "D1:1" occurs twice`,
		},
	} {
		path := write(t, "file.json", test.text)
		if _, err := readLoCoMo(path); err == nil || !strings.Contains(err.Error(), test.says) || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%s: %v, want %s", test.text, err, test.says)
		}
	}
	if _, err := readLoCoMo(filepath.Join(t.TempDir(), "none.json")); err == nil {
		t.Error("reads a file that is not there")
	}
}

func TestMalformedGateFiles(t *testing.T) {
	const turn = `{"user": "u", "date": "2024-03-03", "turn": 0, "text": "Hi", "label": 0}`
	const session = `{"session_id": 1, "date": "2024-03-03", "conversation": [{"turn": 1, "speaker": "user_agent", "message": "Hi"}]}`
	for _, test := range []struct{ text, says string }{
		{"\n\n", "is empty"},
		{"\nhello", ":2: invalid character"},
		{`{"user": "u"}`, ":1: is in neither format"},
		{turn + "\n" + turn, ":2: turn 0 of u on 2024-03-03 occurs twice"},
		{strings.Replace(turn, `"label": 0`, `"label": 2`, 1), ":1: label must be 0 or 1"},
		{turn + "\n\n" + strings.Replace(turn, "2024-03-03", "3/3", 1), `:3: the date "3/3"`},
		{turn + "\n" + `{"user": "u", "label": 1}`, ":2: user and text are required"},
		{session + "\n" + session, ":2: session_id 1 occurs twice"},
		{session + "\n" + turn, `:2: conversation is empty`},
		{strings.Replace(session, "user_agent", "nobody", 1), `:1: turn 1: the speaker "nobody"`},
		{strings.Replace(session, "2024-03-03", "", 1), `:1: the date ""`},
	} {
		path := write(t, "file.jsonl", test.text)
		if _, err := readGate([]string{path}); err == nil || !strings.Contains(err.Error(), test.says) || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%s: %v, want %s", test.text, err, test.says)
		}
	}
	both := []string{write(t, "turns.jsonl", turn), write(t, "sessions.jsonl", session)}
	if _, err := readGate(both); err == nil || !strings.Contains(err.Error(), "in runs of their own") {
		t.Errorf("two formats: %v", err)
	}
	path := write(t, "sessions.jsonl", session)
	if err := os.WriteFile(strings.Replace(path, ".jsonl", ".questions.json", 1), []byte("{\n["), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readGate([]string{path}); err == nil || !strings.Contains(err.Error(), "sessions.questions.json:2: ") {
		t.Errorf("malformed questions: %v", err)
	}
}

// Two files with the same name have separate users.
func TestFilesAreUsers(t *testing.T) {
	const session = `{"session_id": 1, "date": "2024-03-03", "conversation": [{"turn": 1, "speaker": "user_agent", "message": "Hi"}]}`
	files, err := readGate([]string{write(t, "nora.jsonl", session), write(t, "nora.jsonl", session)})
	if err != nil {
		t.Fatal(err)
	}
	if first, second := files.personas[0].Name, files.personas[1].Name; first != "nora" || second != "nora-2" {
		t.Errorf("users %s and %s", first, second)
	}
}

func TestTextsThatHoldAFact(t *testing.T) {
	f := fact{Text: "Call the piano tuner"}
	for text, want := range map[string]bool{
		"The user has to call a piano tuner.": true,
		"Piano: TUNER, call!":                 true,
		"The user called the piano tuner.":    false,
		"The user plays the piano.":           false,
		"":                                    false,
	} {
		if got := f.matches(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if (fact{Text: "of the"}).matches("of the") {
		t.Error("a fact without words is held")
	}
}

func TestConfusion(t *testing.T) {
	c := confusion{tp: 3, fp: 1, fn: 1, tn: 1}
	r := Report{}
	c.report(r, "x.")
	for name, want := range map[string]float64{"x.precision": 0.75, "x.recall": 0.75, "x.f1": 0.75, "x.balanced_accuracy": 0.625, "x.turns": 6} {
		if got, ok := r.number(name); !ok || got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	r = Report{}
	(&confusion{tn: 2}).report(r, "x.")
	if _, there := r["x.recall"]; there {
		t.Error("reports a recall without questions")
	}
}

func TestPercentiles(t *testing.T) {
	var took []time.Duration
	for i := range 100 {
		took = append(took, time.Duration(100-i)*time.Millisecond)
	}
	r := Report{}
	r.latencies("x", took)
	for name, want := range map[string]float64{"x.p50_ms": 50, "x.p90_ms": 90, "x.p99_ms": 99} {
		if got, _ := r.number(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

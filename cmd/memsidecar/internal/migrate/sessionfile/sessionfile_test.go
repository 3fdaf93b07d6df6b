package sessionfile_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/migrate/sessionfile"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

func read(t *testing.T, text string) *sessionfile.File {
	t.Helper()
	file, err := sessionfile.Read(strings.NewReader(text), time.UTC)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return file
}

func write(t *testing.T, file *sessionfile.File, format sessionfile.Format, zone *time.Location) string {
	t.Helper()
	var b bytes.Buffer
	w, err := sessionfile.NewWriter(&b, format, zone, file.Session)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range file.Messages {
		if err := w.Write(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func content(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestRoundTripIsExact: history.json is the example of the format's specification. The others cover all values of its fields, and our
// additions.
func TestRoundTripIsExact(t *testing.T) {
	for name, format := range map[string]sessionfile.Format{
		"history.json": sessionfile.JSON, "everything.json": sessionfile.JSON, "lines.jsonl": sessionfile.JSONL,
	} {
		want := content(t, name)
		file := read(t, want)
		if got := write(t, file, format, time.UTC); got != want {
			t.Errorf("%s comes back as\n%s", name, got)
		}
		// The other format holds the same data.
		other := sessionfile.JSONL
		if format == sessionfile.JSONL {
			other = sessionfile.JSON
		}
		text := write(t, file, other, time.UTC)
		if other == sessionfile.JSONL && strings.Count(text, "\n") != len(file.Messages)+1 {
			t.Errorf("%s is not one line a message:\n%s", name, text)
		}
		back := read(t, text)
		if !proto.Equal(back.Session, file.Session) || len(back.Messages) != len(file.Messages) {
			t.Errorf("%s as %s says %v", name, other, back.Session)
		}
	}
}

func TestReadFields(t *testing.T) {
	m := read(t, content(t, "history.json")).Messages[1]
	call := m.GetToolCalls()[0]
	if m.GetRole() != memsidecarv1.Role_ROLE_ASSISTANT || m.GetSendTime().AsTime() != time.Date(2025, 12, 31, 10, 0, 1, 0, time.UTC) ||
		call.GetArgumentsJson() != `{"metric": "cpu"}` || call.GetDuration().AsDuration() != 500*time.Millisecond ||
		call.GetStartTime().AsTime() != time.Date(2025, 12, 31, 10, 0, 2, 0, time.UTC) || call.GetResult() != "CPU 使用率: 3.0%" {
		t.Errorf("%v", m)
	}
	// An NPC's plain list, and a list without a line about the session.
	npc := `{"role": "assistant", "content": "后生问得好...", "timestamp": "2024-12-13T08:00:00Z", "npc_id": "ancestor_yan"}`
	for name, text := range map[string]string{"list": "[\n" + npc + "\n,\n" + npc + "]", "lines": "\n" + npc + "\n\n" + npc} {
		file := read(t, text)
		if len(file.Messages) != 2 || file.Messages[1].GetAgentId() != "ancestor_yan" || file.Session.GetId() != "" {
			t.Errorf("%s: %v", name, file)
		}
		if want := map[string][]int{"list": {2, 4}, "lines": {2, 4}}[name]; file.Lines[0] != want[0] || file.Lines[1] != want[1] {
			t.Errorf("%s: begin on lines %d", name, file.Lines)
		}
	}
	if file := read(t, `{"session_id": "s", "message_count": 0, "messages": []}`); file.Session.GetId() != "s" {
		t.Errorf("%v", file)
	}
	if got := write(t, read(t, `{"session_id": "s", "messages": []}`), sessionfile.JSON, time.UTC); !strings.Contains(
		got,
		`"messages": [],`,
	) {
		t.Errorf("%s", got)
	}
}

func TestTimes(t *testing.T) {
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		in, zoned, out string
		zone           *time.Location
	}{
		{"2025-12-31T10:00:00", "2025-12-31T02:00:00Z", "2025-12-31T10:00:00", shanghai},
		{"2025-12-31 10:00:00.5", "2025-12-31T02:00:00.5Z", "2025-12-31T10:00:00.500000", shanghai},
		{"2025-12-31T10:00:00.123456", "2025-12-31T02:00:00.123456Z", `2025-12-31T10:00:00.123456"`, shanghai},
		{"2025-12-31T10:00:00Z", "2025-12-31T10:00:00Z", "2025-12-31T18:00:00", shanghai},
		{"2025-12-31T10:00:00+0100", "2025-12-31T09:00:00Z", "2025-12-31T17:00:00", shanghai},
		{"2025-12-31T10:00:00.25+01:00", "2025-12-31T09:00:00.25Z", "2025-12-31T17:00:00.250000", shanghai},
		// In Berlin, 2:30 occurs twice on the day when summer time ends.
		{"2025-10-26T02:30:00+02:00", "2025-10-26T00:30:00Z", "", berlin},
		{"2025-10-26T02:30:00+01:00", "2025-10-26T01:30:00Z", "", berlin},
	} {
		file, err := sessionfile.Read(strings.NewReader(`[{"role": "user", "content": "x", "timestamp": "`+test.in+`"}]`), test.zone)
		if err != nil {
			t.Errorf("%s: %v", test.in, err)
			continue
		}
		if got := file.Messages[0].GetSendTime().AsTime().Format(time.RFC3339Nano); got != test.zoned {
			t.Errorf("%s is read as %s, want %s", test.in, got, test.zoned)
		}
		text := write(t, file, sessionfile.JSONL, test.zone)
		if !strings.Contains(text, `"timestamp": "`+test.out) {
			t.Errorf("%s is written as %s", test.in, text)
		}
		if back, err := sessionfile.Read(strings.NewReader(text), test.zone); err != nil ||
			!proto.Equal(back.Messages[0], file.Messages[0]) {
			t.Errorf("%s is read back as %v, %v", test.in, back, err)
		}
	}
}

// TestWriterOmitsKnownNames: Names given when the file is read need not be in the file.
func TestWriterOmitsKnownNames(t *testing.T) {
	file := read(t, `[{"role": "user", "content": "a", "speaker": "u"}, {"role": "user", "content": "b", "speaker": "v"},
		{"role": "assistant", "content": "c", "agent": "bot"}, {"role": "assistant", "content": "d", "agent": "other"}]`)
	var b bytes.Buffer
	w, err := sessionfile.NewWriter(&b, sessionfile.JSONL, time.UTC, file.Session)
	if err != nil {
		t.Fatal(err)
	}
	w.Speaker, w.Agent = "u", "bot"
	for _, m := range file.Messages {
		if err := w.Write(m); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.String(); strings.Contains(got, `"u"`) || !strings.Contains(got, `"speaker": "v"`) || strings.Contains(got, `"bot"`) ||
		!strings.Contains(got, `"agent": "other"`) {
		t.Errorf("%s", got)
	}
}

func TestMistakes(t *testing.T) {
	good := `{"role": "user", "content": "x"}`
	whole := func(message string) string { return "{\n\"messages\": [\n" + good + ",\n" + message + "]\n}" }
	for name, test := range map[string]struct{ text, says string }{
		"empty":            {" \n", "is empty"},
		"not JSON":         {"hello", "line 1: is not JSON"},
		"a number":         {"7", "line 1: is neither a JSON object nor a list"},
		"cut":              {"{\n\"messages\": [\n" + good + ",\n", "line 3: the file ends before its end"},
		"cut in a message": {"[\n" + good + ",\n{\"role\"", "line 3: the file ends before its end"},
		"cut list":         {"[" + good, "line 1: the file ends before its end"},
		"comma":            {"{\n\"messages\": [\n" + good + "\n" + good + "]}", "line 3: is not JSON: expected comma"},
		"more":             {"[]\n{}", "line 2: there is more after the end"},
		"role":             {whole(`{"role": "boss", "content": "x"}`), `line 4: role "boss": use user, assistant, system or tool`},
		"no role":          {whole(`{"content": "x"}`), `line 4: role "": use user`},
		"unknown": {whole(`{"role": "user", "content": "x", "tools_used": []}`), `line 4: unknown field "tools_used": leave it ` +
			`out, or put it into metadata`},
		"text": {whole(`{"role": "user", "content": 7}`), "line 4: content is not a text"},
		"time": {
			whole(`{"role": "user", "content": "x", "timestamp": "yesterday"}`),
			`line 4: timestamp "yesterday" is not a time such as 2025-12-31T10:00:00`,
		},
		"metadata":   {whole(`{"role": "user", "content": "x", "metadata": []}`), "line 4: metadata is not an object"},
		"tool calls": {whole(`{"role": "user", "content": "x", "tool_calls": {}}`), "line 4: tool_calls is not a list of objects"},
		"tool call": {
			whole(`{"role": "user", "content": "x", "tool_calls": [{"tool_name": "a", "function": {}}]}`),
			`line 4: tool_calls[0]: unknown field "function"`,
		},
		"duration":      {whole(`{"role": "user", "content": "x", "tool_calls": [{"duration": -1}]}`), "line 4: tool_calls[0]: duration -1 is no time"},
		"duration text": {whole(`{"role": "user", "content": "x", "tool_calls": [{"duration": "1s"}]}`), "duration is not a number of seconds"},
		"npc":           {whole(`{"role": "assistant", "content": "x", "npc_id": "a", "agent": "b"}`), "line 4: agent and npc_id differ"},
		"id twice": {
			"[" + `{"role": "user", "content": "x", "id": "1"}` + ",\n" + `{"role": "user", "content": "y", "id": "1"}]`,
			`line 2: id "1" is that of line 1, too`,
		},
		"no message":        {whole(`7`), "line 4: is not a message"},
		"messages":          {`{"messages": {}}`, "line 1: messages is not a list"},
		"count":             {`{"messages": [], "message_count": 2}`, "message_count is 2, but there are 0"},
		"session":           {`{"messages": [], "colour": "red"}`, `unknown field "colour"`},
		"neither":           {`{"colour": "red"}`, `line 1: has neither "messages" nor "role" nor "_type": "metadata"`},
		"two in a line":     {good + " " + good, "line 1: more text follows the message"},
		"a line":            {`{"_type": "metadata"}` + "\n\n" + good + "\n{\"role\": \"user\"", "line 4: is not a message"},
		"a line's field":    {good + "\n" + `{"role": "user", "colour": 1}`, `line 2: unknown field "colour"`},
		"bytes":             {whole("{\"role\": \"user\", \"content\": \"\xff\"}"), "line 4: content is not UTF-8"},
		"memorize every":    {`{"messages": [], "memorize_every": 1.5}`, "memorize_every is not a whole number"},
		"created":           {`{"messages": [], "created_at": 7}`, "created_at is not a text"},
		"type in an object": {`{"messages": [], "_type": "message"}`, `_type is "message", not "metadata"`},
	} {
		if _, err := sessionfile.Read(strings.NewReader(test.text), time.UTC); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", name, err, test.says)
		}
	}
}

// TestTimesAreTruncatedToMicroseconds: The file has no times below a microsecond.
func TestTimesAreTruncatedToMicroseconds(t *testing.T) {
	file := &sessionfile.File{Session: &memsidecarv1.Session{}, Messages: []*memsidecarv1.Message{{
		Role: memsidecarv1.Role_ROLE_USER, SendTime: timestamppb.New(time.Date(2025, 12, 31, 10, 0, 0, 1999, time.UTC)),
	}}}
	if got := write(t, file, sessionfile.JSON, time.UTC); !strings.Contains(got, `"2025-12-31T10:00:00.000001"`) {
		t.Errorf("%s", got)
	}
}

func TestLargeFile(t *testing.T) {
	const n = 20_000
	text := strings.Repeat(`{"role": "user", "content": "我对花生过敏，你有什么菜推荐吗？", "timestamp": "2025-12-31T10:00:00"}`+"\n", n)
	if file := read(t, text); len(file.Messages) != n || file.Lines[n-1] != n {
		t.Errorf("%d messages", len(file.Messages))
	}
}

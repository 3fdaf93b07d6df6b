package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/cli"
	"github.com/memsidecar/memsidecar/internal/sidecar"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// runMain runs the program until it exits and returns its exit code and output.
func runMain(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	home := t.TempDir()
	environ := []string{"HOME=" + home, "LocalAppData=" + home}
	code = Main{Args: args, Environ: environ, Stdout: &out, Stderr: &errs}.Run(t.Context())
	return code, out.String(), errs.String()
}

func TestDemo(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	code, out, errs := runMain(t, "demo")
	if code != 0 || errs != "" {
		t.Fatalf("exit code %d:\n%s", code, errs)
	}
	for _, shown := range []string{
		"→ remembered:", "→ skipped:", "because:", "said as:", "similarity", "The block for the bot's system prompt:",
		"【关于用户的记忆 - 仅供上下文参考，不作为事实依据】", "【End of the memories of the user】", "finds nothing of xiaolin's: 0 memories", "memsidecar serve",
	} {
		if !strings.Contains(out, shown) {
			t.Errorf("does not show %q:\n%s", shown, out)
		}
	}
	// Every query finds something, and the first dialogue of each act is remembered.
	if answers := regexp.MustCompile(`(?m)^Retrieve "[^"]*":\n  (?:always|0\.\d\d)  `).FindAllString(out, -1); len(answers) != 6 {
		t.Errorf("%d of 6 questions find something:\n%s", len(answers), out)
	}
	if left := sidecartest.Must(os.ReadDir(temporary))(t); len(left) != 0 {
		t.Errorf("leaves %v behind", left)
	}
}

func TestConfigCommand(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "memsidecar.yaml")
	sidecartest.NoError(t, os.WriteFile(file, []byte("retrieval:\n  top_k: 500\n  colour: red\nlisten: nowhere\n"), 0o600))
	code, out, errs := runMain(t, "config", "check", "-c", file, "--set", "queue.workers=0", "--set", "log.level=loud")
	if code != cli.ExitUsage || out != "" {
		t.Errorf("with wrong keys: exit code %d, %q", code, out)
	}
	for _, key := range []string{"retrieval.top_k", "retrieval.colour", "listen", "queue.workers", "log.level", file} {
		if !strings.Contains(errs, key) {
			t.Errorf("does not name %s:\n%s", key, errs)
		}
	}
	if code, _, again := runMain(t, "serve", "-c", file, "--set", "queue.workers=0", "--set", "log.level=loud"); code != cli.ExitUsage ||
		again != errs {
		t.Errorf("serve: exit code %d:\n%s", code, again)
	}
	if code, out, errs := runMain(t, "config", "check"); code != 0 || !strings.Contains(out, "valid") || errs != "" {
		t.Errorf("the defaults: exit code %d, %q and %q", code, out, errs)
	}
	code, out, errs = runMain(t, "config", "print", "--set", "retrieval.top_k=7", "--set", "embedding.api_key=sk-secret")
	if code != 0 || errs != "" || !strings.Contains(out, "top_k: 7") || !strings.Contains(out, "--set") ||
		strings.Contains(out, "sk-secret") {
		t.Errorf("print: exit code %d\n%s%s", code, out, errs)
	}
	_, out, _ = runMain(t, "config", "print", "--set", "retrieval.top_k=7")
	sidecartest.NoError(t, os.WriteFile(file, []byte(out), 0o600))
	if code, _, errs := runMain(t, "config", "check", "-c", file); code != 0 {
		t.Errorf("the printed configuration cannot be loaded: exit code %d\n%s", code, errs)
	}
	code, out, _ = runMain(t, "config", "reference")
	for _, cell := range []string{"| listen |", "| retrieval.top_k |", "MEMSIDECAR_RETRIEVAL_TOP_K", "| visibility |", "127.0.0.1:7420"} {
		if !strings.Contains(out, cell) {
			t.Errorf("reference: exit code %d, %q is missing", code, cell)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--colour"},
		{"serve", "--colour"},
		{"paint"},
		{"config"},
		{"replay"},
		{"--set", "x"},
		{"config", "check", "--set", "no.such.key=1"},
	} {
		if code, _, errs := runMain(t, args...); code != cli.ExitUsage || !strings.HasPrefix(errs, "memsidecar: ") {
			t.Errorf("%q: exit code %d, %q", args, code, errs)
		}
	}
	if code, out, _ := runMain(t, "--version"); code != 0 || strings.TrimSpace(out) != sidecar.Version() || out == "\n" {
		t.Errorf("--version: exit code %d, %q", code, out)
	}
	if code, out, _ := runMain(t, "--help"); code != 0 || !strings.Contains(out, "serve") || !strings.Contains(out, "replay") {
		t.Errorf("--help: exit code %d, %q", code, out)
	}
}

// replayFile writes messages to a file for replay.
func replayFile(t *testing.T, messages ...map[string]string) string {
	t.Helper()
	var lines []byte
	for _, m := range messages {
		lines = append(append(lines, sidecartest.Must(json.Marshal(m))(t)...), '\n')
	}
	path := filepath.Join(t.TempDir(), "messages.jsonl")
	sidecartest.NoError(t, os.WriteFile(path, lines, 0o600))
	return path
}

func TestReplay(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	path := replayFile(
		t,
		map[string]string{
			"user":    "anna",
			"session": "1",
			"role":    "user",
			"content": "My name is Anna.",
			"time":    "2026-03-20T10:00:00Z",
			"id":      "m1",
		},
		map[string]string{"user": "anna", "session": "1", "role": "assistant", "content": "Hello Anna!", "time": "2026-03-20T10:00:01Z"},
		map[string]string{"user": "小林", "session": "1", "role": "user", "content": "我喜欢吃辣", "channel_kind": "direct"},
		map[string]string{"user": "anna", "session": "2", "role": "user", "content": "I am allergic to peanuts."},
		map[string]string{"user": "anna", "session": "3", "role": "user", "content": "ok"},
		map[string]string{"user": "anna", "session": "4", "role": "user", "content": "My name is Anna."},
		// The same session id in two channels is two dialogues: a direct chat is not repeated in the group.
		map[string]string{"user": "otto", "role": "user", "content": "请记住：我的暗号是海棠", "channel_kind": "direct"},
		map[string]string{"user": "otto", "role": "user", "content": "My name is Otto.", "channel_kind": "group", "channel": "g"},
	)
	want := map[string]string{
		"first":  `^users +3\ndialogues +7 +in \S+\n  remembered +6\n  skipped +1\nmemories added +5\nmemories reinforced +1\n$`,
		"second": `^users +3\ndialogues +7 +in \S+\n  remembered +6\n  skipped +1\nmemories added +5\nmemories reinforced +1\n$`,
	}
	var before map[string][]string
	for _, run := range []string{"first", "second"} {
		code, out, errs := runMain(t, "replay", path, "--addr", r.Addr)
		if code != 0 || !regexp.MustCompile(want[run]).MatchString(out) {
			t.Errorf("the %s time: exit code %d, %q\n%s", run, code, errs, out)
		}
		now := map[string][]string{}
		for _, user := range []string{"anna", "小林", "otto"} {
			e := r.Export(t, sidecartest.WithoutChannel(user))
			for _, c := range e.Considerations {
				now[user] = append(now[user], c.GetConsideration().GetId())
			}
			for _, m := range e.Memories {
				now[user] = append(now[user], m.String())
			}
		}
		if before != nil && !equalMaps(before, now) {
			t.Errorf("the second time changes\n%v\ninto\n%v", before, now)
		}
		before = now
	}
	anna := r.Export(t, sidecartest.WithoutChannel("anna"))
	if len(anna.Considerations) != 4 || anna.Memories[0].GetObserveTime().AsTime() != time.Date(2026, 3, 20, 10, 0, 0, 0, time.UTC) ||
		anna.Memories[0].GetProvenance().GetMessageIds()[0] != "m1" || anna.Memories[0].GetScope().GetSessionId() != "1" {
		t.Errorf("stored of anna: %s", anna.Records)
	}
	if got := sidecartest.Texts(r.Memories(t, sidecartest.Group("otto", "g"))); len(got) != 1 || !strings.Contains(got[0], "Otto") {
		t.Errorf("the group sees %q", got)
	}
	code, _, errs := runMain(t, "replay", path, "--addr", r.Addr, "--namespace", "else/where")
	if stored := r.Memories(t, sidecartest.InNamespace("else/where", sidecartest.Direct("otto"))); code != 0 || len(stored) != 2 {
		t.Errorf("into a namespace: exit code %d, %q, %s", code, errs, stored)
	}
}

func equalMaps(a, b map[string][]string) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

func TestReplayMistakes(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	good := `{"user":"u","role":"user","content":"My name is Anna."}`
	for name, test := range map[string]struct{ text, says string }{
		"no JSON":       {good + "\n\n{\"user\":\"u\",\n", "line 3"},
		"unknown field": {good + "\n" + `{"user":"u","role":"user","colour":"red"}`, `line 2: json: unknown field "colour"`},
		"two in a line": {good + good, "line 1: more text"},
		"rubbish after": {good + " rubbish", "line 1: more text"},
		"role":          {`{"user":"u","role":"boss"}`, `line 1: role "boss"`},
		"channel kind":  {`{"user":"u","role":"user","channel_kind":"cave"}`, `line 1: channel_kind "cave"`},
		"no user":       {good + "\n" + `{"role":"user"}`, "line 2: user is missing"},
		"time":          {`{"user":"u","role":"user","time":"yesterday"}`, "line 1"},
		"endless line":  {good + "\n" + strings.Repeat("x", 2<<20+1), "line 2"},
		"refused":       {`{"user":"u","role":"user","content":"x","channel_kind":"group"}`, "1 dialogue was refused"},
	} {
		path := filepath.Join(t.TempDir(), "messages.jsonl")
		sidecartest.NoError(t, os.WriteFile(path, []byte(test.text), 0o600))
		want := cli.ExitUsage
		if name == "refused" {
			want = cli.ExitFailure
		}
		if code, out, errs := runMain(t, "replay", path, "--addr", r.Addr); code != want || !strings.Contains(errs, test.says) {
			t.Errorf("%s: exit code %d, %q %q, want %q", name, code, out, errs, test.says)
		} else if name == "refused" && !strings.Contains(out, "scope.channel_id is required") {
			t.Errorf("%s: %q does not name the problem", name, out)
		}
	}
	if stored := r.Considerations(t, sidecartest.WithoutChannel("u")); len(stored) != 0 {
		t.Errorf("a file with mistakes is begun: %s", stored)
	}
	path := replayFile(t, map[string]string{"user": "u", "role": "user", "content": "hi"})
	r.Stop()
	if code, _, errs := runMain(t, "replay", path, "--addr", r.Addr); code != cli.ExitUnavailable || !strings.Contains(errs, r.Addr) ||
		!strings.Contains(errs, "memsidecar serve") {
		t.Errorf("without a sidecar: exit code %d, %q", code, errs)
	}
	if code, _, errs := runMain(t, "replay", "/no/such/file"); code != cli.ExitUsage || !strings.Contains(errs, "/no/such/file") {
		t.Errorf("without a file: exit code %d, %q", code, errs)
	}
}

// TestStopAnswersWaitingCalls: A waiting caller gets the current state, and the process stops without waiting for the outcome.
func TestStopAnswersWaitingCalls(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sidecartest.SeedConsideration(t, dir, sidecartest.Direct("u"), "stuck", sidecartest.Stuck)
	r := sidecartest.ServeIn(t, dir, "queue.max_wait=1h")
	type answer struct {
		resp *memsidecarv1.ConsiderMemorizingResponse
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		resp, err := r.ConsiderMemorizing(context.WithoutCancel(t.Context()), &memsidecarv1.ConsiderMemorizingRequest{
			Scope: sidecartest.Direct(
				"u",
			), Messages: []*memsidecarv1.Message{sidecartest.Said("My name is Anna.")}, Wait: durationpb.New(time.Hour),
		})
		answers <- answer{resp, err}
	}()
	for len(r.Considerations(t, sidecartest.Direct("u"))) < 2 { // accepted: now the call waits
	}
	r.Cancel()
	a := <-answers
	if a.err != nil || a.resp.GetConsideration().GetState() != sidecartest.Pending {
		t.Errorf("the waiting call got %s, %v", a.resp, a.err)
	}
	started := time.Now()
	r.Stop()
	if took := time.Since(started); took > sidecartest.Timeout {
		t.Errorf("stopping takes %s:\n%s", took, r.Log)
	}
	again := sidecartest.ServeIn(t, dir)
	if c := again.Consideration(t, sidecartest.Direct("u"), a.resp.GetConsideration().GetId()); c.GetState() != sidecartest.Pending {
		t.Errorf("the acknowledged dialogue is %s", c)
	}
}

// TestImportDoesNotChangeItsFile: The importer only reads its file.
func TestImportDoesNotChangeItsFile(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	path := t.TempDir() + "/seen_movies.json"
	const text = `{"movies": {"/mv/823D": {"title": "x", "first_seen": "2026-02-19"}}, "last_query": {"urls": ["/mv/823D"]}}`
	sidecartest.NoError(t, os.WriteFile(path, []byte(text), 0o400))
	if code, _, errs := runMain(t, "numbered-lists", "import", "--addr", r.Addr, "-u", "u", "--show", path); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	lists := memsidecarv1.NewNumberedListServiceClient(r.Conn)
	got := sidecartest.Must(lists.SelectItems(t.Context(), &memsidecarv1.SelectItemsRequest{
		Scope: sidecartest.WithoutChannel("u"), Selector: &memsidecarv1.SelectItemsRequest_Ordinal{Ordinal: 1},
	}))(t).GetItem().GetKey()
	if got != "/mv/823D" || string(sidecartest.Must(os.ReadFile(path))(t)) != text {
		t.Errorf("selects %s", got)
	}
}

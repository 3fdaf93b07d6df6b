package main

import (
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

const talkFile = evalFiles + "talk/people.jsonl"

// TestTalk: Expectations about memories and answers are judged at the end of each user's conversation, and each miss is listed.
func TestTalk(t *testing.T) {
	t.Parallel()
	numbers, shown, misses := evaluate(t, "talk", talkFile)
	for name, want := range map[string]float64{
		"clean.all": 1, "dropped.all": 1, "quiet.all": 1, "count.quiet.all": 2, "count.answered.all": 2,
		"steps.small talk.right": 1, "steps.small talk.count": 1, "count.kept.zh": 3,
	} {
		if numbers[name] != want {
			t.Errorf("%s is %v, want %v", name, numbers[name], want)
		}
	}
	if !strings.Contains(shown, "SHARE") || !strings.Contains(shown, "score") {
		t.Errorf("it shows %s", shown)
	}
	wrong := 0.0
	for name, value := range numbers {
		if kind, ok := strings.CutSuffix(name, ".count"); ok && strings.HasPrefix(kind, "steps.") {
			count, _ := value.(float64)
			right, _ := numbers[kind+".right"].(float64)
			wrong += count - right
		}
	}
	if (wrong > 0) != (len(misses) > 0) {
		t.Errorf("%v steps are wrong, and the misses are %v", wrong, misses)
	}
}

// TestTalkEqualsItsScript: The figures are those of the script that defines them. The script calls the JSON API with former names of
// fields and services, which must go on working.
func TestTalkEqualsItsScript(t *testing.T) {
	sidecartest.RequireTool(t, "python")
	dir := t.TempDir()
	binary, report := filepath.Join(dir, "memsidecar"), filepath.Join(dir, "talk.json")
	run := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	run("go", "build", "-o", binary, "../memsidecar")
	run("python3", evalFiles+"talk/talk_eval.py", binary, talkFile, "--json", report)
	var want map[string]float64
	decode(t, read(t, report), &want)
	numbers, _, _ := evaluate(t, "talk", talkFile)
	if len(want) < 15 {
		t.Errorf("the script has only %d figures: %v", len(want), want)
	}
	for name, value := range want {
		got, ok := numbers[name].(float64)
		if !ok || math.Abs(got-value) > 1e-6 {
			t.Errorf("%s is %s, the script says %v", name, fmt.Sprint(numbers[name]), value)
		}
	}
}

// TestTalkNamesWrongLines: A line that is not in the format is named with its file and number.
func TestTalkNamesWrongLines(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "wrong.jsonl")
	for text, want := range map[string]string{
		"{\"user\": \"a\", \"steps\": [{\"ask\": \"x\", \"want\": [\"(\"]}]}": "wrong.jsonl:1",
		"{\"user\": \"a\"}": `needs "user" and "steps"`,
	} {
		write(t, path, text+"\n")
		if code, _, errs := measure(t, "talk", path); code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d: %s", text, code, errs)
		}
	}
}

package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const evalFiles = "testdata/"

// measure runs the command line.
func measure(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func decode(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
}

// evaluate runs an evaluation. It returns the numbers, the output, and the list of misses.
func evaluate(t *testing.T, args ...string) (numbers map[string]any, shown string, misses []map[string]any) {
	t.Helper()
	dir := t.TempDir()
	report, missed := filepath.Join(dir, "report.json"), filepath.Join(dir, "misses.jsonl")
	code, out, errs := measure(t, append(args, "--json", report, "--misses", missed)...)
	if code != 0 || errs != "" {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	decode(t, read(t, report), &numbers)
	for line := range strings.Lines(string(read(t, missed))) {
		var miss map[string]any
		decode(t, []byte(line), &miss)
		misses = append(misses, miss)
	}
	return numbers, out, misses
}

func expect(t *testing.T, numbers, want map[string]any) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got, ok := numbers[name]; !ok || got != want[name] {
			t.Errorf("%s is %v, want %v", name, got, want[name])
		}
	}
}

func TestEvalLoCoMo(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	numbers, shown, misses := evaluate(t, "locomo", evalFiles+"talks.json")
	expect(t, numbers, map[string]any{
		"eval": "locomo", "file": "talks.json", "conversations": 1.0, "turns": 5.0,
		"questions": 7.0, "questions_without_evidence": 2.0, "questions_with_unknown_evidence": 0.0,
		"questions.all": 5.0, "questions.single_hop": 2.0, "questions.multi_hop": 2.0, "questions.temporal": 1.0,
		"recall.messages.single_hop.at1": 1.0,
		"recall.messages.multi_hop.at10": 0.75, // the caption is found; of the question about the regatta, one turn of two
		"recall.messages.temporal.at1":   0.5,  // one of the two turns of that day
		"recall.messages.temporal.at3":   1.0,
		"recall.memories.single_hop.at1": 1.0, // each speaker is a user
		"recall.memories.temporal.at10":  0.0,
		"recall.both.single_hop.at3":     1.0,
	})
	if p50, ok := numbers["latency.messages.p50_ms"].(float64); !ok || p50 <= 0 {
		t.Errorf("latency.messages.p50_ms is %v", numbers["latency.messages.p50_ms"])
	}
	if !strings.Contains(shown, "R@10") || !strings.Contains(shown, "single-hop") {
		t.Errorf("shows\n%s", shown)
	}
	var asked []any
	for _, miss := range misses {
		if miss["source"] == "messages" {
			asked = append(asked, miss["question"])
		}
	}
	if len(asked) != 1 || asked[0] != "Why did the regatta disappoint?" {
		t.Errorf("missed with messages: %v", asked)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) != 0 {
		t.Errorf("leaves %v behind: %v", left, err)
	}
}

// The environment's keys and configuration have no effect: the numbers are those of the embedded defaults.
func TestEvalIsIndependentOfTheEnvironment(t *testing.T) {
	t.Setenv("GEMINI_API_KEY", "wrong")
	t.Setenv("MEMSIDECAR_RULES_THRESHOLD", "9")
	t.Setenv("MEMSIDECAR_CONFIG", "/nowhere.yaml")
	code, out, errs := measure(t, "gate", evalFiles+"turns.jsonl", "--json", "-")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var numbers map[string]any
	decode(t, []byte(out), &numbers)
	expect(t, numbers, map[string]any{
		"eval": "gate", "files": "turns.jsonl", "memories": 2.0,
		"gate.turns": 4.0, "gate.positive": 2.0, "gate.predicted": 2.0, "gate.precision": 0.5, "gate.recall": 0.5, "gate.f1": 0.5,
		"gate.balanced_accuracy": 0.5, "gate.easy.turns": 3.0, "gate.easy.recall": 1.0, "gate.easy.balanced_accuracy": 0.75,
		"gate.hard.recall": 0.0, "gate.kind.fact.recall": 1.0, "gate.kind.plan.recall": 0.0,
	})
	if !strings.Contains(errs, "without hard ones") {
		t.Errorf("shows on standard error:\n%s", errs)
	}
}

func TestEvalGateOfPersonas(t *testing.T) {
	numbers, shown, misses := evaluate(t, "gate", evalFiles+"nora.jsonl")
	expect(t, numbers, map[string]any{
		"sessions": 5.0, "memories": 2.0,
		"gate.turns": 7.0, "gate.positive": 4.0, "gate.predicted": 3.0, // repeated statements are remembered
		"gate.precision": 1.0, "gate.recall": 0.75, "gate.clean_sessions": 1.0, "gate.no_memory_sessions": 1.0,
		// Nina Simone was never mentioned. Otis Redding is to be remembered, so it must not be forgotten.
		"gate.kept": 1.0, "gate.kept_facts": 1.0, "gate.unsaid_facts": 1.0,
		// "Okay, thanks" was never remembered. Nothing retracts the other.
		"gate.forgotten": 0.5, "gate.forgotten_facts": 2.0, "gate.forgotten_remembered": 0.0, "gate.forgotten_remembered_facts": 1.0,
		"gate.then.kept": 1.0, "gate.then.forgotten": 0.5, "gate.then.forgotten_remembered": 0.0,
	})
	if !strings.Contains(shown, "of those that had been remembered") {
		t.Errorf("shows\n%s", shown)
	}
	var wrong []string
	for _, miss := range misses {
		text, _ := miss["text"].(string)
		fact, _ := miss["fact"].(string)
		kind, _ := miss["wrong"].(string)
		wrong = append(wrong, kind+": "+text+fact)
	}
	if want := []string{"false negative: Okay, thanks.", "not forgotten: Hilma af Klint"}; !slices.Equal(wrong, want) {
		t.Errorf("misses %q, want %q", wrong, want)
	}
}

func TestEvalMistakes(t *testing.T) {
	dir := t.TempDir()
	report := filepath.Join(dir, "report.json")
	write(t, report, `{"eval": "gate"}`)
	broken := filepath.Join(dir, "broken.json")
	write(t, broken, "[{},\n")
	talks := evalFiles + "talks.json"
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"locomo", broken}, "broken.json:2: "},
		{[]string{"gate", talks}, "talks.json:1: "},
		{[]string{"locomo", talks, "--compare", report}, "is no report of eval locomo"},
		{[]string{"locomo", talks, "--compare", filepath.Join(dir, "none")}, "none"},
		{[]string{"locomo", talks, "--json", filepath.Join(dir, "no", "such.json")}, "does not exist"},
		{[]string{"locomo", talks, "--json", "-", "--misses", "-"}, "cannot both"},
		{[]string{"locomo", talks, "--sources", "dreams"}, "must be one of"},
		{[]string{"locomo", talks, "--set", "data_dir=" + dir}, "memeval sets data_dir itself"},
		{[]string{"locomo", talks, "--set", "digest.enabled=true"}, "memeval sets digest.enabled itself"},
		{[]string{"gate", evalFiles + "nora.jsonl", evalFiles + "turns.jsonl"}, "turns.jsonl: is of another format than the files before"},
		{[]string{"locomo", talks, "--set", "retrieval.colour=red"}, "retrieval.colour"},
	} {
		code, _, errs := measure(t, test.args...)
		if code != exitUsage || !strings.Contains(errs, test.says) {
			t.Errorf("%v: exit code %d, %s", test.args, code, errs)
		}
	}
}

// TestCompare shows differences from an earlier run, and names settings that differ.
func TestCompare(t *testing.T) {
	before := filepath.Join(t.TempDir(), "before.json")
	talks := evalFiles + "talks.json"
	if code, _, errs := measure(t, "locomo", talks, "--sources", "messages", "--json", before); code != 0 {
		t.Fatal(errs)
	}
	code, out, errs := measure(t, "locomo", talks, "--sources", "messages", "--compare", before)
	if code != 0 || errs != "" || !strings.Contains(out, "(+0.000)") || strings.Contains(out, "memories") {
		t.Errorf("the same run: exit code %d, %s\n%s", code, errs, out)
	}
	code, out, errs = measure(t, "locomo", talks, "--sources", "messages", "--compare", before, "--set", "retrieval.min_relevance=1")
	if code != 0 || errs != "not the same: retrieval.min_relevance is \"1\", was not set\n" || !strings.Contains(out, "(-0.") {
		t.Errorf("another configuration: exit code %d, %s\n%s", code, errs, out)
	}
}

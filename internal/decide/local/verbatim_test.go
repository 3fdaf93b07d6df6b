package local_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/decide/classify"
	"github.com/memsidecar/memsidecar/internal/decide/local"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// person is a line of a file in the talk format.
type person struct {
	User  string `json:"user"`
	Steps []struct {
		At   time.Time `json:"at"`
		Call []struct {
			Role    string `json:"role"`
			Content string `json:"content"`
			Speaker string `json:"speaker"`
		} `json:"call"`
	} `json:"steps"`
}

// TestMemoriesAreVerbatim: Outside of the brackets with dates, a memory holds only what was said, in all conversations there are.
func TestMemoriesAreVerbatim(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../../dataset/talk/*/*.jsonl")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	extractor := local.New(classify.Default(), local.Options{Least: .1})
	checked := 0
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			var p person
			if err := json.Unmarshal([]byte(line), &p); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			checked += p.check(t, extractor)
		}
	}
	if checked < 500 {
		t.Errorf("only %d memories were checked", checked)
	}
}

// check extracts the memories of all dialogues, and returns how many there are.
func (p *person) check(t *testing.T, extractor *local.Extractor) (memories int) {
	t.Helper()
	var known []decide.Known
	spoken := "" // all messages, without white space
	for i, step := range p.Steps {
		in := decide.Transcript{Speaker: p.User, Location: time.UTC}
		for k, m := range step.Call {
			said := memory.Message{ID: fmt.Sprintf("%d-%d", i, k), Role: memory.RoleUser, Speaker: p.User, Content: m.Content, Time: step.At}
			if m.Role != "user" {
				said.Role, said.Speaker = memory.RoleAssistant, ""
			} else if m.Speaker != "" {
				said.Speaker = m.Speaker
			}
			spoken += squeezed(m.Content) + "\n"
			in.Dialogue.Messages = append(in.Dialogue.Messages, said)
		}
		found, err := extractor.Extract(context.Background(), decide.Input{
			Transcript: in, Known: func() ([]decide.Known, error) { return known, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		for n, op := range found.Ops {
			if op.Action != decide.OpAdd && op.Action != decide.OpUpdate {
				continue
			}
			memories++
			separator := between
			if strings.HasPrefix(op.Statement.Reason, "what is left of") {
				separator = clauses
			}
			for _, part := range separator.Split(brackets.ReplaceAllString(op.Statement.Text, ""), -1) {
				if part = squeezed(strings.TrimSuffix(part, "…")); !strings.Contains(spoken, part) {
					t.Errorf("%s, step %d: %q was not said", p.User, i, op.Statement.Text)
				}
			}
			known = append(known, decide.Known{Memory: memory.Memory{
				ID: fmt.Sprintf("%d-%d", i, n), Text: op.Statement.Text, Kind: op.Statement.Kind, ObservedAt: op.Statement.ObservedAt,
				Provenance: memory.Provenance{MessageIDs: op.Statement.MessageIDs, Slot: op.Statement.Slot, DecidedBy: "rules"},
			}})
		}
	}
	return memories
}

var (
	brackets = regexp.MustCompile(` ?\[[0-9]{4}[0-9/-]*\]`)
	between  = regexp.MustCompile(` — `)
	clauses  = regexp.MustCompile(` — |[,;，；、。.]| and `)
)

// squeezed leaves out white space, which memory.CleanText may change.
func squeezed(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
}

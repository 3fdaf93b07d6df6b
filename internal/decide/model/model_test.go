package model

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/llm"
	"github.com/memsidecar/memsidecar/internal/memory"
)

var update = flag.Bool("update", false, "write the golden files")

// noon is in Shanghai; it is four in the morning in UTC.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, shanghai)

var shanghai = time.FixedZone("Asia/Shanghai", 8*60*60)

// script is a model that gives the scripted answers, errors among them, in turn.
type script struct {
	answers []any // string or error
	prompts []string
	last    llm.Request
}

func (s *script) Name() string { return "fake/script" }

func (s *script) Generate(_ context.Context, r llm.Request) (llm.Response, error) {
	s.prompts = append(s.prompts, r.Prompt)
	s.last = r
	if len(s.prompts) > len(s.answers) {
		return llm.Response{}, errors.New("asked more often than scripted")
	}
	switch answer := s.answers[len(s.prompts)-1].(type) {
	case error:
		return llm.Response{}, answer
	case string:
		return llm.Response{Text: answer}, nil
	default:
		panic("the script has neither a text nor an error")
	}
}

func answers(a ...any) *script { return &script{answers: a} }

// talk builds an input of the user "u" without known memories; "A: " begins a message of the assistant, "B: " one of the person "bob",
// "S: " a system message, "T: " a tool's.
func talk(lines ...string) decide.Input {
	d := memory.Dialogue{Scope: memory.Scope{UserID: "u"}}
	for i, l := range lines {
		m := memory.Message{Role: memory.RoleUser, Speaker: "u", Content: l, Time: noon.Add(time.Duration(i) * time.Minute).UTC()}
		for prefix, role := range map[string]memory.Role{"A: ": memory.RoleAssistant, "S: ": memory.RoleSystem, "T: ": memory.RoleTool, "B: ": memory.RoleUser} {
			if rest, ok := strings.CutPrefix(l, prefix); ok {
				m.Role, m.Speaker, m.Content = role, "", rest
				if prefix == "B: " {
					m.Speaker = "bob"
				}
			}
		}
		d.Messages = append(d.Messages, m)
	}
	return decide.Input{Transcript: decide.Transcript{Dialogue: d, Speaker: "u", Location: shanghai}}
}

// knowing adds known memories with the ids mem_0, mem_1 and so on. "! " marks those made just now.
func knowing(in decide.Input, texts ...string) decide.Input {
	var known []decide.Known
	for i, text := range texts {
		text, justNow := strings.CutPrefix(text, "! ")
		known = append(known, decide.Known{JustNow: justNow, Memory: memory.Memory{
			ID: "mem_" + string(rune('0'+i)), Text: text, Kind: memory.KindFact, ObservedAt: noon.AddDate(0, 0, i-10),
		}})
	}
	in.Known = func() ([]decide.Known, error) { return known, nil }
	return in
}

// after makes the first n messages earlier ones.
func after(n int, in decide.Input) decide.Input {
	in.Earlier = n
	return in
}

func newGate(t *testing.T, m llm.Model, o Options) *Gate {
	t.Helper()
	g, err := NewGate(m, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func newExtractor(t *testing.T, m llm.Model, o Options) *Extractor {
	t.Helper()
	e, err := NewExtractor(m, o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// rendered is the record as the model sees it.
func rendered(t testing.TB, in decide.Input, maxChars int) page {
	t.Helper()
	p, err := render(maxChars, in)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// outline is ops in short: the action, the ids, the text, and the messages.
func outline(found decide.Extraction) string {
	var parts []string
	for _, op := range found.Ops {
		parts = append(parts, strings.Join([]string{
			string(op.Action), strings.Join(op.IDs, ","), op.Statement.Text, strings.Join(op.Statement.MessageIDs, ","),
		}, "|"))
	}
	return strings.Join(parts, "; ")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got+"\n" != string(want) {
		t.Errorf("%s differs (go test -update writes it):\n%s", path, got)
	}
}

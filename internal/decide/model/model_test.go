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

// talk builds a transcript of the user "u"; "A: " begins a message of the assistant, "B: " one of the person "bob", "S: "
// a system message, "T: " a tool's.
func talk(lines ...string) decide.Transcript {
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
	return decide.Transcript{Dialogue: d, Speaker: "u", Location: shanghai}
}

// requests is a detector that finds these.
type requests []memory.Statement

func (r requests) Explicit(context.Context, decide.Transcript) ([]memory.Statement, error) {
	return r, nil
}

// asked is a request to remember the words of a message.
func asked(ref, words string) requests {
	return requests{{MessageIDs: []string{ref}, Quote: words, Kind: memory.KindPreference}}
}

func newDecider(t *testing.T, m llm.Model, o Options) *Decider {
	t.Helper()
	d, err := NewDecider(m, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func newSummarizer(t *testing.T, m llm.Model, o Options) *Summarizer {
	t.Helper()
	s, err := NewSummarizer(m, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// yes is a verdict to summarise with.
var yes = decide.Verdict{Remember: true, Reason: "the verdict's reason"}

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

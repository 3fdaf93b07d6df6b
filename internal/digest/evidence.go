package digest

import (
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/decide/evidence"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// borneOut leaves out what a model found and nobody said: a finding's names, numbers and dates must be in the messages on which it
// rests, or follow from when those were said. A detail that the user said in another message has that cited as well. A topic
// rests on all messages. It also returns how many findings were left out.
func borneOut(findings []Finding, p *Piece) (kept []Finding, left int) {
	names := []string{p.Scope.UserID, p.Scope.AgentID}
	said := make([]evidence.Said, len(p.Messages))
	for i := range p.Messages {
		m := &p.Messages[i]
		var text strings.Builder
		text.WriteString(m.Content)
		for _, call := range m.Tools {
			text.WriteString("\n" + call.Arguments + "\n" + call.Result)
		}
		said[i] = evidence.Said{Text: text.String(), At: m.Time.In(p.Location)}
		names = append(names, m.Speaker, m.AgentID)
	}
	checker := evidence.NewChecker(said, names)
	for i := range findings {
		if f := findings[i]; f.borneOut(checker, p) {
			kept = append(kept, f)
		} else {
			left++
		}
	}
	return kept, left
}

// borneOut reports whether messages bear a finding out, and cites those that it takes.
func (f *Finding) borneOut(checker *evidence.Checker, p *Piece) bool {
	var cited, others []int
	for i := range p.Messages {
		switch m := &p.Messages[i]; {
		case f.Category == Topic, slices.Contains(f.MessageIDs, m.Name()):
			cited = append(cited, i)
		case m.Role == memory.RoleUser:
			others = append(others, i)
		}
	}
	for _, text := range []string{f.Text, f.Statement, f.Solution, f.Key} {
		more, problem := checker.Check(text, cited, others)
		if problem != "" {
			return false
		}
		for _, i := range more {
			f.MessageIDs = append(f.MessageIDs, p.Messages[i].Name())
			cited = append(cited, i)
			others = slices.DeleteFunc(others, func(o int) bool { return o == i })
		}
	}
	return true
}

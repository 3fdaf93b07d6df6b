package decide

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide/evidence"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// rulesName is the name of those who quote, and so need no checking.
const rulesName = "rules"

// examine leaves out of a plan what is an echo of what is remembered, quarantines what a model states without evidence, and
// says in the plan's reason what was left out. over is why rules summarised in a model's place, or nil.
func (c *Considerer) examine(ctx context.Context, t Transcript, p *plan, over *memory.BudgetError) error {
	var kept []memory.Statement
	var reasons []string // in order of first appearance
	count := map[string]int{}
	checker := t.checker()
	for _, s := range p.Statements {
		if s.Forget { // states nothing
			kept = append(kept, s)
			continue
		}
		why, err := c.settleEcho(ctx, t, &s)
		if err != nil {
			return err
		}
		if why != "" {
			if count[why]++; count[why] == 1 {
				reasons = append(reasons, why)
			}
			continue
		}
		if over == nil && c.Summarizer.Name() != rulesName {
			t.bearOut(checker, &s)
		}
		kept = append(kept, s)
	}
	p.Statements = kept
	for _, why := range reasons {
		what := "a statement was left out"
		if n := count[why]; n > 1 {
			what = fmt.Sprintf("%d statements were left out", n)
		}
		p.Reason += "; " + what + ": " + why
	}
	for _, note := range t.Notes.All() {
		p.Reason += "; " + note
	}
	return nil
}

// checker is of statements that a model makes of the transcript.
func (t Transcript) checker() *evidence.Checker {
	names := []string{t.Dialogue.Scope.UserID, t.Dialogue.Scope.AgentID}
	said := make([]evidence.Said, len(t.Dialogue.Messages))
	for i := range t.Dialogue.Messages {
		m := &t.Dialogue.Messages[i]
		said[i] = t.said(m)
		names = append(names, m.Speaker, m.AgentID)
	}
	slices.Sort(names)
	return evidence.NewChecker(said, slices.Compact(names))
}

// bearOut checks that what a model states was said. A detail that the speaker said in another message is a reason to cite
// that; one that nobody said, to trust the statement no further.
func (t Transcript) bearOut(checker *evidence.Checker, s *memory.Statement) {
	var cited, others []int
	for i := range t.Dialogue.Messages {
		m := &t.Dialogue.Messages[i]
		switch {
		case slices.Contains(s.MessageIDs, t.Dialogue.MessageRef(i)):
			cited = append(cited, i)
		case m.Role == memory.RoleUser && m.Speaker == t.Speaker:
			others = append(others, i)
		}
	}
	more, problem := checker.Check(s.Text, cited, others)
	if problem != "" {
		s.Quarantine = problem
	}
	for _, i := range more {
		t.cite(s, i)
	}
}

// said is a message as evidence, with what its tools were asked and gave.
func (t Transcript) said(m *memory.Message) evidence.Said {
	location := t.Location
	if location == nil {
		location = time.UTC
	}
	var b strings.Builder
	b.WriteString(m.Content)
	for _, call := range m.Tools {
		b.WriteString("\n" + call.Arguments + "\n" + call.Result)
	}
	return evidence.Said{Text: b.String(), At: m.Time.In(location)}
}

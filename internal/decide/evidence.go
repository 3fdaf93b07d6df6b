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

// rulesName is the name of extractors that quote the user. Their statements need no check.
const rulesName = "rules"

// examine excludes echoes of existing memories from a plan, quarantines model statements without evidence, and adds to the plan's
// reason what was left out. over is the budget that made rules summarise instead of a model, or nil.
func (c *Considerer) examine(ctx context.Context, t Transcript, p *plan, over *memory.BudgetError) error {
	var kept []memory.Statement
	var reasons []string // in order of first appearance
	count := map[string]int{}
	checker := t.checker()
	for _, s := range p.Statements {
		if s.Forget { // a request, not a statement
			kept = append(kept, s)
			continue
		}
		why, err := c.checkEcho(ctx, t, &s)
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
			t.checkDetails(checker, &s)
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

// checker returns a checker for statements that a model makes about the transcript.
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

// checkDetails checks that the messages support a model's statement. It cites the other messages of the speaker that hold a detail of the
// statement. A detail that was never said lowers the trust in the statement.
func (t Transcript) checkDetails(checker *evidence.Checker, s *memory.Statement) {
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

// said returns a message as evidence, including the inputs and outputs of its tool calls.
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

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

// Examine excludes statements that are echoes of existing memories. note says what was left out.
func (e *Echoes) Examine(ctx context.Context, t Transcript, statements []memory.Statement) (kept []memory.Statement, note string, err error) {
	var left exclusions
	for _, s := range statements {
		why := ""
		if !s.Forget { // a request, not a statement
			if why, err = e.Check(ctx, t, &s); err != nil {
				return nil, "", err
			}
		}
		if !left.add(why) {
			kept = append(kept, s)
		}
	}
	return kept, left.String(), nil
}

// checkOps excludes ops of a model that are echoes of existing memories, and quarantines statements without evidence. The transcript's
// notes say what was left out.
func (c *Considerer) checkOps(ctx context.Context, in Input, ops []Op) (kept []Op, err error) {
	t := in.Transcript
	known, err := in.Known()
	if err != nil {
		return nil, err
	}
	var left exclusions
	checker := t.checker(known)
	for _, op := range ops {
		why := ""
		if op.Action == OpAdd || op.Action == OpUpdate {
			if why, err = c.Echoes.Check(ctx, t, &op.Statement); err != nil {
				return nil, fmt.Errorf("comparing with existing memories: %w", err)
			}
			t.checkDetails(checker, &op.Statement, replaced(known, op.IDs))
		}
		if left.add(why) {
			op.Action = opExcluded // the numbers of ops stay
		}
		kept = append(kept, op)
	}
	if note := left.String(); note != "" {
		t.Notes.Add(strings.TrimPrefix(note, "; "))
	}
	return kept, nil
}

// exclusions counts the reasons for which statements were left out.
type exclusions struct {
	reasons []string // in order of first appearance
	count   map[string]int
}

// add counts a reason. It reports false for an empty one.
func (e *exclusions) add(why string) bool {
	if why == "" {
		return false
	}
	if e.count == nil {
		e.count = map[string]int{}
	}
	if e.count[why]++; e.count[why] == 1 {
		e.reasons = append(e.reasons, why)
	}
	return true
}

func (e *exclusions) String() string {
	var b strings.Builder
	for _, why := range e.reasons {
		what := "a statement was left out"
		if n := e.count[why]; n > 1 {
			what = fmt.Sprintf("%d statements were left out", n)
		}
		b.WriteString("; " + what + ": " + why)
	}
	return b.String()
}

// checker returns a checker for statements that a model makes about the transcript. The known memories are numbered after the messages.
func (t Transcript) checker(known []Known) *evidence.Checker {
	names := []string{t.Dialogue.Scope.UserID, t.Dialogue.Scope.AgentID}
	var said []evidence.Said
	for i := range t.Dialogue.Messages {
		m := &t.Dialogue.Messages[i]
		said = append(said, t.said(m))
		names = append(names, m.Speaker, m.AgentID)
	}
	for i := range known { // numbered after the messages
		said = append(said, evidence.Said{Text: known[i].Memory.Text, At: known[i].Memory.ObservedAt})
	}
	slices.Sort(names)
	return evidence.NewChecker(said, slices.Compact(names))
}

// replaced returns the positions of the memories that an op names: what still holds of them needs no other evidence.
func replaced(known []Known, ids []string) (positions []int) {
	for i := range known {
		if slices.Contains(ids, known[i].Memory.ID) {
			positions = append(positions, i)
		}
	}
	return positions
}

// checkDetails checks that the messages, or the memories that the statement replaces, have the figures of a model's statement. It cites
// the other messages of the speaker that have one. A figure that was never said lowers the trust in the statement.
func (t Transcript) checkDetails(checker *evidence.Checker, s *memory.Statement, replaces []int) {
	var cited, others []int
	for i := range t.Dialogue.Messages {
		m := &t.Dialogue.Messages[i]
		switch {
		case slices.Contains(s.MessageIDs, t.Ref(i)):
			cited = append(cited, i)
		case m.Role == memory.RoleUser && m.Speaker == t.Speaker:
			others = append(others, i)
		}
	}
	for _, i := range replaces {
		cited = append(cited, len(t.Dialogue.Messages)+i)
	}
	more, problem := checker.CheckFigures(s.Text, cited, others)
	if problem != "" && s.Quarantine == "" {
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

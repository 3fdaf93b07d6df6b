package decide

import (
	"context"
	"errors"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/trace"
)

// Rules decide and summarise without a model, so that no budget concerns them.
type Rules interface {
	Decider
	Summarizer
}

// What a trace says that a model did not do.
const (
	decisionComponent = "decision"
	summaryComponent  = "summary"
)

// verdict asks the decider or, when that may not ask its model, the rules. Which of them it was is told.
func (c *Considerer) verdict(ctx context.Context, t Transcript) (v Verdict, by string, err error) {
	v, err = c.Decider.Decide(ctx, t)
	over, ok := errors.AsType[*memory.BudgetError](err)
	if !ok {
		return v, c.Decider.Name(), err
	}
	if v, err = c.Rules.Decide(ctx, t); err != nil {
		return v, "", err
	}
	trace.Degrade(ctx, decisionComponent, over.Error())
	v.Reason += "; decided by rules: " + over.Error()
	return v, c.Rules.Name(), nil
}

// statements asks the summariser or, when that may not ask its model, the rules. The note to add to the reason says so.
func (c *Considerer) statements(ctx context.Context, t Transcript, v Verdict) (statements []memory.Statement, note string, err error) {
	statements, err = c.Summarizer.Summarize(ctx, t, v)
	over, ok := errors.AsType[*memory.BudgetError](err)
	if !ok {
		return statements, "", err
	}
	if statements, err = c.Rules.Summarize(ctx, t, v); err != nil {
		return nil, "", err
	}
	trace.Degrade(ctx, summaryComponent, over.Error())
	return statements, "; summarised by rules: " + over.Error(), nil
}

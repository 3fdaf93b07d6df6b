package decide

import (
	"context"
	"errors"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/observe/span"
	"github.com/memsidecar/memsidecar/internal/trace"
)

// Rules decide and summarise without a model, so no token budget applies to them.
type Rules interface {
	Decider
	Summarizer
}

// What a trace calls the steps that a model did not do.
const (
	decisionComponent = "decision"
	summaryComponent  = "summary"
)

// verdict asks the decider or, when the token budget of its model is used up, the rules. In that case it returns the exceeded budget.
func (c *Considerer) verdict(ctx context.Context, t Transcript) (v Verdict, over *memory.BudgetError, err error) {
	ctx, end := span.Start(ctx, "decide")
	defer func() { end(err) }()
	v, err = c.Decider.Decide(ctx, t)
	over, ok := errors.AsType[*memory.BudgetError](err)
	if !ok {
		return v, nil, err
	}
	trace.Degrade(ctx, decisionComponent, over.Error())
	v, err = c.Rules.Decide(ctx, t)
	return v, over, err
}

// statements asks the summariser or, when the token budget of its model is used up, the rules. A dialogue that the rules decided is
// also summarised by them; over is the budget that made them decide, or nil.
func (c *Considerer) statements(
	ctx context.Context, t Transcript, v Verdict, over *memory.BudgetError,
) (_ []memory.Statement, _ *memory.BudgetError, err error) {
	ctx, end := span.Start(ctx, "summarize")
	defer func() { end(err) }()
	if over == nil {
		statements, err := c.Summarizer.Summarize(ctx, t, v)
		var ok bool
		if over, ok = errors.AsType[*memory.BudgetError](err); !ok {
			return statements, nil, err
		}
	}
	trace.Degrade(ctx, summaryComponent, over.Error())
	statements, err := c.Rules.Summarize(ctx, t, v)
	return statements, over, err
}

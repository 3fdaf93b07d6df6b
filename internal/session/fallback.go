package session

import (
	"context"
	"errors"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/trace"
)

// Why a summary was extracted instead of written by the model, as Options.Fallback reports it.
const (
	FallbackUnusable = "unusable" // the model's answers could not be used, also when asked again
	FallbackRefused  = "refused"  // the provider refused the request for good
	FallbackBudget   = "budget"   // a token budget is used up
)

// fresh returns the new text and what made it: the summarizer or, when waiting for its model would not help, Extract.
func (k *Keeper) fresh(ctx context.Context, t task, s Summarizing) (text, madeBy string, err error) {
	text, err = k.Summarizer.Summarize(ctx, s)
	reason := fallback(err)
	if reason == "" || ctx.Err() != nil || k.Extract == nil {
		return text, k.Summarizer.Name(), err
	}
	if reason != FallbackBudget { // GetStatus reports budgets
		k.options.Log.Warn("a model could not summarize a conversation; its summary is extracted", "reason", reason,
			"model", k.Summarizer.Name(), "namespace", t.namespace, "session", t.session, "error", err)
	}
	if k.options.Fallback != nil {
		k.options.Fallback(reason)
	}
	text, err = k.Extract.Summarize(ctx, s)
	return text, k.Extract.Name(), err
}

// fallback says why a summary is to be extracted after an error of the model. It is "" without an error, and for errors
// that may pass: the summary is worth waiting for.
func fallback(err error) string {
	_, transient := errors.AsType[*memory.TransientError](err)
	_, over := errors.AsType[*memory.BudgetError](err)
	_, refused := errors.AsType[*memory.RefusedError](err)
	switch {
	case err == nil, errors.Is(err, memory.ErrUnavailable), errors.Is(err, context.Canceled):
		return ""
	case over:
		return FallbackBudget
	case transient:
		return ""
	case refused:
		return FallbackRefused
	}
	return FallbackUnusable
}

// summaryComponent is what a trace says that the model did not do.
const summaryComponent = "summary"

// summaryFallback is the note for a trace that the stored summary was not written by the model, or nil.
func (k *Keeper) summaryFallback(s *Summary) []trace.Degradation {
	if s == nil || k.Extract == nil || k.Summarizer == nil || s.MadeBy != k.Extract.Name() {
		return nil
	}
	if name := k.Summarizer.Name(); name == s.MadeBy || name == "" {
		return nil
	}
	return []trace.Degradation{{Component: summaryComponent, Reason: "made by " + s.MadeBy + " instead of " + k.Summarizer.Name()}}
}

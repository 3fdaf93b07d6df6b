package session

import (
	"context"
	"errors"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/trace"
)

// Why a summary was extracted instead of written by the model, for Options.Fallback.
const (
	FallbackUnusable = "unusable" // the model's answers could not be used, even after a retry
	FallbackRefused  = "refused"  // the provider refused the request permanently
	FallbackBudget   = "budget"   // a token budget is used up
)

// fresh returns the new text and the name of its author: the summarizer or, if nobody has read the session yet or waiting for the model would
// not help, Extract.
func (k *Service) fresh(ctx context.Context, t task, s Summarizing, read bool) (text, madeBy string, err error) {
	if !read && k.extractsFirst() {
		text, err = k.Extract.Summarize(ctx, s)
		return text, k.Extract.Name(), err
	}
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

// fallback returns why a summary is extracted after an error of the model. It is "" without an error, and for temporary errors, which
// are retried.
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

// summaryComponent is the name of the model's part in a trace.
const summaryComponent = "summary"

// summaryFallback returns the trace's note that the model did not write the stored summary, or nil.
func (k *Service) summaryFallback(s *Summary) []trace.Degradation {
	if s == nil || k.Extract == nil || k.Summarizer == nil || s.MadeBy != k.Extract.Name() {
		return nil
	}
	if name := k.Summarizer.Name(); name == s.MadeBy || name == "" {
		return nil
	}
	return []trace.Degradation{{Component: summaryComponent, Reason: "made by " + s.MadeBy + " instead of " + k.Summarizer.Name()}}
}

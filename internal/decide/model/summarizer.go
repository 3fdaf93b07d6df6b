package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/llm"
	"github.com/memsidecar/memsidecar/internal/llm/answer"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// Summarizer asks a model for the statements that are worth remembering.
type Summarizer struct {
	model   llm.Model
	options Options
}

var _ decide.Summarizer = (*Summarizer)(nil)

// NewSummarizer returns a Summarizer. It is an error if the options are wrong.
func NewSummarizer(m llm.Model, options Options) (*Summarizer, error) {
	options, err := options.resolve(DefaultSummaryPrompt)
	if err != nil {
		return nil, fmt.Errorf("summary by model: %w", err)
	}
	return &Summarizer{model: m, options: options}, nil
}

// Name is the model's.
func (s *Summarizer) Name() string { return s.model.Name() }

// leftOut says which statements of an answer could not be used. It holds nothing of what people said.
func leftOut(faults []string) string {
	what := "1 statement of the model was left out, wrong twice"
	if n := len(faults); n > 1 {
		what = fmt.Sprintf("%d statements of the model were left out, wrong twice", n)
	}
	return what + ": " + firstOf(faults, maxFaults)
}

// Summarize asks the model, checks what it says, and adds in their own words the explicit requests that it left out.
func (s *Summarizer) Summarize(ctx context.Context, t decide.Transcript, v decide.Verdict) ([]memory.Statement, error) {
	if !v.Remember || !anyWords(t) {
		return nil, ctx.Err()
	}
	requests, forgets, err := detect(ctx, s.options.Explicit, t)
	if err != nil {
		return nil, err
	}
	p := render(t, s.options.MaxChars)
	if !strings.HasSuffix(v.Reason, p.cutNote()) { // an explicit request is decided without reading
		v.Reason += p.cutNote()
	}
	var requested []int
	for _, r := range requests {
		requested = append(requested, r.messages...)
	}
	r := &reader{t: t, p: p, v: v}
	drafts, err := answer.Ask(ctx, s.model, llm.Request{
		Prompt: summaryPrompt(s.options.Prompt, p, requested), Schema: summarySchema(), SchemaName: "summary", Generation: s.options.Generation,
	}, r.read)
	switch {
	case err == nil:
	case errors.Is(err, answer.ErrUnusable) && len(r.rest.drafts) > 0:
		// Two answers had faults, but those are the single statements' own: what is right need not wait for what is not.
		drafts = r.rest.drafts
		t.Notes.Add(leftOut(r.rest.faults))
	default:
		return nil, err
	}
	v.Explicit = v.Explicit && (len(requests) > 0 || len(forgets) == 0) // a request to forget asks to remember nothing
	drafts = honour(t, v, drafts, requests)
	slices.SortStableFunc(drafts, func(a, b draft) int { return slices.Max(a.cited) - slices.Max(b.cited) })
	var out []memory.Statement
	for _, d := range drafts {
		out = append(out, d.Statement)
	}
	return append(out, forgets...), nil
}

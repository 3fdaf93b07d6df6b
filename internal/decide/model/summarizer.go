package model

import (
	"context"
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

// Summarize asks the model, checks what it says, and adds in their own words the explicit requests that it left out.
func (s *Summarizer) Summarize(ctx context.Context, t decide.Transcript, v decide.Verdict) ([]memory.Statement, error) {
	if !v.Remember || !anyWords(t) {
		return nil, ctx.Err()
	}
	requests, err := detect(ctx, s.options.Explicit, t)
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
	drafts, err := answer.Ask(ctx, s.model, llm.Request{
		Prompt: summaryPrompt(s.options.Prompt, p, requested), Schema: summarySchema(), SchemaName: "summary", Generation: s.options.Generation,
	}, reader{t, p, v}.read)
	if err != nil {
		return nil, err
	}
	drafts = honour(t, v, drafts, requests)
	slices.SortStableFunc(drafts, func(a, b draft) int { return slices.Max(a.cited) - slices.Max(b.cited) })
	var out []memory.Statement
	for _, d := range drafts {
		out = append(out, d.Statement)
	}
	return out, nil
}

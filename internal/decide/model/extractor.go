package model

import (
	"context"
	"fmt"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/llm"
	"github.com/memsidecar/memsidecar/internal/llm/answer"
	"github.com/memsidecar/memsidecar/internal/trace"
)

// Extractor asks a model, in one call, how what was said changes the memories.
type Extractor struct {
	model   llm.Model
	options Options
	version string // of the prompt
}

var _ decide.Together = (*Extractor)(nil)

// NewExtractor returns an Extractor. It is an error if the options are wrong.
func NewExtractor(m llm.Model, options Options) (*Extractor, error) {
	options, err := options.resolve(DefaultSummaryPrompt)
	if err != nil {
		return nil, fmt.Errorf("summary by model: %w", err)
	}
	return &Extractor{model: m, options: options, version: version(constantPart, options.Prompt)}, nil
}

// Name is the model's.
func (e *Extractor) Name() string { return e.model.Name() }

// Extract implements decide.Extractor. An answer that cannot be read is asked for once more. Of a readable one, each op is checked
// alone: one that cannot be used is left out, and the transcript's notes say so.
func (e *Extractor) Extract(ctx context.Context, in decide.Input) (decide.Extraction, error) {
	p, request, err := e.request(ctx, in)
	if err != nil {
		return decide.Extraction{}, err
	}
	r := &reader{in: in, page: p}
	found, err := answer.Ask(ctx, e.model, request, r.read)
	if err != nil {
		return decide.Extraction{}, err
	}
	found.Reason += p.cutNote()
	return found, nil
}

// ExtractTogether implements decide.Together: one call reads the record for all users.
func (e *Extractor) ExtractTogether(ctx context.Context, inputs []decide.Input) ([]decide.Extraction, error) {
	p, request, err := e.request(ctx, inputs...)
	if err != nil {
		return nil, err
	}
	r := &groupReader{page: p}
	for _, in := range inputs {
		r.readers = append(r.readers, &reader{in: in, page: p})
	}
	found, err := answer.Ask(ctx, e.model, request, r.read)
	for i := range found {
		found[i].Reason += p.cutNote()
	}
	return found, err
}

func (e *Extractor) request(ctx context.Context, inputs ...decide.Input) (page, llm.Request, error) {
	p, err := render(e.options.MaxChars, inputs...)
	if err != nil {
		return p, llm.Request{}, err
	}
	trace.Prompted(ctx, trace.Prompt{Part: "summary", Version: e.version, Known: len(p.known), Earlier: p.earlier})
	return p, llm.Request{
		Prompt: extractionPrompt(e.options.Prompt, p), Schema: opsSchema(p.users), SchemaName: "memory", Generation: e.options.Generation,
	}, nil
}

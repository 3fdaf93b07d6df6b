package decide

import (
	"context"
	"errors"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/observe/span"
	"github.com/memsidecar/memsidecar/internal/trace"
)

// What a trace calls the steps that the local extractor did instead of a model.
const (
	decisionComponent = "decision"
	summaryComponent  = "summary"
)

// extracted is what an extractor found, and who it was.
type extracted struct {
	Extraction
	by string
	// fallback is why the local extractor decided instead of a model; empty: it did not.
	fallback string
}

// extract asks the gate, if there is one, and the extractor. While a model cannot be reached, the error is a *memory.TransientError and
// the dialogue is considered later. When a model refuses, gives unusable answers, or its token budget is used up, the local extractor
// decides instead.
func (c *Considerer) extract(ctx context.Context, in Input) (extracted, error) {
	found, done, err := c.gate(ctx, in)
	if done || err != nil {
		return found, err
	}
	return c.extractAlone(ctx, in)
}

// gate asks the gate, if there is one. It is done when the extractor need not be asked.
func (c *Considerer) gate(ctx context.Context, in Input) (found extracted, done bool, err error) {
	if c.Gate == nil {
		return found, false, nil
	}
	v, err := c.ask(ctx, in)
	switch {
	case err == nil && v.Remember:
		return found, false, nil
	case err == nil:
		private, err := c.private(ctx, in)
		return extracted{Extraction: Extraction{Reason: v.Reason, Private: private, Checked: true}, by: c.Gate.Name()}, true, err
	case postponed(ctx, err):
		return found, false, err
	}
	trace.Degrade(ctx, decisionComponent, err.Error())
	found, err = c.extractLocally(ctx, in, err.Error())
	return found, true, err
}

func (c *Considerer) extractAlone(ctx context.Context, in Input) (extracted, error) {
	name := c.Extractor.Name()
	spanned, end := span.Start(ctx, "extract")
	found, err := c.Extractor.Extract(spanned, in)
	end(err)
	switch {
	case err == nil:
		return extracted{Extraction: found, by: name}, nil
	case postponed(ctx, err) || c.Local == nil:
		return extracted{}, err
	}
	trace.Degrade(ctx, summaryComponent, err.Error())
	return c.extractLocally(ctx, in, err.Error())
}

// private asks the local extractor which messages are not to be kept, because a gate does not say.
func (c *Considerer) private(ctx context.Context, in Input) ([]string, error) {
	reader, ok := c.Local.(interface {
		Private(ctx context.Context, in Input) ([]string, error)
	})
	if !ok {
		return nil, nil
	}
	return reader.Private(ctx, in)
}

func (c *Considerer) ask(ctx context.Context, in Input) (v Verdict, err error) {
	ctx, end := span.Start(ctx, "decide")
	defer func() { end(err) }()
	return c.Gate.Open(ctx, in)
}

func (c *Considerer) extractLocally(ctx context.Context, in Input, why string) (extracted, error) {
	found, err := c.Local.Extract(ctx, in)
	return extracted{Extraction: found, by: c.Local.Name(), fallback: why}, err
}

// postponed reports whether a dialogue waits after this error.
func postponed(ctx context.Context, err error) bool {
	_, transient := errors.AsType[*memory.TransientError](err)
	return transient || errors.Is(err, memory.ErrUnavailable) || ctx.Err() != nil
}

package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/llm"
	"github.com/memsidecar/memsidecar/internal/llm/answer"
	"github.com/memsidecar/memsidecar/internal/trace"
)

// maxReasonRunes is the longest reason kept, in characters.
const maxReasonRunes = 500

// Gate asks a model whether a dialogue holds anything worth remembering.
type Gate struct {
	model   llm.Model
	options Options
	version string // of the prompt
}

var _ decide.Gate = (*Gate)(nil)

// NewGate returns a Gate. It is an error if the options are wrong.
func NewGate(m llm.Model, options Options) (*Gate, error) {
	options, err := options.resolve(DefaultDecisionPrompt)
	if err != nil {
		return nil, fmt.Errorf("decision by model: %w", err)
	}
	return &Gate{model: m, options: options, version: version(gateForm, options.Prompt)}, nil
}

// Name is the model's.
func (g *Gate) Name() string { return g.model.Name() }

// Open implements decide.Gate.
func (g *Gate) Open(ctx context.Context, in decide.Input) (decide.Verdict, error) {
	p, err := render(g.options.MaxChars, in)
	if err != nil {
		return decide.Verdict{}, err
	}
	trace.Prompted(ctx, trace.Prompt{Part: "decision", Version: g.version, Known: len(p.known), Earlier: p.earlier})
	v, err := answer.Ask(ctx, g.model, llm.Request{
		Prompt: gatePrompt(g.options.Prompt, p), Schema: gateSchema(), SchemaName: "decision", Generation: g.options.Generation,
	}, readVerdict)
	if err != nil {
		return decide.Verdict{}, err
	}
	v.Reason += p.cutNote()
	return v, nil
}

// readVerdict reads {"should_remember": bool, "reason": string}. The boolean may be a string; the reason may be missing.
func readVerdict(text string) (decide.Verdict, error) {
	values, err := answer.Values(text)
	if err != nil {
		return decide.Verdict{}, err
	}
	fields, err := answer.ObjectWith(values, "should_remember")
	if err != nil {
		return decide.Verdict{}, err
	}
	var v decide.Verdict
	switch string(fields["should_remember"]) {
	case `true`, `"true"`:
		v.Remember = true
	case `false`, `"false"`:
	default:
		return decide.Verdict{}, errors.New(`"should_remember" is neither true nor false`)
	}
	var reason string
	if raw := fields["reason"]; raw != nil && json.Unmarshal(raw, &reason) != nil {
		return decide.Verdict{}, errors.New(`"reason" is not a string`)
	}
	if v.Reason = cutText(clean(reason), maxReasonRunes); v.Reason == "" {
		v.Reason = "the model found nothing worth remembering and gave no reason"
		if v.Remember {
			v.Reason = "the model found something worth remembering and gave no reason"
		}
	}
	return v, nil
}

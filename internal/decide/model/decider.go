package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/llm"
	"github.com/memsidecar/memsidecar/internal/llm/answer"
)

// maxReasonRunes is the longest reason kept, in characters.
const maxReasonRunes = 500

const nothingSaid = "the dialogue holds no words of this user"

// Decider asks a model whether a dialogue holds anything worth remembering.
type Decider struct {
	model   llm.Model
	options Options
}

var _ decide.Decider = (*Decider)(nil)

// NewDecider returns a Decider. It is an error if the options are wrong.
func NewDecider(m llm.Model, options Options) (*Decider, error) {
	options, err := options.resolve(DefaultDecisionPrompt)
	if err != nil {
		return nil, fmt.Errorf("decision by model: %w", err)
	}
	return &Decider{model: m, options: options}, nil
}

// Name is the model's.
func (d *Decider) Name() string { return d.model.Name() }

// Decide asks the model, unless the answer is already clear: an explicit request to remember is a yes, even if the model is unavailable,
// and a dialogue without the speaker's words is a no.
func (d *Decider) Decide(ctx context.Context, t decide.Transcript) (decide.Verdict, error) {
	requests, forgets, err := detect(ctx, d.options.Explicit, t)
	if err != nil {
		return decide.Verdict{}, err
	}
	if len(requests) > 0 {
		return decide.Verdict{Remember: true, Explicit: true, Reason: requestReason(requests)}, nil
	}
	if len(forgets) > 0 {
		return decide.Verdict{Remember: true, Explicit: true, Reason: forgets[0].Reason}, nil
	}
	if !anyWords(t) {
		return decide.Verdict{Reason: nothingSaid}, nil
	}
	p := render(t, d.options.MaxChars)
	v, err := answer.Ask(ctx, d.model, llm.Request{
		Prompt: decisionPrompt(d.options.Prompt, p), Schema: decisionSchema(), SchemaName: "decision", Generation: d.options.Generation,
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
	var reason *string
	if raw := fields["reason"]; raw != nil && json.Unmarshal(raw, &reason) != nil {
		return decide.Verdict{}, errors.New(`"reason" is not a string`)
	}
	if reason != nil {
		v.Reason = cutText(clean(*reason), maxReasonRunes)
	}
	if v.Reason == "" {
		v.Reason = "the model found nothing worth remembering and gave no reason"
		if v.Remember {
			v.Reason = "the model found something worth remembering and gave no reason"
		}
	}
	return v, nil
}

func anyWords(t decide.Transcript) bool {
	for _, m := range t.Dialogue.Messages {
		if spokenBy(m, t.Speaker) {
			return true
		}
	}
	return false
}

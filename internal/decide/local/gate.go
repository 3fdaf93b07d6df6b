package local

import (
	"context"
	"fmt"

	"github.com/memsidecar/memsidecar/internal/decide"
)

// gateLeast is the chance from which a model is asked. It is low: a model that is asked for nothing costs little, and what is not passed
// on is lost.
const gateLeast = .12

// Gate returns a gate that passes on what may hold anything worth remembering, so that a model is not asked about small talk.
func (e *Extractor) Gate() decide.Gate { return gate{e} }

type gate struct{ *Extractor }

// Open implements decide.Gate.
func (g gate) Open(_ context.Context, in decide.Input) (decide.Verdict, error) {
	t := in.LastTurns(lastMessages)
	chance := g.Chance(t)
	if chance < gateLeast {
		return decide.Verdict{Reason: g.read(t).reason()}, nil
	}
	return decide.Verdict{Remember: true, Reason: fmt.Sprintf("something may be worth remembering (%.0f %%)", 100*min(chance, 1))}, nil
}

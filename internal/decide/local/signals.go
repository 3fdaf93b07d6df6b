package local

import (
	"strings"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Signal is a reason of the operator to keep a sentence, or to leave it out.
type Signal struct {
	Weight  int // each point triples the chance of a sentence; negative points reduce it
	Kind    memory.Kind
	Phrases []string // in lower case
}

// signals returns the points of a sentence, and the kind of the heaviest signal.
func (e *Extractor) signals(text string) (points int, kind memory.Kind) {
	if len(e.options.Signals) == 0 {
		return 0, ""
	}
	lower, heaviest := strings.ToLower(text), 0
	for _, s := range e.options.Signals {
		for _, phrase := range s.Phrases {
			if strings.Contains(lower, phrase) {
				if points += s.Weight; s.Weight > heaviest {
					heaviest, kind = s.Weight, s.Kind
				}
				break
			}
		}
	}
	return points, kind
}

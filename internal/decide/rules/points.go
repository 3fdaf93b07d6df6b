package rules

import (
	"github.com/memsidecar/memsidecar/internal/digest"
)

var _ digest.Scorer = (*Rules)(nil)

// forced are the signals that a finding of a digest has for being of its category.
var forced = map[digest.Category][]string{
	digest.Preference: {SignalPreference},
	digest.Decision:   {SignalDecision},
	digest.Task:       {SignalTask},
	digest.Issue:      {SignalProblemSolution},
}

// Score implements digest.Scorer: the sum of the signals in a text about the user, compared with the threshold.
func (r *Rules) Score(text string, category digest.Category) (important bool, importance float64, reason string) {
	s := newSource(0, text)
	p := s.piece(0, len(s.raw))
	a := r.assess(p, languageOf(p, ""), forced[category]...)
	return a.score >= r.threshold, r.importance(a, false), r.reason(a)
}

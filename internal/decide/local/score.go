package local

import (
	"fmt"
	"slices"

	"github.com/memsidecar/memsidecar/internal/decide/classify"
	"github.com/memsidecar/memsidecar/internal/digest"
)

var _ digest.Scorer = (*Extractor)(nil)

// leastDue is the chance from which a sentence counts as something to do in a digest. It is lower than for memories: what is to be done today
// belongs into the day's digest.
const leastDue = .25

// Due reports whether a sentence says what its speaker has to do, plans or arranged.
func (e *Extractor) Due(text string) bool {
	r := e.model.Read(classify.Unit{Message: text, End: len(text), Count: 1})
	return r.Is(classify.Task, classify.Plan, classify.Appointment) >= leastDue
}

// worthy are the categories of findings that are important in themselves: whoever made the finding judged what it is, from more than one
// sentence. The words of a problem with its solution, or of a model, are none that the classifier knows.
var worthy = []digest.Category{digest.Preference, digest.Decision, digest.Task, digest.Issue}

// leastWorthy is the least chance of such a finding, before the operator's signals.
const leastWorthy = .6

// Score implements digest.Scorer: a finding is important if its words are worth keeping, or for its category.
func (e *Extractor) Score(text string, category digest.Category) (important bool, weight float64, reason string) {
	var best *kept
	for _, u := range classify.Units(text, "", "", "", maxSentences) {
		s := sentence{Unit: u, Reading: e.model.Read(u)}
		s.points, s.kind = e.signals(u.Text())
		if k := (&kept{sentence: s, chance: s.Keep() * pow(3, s.points)}); best == nil || k.chance > best.chance {
			best = k
		}
	}
	if best == nil {
		return false, 0, "it holds no words"
	}
	chance, weight, reason := best.chance, importance(best.Kept(), best.Slot()), e.why(best)
	points, _ := e.signals(text)
	if least := leastWorthy * pow(3, points); slices.Contains(worthy, category) && least > chance {
		chance, reason = least, fmt.Sprintf("it is of the category %s", category)
	}
	return chance >= e.options.Least, weight, reason
}

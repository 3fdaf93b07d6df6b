package eval

import (
	"maps"
	"slices"
)

// confusion counts true and false positives and negatives.
type confusion struct{ tp, fp, fn, tn int }

func (c *confusion) add(label, predicted bool) {
	switch {
	case label && predicted:
		c.tp++
	case label:
		c.fn++
	case predicted:
		c.fp++
	default:
		c.tn++
	}
}

// ratio is NaN for a zero denominator, and then not reported. A precision without predictions is 0.
func ratio(part, whole int) float64 { return float64(part) / float64(whole) }

// report records precision, recall, F1 (their harmonic mean), and balanced accuracy: the mean of the share of positives that were
// remembered and the share of negatives that were not. Guessing gives 0.5 for any share of positives.
func (c *confusion) report(r Report, prefix string) {
	r[prefix+"turns"], r[prefix+"positive"], r[prefix+"predicted"] = c.tp+c.fp+c.fn+c.tn, c.tp+c.fn, c.tp+c.fp
	r[prefix+"false_positives"], r[prefix+"false_negatives"] = c.fp, c.fn
	precision := 0.0
	if c.tp+c.fp > 0 {
		precision = ratio(c.tp, c.tp+c.fp)
	}
	r.share(prefix+"precision", precision)
	r.share(prefix+"recall", ratio(c.tp, c.tp+c.fn))
	r.share(prefix+"f1", ratio(2*c.tp, 2*c.tp+c.fp+c.fn))
	r.share(prefix+"balanced_accuracy", (ratio(c.tp, c.tp+c.fn)+ratio(c.tn, c.tn+c.fp))/2)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

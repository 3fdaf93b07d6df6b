package train

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/memsidecar/memsidecar/cmd/memeval/internal/eval"
	"github.com/memsidecar/memsidecar/internal/decide/classify"
)

// Reader classifies sentences.
type Reader interface {
	Read(u classify.Unit) classify.Reading
}

// Part returns a share of the examples, in percent: the smaller parts are within the larger ones.
func Part(examples []classify.Example, percent int) []classify.Example {
	if percent >= 100 {
		return examples
	}
	var part []classify.Example
	for i, e := range examples {
		if uint32(i)*2654435761>>16%100 < uint32(percent) { //nolint:gosec // it only mixes
			part = append(part, e)
		}
	}
	return part
}

// Measure compares the labels of examples with what a classifier says: which sentences are to be kept at several thresholds by
// language, and which labels and flags are right.
func Measure(by Reader, examples []classify.Example) []eval.Table {
	if len(examples) == 0 {
		return nil
	}
	languages, labels := map[string][]scored{}, counts{}
	for i := range examples {
		e := &examples[i]
		r := by.Read(e.Unit)
		right := e.Any
		if e.Label != "" {
			right = []classify.Label{e.Label}
			labels.add(e, r)
		}
		for _, language := range []string{e.Language, "all"} {
			languages[language] = append(languages[language], scored{slices.Contains(classify.Kept(), right[0]), r.Keep()})
		}
	}
	table := eval.Table{Columns: []string{"language", "sentences", "area under curve"}}
	for _, least := range thresholds {
		table.Columns = append(table.Columns, fmt.Sprintf("keep at %g", least))
	}
	for _, language := range slices.Sorted(maps.Keys(languages)) {
		table.Rows = append(table.Rows, rowOf(language, languages[language]))
	}
	return []eval.Table{table, labels.table()}
}

var thresholds = []float64{.1, .3, .4, .5, .6}

// scored is a sentence, whether it is to be kept, and what the classifier says.
type scored struct {
	keep   bool
	chance float64
}

func rowOf(language string, list []scored) []string {
	wins, pairs := 0.0, 0.0
	for _, a := range list {
		for _, b := range list {
			if a.keep && !b.keep {
				if pairs++; a.chance > b.chance {
					wins++
				}
			}
		}
	}
	row := []string{language, strconv.Itoa(len(list)), fmt.Sprintf("%.3f", wins/max(pairs, 1))}
	for _, least := range thresholds {
		var n count
		for _, s := range list {
			n.add(s.keep, s.chance >= least)
		}
		row = append(row, fmt.Sprintf("%.2f of them, %.2f right", n.recall(), n.precision()))
	}
	return row
}

// count counts what is right, what was said to be so, and what is so.
type count struct{ right, said, given float64 }

func (n *count) add(given, said bool) {
	if given {
		n.given++
	}
	if said {
		n.said++
	}
	if given && said {
		n.right++
	}
}

func (n *count) recall() float64    { return n.right / max(n.given, 1) }
func (n *count) precision() float64 { return n.right / max(n.said, 1) }

// counts are by label or flag.
type counts map[string]*count

func (c counts) add(e *classify.Example, r classify.Reading) {
	of := func(name string, given, said bool) {
		if c[name] == nil {
			c[name] = &count{}
		}
		c[name].add(given, said)
	}
	for _, l := range classify.Labels() {
		of(string(l), e.Label == l, r.Label() == l)
	}
	for _, f := range classify.Flags() {
		of("flag "+f, slices.Contains(e.Flags, f), r.Has(f) >= .4)
	}
}

func (c counts) table() eval.Table {
	t := eval.Table{Columns: []string{"label or flag", "given", "found", "right"}}
	for _, name := range slices.Sorted(maps.Keys(c)) {
		n := c[name]
		t.Rows = append(t.Rows, []string{name, fmt.Sprint(n.given), fmt.Sprintf("%.2f", n.recall()), fmt.Sprintf("%.2f", n.precision())})
	}
	return t
}

package audit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang/compare"
	"github.com/memsidecar/memsidecar/internal/lang/lexical"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

const (
	// maxProbes is how many of its rarest words a memory is looked up by.
	maxProbes = 6
	// maxPostings is how many memories a word leads to, the last ones kept.
	maxPostings = 64
	// maxPairs is how many others a memory is compared with.
	maxPairs = 100
	// maxWork bounds the comparisons of one user, in cells of the tables of edit distances: some two seconds.
	maxWork = 1_000_000_000
	// maxVectorBytes is how much of a user's vectors is kept meanwhile.
	maxVectorBytes = 64 << 20
)

// statement is an active memory to be compared.
type statement struct {
	id, text, key string
	visibility    string
	explicit      bool
	mentions      int
	doubtful      bool // counted as such already
	vector        []float32
}

func (u *userAudit) statement(item *vectorstore.SurveyItem, doubtful bool) *statement {
	m := &item.Memory
	s := &statement{
		id: m.ID, text: m.Text, key: vectorstore.TextKey(m.Text), visibility: m.Channel.VisibilityKey(),
		explicit: m.Explicit, mentions: m.Mentions, doubtful: doubtful,
	}
	if u.vectorBytes += 4 * len(item.Vector); u.vectorBytes <= maxVectorBytes {
		s.vector = item.Vector
	}
	return s
}

// compare finds what is stored more than once. Of several that say the same one could stay: what the user asked to be
// remembered, else what was said most often, else the newest.
func (u *userAudit) compare(ctx context.Context) error {
	slices.SortStableFunc(u.compared, func(a, b *statement) int {
		return cmp.Or(compareBool(b.explicit, a.explicit), cmp.Compare(b.mentions, a.mentions))
	})
	type place struct{ visibility, key string }
	first := map[place]*statement{}
	visibilities := map[string]int{} // of a text
	byVisibility := map[string][]*statement{}
	for _, s := range u.compared {
		at := place{s.visibility, s.key}
		if same := first[at]; same != nil {
			u.doubt(s, Duplicate, "says the same to the letter", same)
			continue
		}
		first[at] = s
		visibilities[s.key]++
		byVisibility[s.visibility] = append(byVisibility[s.visibility], s)
	}
	for at := range first {
		if visibilities[at.key] > 1 {
			u.account.Elsewhere++
		}
	}
	work := u.auditor.maxWork
	for _, visibility := range slices.Sorted(maps.Keys(byVisibility)) {
		left, err := u.compareNear(ctx, byVisibility[visibility], &work)
		if err != nil {
			return err
		}
		u.uncompared += left
	}
	if u.uncompared > 0 {
		u.account.Cut = fmt.Sprintf("%d of the %d active memories were not compared with the others: there are too many",
			u.uncompared, u.account.Active())
	}
	return nil
}

func (u *userAudit) doubt(s *statement, f Finding, reason string, other *statement) {
	u.found(f, s.id, s.text, reason, other)
	if !s.doubtful {
		s.doubtful = true
		u.account.Doubtful++
	}
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// compareNear compares the statements of one visibility, each with those before it that stay, and returns how many were left
// out because there was too much work.
func (u *userAudit) compareNear(ctx context.Context, statements []*statement, work *int) (left int, err error) {
	terms := make([][]string, len(statements))
	frequency := map[string]int{}
	for i, s := range statements {
		terms[i] = contentTerms(s.text)
		for _, t := range terms[i] {
			frequency[t]++
		}
	}
	staying := newBlocks()
	for i, s := range statements {
		if *work <= 0 {
			return len(statements) - i, nil
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		slices.SortStableFunc(terms[i], func(a, b string) int { return cmp.Compare(frequency[a], frequency[b]) })
		text := compare.Prepare(s.text)
		if same, reason := staying.near(s, text, shared(terms[i], frequency), work); same != nil {
			u.doubt(s, NearDuplicate, reason, same)
			continue
		}
		staying.add(s, text, terms[i])
	}
	return 0, nil
}

// contentTerms are the words of a text, each once; those that carry grammar only where there is nothing else.
func contentTerms(text string) []string {
	var content, all []string
	for _, t := range lexical.Tokens(text) {
		all = append(all, t.Term)
		if !t.Function {
			content = append(content, t.Term)
		}
	}
	if content == nil {
		content = all
	}
	slices.Sort(content)
	content = slices.Compact(content)
	for i := range content {
		content[i] = strings.Clone(content[i]) // of a copy of the whole text
	}
	return content
}

// shared are the rarest terms that other statements have, too.
func shared(terms []string, frequency map[string]int) []string {
	alone := 0
	for alone < len(terms) && frequency[terms[alone]] == 1 {
		alone++
	}
	return terms[alone:min(len(terms), alone+maxProbes)]
}

// blocks are the statements that stay, by their terms.
type blocks struct {
	statements []*statement
	texts      []compare.Text
	postings   map[string][]int32
	seen       []int32 // by statement: the last probe that met it
	probe      int32
}

func newBlocks() *blocks { return &blocks{postings: map[string][]int32{}} }

func (b *blocks) add(s *statement, text compare.Text, terms []string) {
	n := int32(len(b.statements)) //nolint:gosec // at most maxCompared
	b.statements, b.texts, b.seen = append(b.statements, s), append(b.texts, text), append(b.seen, 0)
	for _, t := range terms {
		list := b.postings[t]
		if len(list) == maxPostings {
			copy(list, list[1:])
			list = list[:maxPostings-1]
		}
		b.postings[t] = append(list, n)
	}
}

// near is a statement that says the same, and why it does.
func (b *blocks) near(s *statement, text compare.Text, terms []string, work *int) (*statement, string) {
	b.probe++
	pairs := 0
	for _, t := range terms {
		for _, n := range b.postings[t] {
			if b.seen[n] == b.probe {
				continue
			}
			b.seen[n] = b.probe
			if pairs++; pairs > maxPairs {
				return nil, ""
			}
			other, otherText := b.statements[n], b.texts[n]
			if text.Comparable(otherText) {
				*work -= text.Len() * otherText.Len()
				if text.Same(otherText) {
					return other, "says the same in nearly the same words"
				}
			}
			*work -= len(s.vector)
			if c := cosine(s.vector, other.vector); c >= compare.NearThreshold {
				*work -= text.Len() * otherText.Len()
				if text.Near(otherText, c) {
					return other, fmt.Sprintf("means the same by its vector (similarity %.2f)", c)
				}
			}
		}
	}
	return nil, ""
}

// cosine is the cosine similarity of two vectors, 0 when there are none to compare.
func cosine(a, b []float32) float64 {
	if len(a) == 0 || len(a) != len(b) {
		return 0
	}
	var dot, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		dot += x * y
		aa += x * x
		bb += y * y
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return dot / math.Sqrt(aa*bb)
}

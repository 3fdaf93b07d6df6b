package topics

import (
	"context"
	"math"
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang/lexical"
)

const (
	// maxUnits is how long a topic may be: characters and words together.
	maxUnits = 8
	// maxWords is how many words it may have.
	maxWords = 3
	// minDocs is how many messages must have what is looked at further.
	minDocs = 2
)

// gramID is an index into counts.grams; 0 is none.
type gramID = uint32

// gram is a sequence of units that at least minDocs messages of the period have.
type gram struct {
	units       int8
	words       int8
	firstIsWord bool
	lastIsWord  bool
	left, right gramID // it without its last unit, and without its first
	unit        unit   // of a gram of one

	all      int32   // messages that have it, also where it cannot be a topic
	docs     int32   // where it could be one
	previous int32   // of the period before, likewise
	speakers int32   // of docs
	weight   float64 // of docs: the sum over the speakers of the square root of how many are theirs

	// In how many messages the commonest unit before and behind it stands there, counting only units that may be a part of
	// the same word. A fragment has nearly always the same neighbour.
	before, behind int32
	opens, closes  place // of its first and last unit, where it could be a topic
	isWord         bool  // it is one word of the dictionary
	aligned        int32 // of docs, where its ends are the ends of words
	isNoun         bool  // its last word names something; true of what is not written in characters

	own       int32 // messages that have it outside of every longer topic
	candidate bool
	accepted  bool

	doc, speaker, speakerDocs int32 // while counting: the last message, speaker, and how many of theirs
}

// counts finds the grams of a text, the shorter ones first: a sequence can only be frequent when both its parts are
// (Agrawal and Srikant, 1994).
type counts struct {
	*scanner
	now, before text
	grams       []gram
	// ids has, for each length and each place of now, which gram begins there.
	ids [][]gramID
}

func count(ctx context.Context, s *scanner, now, before text) (*counts, error) {
	c := &counts{scanner: s, now: now, before: before, grams: make([]gram, 1), ids: [][]gramID{nil}}
	pairs := map[uint64]gramID{}
	at := make([]gramID, len(before.units)) // as ids, for the text before
	// One more than maxUnits: it shows whether one of maxUnits is a fragment.
	for n := 1; n <= maxUnits+1; n++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		clear(pairs)
		ids := make([]gramID, len(now.units))
		found := len(c.grams)
		c.find(n, pairs, ids)
		c.ids = append(c.ids, ids)
		if n == 1 {
			c.lookUp(&before, pairs, at, func(i int) uint64 { return uint64(before.units[i]) })
		} else {
			c.lookUp(&before, pairs, at, func(i int) uint64 {
				if i+1 == len(at) || at[i] == 0 || at[i+1] == 0 {
					return 0
				}
				return pair(at[i], at[i+1])
			})
		}
		c.tally(n, ids)
		c.tallyPrevious(n, at)
		if found == len(c.grams) {
			break
		}
	}
	return c, nil
}

func pair(left, right gramID) uint64 { return uint64(left)<<32 | uint64(right) }

// key is what stands at a place, as n units; 0 is nothing frequent.
func (c *counts) key(n, i int) uint64 {
	if n == 1 {
		return uint64(c.now.units[i])
	}
	shorter := c.ids[n-1]
	if i+1 == len(shorter) || shorter[i] == 0 || shorter[i+1] == 0 {
		return 0
	}
	return pair(shorter[i], shorter[i+1])
}

// find makes grams of the sequences of n units that enough messages have.
func (c *counts) find(n int, pairs map[uint64]gramID, ids []gramID) {
	type seen struct{ doc, docs int32 }
	var list []seen
	index := make(map[uint64]int32, len(c.grams))
	for d, doc := range c.now.docs {
		for i := doc.start; i < doc.end; i++ {
			key := c.key(n, i)
			if key == 0 {
				continue
			}
			k, ok := index[key]
			if !ok {
				k = int32(len(list)) //nolint:gosec // at most MaxRunes
				index[key] = k
				list = append(list, seen{doc: -1})
			}
			if list[k].doc != int32(d) {
				list[k] = seen{int32(d), list[k].docs + 1}
			}
		}
	}
	for i := range ids {
		key := c.key(n, i)
		if key == 0 || list[index[key]].docs < minDocs {
			continue
		}
		id, ok := pairs[key]
		if !ok {
			id = gramID(len(c.grams)) //nolint:gosec // at most MaxRunes for each length
			pairs[key] = id
			c.grams = append(c.grams, c.newGram(n, i, list[index[key]].docs))
		}
		ids[i] = id
	}
}

func (c *counts) newGram(n, i int, all int32) gram {
	g := gram{units: int8(n), all: all, doc: -1, speaker: -1} //nolint:gosec // at most maxUnits+1
	for _, u := range c.now.units[i : i+n] {
		if !c.symbols[u].char {
			g.words++
		}
	}
	g.firstIsWord, g.lastIsWord = !c.symbols[c.now.units[i]].char, !c.symbols[c.now.units[i+n-1]].char
	if n == 1 {
		g.unit = c.now.units[i]
	} else {
		g.left, g.right = c.ids[n-1][i], c.ids[n-1][i+1]
	}
	return g
}

// lookUp replaces what stands at each place by the gram that is one unit longer.
func (c *counts) lookUp(t *text, pairs map[uint64]gramID, at []gramID, key func(int) uint64) {
	for i := range t.units { // in place: a key needs the ids from i on
		at[i] = pairs[key(i)]
	}
}

// tally counts the messages of the period.
func (c *counts) tally(n int, ids []gramID) {
	for d, doc := range c.now.docs {
		for i := doc.start; i < doc.end; i++ {
			g := &c.grams[ids[i]]
			if ids[i] == 0 || g.doc == int32(d) || !c.possible(&c.now, n, i) {
				continue
			}
			g.doc = int32(d)
			g.docs++
			aligned := c.now.nouns[i]&(1<<min(n, 7)) == 0
			if aligned {
				g.aligned++
			}
			if aligned && g.aligned == 1 || g.docs == 1 {
				g.opens, g.closes = c.now.places[i], c.now.places[i+n-1]
				g.isWord, g.isNoun = c.isWord(&c.now, n, i), c.names(&c.now, n, i)
			}
			// The messages are in the order of their speakers.
			if g.speaker != doc.speaker {
				g.speaker, g.speakerDocs = doc.speaker, 0
				g.speakers++
			}
			g.weight += math.Sqrt(float64(g.speakerDocs+1)) - math.Sqrt(float64(g.speakerDocs))
			g.speakerDocs++
		}
	}
	if n > 1 {
		c.tallyNeighbours(n, ids)
	}
}

// tallyNeighbours counts how often the grams that are one unit shorter have the same neighbour.
func (c *counts) tallyNeighbours(n int, ids []gramID) {
	type last struct{ doc, opens, closes int32 }
	first := 0
	for i := range ids { // the grams of one length have ids that follow each other, the first stands first
		if ids[i] != 0 {
			first = int(ids[i])
			break
		}
	}
	if first == 0 {
		return
	}
	opens, closes := make([]last, len(c.grams)-first), make([]last, len(c.grams)-first)
	for d, doc := range c.now.docs {
		for i := doc.start; i < doc.end; i++ {
			if ids[i] == 0 {
				continue
			}
			k, mark := int(ids[i])-first, int32(d)+1
			if y := c.symbols[c.now.units[i]]; opens[k].doc != mark && c.binds(i) && !y.light {
				opens[k].doc, opens[k].opens = mark, opens[k].opens+1
			}
			if closes[k].doc != mark && c.binds(i+n-1) {
				closes[k].doc, closes[k].closes = mark, closes[k].closes+1
			}
		}
	}
	for k := range opens {
		g := &c.grams[first+k]
		left, right := &c.grams[g.left], &c.grams[g.right]
		right.before = max(right.before, opens[k].opens)
		left.behind = max(left.behind, closes[k].closes)
	}
}

// tallyPrevious counts the messages of the period before.
func (c *counts) tallyPrevious(n int, at []gramID) {
	for i := range c.grams {
		c.grams[i].doc = -1
	}
	for d, doc := range c.before.docs {
		for i := doc.start; i < doc.end; i++ {
			g := &c.grams[at[i]]
			if at[i] == 0 || g.doc == int32(d) || !c.possible(&c.before, n, i) {
				continue
			}
			g.doc = int32(d)
			g.previous++
		}
	}
}

// possible reports whether the n units at place i could be a topic by what they are made of. Whether they are one
// together is decided by how often they stand together.
func (c *counts) possible(t *text, n, i int) bool {
	first, last := c.symbols[t.units[i]], c.symbols[t.units[i+n-1]]
	if n > maxUnits || c.wordless(t.places[i], first) || c.wordless(t.places[i+n-1], last) || first.number || last.open && n > 1 {
		return false
	}
	if n == 1 {
		return !first.char && !first.short
	}
	if n <= maxWordRunes && t.nouns[i]&(1<<n) != 0 {
		return true
	}
	if !c.atWords(t, n, i) {
		return false
	}
	// Two characters of grammar at an end are one of the phrases that lexical knows, or stand between words.
	if first.char && t.places[i]&t.places[i+1]&function != 0 || last.char && t.places[i+n-1]&t.places[i+n-2]&function != 0 {
		return false
	}
	words := 0
	for j := i; j < i+n; j++ {
		y := c.symbols[t.units[j]]
		if !y.char {
			words++
		}
		if y.joins && t.places[j]&function != 0 && j > i && j < i+n-1 {
			return false
		}
	}
	if words == 0 || words == n {
		return words <= maxWords
	}
	// A number stands between or behind words, not among characters: "iphone 15", but not 15 号楼.
	return words <= maxWords && (!last.number || !c.symbols[t.units[i+n-2]].char)
}

// atWords reports whether the n units at place i begin and end where words do, with no word of grammar in them.
func (c *counts) atWords(t *text, n, i int) bool {
	for j := i; j < i+n; j++ {
		if c.symbols[t.units[j]].char && t.places[j]&grammary != 0 {
			return false
		}
	}
	first, last := t.places[i], t.places[i+n-1]
	begin := !c.symbols[t.units[i]].char || first&begins != 0
	end := !c.symbols[t.units[i+n-1]].char || last&ends != 0 && last&modifies == 0
	return begin && end
}

// binds reports whether the unit at place i may be a part of the neighbouring word.
func (c *counts) binds(i int) bool {
	if !c.symbols[c.now.units[i]].char {
		return c.now.places[i]&function == 0
	}
	return c.now.places[i]&alone != 0 && c.now.places[i]&function == 0
}

// isWord reports whether the n units at place i are one word of the dictionary.
func (c *counts) isWord(t *text, n, i int) bool {
	for j := i; j < i+n; j++ {
		if !c.symbols[t.units[j]].char || t.places[j]&ends != 0 && j < i+n-1 {
			return false
		}
	}
	return n > 1
}

// names reports whether the last word of the n units at place i names something.
func (c *counts) names(t *text, n, i int) bool {
	last := i + n - 1
	if !c.symbols[t.units[last]].char || t.places[last]&alone != 0 {
		return true
	}
	first := last
	for first > i && t.places[first]&begins == 0 {
		first--
	}
	var word strings.Builder
	for j := first; j <= last; j++ {
		word.WriteString(lexical.Simplified(c.surfaces[t.surfaces[j]]))
	}
	return isNoun(word.String())
}

// wordless reports whether a unit is a word without content.
func (*counts) wordless(p place, y symbol) bool { return !y.char && p&function != 0 }

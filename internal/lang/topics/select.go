package topics

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
)

const (
	// boundShare is from which share of its messages on a sequence with the same neighbour is a fragment.
	boundShare = 0.8
	// ownShare is the least share of its messages that must have a sequence outside of the longer topics around it.
	ownShare = 1.0 / 3
	// smoothing is how many messages are added to both periods before they are compared: a word said twice and not before
	// is little news.
	smoothing = 2
	// smoothingPeriod is how many messages are added to both periods before their lengths are compared.
	smoothingPeriod = 100
	// otherShare is what a phrase counts that does not end in a noun: what is done is less of a topic than what it is done to.
	otherShare = 0.5
)

// Of returns at most limit topics of the messages of a period, the most prominent first. previous are the messages of the
// period of the same length before.
func Of(ctx context.Context, messages, previous []Message, rule Rule, limit int) ([]Topic, error) {
	s := newScanner()
	now, before := s.text(messages), s.text(previous)
	c, err := count(ctx, s, now, before)
	if err != nil {
		return nil, err
	}
	c.accept()
	ranked := c.rank(rule)
	var found []Topic
	for _, r := range ranked {
		if len(found) == limit || ctx.Err() != nil {
			break
		}
		g := &c.grams[r.id]
		if written, ok := c.written(r.id, rule); ok {
			found = append(found, Topic{Text: written, Messages: int(g.docs), Previous: int(g.previous), Score: r.score})
		}
	}
	return found, ctx.Err()
}

// text puts the messages in the order of their speakers: then each speaker's can be counted without a set of them.
func (s *scanner) text(messages []Message) text {
	ordered := slices.Clone(messages)
	slices.SortStableFunc(ordered, func(a, b Message) int { return strings.Compare(a.Speaker, b.Speaker) })
	var t text
	for _, m := range ordered {
		s.message(&t, m)
	}
	return t
}

// accept decides which grams are topics.
func (c *counts) accept() {
	for i := range c.grams {
		g := &c.grams[i]
		g.candidate = g.docs >= minDocs && 2*g.aligned >= g.docs && (g.isWord || c.isWhole(g) && c.edgesHold(g))
		g.doc = -1
	}
	// The longest first, as C-value does (Frantzi, Ananiadou and Mima, 2000): what a longer topic accounts for is taken
	// from the shorter ones inside of it. Instead of an average the places themselves are looked at.
	inside := make([]int, len(c.now.units)) // up to where a longer topic that begins here reaches
	for n := min(maxUnits, len(c.ids)-1); n > 0; n-- {
		c.each(n, func(d int32, id gramID, i, reach int) {
			if g := &c.grams[id]; reach < i+n && g.candidate && g.doc != d && c.possible(&c.now, n, i) {
				g.doc = d
				g.own++
			}
		}, inside)
		c.each(n, func(_ int32, id gramID, i, _ int) {
			g := &c.grams[id]
			g.accepted = g.candidate && g.own >= minDocs && float64(g.own) >= ownShare*float64(g.docs) && !c.isPadded(g)
			if g.accepted && c.possible(&c.now, n, i) {
				inside[i] = max(inside[i], i+n)
			}
		}, inside)
	}
}

// each calls fn for every place where a gram of n units begins; reach is up to where a topic that begins before or there
// reaches.
func (c *counts) each(n int, fn func(d int32, id gramID, i, reach int), inside []int) {
	for d, doc := range c.now.docs {
		reach := 0
		for i := doc.start; i < doc.end; i++ {
			reach = max(reach, inside[i])
			if id := c.ids[n][i]; id != 0 {
				fn(int32(d), id, i, reach)
			}
		}
	}
}

// isWhole reports whether a sequence is not a fragment of a longer one: its neighbours differ, or belong to other words. Words are
// whole.
func (c *counts) isWhole(g *gram) bool {
	most := boundShare * float64(g.docs)
	return (g.firstIsWord || float64(g.before) <= most) && (g.lastIsWord || float64(g.behind) <= most)
}

// edgesHold decides on characters of grammar at the ends, which may belong to the word (过敏, 地铁, 演唱会) or not (要下雨):
// they do when the rest seldom stands without them.
func (c *counts) edgesHold(g *gram) bool {
	if g.units < 2 {
		return true
	}
	opens, closes := !g.firstIsWord && g.opens&function != 0, !g.lastIsWord && g.closes&function != 0
	first, last := c.ends(g)
	if first.light && (g.units > 2 || closes) && c.grams[g.right].docs >= minDocs {
		return false
	}
	if rest := &c.grams[g.left]; last.local && g.units > 2 && rest.docs >= minDocs && c.isWhole(rest) {
		return false
	}
	if opens && !holds(g, &c.grams[g.right], first.strong) {
		return false
	}
	return !closes || holds(g, &c.grams[g.left], last.strong)
}

func holds(g, rest *gram, strong bool) bool {
	least, docs := 0.4, int32(minDocs)
	switch {
	case g.units > 2 && strong:
		least, docs = 0.9, 5
	case g.units > 2:
		least = 0.9
	case strong:
		least, docs = 0.5, 3
	}
	return g.docs >= docs && float64(g.docs) >= least*float64(rest.all)
}

// ends are the first and the last unit of a gram.
func (c *counts) ends(g *gram) (first, last symbol) {
	left, right := g, g
	for left.units > 1 {
		left = &c.grams[left.left]
	}
	for right.units > 1 {
		right = &c.grams[right.right]
	}
	return c.symbols[left.unit], c.symbols[right.unit]
}

// isPadded reports whether a sequence only adds a little to a much commoner topic inside it: 打羽毛球.
func (c *counts) isPadded(g *gram) bool {
	return g.units > 1 && (c.outweighs(g.left, g) || c.outweighs(g.right, g))
}

// outweighs reports whether the gram or one inside of it makes the longer one superfluous.
func (c *counts) outweighs(id gramID, longer *gram) bool {
	g := &c.grams[id]
	if g.candidate && (g.docs > 4*longer.docs || longer.units-g.units == 1 && g.docs > 2*longer.docs) {
		return true
	}
	return g.units > 1 && (c.outweighs(g.left, longer) || c.outweighs(g.right, longer))
}

type ranked struct {
	id    gramID
	score float64
}

// rank orders the topics. The score is
//
//	prominence · specificity · growth · kind
//
// prominence is the sum over the speakers of the square root of how many of their messages have it: the same person's
// next message counts less than another's first. specificity is log2(1 + length), a word or two characters being 1, as
// C-value weighs length. growth is log2(1 + (m + 2) / (e + 2)), m messages against e that the period before lets expect:
// 1 when there are as many as before. kind is 1 for a phrase that ends in a noun, and otherShare for others.
func (c *counts) rank(rule Rule) []ranked {
	scale := float64(len(c.now.docs)+smoothingPeriod) / float64(len(c.before.docs)+smoothingPeriod)
	var list []ranked
	for id := range c.grams {
		g := &c.grams[id]
		if !g.accepted || int(g.docs) < rule.Messages || int(g.speakers) < rule.Speakers {
			continue
		}
		length := float64(g.words) + float64(g.units-g.words)/2
		expected := float64(g.previous) * scale
		growth := math.Log2(1 + (float64(g.docs)+smoothing)/(expected+smoothing))
		score := g.weight * math.Log2(1+length) * growth
		if !g.isNoun {
			score *= otherShare
		}
		list = append(list, ranked{gramID(id), score})
	}
	// The ids follow from the order of the messages, so that equal scores have the same order each time.
	slices.SortFunc(list, func(a, b ranked) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id)) })
	return list
}

// form is one way to write a topic, but for capital letters.
type form struct {
	docs, doc, speakers, speaker int32
	variants                     map[string]int
}

// forms are the ways in which a topic is written, in small letters.
func (c *counts) forms(id gramID) map[string]*form {
	n := int(c.grams[id].units)
	forms := map[string]*form{}
	for d, doc := range c.now.docs {
		for i := doc.start; i < doc.end; i++ {
			if c.ids[n][i] != id || !c.possible(&c.now, n, i) {
				continue
			}
			as := c.asWritten(n, i)
			key := strings.ToLower(as)
			f := forms[key]
			if f == nil {
				f = &form{doc: -1, speaker: -1, variants: map[string]int{}}
				forms[key] = f
			}
			f.variants[as]++
			if f.doc != int32(d) {
				f.doc = int32(d)
				f.docs++
			}
			if f.speaker != doc.speaker {
				f.speaker = doc.speaker
				f.speakers++
			}
		}
	}
	return forms
}

// written is the topic as most people wrote it. It reports false when not enough people wrote it any one way.
func (c *counts) written(id gramID, rule Rule) (string, bool) {
	forms := c.forms(id)
	best := most(forms, func(f *form) int { return int(f.docs) })
	f := forms[best]
	if rule.Speakers > 1 && (int(f.docs) < rule.Messages || int(f.speakers) < rule.Speakers) {
		return "", false
	}
	return most(f.variants, func(times int) int { return times }), true
}

// most is the key with the highest count, the first in the alphabet when there are several.
func most[V any](all map[string]V, count func(V) int) (key string) {
	for i, k := range slices.Sorted(maps.Keys(all)) {
		if i == 0 || count(all[k]) > count(all[key]) {
			key = k
		}
	}
	return key
}

// asWritten is what stands at a place, with spaces where they were.
func (c *counts) asWritten(n, i int) string {
	var b strings.Builder
	for j := i; j < i+n; j++ {
		if j > i && c.now.places[j]&spaced != 0 {
			b.WriteByte(' ')
		}
		b.WriteString(c.surfaces[c.now.surfaces[j]])
	}
	return b.String()
}

// Package extract summarises conversations without a model: it keeps the sentences with the most common words of the conversation.
//
// Sentences are chosen by SumBasic (Nenkova and Vanderwende, The Impact of Frequency on Summarization, 2005): it repeatedly picks the
// sentence whose words are the most probable on average, and then lowers the weight of these words. There are some additions for long
// conversations. The lines of the previous summary compete with the new sentences. (Counting their words more made no difference.)
// Averages favour short sentences, which in chats are mostly consent, so a short sentence counts as if it had more words. People's
// words count more than the bot's, which are longer. A question counts less than a statement. A sentence with hardly any content, such
// as a greeting, is left out even if there is room. So is a sentence of the bot that shares no word with other sentences, unless it has
// a number.
package extract

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
)

// Name is the author recorded for these summaries.
const Name = "extract"

// DefaultMaxRunes is the longest summary unless the options say otherwise.
const DefaultMaxRunes = 1000

const (
	// Weights of a sentence.
	byBot    = 0.6
	question = 0.5
	// fullTerms is the number of different words of a sentence with full weight.
	fullTerms = 12
	// leastTerms is the number of different words that a sentence needs: shorter ones are greetings or consent.
	leastTerms = 2
	// maxSentence is the longest sentence kept whole, in characters, unless a third of the summary is less.
	maxSentence = 200
)

// Summarizer chooses sentences.
type Summarizer struct{ maxRunes int }

var _ session.Summarizer = (*Summarizer)(nil)

// New returns a Summarizer of summaries of at most maxRunes characters; 0 means DefaultMaxRunes.
func New(maxRunes int) *Summarizer {
	if maxRunes <= 0 {
		maxRunes = DefaultMaxRunes
	}
	return &Summarizer{maxRunes}
}

// Name implements session.Summarizer.
func (*Summarizer) Name() string { return Name }

// candidate is a sentence that may be kept.
type candidate struct {
	line   string // as in the summary
	runes  int    // of the line with its end
	terms  []int  // different ones, by number
	weight float64
	aside  bool // left out unless another sentence shares a word
}

// Summarize implements session.Summarizer. It is deterministic; the sentences stay in order.
func (s *Summarizer) Summarize(ctx context.Context, r session.Summarizing) (string, error) {
	v := vocabulary{numbers: map[string]int{}}
	var all []candidate
	seen := map[string]bool{}
	add := func(label, sentence string, weight float64, aside bool) {
		sentence = clipped(sentence, min(maxSentence, s.maxRunes/3))
		line := sentence
		if label != "" {
			line = label + ": " + sentence
		}
		terms := v.count(sentence)
		if len(terms) < leastTerms || seen[line] {
			return
		}
		seen[line] = true
		all = append(all, candidate{
			line:   line,
			runes:  utf8.RuneCountInString(line) + 1,
			terms:  terms,
			weight: weight,
			aside:  aside && !strings.ContainsFunc(sentence, unicode.IsNumber),
		})
	}
	for line := range strings.Lines(r.Previous) {
		label, sentence, found := strings.Cut(strings.TrimSpace(line), ": ")
		if !found {
			label, sentence = "", label
		}
		weight := 1.0
		if asks(sentence) {
			weight = question
		}
		add(label, sentence, weight, false)
	}
	for _, l := range r.Lines {
		for _, sentence := range sentences(l.Content) {
			weight := 1.0
			told := l.Role != memory.RoleUser
			if told {
				weight = byBot
			}
			if asks(sentence) {
				weight *= question
			}
			add(l.Label, sentence, weight, told)
		}
	}
	lines := v.choose(withoutAsides(all), s.maxRunes)
	return strings.Join(lines, "\n"), ctx.Err()
}

// withoutAsides excludes the asides that share no word with another candidate.
func withoutAsides(all []candidate) []candidate {
	in := map[int]int{} // how many candidates have a word
	for _, c := range all {
		for _, t := range c.terms {
			in[t]++
		}
	}
	return slices.DeleteFunc(all, func(c candidate) bool {
		return c.aside && !slices.ContainsFunc(c.terms, func(t int) bool { return in[t] > 1 })
	})
}

// choose picks candidates until there is no room, and returns their lines in order.
func (v *vocabulary) choose(all []candidate, room int) []string {
	room++ // the last line has no end
	probability := v.probabilities()
	left := make([]int, len(all))
	for i := range all {
		left[i] = i
	}
	var chosen []int
	for {
		left = slices.DeleteFunc(left, func(i int) bool { return all[i].runes > room })
		if len(left) == 0 {
			break
		}
		score := func(i int) float64 {
			sum := 0.0
			for _, t := range all[i].terms {
				sum += probability[t]
			}
			return all[i].weight * sum / float64(max(fullTerms, len(all[i].terms)))
		}
		best := slices.MaxFunc(left, func(a, b int) int { return cmp.Or(cmp.Compare(score(a), score(b)), cmp.Compare(b, a)) })
		chosen = append(chosen, best)
		room -= all[best].runes
		for _, t := range all[best].terms {
			probability[t] *= probability[t]
		}
		left = slices.DeleteFunc(left, func(i int) bool { return i == best })
	}
	slices.Sort(chosen)
	lines := make([]string, len(chosen))
	for i, c := range chosen {
		lines[i] = all[c].line
	}
	return lines
}

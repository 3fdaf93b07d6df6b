// Package compare tells whether two statements say the same. It errs on one side: a statement that is kept twice is a
// nuisance, one that is swallowed by another is a loss. So statements are the same only when nothing that could matter
// differs: a negation, a number, a date, a name, a qualifier.
package compare

import (
	"slices"
	"strings"
	"unicode"

	"github.com/memsidecar/memsidecar/internal/lang/lexical"
)

const (
	// Threshold is the similarity by edit distance above which statements may be the same.
	Threshold = 0.8
	// NearThreshold is the cosine similarity from which statements may mean the same.
	NearThreshold = 0.92
	// alike is the similarity by edit distance from which two texts are one sentence with something else in one place.
	alike = 0.6
	// maxRunes is how long a statement may be to be compared character by character; longer ones must be equal.
	maxRunes = 1000
)

// Text is a statement made ready to be compared with many others.
type Text struct {
	normalized string
	runes      []rune
	counts     [buckets]uint16 // how many of the characters fall into each bucket
}

const buckets = 32

// Prepare makes a statement ready.
func Prepare(text string) Text {
	text = normalized(text)
	t := Text{normalized: text, runes: []rune(text)}
	for _, r := range t.runes {
		t.counts[r%buckets]++
	}
	return t
}

// Same reports whether two statements say the same, by their letters: they are equal, or similar above Threshold with no
// difference but in words that carry no meaning of their own, in words of the same meaning, or in spelling.
func Same(a, b string) bool { return Prepare(a).Same(Prepare(b)) }

// Same is as the function Same.
func (t Text) Same(other Text) bool {
	a, b := t.normalized, other.normalized
	switch {
	case a == "" || b == "":
		return false
	case a == b:
		return true
	case len(a) > 4*maxRunes || len(b) > 4*maxRunes:
		return false
	case !t.Comparable(other):
		return false
	}
	return similarity(t.runes, other.runes) > Threshold && !differ(tokens(a), tokens(b))
}

// Comparable reports whether two statements can be similar above Threshold at all, going by how many characters they have,
// and of which. It costs little: to make one text of the other, each character that only one of them has must be touched.
func (t Text) Comparable(other Text) bool {
	onlyHere, onlyThere := 0, 0
	for i, n := range t.counts {
		if m := other.counts[i]; n > m {
			onlyHere += int(n - m)
		} else {
			onlyThere += int(m - n)
		}
	}
	longer := max(len(t.runes), len(other.runes))
	return longer > 0 && 1-float64(max(onlyHere, onlyThere))/float64(longer) > Threshold
}

// Len is how many characters of the statement are compared.
func (t Text) Len() int { return len(t.runes) }

// Near reports whether two statements mean the same, given the cosine similarity of their embeddings. Models find "the user's sister is
// called Ann" and "the user's sister is called Eve" nearly equal. So two statements that differ in one place of the same sentence, in a
// negation, a number, a date or a qualifier are not near.
func Near(a, b string, cosine float64) bool { return Prepare(a).Near(Prepare(b), cosine) }

// Near is as the function Near.
func (t Text) Near(other Text, cosine float64) bool {
	if t.Same(other) {
		return true
	}
	a, b := t.normalized, other.normalized
	if cosine < NearThreshold || a == "" || b == "" || len(a) > 4*maxRunes || len(b) > 4*maxRunes {
		return false
	}
	return similarity(t.runes, other.runes) < alike && slices.Equal(marks(a), marks(b))
}

// Similarity is 1 for equal texts, and 0 for texts that have no character in common: one minus the edit distance
// (Levenshtein, 1966) over the length of the longer text, after normalisation.
func Similarity(a, b string) float64 {
	return similarity([]rune(normalized(a)), []rune(normalized(b)))
}

// normalized is a text without what never matters: case, width, punctuation, white space, and which of several words of one
// meaning was chosen.
func normalized(text string) string {
	text = Canonical(text)
	text = strings.ReplaceAll(lexical.ExpandAll(text), "'s ", " ")
	var last rune
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		name := r == '#' && last >= 'a' && last <= 'z' // C#
		last = r
		if unicode.IsPunct(r) && r != '.' && r != ':' && r != '-' && r != '/' && r != '%' && !name {
			return ' '
		}
		return r
	}, text)), " ")
	words := strings.Fields(text)
	for i, w := range words {
		negative := len(w) > 1 && w[0] == '-' && w[1] >= '0' && w[1] <= '9'
		if w = strings.Trim(w, ".:-/"); negative {
			w = "-" + w
		}
		if s, ok := englishSynonyms[w]; ok {
			w = s
		}
		words[i] = w
	}
	text = strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
	return chineseSynonyms.Replace(text)
}

func similarity(a, b []rune) float64 {
	longer := max(len(a), len(b))
	if longer == 0 {
		return 0
	}
	return 1 - float64(distance(a, b))/float64(longer)
}

// distance is how many characters must be added, removed or replaced to make one text of the other.
func distance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// tokens are the words of a text, in order; in scripts without spaces each character is one.
func tokens(text string) []string {
	var list []string
	word := ""
	flush := func() {
		if word != "" {
			list = append(list, word)
		}
		word = ""
	}
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			flush()
		case r > 0x2e80 && unicode.IsLetter(r):
			flush()
			list = append(list, string(r))
		case word != "" && unicode.IsDigit(r) != unicode.IsDigit([]rune(word)[0]) && r > 0x7f:
			flush()
			word = string(r)
		default:
			word += string(r)
		}
	}
	flush()
	return list
}

// differ reports whether one of the texts has something that the other lacks and that could matter.
func differ(a, b []string) bool {
	onlyA, onlyB := apart(a, b)
	onlyA, onlyB = meaningful(onlyA), meaningful(onlyB)
	for _, w := range onlyA {
		i := slices.IndexFunc(onlyB, func(v string) bool { return sameWord(w, v) })
		if i < 0 {
			return true
		}
		onlyB = slices.Delete(onlyB, i, i+1)
	}
	return len(onlyB) > 0
}

// apart are the words that are not in the longest common subsequence.
func apart(a, b []string) (onlyA, onlyB []string) {
	longest := make([][]int, len(a)+1)
	for i := range longest {
		longest[i] = make([]int, len(b)+1)
	}
	for i, x := range slices.Backward(a) {
		for j, y := range slices.Backward(b) {
			if x == y {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			i, j = i+1, j+1
		case longest[i+1][j] >= longest[i][j+1]:
			onlyA = append(onlyA, a[i])
			i++
		default:
			onlyB = append(onlyB, b[j])
			j++
		}
	}
	return append(onlyA, a[i:]...), append(onlyB, b[j:]...)
}

func meaningful(words []string) []string {
	return slices.DeleteFunc(words, func(w string) bool { return insignificant[w] })
}

// sameWord reports whether two English words are forms of one, or one of them is misspelt. A word that marks a difference is
// never a form of another: "on" and "one", "Monday" and "Mondays" are not looked at here.
func sameWord(a, b string) bool {
	if !letters(a) || !letters(b) || markWords[a] || markWords[b] || a[0] != b[0] {
		return false
	}
	if stem(a) == stem(b) {
		return true
	}
	return min(len(a), len(b)) >= 7 && distance([]rune(a), []rune(b)) == 1
}

func letters(w string) bool {
	return w != "" && !strings.ContainsFunc(w, func(r rune) bool { return r < 'a' || r > 'z' })
}

// stem takes the endings off that mark number and person.
func stem(w string) string {
	switch {
	case len(w) > 4 && strings.HasSuffix(w, "ies"):
		return w[:len(w)-3] + "y"
	case len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss"):
		return w[:len(w)-1]
	}
	return w
}

// marks are what two statements that mean the same must have in common: negations, numbers, dates and qualifiers, sorted.
func marks(text string) []string {
	var found []string
	for _, w := range tokens(text) {
		if markWords[w] || strings.ContainsFunc(w, unicode.IsDigit) {
			found = append(found, w)
		}
	}
	slices.Sort(found)
	return found
}

package lexical

import "strings"

// contractions are those that Expand does not recognise by their ending, and those without an apostrophe.
var contractions = map[string][]string{
	"im": {"i", "am"}, "ive": {"i", "have"}, "dont": {"do", "not"}, "doesnt": {"does", "not"}, "didnt": {"did", "not"},
	"cant": {"can", "not"}, "can't": {"can", "not"}, "cannot": {"can", "not"}, "won't": {"will", "not"}, "wont": {"will", "not"},
	"isnt": {"is", "not"}, "wasnt": {"was", "not"}, "havent": {"have", "not"}, "shan't": {"shall", "not"},
	"ain't": {"am", "not"}, "let's": {"let", "us"}, "whats": {"what", "is"}, "what's": {"what", "is"},
	"that's": {"that", "is"}, "it's": {"it", "is"}, "he's": {"he", "is"}, "she's": {"she", "is"}, "there's": {"there", "is"},
	"where's": {"where", "is"}, "who's": {"who", "is"}, "how's": {"how", "is"}, "wanna": {"want", "to"},
	"gonna": {"going", "to"}, "gotta": {"have", "to"},
}

// endings are what the ends of contractions stand for.
var endings = map[string]string{"'m": "am", "'re": "are", "'ve": "have", "'ll": "will", "'d": "would", "'s": "'s"}

// Expand returns the words that a contraction in lower case stands for, or the word itself. The end of "Ann's" stays: it may be "is",
// "has" or a genitive.
func Expand(word string) []string {
	if words, ok := contractions[word]; ok {
		return words
	}
	at := strings.LastIndexByte(word, '\'')
	if at <= 0 {
		return []string{word}
	}
	if full, ok := endings[word[at:]]; ok {
		return []string{word[:at], full}
	}
	if head, ok := strings.CutSuffix(word, "n't"); ok {
		return []string{head, "not"}
	}
	return []string{word}
}

// ExpandAll writes the contractions of a text out, so that a negation is always a word of its own.
func ExpandAll(text string) string {
	text = strings.ReplaceAll(text, "’", "'")
	var b strings.Builder
	done := 0 // before this position everything is written
	for i := 0; i < len(text); {
		if !isASCIILetter(text[i]) {
			i++
			continue
		}
		start := i
		for i < len(text) && (isASCIILetter(text[i]) || text[i] == '\'' && i+1 < len(text) && isASCIILetter(text[i+1])) {
			i++
		}
		word := text[start:i]
		words := Expand(strings.ToLower(word))
		if len(words) < 2 || words[1] == "'s" {
			continue
		}
		if strings.HasPrefix(strings.ToLower(word), words[0]) {
			words = []string{word[:len(words[0])], words[1]}
		}
		b.WriteString(text[done:start] + strings.Join(words, " "))
		done = i
	}
	if done == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
}

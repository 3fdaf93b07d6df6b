package results

import (
	"slices"
	"strings"
)

// What people say around an ordinal, in English.
var (
	politeWords = []string{
		"please", "pls", "thanks", "ok", "okay", "yes", "i", "i'd", "i'll", "would", "like", "want", "take", "choose", "pick", "select", "show", "me",
		"open", "give", "play", "go", "with", "download", "watch", "read", "buy", "let's", "see", "try",
	}
	wondering        = [][]string{{"what", "about"}, {"how", "about"}, {"make", "it"}}
	politeAfterWords = []string{"please", "pls", "thanks", "thank", "you", "then"}
	numberWords      = []string{"number", "no", "nr", "num", "#"}
	itemWords        = []string{
		"one", "item", "option", "result", "entry", "choice", "movie", "film", "paper", "article", "link", "song", "book", "video", "product", "title",
	}
	cardinals = []string{
		"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen",
		"sixteen", "seventeen", "eighteen", "nineteen",
	}
	ordinals = []string{
		"", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth", "thirteenth",
		"fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth",
	}
	tens       = []string{"", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"}
	tenths     = []string{"", "", "twentieth", "thirtieth", "fortieth", "fiftieth", "sixtieth", "seventieth", "eightieth", "ninetieth"}
	lastWords  = []string{"last", "final", "bottom"}
	fromTheEnd = [][]string{{"from", "the", "end"}, {"from", "the", "bottom"}, {"from", "the", "last"}, {"from", "end"}, {"from", "last"}, {"to", "last"}, {"last"}}
)

// englishOrdinal reads what holds no Chinese characters.
func englishOrdinal(text string) (Ordinal, bool) {
	text = strings.ReplaceAll(text, "’", "'")
	for _, mark := range []string{"#", "no.", "nr."} {
		text = strings.ReplaceAll(text, mark, " "+mark+" ")
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n.,!?;:()-", r) })
	if len(words) > 2 && slices.ContainsFunc(wondering, func(w []string) bool { return slices.Equal(words[:2], w) }) {
		words = words[2:]
	}
	for i := 0; len(words) > 0 && (slices.Contains(politeWords, words[0]) || i > 0 && words[0] == "to"); i++ { // I want to see
		words = words[1:]
	}
	for len(words) > 0 && slices.Contains(politeAfterWords, words[len(words)-1]) {
		words = words[:len(words)-1]
	}
	the := len(words) > 0 && words[0] == "the"
	if the {
		words = words[1:]
	}
	if len(words) == 0 {
		return 0, false
	}
	return phrase(words, the)
}

// phrase reads what is left between the polite words.
func phrase(words []string, the bool) (Ordinal, bool) {
	named := len(words) > 1 && (slices.Contains(numberWords, words[0]) || slices.Contains(itemWords[1:], words[0]))
	if named { // number three, movie 3, item number 3
		words = words[1:]
		if len(words) > 1 && slices.Contains(numberWords, words[0]) {
			words = words[1:]
		}
		if n, ok := cardinal(words); ok {
			return n, true
		}
	}
	if n, ok := cardinal(words); ok {
		return n, !the // "the one" is none of them in particular
	}
	if strings.Join(words, " ") == "last but one" {
		return -2, true
	}
	if last := len(words) - 1; last > 0 && slices.Contains(itemWords, words[last]) {
		words = words[:last]
	}
	switch joined := strings.Join(words, " "); {
	case len(words) == 1 && slices.Contains(lastWords, joined), joined == "very last":
		return -1, true
	case joined == "next to last", joined == "penultimate":
		return -2, true
	case joined == "top", joined == "very first":
		return 1, true
	}
	for _, end := range fromTheEnd {
		if at := len(words) - len(end); at > 0 && slices.Equal(words[at:], end) {
			before := words[:at]
			if n := len(before) - 1; n > 0 && slices.Contains(itemWords, before[n]) { // third one from the end
				before = before[:n]
			}
			n, ok := ordinal(before)
			return -n, ok && n > 0
		}
	}
	return ordinal(words)
}

// cardinal reads 3, three, twenty-one.
func cardinal(words []string) (Ordinal, bool) {
	switch len(words) {
	case 1:
		if n, ok := digits(words[0]); ok {
			return n, true
		}
		if i := slices.Index(cardinals, words[0]); i >= 0 {
			return Ordinal(i), true
		}
		i := slices.Index(tens, words[0])
		return Ordinal(10 * i), i > 1
	case 2:
		ten, one := slices.Index(tens, words[0]), slices.Index(cardinals, words[1])
		return Ordinal(10*ten + one), ten > 1 && one > 0 && one < 10
	}
	return 0, false
}

// ordinal reads 3rd, third, twenty-first.
func ordinal(words []string) (Ordinal, bool) {
	switch len(words) {
	case 1:
		for _, suffix := range []string{"st", "nd", "rd", "th"} {
			if number, ok := strings.CutSuffix(words[0], suffix); ok {
				if n, ok := digits(number); ok {
					return n, true
				}
			}
		}
		if i := slices.Index(ordinals[1:], words[0]); i >= 0 {
			return Ordinal(i + 1), true
		}
		i := slices.Index(tenths, words[0])
		return Ordinal(10 * i), i > 1
	case 2:
		ten, one := slices.Index(tens, words[0]), slices.Index(ordinals, words[1])
		return Ordinal(10*ten + one), ten > 1 && one > 0 && one < 10
	}
	return 0, false
}

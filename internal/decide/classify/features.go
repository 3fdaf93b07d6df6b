package classify

import (
	"hash/fnv"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang/sentences"
)

// Unit is a sentence to classify, with what stands around it.
type Unit struct {
	Message    string // the whole message
	Start, End int    // the sentence's bytes in it
	Index      int    // the sentence's place in the message, from 0
	Count      int    // sentences of the message
	Bot        string // what the bot said last before the message; empty: nothing
	User       string // what the user said last before the message
	Reply      string // what the bot said next; empty: not known
}

// Text is the sentence.
func (u Unit) Text() string { return u.Message[u.Start:u.End] }

// How much of the words around a sentence counts.
const (
	maxUnit   = 400 // characters of the sentence
	maxAround = 200 // characters of other parts of the message, and of the turns before
)

// features calls add with each feature's name and value.
func (u Unit) features(add func(name string, value float64)) {
	text := cut(u.Text(), maxUnit)
	tokens := tokenize(text)
	group := func(prefix string, weight float64, names []string) {
		if len(names) == 0 {
			return
		}
		value := weight / math.Sqrt(float64(len(names)))
		for _, name := range names {
			add(prefix+name, value)
		}
	}
	group("w:", 2, grams(tokens, 1, 1))
	group("ww:", 2, grams(tokens, 2, 2))
	group("www:", 1.5, grams(tokens, 3, 4))
	group("c:", 1.5, chars(tokens))
	if n := len(tokens); n > 0 {
		add("first:"+tokens[0].text, .5)
		add("first:"+join(tokens[:min(2, n)]), .5)
		add("first:"+join(tokens[:min(3, n)]), .5)
		add("last:"+tokens[n-1].text, .3)
		add("last:"+join(tokens[max(0, n-2):]), .5)
		if n <= 6 {
			add("all:"+join(tokens), .8)
		}
	}
	for _, mark := range shape(text, len(tokens)) {
		add("s:"+mark, .4)
	}
	before, after := cutEnd(u.Message[:u.Start], maxAround), cut(u.Message[u.End:], maxAround)
	group("before:", .3, grams(lastTokens(tokenize(before), 12), 1, 2))
	group("after:", .3, grams(firstTokens(tokenize(after), 12), 1, 2))
	add("place:"+strconv.Itoa(min(u.Index, 3))+"/"+strconv.Itoa(min(u.Count, 4)), .3)
	for _, mark := range shape(cut(u.Message, 2000), 0) {
		add("m:"+mark, .3)
	}
	if u.Reply != "" {
		reply := cut(u.Reply, maxAround)
		group("reply:", .4, grams(firstTokens(tokenize(reply), 16), 1, 3))
		for _, mark := range shape(reply, 0) {
			add("r:"+mark, .2)
		}
	}
	u.context(tokens, add, group)
}

// context adds features of the turns before.
func (u Unit) context(tokens []token, add func(string, float64), group func(string, float64, []string)) {
	if u.Bot == "" {
		add("bot:none", .3)
		return
	}
	question := LastQuestion(cutEnd(u.Bot, 2*maxAround))
	short := "long"
	if len(tokens) <= 6 {
		short = "short"
	}
	if question == "" {
		add("bot:statement", .3)
		add("bot:statement/"+short, .5)
		group("botsaid:", .2, grams(lastTokens(tokenize(cutEnd(u.Bot, maxAround)), 12), 1, 2))
	} else {
		asked := firstTokens(tokenize(question), 24)
		add("bot:question/"+short+"/"+strconv.Itoa(min(u.Index, 1)), .6)
		if len(tokens) <= 12 {
			group("asked:", .4, grams(asked, 1, 3))
		}
		if len(tokens) <= 6 { // then the question tells more than the answer
			group("asked/short:", 1.5, grams(asked, 1, 3))
			for n := 1; n <= 3; n++ {
				add("asked/head:"+join(firstTokens(asked, n)), .5)
				add("asked/tail:"+join(lastTokens(asked, n+1)), .3)
			}
		}
	}
	if len(tokens) <= 8 {
		group("usersaid:", .15, grams(lastTokens(tokenize(cutEnd(u.User, maxAround)), 12), 1, 1))
	}
}

// LastQuestion returns the question that a text of the bot ends with, or "".
func LastQuestion(text string) string {
	end := strings.LastIndexAny(text, "?？")
	if end < 0 || utf8.RuneCountInString(text[end:]) > 60 {
		return ""
	}
	_, mark := utf8.DecodeRuneInString(text[end:])
	start := 0
	if before := strings.LastIndexAny(text[:end], ".!?。！？\n"); before >= 0 {
		_, size := utf8.DecodeRuneInString(text[before:])
		start = before + size
	}
	return text[start : end+mark]
}

// token is a word in lower case, or one Chinese or Japanese character.
type token struct {
	text string
	word bool // of a script with spaces between words
}

func tokenize(text string) []token {
	var list []token
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			list = append(list, token{b.String(), true})
			b.Reset()
		}
	}
	digits := false
	for _, r := range text {
		switch {
		case r == '’':
			r = '\''
			fallthrough
		case r == '\'' && b.Len() > 0:
			b.WriteRune(r)
			continue
		case unicode.Is(unicode.Han, r) || unicode.In(r, unicode.Hiragana, unicode.Katakana):
			flush()
			list = append(list, token{string(fold(r)), false})
			continue
		case unicode.IsDigit(r):
			if b.Len() > 0 && digits {
				continue // a number is one 0
			}
			if !digits {
				flush()
			}
			digits = true
			b.WriteRune('0')
			continue
		case unicode.IsLetter(r) || unicode.IsMark(r):
			if digits {
				flush()
			}
			digits = false
			b.WriteRune(fold(unicode.ToLower(r)))
			continue
		}
		flush()
		digits = false
		if strings.ContainsRune("?!？！*()（）\"“”「」:：~～…/,，", r) {
			list = append(list, token{string(halfWidth(r)), false})
		}
	}
	flush()
	return list
}

func halfWidth(r rune) rune {
	switch {
	case r == '“' || r == '”' || r == '「' || r == '」':
		return '"'
	case r >= 0xFF01 && r <= 0xFF5E:
		return r - 0xFEE0
	}
	return r
}

func firstTokens(t []token, n int) []token { return t[:min(n, len(t))] }
func lastTokens(t []token, n int) []token  { return t[max(0, len(t)-n):] }

func join(tokens []token) string {
	var b strings.Builder
	for i, t := range tokens {
		if i > 0 && t.word {
			b.WriteByte(' ')
		}
		b.WriteString(t.text)
	}
	return b.String()
}

// grams returns the sequences of least to most tokens.
func grams(tokens []token, least, most int) []string {
	var list []string
	for n := least; n <= most; n++ {
		for i := 0; i+n <= len(tokens); i++ {
			list = append(list, join(tokens[i:i+n]))
		}
	}
	return list
}

// chars returns parts of words: endings and stems tell in languages that inflect.
func chars(tokens []token) []string {
	var list []string
	for _, t := range tokens {
		if !t.word || len(t.text) < 3 {
			continue
		}
		runes := []rune("<" + t.text + ">")
		for n := 2; n <= 5; n++ {
			if n == 2 && !unicode.Is(unicode.Hangul, runes[1]) {
				continue
			}
			for i := 0; i+n <= len(runes); i++ {
				list = append(list, string(runes[i:i+n]))
			}
		}
	}
	return list
}

// shape names marks of a text that no single word has.
func shape(text string, tokens int) []string {
	var marks []string
	mark := func(on bool, name string) {
		if on {
			marks = append(marks, name)
		}
	}
	trimmed := strings.TrimRight(text, " \t\r\n\"'”’)）」")
	mark(strings.HasSuffix(trimmed, "?") || strings.HasSuffix(trimmed, "？"), "?")
	mark(strings.HasSuffix(trimmed, "!") || strings.HasSuffix(trimmed, "！"), "!")
	mark(strings.HasSuffix(trimmed, "…") || strings.HasSuffix(trimmed, "..."), "…")
	mark(strings.HasPrefix(text, "*") || strings.HasSuffix(trimmed, "*"), "stars")
	mark(strings.Contains(text, "```") || strings.Contains(text, "{") || strings.Contains(text, "();") || strings.Contains(text, "=="), "code")
	mark(strings.HasPrefix(text, ">"), "quoted")
	mark(strings.ContainsAny(text, "\"“”「」『』《》"), "quotes")
	mark(strings.Contains(text, "://"), "url")
	mark(strings.Contains(text, "[redacted") || strings.Contains(text, "[已隐去"), "secret")
	mark(strings.Count(text, "\n") >= 3, "lines")
	mark(strings.ContainsFunc(text, unicode.IsDigit), "digit")
	mark(strings.ContainsFunc(text, func(r rune) bool { return r >= 0x1F300 && r <= 0x1FAFF }), "emoji")
	upper := false
	for i, r := range text {
		upper = upper || i > 0 && unicode.IsUpper(r)
	}
	mark(upper, "upper")
	if tokens > 0 {
		marks = append(marks, "length"+strconv.Itoa(int(math.Log2(float64(tokens)))))
	} else {
		marks = append(marks, "length"+strconv.Itoa(int(math.Log2(float64(len(text)+1)))))
	}
	return marks
}

func cut(text string, runes int) string {
	n := 0
	for i := range text {
		if n == runes {
			return text[:i]
		}
		n++
	}
	return text
}

func cutEnd(text string, runes int) string {
	for n, i := 0, len(text); ; n++ {
		if i == 0 {
			return text
		}
		if n == runes {
			return text[i:]
		}
		_, size := utf8.DecodeLastRuneInString(text[:i])
		i -= size
	}
}

func hash(name string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	sum := h.Sum32()
	return (sum ^ sum>>16) & (buckets - 1)
}

// Units divides a message into at most so many sentences to classify.
func Units(message, bot, user, reply string, most int) []Unit {
	list := sentences.Of(message)
	units := make([]Unit, 0, min(len(list), most))
	for i, s := range list[:min(len(list), most)] {
		units = append(units, Unit{Message: message, Start: s.Start, End: s.End, Index: i, Count: len(list), Bot: bot, User: user, Reply: reply})
	}
	return units
}

// Length is the number of words, or of Chinese and Japanese characters divided by two.
func Length(text string) int {
	words, characters := 0, 0
	for _, t := range tokenize(text) {
		if t.word {
			words++
		} else {
			characters++
		}
	}
	return words + (characters+1)/2
}

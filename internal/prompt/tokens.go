package prompt

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html/atom"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// Models' chat templates mark roles, turns, tools and thoughts with tokens that are written as text: <|im_start|>, [INST], <tool_call>.
// Some servers read such text as a token wherever it is in a prompt. Tokens are recognised by their shape, so that tokens of unlisted
// model families are found as well:
//
//	<|...        an opening angle bracket and a bar
//	<word|>      a word between an angle bracket and a bar
//	<a_word>     a word with an underscore, or one in capitals that is no HTML element; also with attributes
//	[A_WORD]     a word of three or more capitals; also with digits, underscores and one small letter before it
//	[|word|]     a word between bars in square brackets
//
// The rest (<bos>, <think>, [control_8], ]~b]) looks like other text and is listed in tokens.txt.
//
// A shape directly after an identifier is code, an index or a type argument, such as a[SIZE] or List<URL>, and is kept unless it is
// listed. Names that end in _t are types of C and are kept too.

// word is what the name of a token may be made of. "▁" is the space of some tokenizers, which DeepSeek's tokens have.
const word = `[\pL\pN_▁.-]`

var shapes = lazyregexp.New(`<\||` +
	`<` + word + `{1,60}\|>|` +
	`<<\s*/?\s*[A-Z]{3,20}\s*>>|` +
	`</?` + word + `{1,60}(?::` + word + `{1,60})?(?:\s*=[^<>]{0,200}|(?:\s+[\w:-]+\s*=[^<>]{0,200})+)?\s*/?>|` +
	`\[\|/?` + word + `{1,60}\|\]|` +
	`\[/?` + word + `{1,60}\]`)

var (
	control = lazyregexp.New(`^[a-z]?[A-Z][A-Z0-9_]{2,}$`)
	digits  = lazyregexp.New(`[0-9]+`)
	element = lazyregexp.New(`^[<\[]+\s*/?\s*(` + word + `+(?::` + word + `+)?)`)
)

//go:embed tokens.txt
var listed string

// vocabulary are the listed tokens.
type vocabulary struct {
	named map[string]bool // such as "<think" or "[control_#", without a slash
	odd   *regexp.Regexp  // those of other shapes
}

var known = sync.OnceValue(func() vocabulary {
	v := vocabulary{named: map[string]bool{}}
	var odd []string
	for line := range strings.Lines(listed) {
		if strings.HasPrefix(line, "# ") {
			continue
		}
		for token := range strings.FieldsSeq(line) {
			text := strings.ReplaceAll(token, "#", "0")
			switch at := shapes.FindStringIndex(text); {
			case len(at) == 0 || at[0] > 0:
				odd = append(odd, regexp.QuoteMeta(token))
			case !strings.Contains(text, "|"): // else the shape says enough
				v.named[name(text)] = true
			}
		}
	}
	v.odd = regexp.MustCompile(strings.Join(odd, "|"))
	return v
})

// name is what a token is looked up by: its bracket and its word, with one digit for any number.
func name(token string) string {
	return token[:1] + digits.ReplaceAllString(element.FindStringSubmatch(token)[1], "0")
}

// span is a part of a text.
type span struct{ start, end int }

// tokens finds the tokens of chat templates in a folded text, in order.
func tokens(text string) []span {
	v := known()
	var found []span
	for at := 0; at < len(text); {
		m := shapes.FindStringIndex(text[at:])
		if m == nil {
			break
		}
		start, end := at+m[0], at+m[1]
		adjacent := len(found) > 0 && found[len(found)-1].end == start
		if isToken(text, start, end, !adjacent && attached(text[:start]), v) {
			found = append(found, span{start, end})
			at = end
		} else {
			at = start + 1
		}
	}
	for _, m := range v.odd.FindAllStringIndex(text, -1) {
		if !slices.ContainsFunc(found, func(s span) bool { return m[0] < s.end && s.start < m[1] }) {
			found = append(found, span{m[0], m[1]})
		}
	}
	slices.SortFunc(found, func(a, b span) int { return a.start - b.start })
	return found
}

// isToken reports whether something of the right shape is a token. attached is whether an identifier stands directly before it.
func isToken(text string, start, end int, attached bool, v vocabulary) bool {
	token := text[start:end]
	if strings.HasPrefix(token, "<|") || strings.HasPrefix(token, "[|") || strings.HasPrefix(token, "<<") || strings.HasSuffix(token, "|>") {
		return true
	}
	if v.named[name(token)] {
		return true
	}
	word := element.FindStringSubmatch(token)[1]
	if _, after, ok := strings.Cut(word, ":"); ok && v.named["<"+after] {
		return true // <anything:tool_call>
	}
	if attached {
		return token[0] == '<' && strings.ContainsAny(word, "_▁") && !strings.HasSuffix(word, "_t")
	}
	if token[0] == '[' {
		return control.MatchString(word)
	}
	if strings.ContainsAny(word, "_▁") {
		return !strings.HasSuffix(word, "_t")
	}
	return control.MatchString(word) && atom.Lookup([]byte(strings.ToLower(word))) == 0
}

// attached reports whether an identifier, or an expression that can be indexed, ends the text.
func attached(before string) bool {
	r, _ := utf8.DecodeLastRuneInString(before)
	return r < unicode.MaxASCII && (r == '_' || r == ')' || r == ']' || unicode.IsLetter(r) || unicode.IsDigit(r))
}

// brackets are the characters without which there is neither a token nor a lenticular bracket, with those that NFKC makes of
// others.
const brackets = "<[]【】＜﹤［﹇］﹈︻︼"

// inert takes the tokens of a text apart by other brackets than their own, and replaces 【 and 】, which the blocks' own
// delimiters have.
func inert(text string) string {
	if !strings.ContainsAny(text, brackets) {
		return text
	}
	f := fold(text)
	found := tokens(f.text)
	for i, r := range f.text {
		if r == '【' || r == '】' {
			found = append(found, span{i, i + utf8.RuneLen(r)})
		}
	}
	slices.SortFunc(found, func(a, b span) int { return a.start - b.start })
	return f.replaced(text, found, func(bracket rune, _ string) string { return harmlessBrackets[bracket] })
}

var harmlessBrackets = map[rune]string{'<': "‹", '>': "›", '[': "〔", ']': "〕", '【': "〔", '】': "〕"}

// Escaped takes the tokens apart in a JSON string: their brackets become escapes, so that who decodes it has the text as it was.
func Escaped(text string) string {
	if !strings.ContainsAny(text, brackets) {
		return text
	}
	f := fold(text)
	return f.replaced(text, tokens(f.text), func(_ rune, original string) string {
		r, _ := utf8.DecodeRuneInString(original)
		return fmt.Sprintf(`\u%04x`, r)
	})
}

// replaced replaces the brackets in parts of the text. replace is given what NFKC makes of a bracket, and the bracket itself.
func (f *folded) replaced(text string, parts []span, replace func(bracket rune, original string) string) string {
	var b strings.Builder
	copied := 0
	for _, s := range parts {
		for i, r := range f.text[s.start:s.end] {
			if harmlessBrackets[r] == "" {
				continue
			}
			start, end := f.at(s.start+i, s.start+i+utf8.RuneLen(r))
			if start >= copied {
				b.WriteString(text[copied:start] + replace(r, text[start:end]))
				copied = end
			}
		}
	}
	return b.String() + text[copied:]
}

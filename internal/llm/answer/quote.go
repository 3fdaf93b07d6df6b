package answer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/prompt"
)

// Quoted is the text as a JSON string, on one line. What a model's chat template could take for one of its tokens is escaped
// in it.
func Quoted(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		return `""` // a string can always be encoded
	}
	quoted := strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\u0085", `\u0085`) // the line end that JSON does not know
	return prompt.Escaped(quoted)
}

// Shortened is the text as a JSON string or, when that is longer than limit characters, its beginning and its end as two
// with a note between them, which a text cannot imitate because it stands outside the quotation marks.
func Shortened(text string, limit int) string {
	whole := Quoted(text)
	if utf8.RuneCountInString(whole) <= limit {
		return whole
	}
	runes := []rune(text)
	for keep := min(limit, len(runes)); ; {
		head, tail := keep*2/3, keep-keep*2/3
		s := fmt.Sprintf("%s (%d characters left out) %s", Quoted(string(runes[:head])), len(runes)-keep, Quoted(string(runes[len(runes)-tail:])))
		n := utf8.RuneCountInString(s)
		if n <= limit || keep == 0 {
			return s
		}
		keep = min(keep-1, keep*limit/n) // escapes make the JSON string longer than the text
	}
}

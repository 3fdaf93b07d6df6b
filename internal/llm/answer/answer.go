// Package answer gets a usable answer from a text model: it repeats a request whose answer cannot be used, finds the JSON in the answer,
// and quotes people's words in prompts as data.
package answer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Limits of what is looked through for JSON, so that an answer of brackets alone costs nothing.
const (
	maxBytes    = 1 << 20
	maxOpenings = 100
)

// Values are the JSON objects and arrays of an answer, in order: alone, in a fence, between prose, after a byte
// order mark or a passage of thinking, with trailing commas, and with line ends in strings.
func Values(answer string) ([]json.RawMessage, error) {
	if len(answer) > maxBytes {
		return nil, fmt.Errorf("it is %d bytes long, more than %d", len(answer), maxBytes)
	}
	answer = strings.TrimSpace(strings.TrimPrefix(answer, "\ufeff"))
	if strings.HasPrefix(answer, "<think") {
		if end := strings.LastIndex(answer, "</think"); end >= 0 {
			answer = answer[end:]
		}
	}
	var values []json.RawMessage
	opened := false
	for i, tries := 0, 0; i < len(answer) && tries < maxOpenings; {
		if answer[i] != '{' && answer[i] != '[' {
			i++
			continue
		}
		tries++
		end := closing(answer, i)
		if end < 0 {
			opened = true
			i++
			continue
		}
		value := []byte(answer[i:end])
		if !json.Valid(value) {
			value = repaired(value)
		}
		if json.Valid(value) {
			values = append(values, value)
			i = end
			continue
		}
		i++
	}
	switch {
	case len(values) > 0:
		return values, nil
	case opened:
		return nil, errors.New("its JSON breaks off before it ends: answer in fewer words")
	}
	return nil, errors.New("it holds no valid JSON object")
}

// closing is the position after the bracket that closes the one at start, or -1.
func closing(s string, start int) int {
	depth, inString := 0, false
	for i := start; i < len(s); i++ {
		switch c := s[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// repaired drops the commas that stand before a closing bracket, and escapes line ends and other control characters in strings.
func repaired(value []byte) []byte {
	out := make([]byte, 0, len(value))
	inString := false
	for i := 0; i < len(value); i++ {
		c := value[i]
		switch {
		case inString && c == '\\' && i+1 < len(value):
			out = append(out, c)
			i++
			c = value[i]
		case c == '"':
			inString = !inString
		case inString && c < ' ':
			out = fmt.Appendf(out, `\u%04x`, c)
			continue
		case !inString && c == ',':
			if rest := bytes.TrimLeft(value[i+1:], " \t\r\n"); len(rest) > 0 && (rest[0] == '}' || rest[0] == ']') {
				continue
			}
		}
		out = append(out, c)
	}
	return out
}

// ObjectWith is the one object among the values that has the key, alone or as the only element of an array. Several that
// differ are an error: which of them is meant cannot be told.
func ObjectWith(values []json.RawMessage, key string) (map[string]json.RawMessage, error) {
	var found map[string]json.RawMessage
	var source []byte
	for _, v := range values {
		var list []json.RawMessage
		if v[0] == '[' && json.Unmarshal(v, &list) == nil && len(list) == 1 {
			v = list[0]
		}
		var fields map[string]json.RawMessage
		if json.Unmarshal(v, &fields) != nil || fields[key] == nil {
			continue
		}
		if found != nil && !bytes.Equal(source, compact(v)) {
			return nil, fmt.Errorf("it holds several objects with %q: give one", key)
		}
		found, source = fields, compact(v)
	}
	if found == nil {
		return nil, fmt.Errorf("it holds no object with %q", key)
	}
	return found, nil
}

func compact(value []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return value
	}
	return b.Bytes()
}

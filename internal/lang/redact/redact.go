// Package redact finds secrets in texts, such as API keys, passwords and card numbers, and puts markers in their place, so
// that what is derived from a dialogue holds none. It knows a secret by its shape, by a checksum, or by the words before
// it, in English and Chinese. What it takes for a secret must be one with near certainty: a phone number or an order
// number that is lost is a memory that is lost. docs/design/access.md says what it knows and what it misses.
package redact

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Kind is a kind of secret.
type Kind string

// The kinds.
const (
	APIKey        Kind = "api_key"         // of a provider, by its prefix or the words before it
	Token         Kind = "token"           // JSON Web Tokens, bearer tokens, session cookies
	PrivateKey    Kind = "private_key"     // PEM blocks
	Password      Kind = "password"        // after words such as "password is", in URLs; also PINs and codes
	CardNumber    Kind = "card_number"     // payment and bank cards, by their Luhn digit
	Identity      Kind = "identity_number" // Chinese resident identity cards, US social security numbers
	AccountNumber Kind = "account_number"  // IBANs, by their check digits
)

// Kinds are all kinds. Of two that lie over each other in a text the one that is further in front counts.
func Kinds() []Kind {
	return []Kind{PrivateKey, Token, APIKey, Identity, CardNumber, AccountNumber, Password}
}

// span is where a secret lies in a text.
type span struct {
	start, end int
	kind       Kind
	bare       bool // of encoded JSON: a number, and no part of a text
}

// Redactor replaces secrets by markers. The nil Redactor returns all texts unchanged. It is safe for concurrent use.
type Redactor struct{ kinds []Kind }

// New returns a Redactor of secrets of these kinds.
func New(kinds []Kind) (*Redactor, error) {
	r := &Redactor{}
	for _, kind := range Kinds() {
		if slices.Contains(kinds, kind) {
			r.kinds = append(r.kinds, kind)
		}
	}
	for _, kind := range kinds {
		if !slices.Contains(Kinds(), kind) {
			return nil, fmt.Errorf("%q is no kind of secret: use %s", kind, kindNames())
		}
	}
	return r, nil
}

func kindNames() string {
	var list []string
	for _, kind := range Kinds() {
		list = append(list, string(kind))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// mostPasses is how often a text is looked at: a secret that is gone may leave another as the nearest to its name.
const mostPasses = 4

// Text is the text with markers in the place of secrets, in its own language.
func (r *Redactor) Text(text string) string {
	for range mostPasses {
		spans := r.find(text)
		if len(spans) == 0 {
			return text
		}
		chinese := isChinese(text)
		text = replace(text, spans, func(s span) string { return marker(s.kind, chinese) })
	}
	return text
}

// Without is the text with a line break in the place of each secret: for what counts words, and must not count markers.
func (r *Redactor) Without(text string) string {
	text = replace(text, r.find(text), func(span) string { return "\n" })
	if r == nil || !strings.Contains(text, "[") {
		return text
	}
	return markers.ReplaceAllString(text, "\n")
}

// JSON is Text for an encoded JSON value, which stays one. What is no JSON is taken for a text.
func (r *Redactor) JSON(text string) string {
	if !json.Valid([]byte(text)) {
		return r.Text(text)
	}
	for range mostPasses {
		spans := inLiterals(text, r.find(text))
		if len(spans) == 0 {
			return text
		}
		chinese := isChinese(text)
		text = replace(text, spans, func(s span) string {
			if s.bare {
				return `"` + marker(s.kind, chinese) + `"`
			}
			return marker(s.kind, chinese)
		})
	}
	redacted := text
	if json.Valid([]byte(redacted)) {
		return redacted
	}
	// A secret that goes beyond the value that holds it.
	whole, _ := json.Marshal(map[string]string{"redacted": "the value held secrets"}) //nolint:errchkjson // texts can be encoded
	return string(whole)
}

// inLiterals cuts spans to the parts that are in texts or numbers of encoded JSON: what is between these stays.
func inLiterals(text string, spans []span) (cut []span) {
	for at, next := 0, 0; at < len(text) && next < len(spans); at++ {
		start, end, ok := literal(text, at)
		if !ok {
			continue
		}
		number := start == at
		for next < len(spans) && spans[next].start < end {
			s := spans[next]
			part := span{max(s.start, start), min(s.end, end), s.kind, number}
			if part.start < part.end {
				if number {
					part.start, part.end = start, end
				}
				if len(cut) == 0 || cut[len(cut)-1].end <= part.start {
					cut = append(cut, part)
				}
			}
			if s.end > end {
				break
			}
			next++
		}
		at = max(at, end-1)
		if !number {
			at = end
		}
	}
	return cut
}

// literal is where the text or the number of encoded JSON lies that begins at a place. A text begins behind its quotation mark.
func literal(text string, at int) (start, end int, ok bool) {
	switch c := text[at]; {
	case c == '"':
		end = at + 1
		for end < len(text) && text[end] != '"' {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		return at + 1, min(end, len(text)), true
	case c == '-' || digitByte(c):
		end = at + 1
		for end < len(text) && strings.IndexByte("0123456789+-.eE", text[end]) >= 0 {
			end++
		}
		return at, end, true
	}
	return 0, 0, false
}

// Message is the message with markers in the place of secrets. Ids and names stay.
func (r *Redactor) Message(m memory.Message) memory.Message {
	if r == nil {
		return m
	}
	m.Content, m.Metadata = r.Text(m.Content), r.JSON(m.Metadata)
	m.Tools = r.Tools(m.Tools)
	return m
}

// Messages returns the messages without secrets.
func (r *Redactor) Messages(messages []memory.Message) []memory.Message {
	if r == nil {
		return messages
	}
	redacted := make([]memory.Message, len(messages))
	for i := range messages {
		redacted[i] = r.Message(messages[i])
	}
	return redacted
}

// Tools are the calls with markers in the place of secrets.
func (r *Redactor) Tools(calls []memory.ToolCall) []memory.ToolCall {
	if r == nil {
		return calls
	}
	calls = slices.Clone(calls)
	for i := range calls {
		calls[i].Arguments, calls[i].Result = r.JSON(calls[i].Arguments), r.JSON(calls[i].Result)
	}
	return calls
}

// Dialogue is the dialogue with markers in the place of secrets, and which markers it holds, those that were there before
// included.
func (r *Redactor) Dialogue(d memory.Dialogue) (memory.Dialogue, Found) {
	if r == nil {
		return d, nil
	}
	found := Found{}
	d.Messages = slices.Clone(d.Messages)
	for i := range d.Messages {
		m := r.Message(d.Messages[i])
		d.Messages[i] = m
		found.count(m.Content)
		found.count(m.Metadata)
		for _, call := range m.Tools {
			found.count(call.Arguments)
			found.count(call.Result)
		}
	}
	return d, found
}

// replace puts something else in the place of each secret.
func replace(text string, spans []span, with func(span) string) string {
	var b strings.Builder
	last := 0
	for _, s := range spans {
		b.WriteString(text[last:s.start])
		b.WriteString(with(s))
		last = s.end
	}
	b.WriteString(text[last:])
	return b.String()
}

// shortest is how long a text is, in bytes, that may hold a secret.
const shortest = 6

// find returns the secrets of a text in order, none over another.
func (r *Redactor) find(text string) []span {
	if r == nil || len(text) < shortest {
		return nil
	}
	var all []span
	for _, v := range views(text) {
		for _, s := range detect(v.text) {
			if slices.Contains(r.kinds, s.kind) {
				all = append(all, v.original(s))
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	for _, at := range markers.FindAllStringIndex(text, -1) { // what is a marker already is no secret
		all = slices.DeleteFunc(all, func(s span) bool { return s.start < at[1] && at[0] < s.end })
	}
	rank := func(s span) int { return slices.Index(r.kinds, s.kind) }
	slices.SortStableFunc(all, func(a, b span) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(rank(a), rank(b))) })
	var kept []span
	for _, s := range all {
		if n := len(kept); n > 0 && s.start < kept[n-1].end {
			last := &kept[n-1]
			last.end = max(last.end, s.end)
			if rank(s) < rank(*last) {
				last.kind = s.kind
			}
			continue
		}
		kept = append(kept, s)
	}
	return kept
}

// detect returns the secrets of a text, in any order.
func detect(text string) (found []span) {
	lower := lowerCase(text)
	found = append(found, privateKeys(text)...)
	if hasRun(text, shortestKey) {
		found = append(append(append(found, tokens(text, lower)...), apiKeys(text)...), byRules(text, lower)...)
		found = append(found, cookies(text, lower)...)
	}
	found = append(append(found, inURLs(text)...), structures(text)...)
	found = append(append(found, assignments(text)...), spoken(text, lower)...)
	found = append(append(found, identities(text, lower)...), cards(text)...)
	return append(append(found, accounts(text)...), seeds(text)...)
}

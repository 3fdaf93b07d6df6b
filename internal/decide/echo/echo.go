// Package echo recognises in a dialogue what the sidecar itself handed out, so that a memory does not become memory again:
// the blocks for prompts that a bot pasted into a message, whole or in part, lines about "the user" that its framework
// copied, and sentences of the assistant that say what is remembered already.
//
// It takes such lines out of what is considered, and never out of what is recorded. When in doubt a line stays: a memory
// that is kept twice is a nuisance, a word of the user that is lost is a loss.
package echo

import (
	"context"
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Wording is what surrounds memories, or a conversation, in a block for a prompt.
type Wording struct {
	Header, Footer string
	Notes          []string // other lines of the block
	Speakers       []string // what lines of past messages begin with
}

// Known finds what is remembered about the user: the texts of the memories nearest to a text.
type Known func(ctx context.Context, text string) ([]string, error)

// maxLookups is how many lines of a dialogue are compared with memories. What is shaped as the block's lines are is taken out
// without that.
const maxLookups = 64

// maxCompared is how long a line may be to be compared with memories, in bytes.
const maxCompared = 2000

// Filter cleans dialogues of what was handed out. It is safe for concurrent use.
type Filter struct {
	headers, footers, notes []string // as key makes them
	marks                   []mark
	speakers                []string // in lower case
}

// mark is a header or footer in its written form.
type mark struct {
	text   string
	footer bool
}

// NewFilter returns a Filter that knows blocks of these wordings.
func NewFilter(wordings []Wording) *Filter {
	f := &Filter{}
	for _, w := range wordings {
		f.headers = append(f.headers, keysOf(w.Header)...)
		f.footers = append(f.footers, keysOf(w.Footer)...)
		for _, note := range w.Notes {
			f.notes = append(f.notes, keysOf(note)...)
		}
		for _, m := range []mark{{w.Header, false}, {w.Footer, true}} {
			if m.text = strings.TrimSpace(m.text); m.text != "" && !slices.Contains(f.marks, m) {
				f.marks = append(f.marks, m)
			}
		}
		for _, s := range w.Speakers {
			if s = strings.ToLower(strings.TrimSpace(s)); s != "" && !slices.Contains(f.speakers, s) {
				f.speakers = append(f.speakers, s)
			}
		}
	}
	return f
}

// Clean is the dialogue without what was handed out, and how many lines and sentences that were. Messages keep their places
// and ids; those that hold nothing of the kind are unchanged. The dialogue given is not modified.
func (f *Filter) Clean(ctx context.Context, d memory.Dialogue, known Known) (clean memory.Dialogue, removed int, err error) {
	c := cleaner{Filter: f, ctx: ctx, known: known, left: maxLookups}
	clean = d
	for i, m := range d.Messages {
		content, n := c.message(m)
		if c.err != nil {
			return d, 0, c.err
		}
		if n == 0 {
			continue
		}
		if removed == 0 {
			clean.Messages = slices.Clone(d.Messages)
		}
		clean.Messages[i].Content = content
		removed += n
	}
	return clean, removed, nil
}

// cleaner cleans one dialogue.
type cleaner struct {
	*Filter
	ctx   context.Context //nolint:containedctx // it lives as long as one call of Clean
	known Known
	left  int // lookups
	err   error
}

// told reports whether a memory says what the text says. Without lookups left it is unknown, and so not.
func (c *cleaner) told(text string) bool {
	return c.any(text, func(m string) bool { return Told(text, m) })
}

func (c *cleaner) any(text string, is func(remembered string) bool) bool {
	if c.err != nil || c.left == 0 || c.known == nil || strings.TrimSpace(text) == "" || len(text) > maxCompared {
		return false
	}
	c.left--
	var near []string
	if near, c.err = c.known(c.ctx, text); c.err != nil {
		return false
	}
	return slices.ContainsFunc(near, is)
}

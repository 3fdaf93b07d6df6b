package echo

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// class is what a line of a message looks like.
type class int

const (
	other  class = iota
	blank        // nothing in it
	header       // the first line of a block
	footer       // its last
	note         // what a block says about itself
	dated        // "- [2026-11-20] The user …", whatever the bullet
	talk         // "[2026-11-20] User: …", or "User: …" in a block
	person       // "- The user …": a listed line about the user in the third person
	listed       // "- …"
)

var (
	bullet    = lazyregexp.New(`^\s*(?:[-*•·▪●◦‣–—+>]|\d{1,3}[.)、．）]|[（(]\d{1,3}[)）])\s*`)
	dateStamp = lazyregexp.New(`^\s*[\[【〔(（]?(?:19|20)\d\d[-/.年](?:0?[1-9]|1[0-2])[-/.月](?:[12]\d|3[01]|0?[1-9])日?[\]】〕)）]?\s*[:：]?\s*`)
	// what a cut left of "- [2026-11-20]"
	cutStamp  = lazyregexp.New(`^\s*[-*•·]?\s*[\[【〔(]?[0-9]{0,4}[-/.年]?[0-9]{0,2}[-/.月]?[0-9]{0,2}$`)
	aboutUser = lazyregexp.New(`^(?:(?i:the user|this user|user)(?:'s|’s)?\s|用户|用戶|该用户|該用戶)`)
	sentence  = lazyregexp.New(`[^。！？!?\n.]*(?:\.[^ \t\r\n。！？!?][^。！？!?\n.]*)*(?:[。！？!?]+|\.(?:\s+|$)|$)`)
)

// key is what is compared of a line: its letters and digits.
func key(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// minKey is from how many characters on a part of a wording is recognised.
const minKey = 10

// keysOf are the keys of a text's lines that are long enough to be told from what people write.
func keysOf(text string) []string {
	var keys []string
	for line := range strings.Lines(text) {
		if k := key(line); utf8.RuneCountInString(k) >= 4 {
			keys = append(keys, k)
		}
	}
	return keys
}

// isOf reports whether a line is one of these, or at the edge of a message the part of one that was not cut off.
func isOf(k string, keys []string, first, last bool) bool {
	long := utf8.RuneCountInString(k) >= minKey
	for _, whole := range keys {
		switch {
		case k == whole,
			utf8.RuneCountInString(whole) >= minKey && strings.Contains(k, whole),
			long && first && strings.HasSuffix(whole, k),
			long && last && strings.HasPrefix(whole, k):
			return true
		}
	}
	return false
}

// line is a line of a message.
type line struct {
	raw   string // with its end
	text  string // without bullet and date
	class class
	gone  bool
}

func (f *Filter) split(content string) []line {
	var lines []line
	for raw := range strings.Lines(content) {
		lines = append(lines, line{raw: raw})
	}
	for i := range lines {
		f.classify(&lines[i], i == 0, i == len(lines)-1)
	}
	return lines
}

func (f *Filter) classify(l *line, first, last bool) {
	k := key(l.raw)
	rest := l.raw
	marked := bullet.FindString(rest)
	rest = rest[len(marked):]
	stamp := dateStamp.FindString(rest)
	rest = rest[len(stamp):]
	l.text = strings.TrimSpace(rest)
	switch {
	case strings.TrimSpace(l.raw) == "":
		l.class = blank
	case isOf(k, f.headers, first, last && !first):
		l.class = header
	case isOf(k, f.footers, first && !last, last):
		l.class = footer
	case isOf(k, f.notes, first, last):
		l.class = note
	case stamp != "" && f.speaks(l.text), f.speaks(strings.TrimSpace(l.raw)):
		l.class = talk
	case stamp != "":
		l.class = dated
	case aboutUser.MatchString(l.text) && marked != "":
		l.class = person
	case marked != "":
		l.class = listed
	}
}

// speaks reports whether a line begins as that of a past message does.
func (f *Filter) speaks(text string) bool {
	text = strings.ToLower(text)
	for _, s := range f.speakers {
		rest, ok := strings.CutPrefix(text, s)
		if !ok {
			continue
		}
		if at := strings.IndexAny(rest, ":："); at >= 0 && at < 40 && (at == 0 || rest[0] == ' ') {
			return true
		}
	}
	return false
}

// message is a message's content without what was handed out.
func (c *cleaner) message(m memory.Message) (content string, removed int) {
	content, removed = c.blocks(m.Content)
	lines := c.split(content)
	c.openBlocks(lines)
	c.loose(lines)
	c.edges(lines)
	gone := 0
	var b strings.Builder
	for i := range lines {
		l := &lines[i]
		if l.gone {
			gone++
			continue
		}
		if m.Role == memory.RoleUser && l.class != blank {
			rest, n := c.sentences(l.raw)
			removed += n
			b.WriteString(rest)
			continue
		}
		b.WriteString(l.raw)
	}
	if removed+gone == 0 {
		return m.Content, 0
	}
	return strings.TrimSpace(b.String()), removed + gone
}

// blocks takes out what stands between a header and its footer, on however many lines.
func (c *cleaner) blocks(content string) (rest string, removed int) {
	for _, open := range c.marks {
		if open.footer {
			continue
		}
		for {
			start := strings.Index(content, open.text)
			if start < 0 {
				break
			}
			end := -1
			for _, closing := range c.marks {
				if !closing.footer {
					continue
				}
				if at := strings.Index(content[start:], closing.text); at >= 0 && (end < 0 || start+at+len(closing.text) < end) {
					end = start + at + len(closing.text)
				}
			}
			if end < 0 {
				break
			}
			removed += 1 + strings.Count(content[start:end], "\n")
			content = content[:start] + "\n" + content[end:]
		}
	}
	return content, removed
}

// openBlocks takes out blocks of which the beginning or the end was cut off: up to the first line that no block has.
func (c *cleaner) openBlocks(lines []line) {
	for i := range lines {
		switch lines[i].class { //nolint:exhaustive // the others begin and end nothing
		case header:
			lines[i].gone = true
			for j := i + 1; j < len(lines) && lines[j].ofBlock(); j++ {
				lines[j].gone = true
			}
		case footer:
			lines[i].gone = true
			for j := i - 1; j >= 0 && lines[j].ofBlock(); j-- {
				lines[j].gone = true
			}
		case note:
			lines[i].gone = true
		}
	}
}

// ofBlock reports whether a line between header and footer may be the block's.
func (l *line) ofBlock() bool {
	switch l.class {
	case other, listed:
		return strings.HasPrefix(l.raw, "  ") // the next line of a past message
	case header:
		return false
	default:
		return true
	}
}

// loose takes out lines that stand without header and footer: by their shape, or because a memory says what they say.
func (c *cleaner) loose(lines []line) {
	for i := range lines {
		l := &lines[i]
		if l.gone {
			continue
		}
		about := aboutUser.MatchString(l.text)
		switch l.class { //nolint:exhaustive // the others stay
		case dated:
			l.gone = about || c.told(l.text)
		case talk:
			l.gone = dateStamp.MatchString(bullet.ReplaceAllString(l.raw, ""))
		case person:
			l.gone = i > 0 && lines[i-1].gone || i+1 < len(lines) && lines[i+1].class == person || i > 0 && lines[i-1].class == person || c.told(l.text)
		case listed:
			l.gone = c.told(l.text) && !ownWords(l.text)
		}
	}
}

// edges removes the first and the last line of a message if they are parts of memories that were cut.
func (c *cleaner) edges(lines []line) {
	if len(lines) < 2 {
		return
	}
	first, last := &lines[0], &lines[len(lines)-1]
	if k := key(first.raw); !first.gone && lines[1].gone && utf8.RuneCountInString(k) >= 3 {
		first.gone = c.any(first.text, func(m string) bool { return strings.HasSuffix(key(m), k) })
	}
	if k := key(last.text); !last.gone && lines[len(lines)-2].gone {
		last.gone = last.class == dated || cutStamp.MatchString(last.raw) ||
			utf8.RuneCountInString(k) >= 3 && c.any(last.text, func(m string) bool { return strings.HasPrefix(key(m), k) })
	}
}

// sentences takes the sentences out of a line that speak of the user in the third person and say what a memory says.
func (c *cleaner) sentences(raw string) (rest string, removed int) {
	if !strings.Contains(raw, "用户") && !strings.Contains(raw, "用戶") && !strings.Contains(strings.ToLower(raw), "user") {
		return raw, 0
	}
	rest = sentence.ReplaceAllStringFunc(raw, func(s string) string {
		text := strings.TrimSpace(s)
		text = text[len(bullet.FindString(text)):]
		if !aboutUser.MatchString(text) || !c.told(text) {
			return s
		}
		removed++
		return ""
	})
	return rest, removed
}

// ownWords reports whether a text is in the first person.
func ownWords(text string) bool { return firstPerson.MatchString(text) }

var firstPerson = lazyregexp.New(`我|俺|咱|(?i:\b(?:i|i'm|i’m|my|me|we|our)\b)`)

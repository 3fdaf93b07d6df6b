package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// sections maps words in headings to kinds; the first match counts. The headings are those of nanobot's MEMORY.md, and of daily notes
// written from a digest.
var sections = []struct {
	words *lazyregexp.Regexp
	kind  memsidecarv1.MemoryKind
}{
	{lazyregexp.New(`(?i)prefer|likes|habits|偏好|喜好|爱好|习惯`), memsidecarv1.MemoryKind_MEMORY_KIND_PREFERENCE},
	{lazyregexp.New(`(?i)decision|决定|决策`), memsidecarv1.MemoryKind_MEMORY_KIND_DECISION},
	{lazyregexp.New(`(?i)appointment|schedule|calendar|日程|约定|预约`), memsidecarv1.MemoryKind_MEMORY_KIND_APPOINTMENT},
	{lazyregexp.New(`(?i)relationship|family|friends|people|contacts|关系|家人|朋友|联系人`), memsidecarv1.MemoryKind_MEMORY_KIND_RELATIONSHIP},
	{lazyregexp.New(`(?i)\btasks?\b|to-?dos?\b|action items|任务|待办`), memsidecarv1.MemoryKind_MEMORY_KIND_TASK},
	{lazyregexp.New(`(?i)problem|\bissues?\b|troubleshooting|问题|故障`), memsidecarv1.MemoryKind_MEMORY_KIND_PROBLEM},
	{lazyregexp.New(`(?i)\bplans?\b|\bgoals?\b|计划|目标`), memsidecarv1.MemoryKind_MEMORY_KIND_PLAN},
	{lazyregexp.New(`(?i)instruction|\brules?\b|\brequests?\b|要求|规则|指令`), memsidecarv1.MemoryKind_MEMORY_KIND_REQUEST},
	{lazyregexp.New(`(?i)experience|events?\b|经历|事件`), memsidecarv1.MemoryKind_MEMORY_KIND_EXPERIENCE},
}

var (
	heading = lazyregexp.New(`^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$`)
	bullet  = lazyregexp.New(`^(\s*)(?:[-*+•]|\d{1,3}[.)、])\s+(?:\[[ xX]\]\s+)?(.*)$`)
	rule    = lazyregexp.New(`^\s*(?:[-*_=]\s*){3,}$`)
	fence   = lazyregexp.New("^\\s*(?:```|~~~)")
	comment = lazyregexp.New(`(?s)<!--.*?-->`)
	bold    = lazyregexp.New(`\*\*(.+?)\*\*|__(.+?)__`)
	// placeholders are the texts of an empty template, and its remarks about itself.
	placeholder = lazyregexp.New(`^(?:\([^()]*\)|（[^（）]*）|\*[^*]+\*|_[^_]+_|(?:This file|本文件).*|\[[^\]]*\]|N/?A|None|无|暂无)[.。]?$`)
	topics      = lazyregexp.New(`(?i)topic|话题`)
	dated       = lazyregexp.New(`^[\[(（【]?(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d))?(?::\d\d)?[\])）】]?\s*[:：|-]?\s+(.+)$`)
	cells       = lazyregexp.New(`^\s*\|(.+)\|\s*$`)
	divider     = lazyregexp.New(`^\s*\|[\s:|-]+\|\s*$`)
)

// maxNotesBytes is far more than fits into a bot's prompt.
const maxNotesBytes = 16 << 20

// Notes reads Markdown that a bot keeps about its user. Each list item, paragraph and table row is a statement; the heading above it
// gives the kind. of names the notes; day is that of daily notes, or zero.
func Notes(in io.Reader, of string, day time.Time, o Options, sink Sink) error {
	text, err := readText(in)
	if err != nil {
		return err
	}
	n := &notes{of: of, day: day, o: o, sink: sink}
	number := 0
	for line := range strings.Lines(withoutComments(text)) {
		number++
		if err := n.line(number, strings.TrimRight(line, "\r\n")); err != nil {
			return err
		}
	}
	if n.front {
		n.sink.reject(1, "a header begins here, with three dashes, and does not end: take them out, or end it with three more")
	}
	if n.code > 0 {
		n.sink.reject(n.code, "code begins here and does not end")
	}
	err = n.flush()
	n.closeLeads(0)
	return err
}

// readText reads a whole text.
func readText(r io.Reader) (string, error) {
	in, err := begin(r)
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(io.LimitReader(in, maxNotesBytes+1))
	if err != nil {
		return "", err
	}
	if len(data) > maxNotesBytes {
		return "", fmt.Errorf("is longer than %d MiB: these are no notes", maxNotesBytes>>20)
	}
	for n, line := range strings.Split(string(data), "\n") {
		if problem, _ := encodingProblem([]byte(line)); problem != "" {
			return "", fmt.Errorf("line %d: %s", n+1, problem)
		}
	}
	if strings.TrimSpace(string(data)) == "" {
		return "", errors.New("is empty")
	}
	return string(data), nil
}

// withoutComments replaces comments by blank lines, so that line numbers stay.
func withoutComments(text string) string {
	return comment.ReplaceAllStringFunc(text, func(c string) string { return strings.Repeat("\n", strings.Count(c, "\n")) })
}

// notes is the state of reading notes.
type notes struct {
	of   string
	day  time.Time
	o    Options
	sink Sink

	section string
	kind    memsidecarv1.MemoryKind
	aside   string // why the section is skipped
	code    int    // line where a code block begins
	front   bool   // in the front matter

	at     int // current line
	text   []string
	indent int
	leads  []lead // list items that end with a colon, above this one
}

// lead is a list item that introduces the items below it.
type lead struct {
	indent int
	text   string
	line   int
	used   bool
}

func (n *notes) line(number int, line string) error {
	switch {
	case n.front:
		n.front = strings.TrimSpace(line) != "---"
		return nil
	case number == 1 && strings.TrimSpace(line) == "---":
		n.front = true
		return nil
	case fence.MatchString(line):
		return n.fenced(number)
	case n.code > 0:
		return nil
	case strings.TrimSpace(line) == "", rule.MatchString(line):
		return n.flush()
	case divider.MatchString(line):
		n.text = nil // the row above was a heading
		return nil
	}
	if h := heading.FindStringSubmatch(line); h != nil {
		err := n.flush()
		n.beginSection(h[1])
		return err
	}
	if c := cells.FindStringSubmatch(line); c != nil {
		err := n.flush()
		n.begin(number, 0, tableRow(c[1]))
		return err
	}
	if b := bullet.FindStringSubmatch(line); b != nil {
		err := n.flush()
		n.begin(number, width(b[1])+1, b[2])
		return err
	}
	if len(n.text) == 0 {
		n.closeLeads(0)
		n.begin(number, 0, line)
		if placeholder.MatchString(n.text[0]) { // and the next line is a statement of its own
			return n.flush()
		}
		return nil
	}
	n.text = append(n.text, strings.TrimSpace(line))
	return nil
}

// width returns the width of white space; a tab counts as four.
func width(space string) int { return len(strings.ReplaceAll(space, "\t", "    ")) }

// tableRow returns a table row as text.
func tableRow(row string) string {
	var parts []string
	for cell := range strings.SplitSeq(row, "|") {
		if cell = strings.TrimSpace(cell); cell != "" {
			parts = append(parts, cell)
		}
	}
	if len(parts) == 2 {
		return parts[0] + ": " + parts[1]
	}
	return strings.Join(parts, "; ")
}

func (n *notes) begin(number, indent int, text string) {
	n.at, n.indent, n.text = number, indent, []string{strings.TrimSpace(text)}
	n.closeLeads(indent)
}

// closeLeads ends the leads at this indent or deeper.
func (n *notes) closeLeads(indent int) {
	for len(n.leads) > 0 && n.leads[len(n.leads)-1].indent >= indent {
		last := n.leads[len(n.leads)-1]
		n.leads = n.leads[:len(n.leads)-1]
		if !last.used {
			n.sink.skipLine(last.line, "it ends with a colon, and nothing stands below it")
		}
	}
}

func (n *notes) fenced(number int) error {
	err := n.flush()
	if n.code > 0 {
		n.code = 0
		return err
	}
	n.code = number
	n.sink.skipLine(number, "code is not taken, only what is said")
	return err
}

func (n *notes) beginSection(title string) {
	n.closeLeads(0)
	n.section, n.kind, n.aside = strings.TrimSpace(bold.ReplaceAllString(title, "$1$2")), memsidecarv1.MemoryKind_MEMORY_KIND_FACT, ""
	for _, s := range sections {
		if s.words.MatchString(n.section) {
			n.kind = s.kind
			break
		}
	}
	if topics.MatchString(n.section) {
		n.aside = "topics are counted from messages, not remembered"
	}
}

// flush passes on the text read so far.
func (n *notes) flush() error {
	if len(n.text) == 0 {
		return nil
	}
	text := bold.ReplaceAllString(strings.Join(n.text, " "), "$1$2")
	n.text = nil
	switch {
	case n.aside != "":
		n.sink.skipLine(n.at, n.aside)
		return nil
	case text == "" || placeholder.MatchString(text):
		n.sink.skipLine(n.at, "it is a placeholder of the template")
		return nil
	case strings.HasSuffix(text, ":") || strings.HasSuffix(text, "："):
		n.leads = append(n.leads, lead{indent: n.indent, text: text, line: n.at})
		return nil
	}
	at := n.day
	if d := dated.FindStringSubmatch(text); d != nil {
		if t, err := time.ParseInLocation("2006-01-02 15:04", d[1]+" "+orNoon(d[2]), n.o.Zone); err == nil && t.Before(n.o.Now.Add(48*time.Hour)) {
			at, text = t, d[3]
		}
	}
	if len(n.leads) > 0 {
		text = n.leads[len(n.leads)-1].text + " " + text
		for i := range n.leads {
			n.leads[i].used = true
		}
	}
	item, err := statement(n.at, text)
	if err != nil {
		n.sink.reject(n.at, "%v", err)
		return nil
	}
	where := ""
	if n.section != "" {
		where = fmt.Sprintf("under %q", n.section)
	}
	item.Memory.Kind = cmp.Or(n.kind, memsidecarv1.MemoryKind_MEMORY_KIND_FACT)
	item.Memory.CreateTime, item.Memory.ObserveTime = stamp(at), stamp(at)
	item.Memory.Provenance = origin("nanobot's "+n.of, "", where, nil)
	return n.sink.Item(item)
}

func orNoon(clock string) string {
	if clock == "" {
		return "12:00"
	}
	return clock
}

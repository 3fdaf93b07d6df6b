package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf16"

	"github.com/rivo/uniseg"
	"golang.org/x/term"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// output selects the format of answers.
type output struct {
	JSON  bool   `group:"output" help:"Print JSON, one object per line, with the field names of the API."`
	Color string `group:"output" enum:"auto,always,never" default:"auto" placeholder:"WHEN" help:"auto (on a terminal, unless NO_COLOR is set), always or never."`
}

// screen is the output of a command.
type screen struct {
	w     io.Writer
	color bool
	width int // of the terminal; 0 without one: no wrapping
}

func (f output) screen(p *Program) *screen {
	s := &screen{w: p.Stdout, color: f.Color == "always"}
	if fd, ok := terminal(p.Stdout); ok {
		s.color = f.Color != "never" && (s.color || p.Getenv("NO_COLOR") == "" && p.Getenv("TERM") != "dumb")
		if width, _, err := term.GetSize(fd); err == nil {
			s.width = width
		}
	}
	return s
}

// terminal returns the file descriptor of a terminal.
func terminal(stream any) (fd int, ok bool) {
	file, ok := stream.(*os.File)
	if !ok {
		return 0, false
	}
	fd = int(file.Fd())
	return fd, term.IsTerminal(fd)
}

// show writes one message: as JSON, or with the function show.
func (f output) show(p *Program, m proto.Message, show func(*screen)) error {
	if f.JSON {
		return f.json(p, m)
	}
	b := &bytes.Buffer{}
	s := f.screen(p)
	out := s.w
	s.w = b
	show(s)
	_, err := out.Write(b.Bytes())
	return err
}

// json writes one line.
func (f output) json(p *Program, m proto.Message) error {
	data, err := jsonLine(m, protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true})
	if err != nil {
		return err
	}
	_, err = p.Stdout.Write(data)
	return err
}

// jsonLine returns a message as one line that is always the same; protojson varies its spaces on purpose. Dangerous characters can only
// be inside of strings, and are escaped there without changing the value.
func jsonLine(m proto.Message, options protojson.MarshalOptions) ([]byte, error) {
	data, err := options.Marshal(m)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return harmless(b.Bytes()), nil
}

// harmless returns JSON that is safe to show. Only its strings can contain dangerous characters.
func harmless(data []byte) []byte {
	if !bytes.ContainsFunc(data, func(r rune) bool { return r != '\n' && dangerous(r) }) {
		return data
	}
	var escaped bytes.Buffer
	for _, r := range string(data) {
		switch {
		case r == '\n' || !dangerous(r):
			escaped.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&escaped, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&escaped, `\u%04x`, r)
		}
	}
	return escaped.Bytes()
}

// style is the look of a cell on a terminal: the parameters of its escape sequence.
type style string

const (
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
)

func (s *screen) paint(text string, look style) string {
	if !s.color || look == "" || text == "" {
		return text
	}
	return "\x1b[" + string(look) + "m" + text + "\x1b[0m"
}

func (s *screen) say(format string, args ...any) { fmt.Fprintf(s.w, format, args...) }

// cell is a text with a style.
type cell struct {
	text  string
	style style
}

// column is a column of a table.
type column struct {
	name  string
	right bool // for numbers
	wraps bool // uses the remaining width of a terminal
}

// table is text in columns. Widths are those of a terminal: a Chinese character, or an emoji of several code points, is two wide.
type table struct {
	columns []column
	rows    [][]cell
}

// row adds a row of strings and cells.
func (t *table) row(values ...any) {
	cells := make([]cell, len(t.columns))
	for i, v := range values {
		switch v := v.(type) {
		case cell:
			cells[i] = cell{line(v.text), v.style}
		default:
			cells[i] = cell{text: line(fmt.Sprint(v))}
		}
	}
	t.rows = append(t.rows, cells)
}

const (
	gap          = "  "
	minimumWidth = 20 // of a column that wraps, even on a narrow terminal
)

// print writes a table, without a heading if its columns have no names.
func (s *screen) print(t *table) {
	heading := make([]cell, len(t.columns))
	widths := make([]int, len(t.columns))
	named := false
	for i, c := range t.columns {
		heading[i] = cell{strings.ToUpper(c.name), bold}
		named = named || c.name != ""
	}
	rows := t.rows
	if named {
		rows = append([][]cell{heading}, rows...)
	}
	total := 0
	for i := range t.columns {
		for _, row := range rows {
			widths[i] = max(widths[i], uniseg.StringWidth(row[i].text))
		}
		total += widths[i] + len(gap)
	}
	if over := total - len(gap) - s.width; s.width > 0 && over > 0 {
		narrow(t.columns, widths, over)
	}
	for _, row := range rows {
		s.row(t.columns, widths, row)
	}
}

// narrow reduces the columns that wrap, the widest first.
func narrow(columns []column, widths []int, over int) {
	for ; over > 0; over-- {
		widest := -1
		for i, c := range columns {
			if c.wraps && widths[i] > minimumWidth && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

func (s *screen) row(columns []column, widths []int, row []cell) {
	lines := make([][]string, len(row))
	height := 1
	for i, c := range row {
		lines[i] = []string{c.text}
		if columns[i].wraps {
			lines[i] = wrap(c.text, widths[i])
		}
		height = max(height, len(lines[i]))
	}
	for n := range height {
		var b strings.Builder
		pending := 0 // spaces that are only written if more text follows
		for i, c := range row {
			text := ""
			if n < len(lines[i]) {
				text = lines[i][n]
			}
			space := max(0, widths[i]-uniseg.StringWidth(text))
			if columns[i].right {
				pending += space
				space = 0
			}
			if text != "" {
				b.WriteString(strings.Repeat(" ", pending))
				b.WriteString(s.paint(text, c.style))
				pending = 0
			}
			pending += space + len(gap)
		}
		s.say("%s\n", b.String())
	}
}

// wrap breaks a text into lines of at most the width, where Unicode allows it (UAX #14): between words, between Chinese characters, and
// not before punctuation.
func wrap(text string, width int) []string {
	if uniseg.StringWidth(text) <= width {
		return []string{text}
	}
	var lines []string
	current, used := "", 0
	flush := func() {
		lines = append(lines, strings.TrimRight(current, " "))
		current, used = "", 0
	}
	for rest, state := text, -1; rest != ""; {
		var segment string
		segment, rest, _, state = uniseg.FirstLineSegmentInString(rest, state)
		w := uniseg.StringWidth(strings.TrimRight(segment, " "))
		if used > 0 && used+w > width {
			flush()
		}
		for w > width { // a word longer than a line
			head := cut(segment, width)
			lines = append(lines, head)
			segment = segment[len(head):]
			w = uniseg.StringWidth(strings.TrimRight(segment, " "))
		}
		current += segment
		used += uniseg.StringWidth(segment)
	}
	if strings.TrimSpace(current) != "" {
		flush()
	}
	return lines
}

// cut returns the beginning of a text that fits into a width, at least one character.
func cut(text string, width int) string {
	end, used := 0, 0
	for rest, state := text, -1; rest != ""; {
		var cluster string
		var w int
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if end > 0 && used+w > width {
			break
		}
		end, used = end+len(cluster), used+w
	}
	return text[:end]
}

// fields writes names with their values, without empty ones.
func (s *screen) fields(pairs ...any) {
	t := &table{columns: []column{{}, {wraps: true}}}
	for i := 0; i+1 < len(pairs); i += 2 {
		value := pairs[i+1]
		if c, ok := value.(cell); ok && c.text == "" || value == "" {
			continue
		}
		t.row(cell{fmt.Sprint(pairs[i]), dim}, value)
	}
	s.print(t)
}

// note prints a remark on standard error.
func (p *Program) note(format string, args ...any) {
	fmt.Fprintf(p.Stderr, "%s\n", block(fmt.Sprintf(format, args...)))
}

// count formats a number with a noun.
func count[N int | int32 | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

package sessionfile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// maxLineBytes limits a line: a message may have 4 MiB, and JSON may escape a byte as six.
const maxLineBytes = 32 << 20

// Read reads a conversation: an object with its messages, a plain list of messages, or lines. Times without a zone are in the given zone.
// Errors name the line.
func Read(r io.Reader, zone *time.Location) (*File, error) {
	in := &lineCounter{r: r}
	p := &parser{in: in, decoder: json.NewDecoder(in), zone: zone, file: &File{Session: &memsidecarv1.Session{}}, ids: map[string]int{}}
	begin, err := p.decoder.Token()
	switch {
	case errors.Is(err, io.EOF):
		return nil, errors.New("is empty")
	case err != nil:
		return nil, p.broken(err)
	case begin == json.Delim('['):
		err = errors.Join(p.list(), p.end())
	case begin == json.Delim('{'):
		err = p.object()
	default:
		err = errors.New("line 1: is neither a JSON object nor a list")
	}
	if err != nil {
		return nil, err
	}
	return p.file, nil
}

// parser reads one file.
type parser struct {
	in      *lineCounter
	decoder *json.Decoder
	zone    *time.Location
	file    *File
	ids     map[string]int // line of each message id
}

type fields map[string]json.RawMessage

// object reads the whole conversation, or the first of many lines.
func (p *parser) object() error {
	about, whole := fields{}, false
	start := p.in.line(p.decoder.InputOffset())
	for p.decoder.More() {
		token, err := p.decoder.Token()
		if err != nil {
			return p.broken(err)
		}
		key, _ := token.(string)
		if key == keyMessages {
			whole = true
			if token, err = p.decoder.Token(); err != nil {
				return p.broken(err)
			}
			if token != json.Delim('[') {
				return fmt.Errorf("line %d: %s is not a list", p.in.line(p.decoder.InputOffset()), key)
			}
			if err := p.list(); err != nil {
				return err
			}
			continue
		}
		var value json.RawMessage
		if err := p.decoder.Decode(&value); err != nil {
			return p.broken(err)
		}
		about[key] = value
	}
	if _, err := p.decoder.Token(); err != nil {
		return p.broken(err)
	}
	if !whole {
		return p.lines(start, about)
	}
	if err := p.session(about); err != nil {
		return fmt.Errorf("line %d: %w", start, err)
	}
	return p.end()
}

// list reads messages up to the end of the list.
func (p *parser) list() error {
	for p.decoder.More() {
		var value json.RawMessage
		if err := p.decoder.Decode(&value); err != nil {
			return p.broken(err)
		}
		if err := p.message(p.in.line(p.decoder.InputOffset()-int64(len(value))+1), value); err != nil {
			return err
		}
	}
	_, err := p.decoder.Token()
	return p.broken(err)
}

// end checks that nothing follows.
func (p *parser) end() error {
	switch token, err := p.decoder.Token(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return p.broken(err)
	default:
		return fmt.Errorf("line %d: there is more after the end: %v", p.in.line(p.decoder.InputOffset()), token)
	}
}

// lines reads the lines after the first.
func (p *parser) lines(n int, first fields) error {
	var err error
	if _, ok := first[keyRole]; ok {
		err = p.add(n, first)
	} else if string(first[keyType]) != `"`+typeMetadata+`"` {
		err = errors.New(`has neither "messages" nor "role" nor "_type": "metadata"`)
	} else {
		err = p.session(first)
	}
	if err != nil {
		return fmt.Errorf("line %d: %w", n, err)
	}
	n = p.in.line(p.decoder.InputOffset()) // the first value may span several lines
	lines := bufio.NewScanner(io.MultiReader(p.decoder.Buffered(), p.in))
	lines.Buffer(nil, maxLineBytes)
	for rest := true; lines.Scan(); n, rest = n+1, false {
		text := bytes.TrimSpace(lines.Bytes())
		switch {
		case len(text) == 0:
			continue
		case rest:
			return fmt.Errorf("line %d: more text follows the message: write one message per line", n)
		}
		if err := p.message(n, text); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d: %w", n, err)
	}
	return nil
}

// message reads one message.
func (p *parser) message(line int, data []byte) error {
	f := fields{}
	if err := json.Unmarshal(data, &f); err != nil || f == nil {
		return fmt.Errorf("line %d: is not a message, which is a JSON object", line)
	}
	if err := p.add(line, f); err != nil {
		return fmt.Errorf("line %d: %w", line, err)
	}
	return nil
}

func (p *parser) add(line int, f fields) error {
	v := &values{fields: f, zone: p.zone}
	m := &memsidecarv1.Message{
		Content: v.text(keyContent), SendTime: v.time(keyTime), MetadataJson: v.object(keyMetadata), Id: v.text(keyID),
		SpeakerId: v.text(keySpeaker), AgentId: v.text(keyAgent),
	}
	role := v.text(keyRole)
	if m.Role = roles[role]; m.GetRole() == 0 {
		v.wrong("%s %q: use user, assistant, system or tool", keyRole, role)
	}
	switch npc := v.text(keyNPC); {
	case npc != "" && m.GetAgentId() != "" && npc != m.GetAgentId():
		v.wrong("%s and %s differ: keep one of them", keyAgent, keyNPC)
	case npc != "":
		m.AgentId = npc
	}
	for i, call := range v.list(keyTools) {
		t := &values{fields: call, zone: p.zone}
		m.ToolCalls = append(m.ToolCalls, &memsidecarv1.ToolCall{
			Name: t.text(keyTool), ArgumentsJson: t.json(keyArguments), Result: t.text(keyResult), Status: t.text(keyStatus),
			Duration: t.duration(keyDuration), StartTime: t.time(keyTime), Id: t.text(keyID),
		})
		if err := t.done(); err != nil {
			v.wrong("%s[%d]: %w", keyTools, i, err)
		}
	}
	if id := m.GetId(); id != "" {
		if first, ok := p.ids[id]; ok {
			v.wrong("%s %q is that of line %d, too: give each message an id of its own", keyID, id, first)
		}
		p.ids[id] = line
	}
	p.file.Messages, p.file.Lines = append(p.file.Messages, m), append(p.file.Lines, line)
	return v.done()
}

func (p *parser) session(f fields) error {
	v := &values{fields: f, zone: p.zone}
	s := p.file.Session
	s.Id, s.CreateTime, s.UpdateTime = v.text(keySession), v.time(keyCreated), v.time(keyUpdated)
	s.Title, s.MetadataJson, s.MemorizeEvery = v.text(keyTitle), v.object(keyMetadata), v.number(keyEvery)
	if kind := v.text(keyType); kind != "" && kind != typeMetadata {
		v.wrong(`%s is %q, not "metadata"`, keyType, kind)
	}
	if n := v.number(keyCount); n != nil && int(*n) != len(p.file.Messages) {
		v.wrong("%s is %d, but there are %d: the file is not whole", keyCount, *n, len(p.file.Messages))
	}
	return v.done()
}

// broken returns the error for invalid JSON, with its place.
func (p *parser) broken(err error) error {
	syntax := (*json.SyntaxError)(nil)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return fmt.Errorf("line %d: is not JSON: %w", p.in.line(syntax.Offset), err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("line %d: the file ends before its end", p.in.line(p.in.read))
	}
	return err
}

// values are fields that are read one by one. They keep the first mistake.
type values struct {
	fields
	zone  *time.Location
	known []string
	err   error
}

func (v *values) wrong(format string, args ...any) {
	if v.err == nil {
		v.err = fmt.Errorf(format, args...)
	}
}

// done returns the first mistake. An unknown field is a mistake, because it would be lost.
func (v *values) done() error {
	for _, key := range slices.Sorted(maps.Keys(v.fields)) {
		if !slices.Contains(v.known, key) {
			v.wrong("unknown field %q: leave it out, or put it into %s", key, keyMetadata)
		}
	}
	return v.err
}

// json returns a value verbatim, or "" if it is missing or null.
func (v *values) json(key string) string {
	v.known = append(v.known, key)
	value := string(bytes.TrimSpace(v.fields[key]))
	if value == string(nothing) {
		return ""
	}
	if !utf8.ValidString(value) {
		v.wrong("%s is not UTF-8", key)
	}
	return value
}

func (v *values) into(key string, target any, what string) bool {
	value := v.json(key)
	if value == "" {
		return false
	}
	if json.Unmarshal([]byte(value), target) != nil {
		v.wrong("%s is not %s", key, what)
		return false
	}
	return true
}

func (v *values) text(key string) (s string) {
	v.into(key, &s, "a text")
	return s
}

func (v *values) number(key string) *int32 {
	var n int32
	if !v.into(key, &n, "a whole number") {
		return nil
	}
	return &n
}

// object returns an object verbatim. An empty one counts as missing.
func (v *values) object(key string) string {
	value := v.json(key)
	if value != "" && !strings.HasPrefix(value, "{") {
		v.wrong("%s is not an object", key)
	}
	if value == string(emptyObject) {
		return ""
	}
	return value
}

func (v *values) list(key string) (list []fields) {
	v.into(key, &list, "a list of objects")
	return list
}

func (v *values) time(key string) *timestamppb.Timestamp {
	text := v.text(key)
	if text == "" {
		return nil
	}
	t, err := parseTime(text, v.zone)
	if err != nil {
		v.wrong("%s %w", key, err)
	}
	return t
}

func (v *values) duration(key string) *durationpb.Duration {
	var seconds float64
	if !v.into(key, &seconds, "a number of seconds") {
		return nil
	}
	if seconds < 0 || seconds > maxSeconds {
		v.wrong("%s %v is no time that a call takes", key, seconds)
		return nil
	}
	return durationpb.New(time.Duration(seconds*1e9 + 0.5))
}

// lineCounter is a reader that records where lines end.
type lineCounter struct {
	r    io.Reader
	read int64
	ends []int64 // offsets of the line ends
}

// Read implements io.Reader.
func (c *lineCounter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	for i, x := range b[:n] {
		if x == '\n' {
			c.ends = append(c.ends, c.read+int64(i)+1)
		}
	}
	c.read += int64(n)
	return n, err
}

// line returns the line of the byte before an offset, counted from 1.
func (c *lineCounter) line(offset int64) int {
	i, _ := slices.BinarySearch(c.ends, max(offset, 1))
	return i + 1
}

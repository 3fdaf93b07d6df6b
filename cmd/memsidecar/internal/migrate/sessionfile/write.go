package sessionfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// Writer writes a conversation, message by message.
type Writer struct {
	// Speaker and Agent are omitted from messages, because the reader of the file knows them.
	Speaker, Agent string

	w       io.Writer
	format  Format
	zone    *time.Location
	session *memsidecarv1.Session
	n       int
}

// NewWriter starts a file. Times are written in the zone.
func NewWriter(w io.Writer, format Format, zone *time.Location, session *memsidecarv1.Session) (*Writer, error) {
	f := &Writer{w: w, format: format, zone: zone, session: session}
	if format == JSONL {
		about := append(object{{keyType, text(typeMetadata)}}, f.times()...)
		about = append(about, field{keyMetadata, orEmpty(session.GetMetadataJson())}, field{keySession, text(session.GetId())})
		err := f.write("%s\n", append(about, f.extra()...).line())
		return f, err
	}
	err := f.write("{\n  \"%s\": %s,\n  \"%s\": [", keySession, text(session.GetId()), keyMessages)
	return f, err
}

// Write adds a message.
func (f *Writer) Write(m *memsidecarv1.Message) error {
	f.n++
	if f.format == JSONL {
		return f.write("%s\n", f.message(m).line())
	}
	comma := ","
	if f.n == 1 {
		comma = ""
	}
	return f.write("%s\n    %s", comma, f.message(m).indented("    "))
}

// Close ends the file. It does not close what it writes to.
func (f *Writer) Close() error {
	if f.format == JSONL {
		return nil
	}
	end := "]"
	if f.n > 0 {
		end = "\n  ]"
	}
	rest := f.times()
	if metadata := f.session.GetMetadataJson(); metadata != "" {
		rest = append(rest, field{keyMetadata, raw(metadata)})
	}
	return f.write("%s,\n  %s\n", end, strings.TrimPrefix(append(rest, f.extra()...).indented(""), "{\n  "))
}

func (f *Writer) write(format string, args ...any) error {
	_, err := fmt.Fprintf(f.w, format, args...)
	return err
}

func (f *Writer) times() object {
	return object{{keyCreated, f.time(f.session.GetCreateTime())}, {keyUpdated, f.time(f.session.GetUpdateTime())}}
}

// extra holds the fields of a session that the common format does not have.
func (f *Writer) extra() (o object) {
	if title := f.session.GetTitle(); title != "" {
		o = append(o, field{keyTitle, text(title)})
	}
	if f.session.MemorizeEvery != nil {
		o = append(o, field{keyEvery, raw(strconv.Itoa(int(f.session.GetMemorizeEvery())))})
	}
	return o
}

func (f *Writer) message(m *memsidecarv1.Message) object {
	o := object{
		{keyRole, text(strings.ToLower(strings.TrimPrefix(m.GetRole().String(), "ROLE_")))},
		{keyContent, text(m.GetContent())},
		{keyTime, f.time(m.GetSendTime())},
	}
	// Lines omit empty fields.
	if len(m.GetToolCalls()) > 0 || f.format == JSON {
		calls := list{}
		for _, call := range m.GetToolCalls() {
			calls = append(calls, f.call(call))
		}
		o = append(o, field{keyTools, calls})
	}
	if m.GetMetadataJson() != "" || f.format == JSON {
		o = append(o, field{keyMetadata, orEmpty(m.GetMetadataJson())})
	}
	speaker, agent := m.GetSpeakerId(), m.GetAgentId()
	if speaker == f.Speaker {
		speaker = ""
	}
	if agent == f.Agent {
		agent = ""
	}
	for _, more := range []struct{ key, value string }{{keyID, m.GetId()}, {keySpeaker, speaker}, {keyAgent, agent}} {
		if more.value != "" {
			o = append(o, field{more.key, text(more.value)})
		}
	}
	return o
}

func (f *Writer) call(call *memsidecarv1.ToolCall) object {
	arguments, duration := nothing, nothing
	if call.GetArgumentsJson() != "" {
		arguments = raw(call.GetArgumentsJson())
	}
	if call.GetDuration() != nil {
		duration = raw(formatDuration(call.GetDuration()))
	}
	o := object{
		{keyTool, text(call.GetName())},
		{keyArguments, arguments},
		{keyResult, text(call.GetResult())},
		{keyStatus, text(call.GetStatus())},
		{keyDuration, duration},
		{keyTime, f.time(call.GetStartTime())},
	}
	if call.GetId() != "" {
		o = append(o, field{keyID, text(call.GetId())})
	}
	return o
}

func (f *Writer) time(t *timestamppb.Timestamp) raw {
	if t == nil {
		return nothing
	}
	return text(formatTime(t, f.zone))
}

func orEmpty(value string) raw {
	if value == "" {
		return emptyObject
	}
	return raw(value)
}

// value is raw, a list or an object.
type value interface {
	line() string
	indented(by string) string
}

type (
	object []field
	field  struct {
		key   string
		value value
	}
	list []object
)

func (r raw) indented(string) string { return string(r) }

// line returns the value without line breaks. JSON has none inside of strings.
func (r raw) line() string {
	var b bytes.Buffer
	if !strings.ContainsAny(string(r), "\r\n") || json.Compact(&b, []byte(r)) != nil {
		return string(r)
	}
	return b.String()
}

func (o object) line() string {
	parts := make([]string, len(o))
	for i, f := range o {
		parts[i] = string(text(f.key)) + ": " + f.value.line()
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func (o object) indented(by string) string {
	parts := make([]string, len(o))
	for i, f := range o {
		parts[i] = by + "  " + string(text(f.key)) + ": " + f.value.indented(by+"  ")
	}
	return "{\n" + strings.Join(parts, ",\n") + "\n" + by + "}"
}

func (l list) line() string {
	parts := make([]string, len(l))
	for i, o := range l {
		parts[i] = o.line()
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func (l list) indented(by string) string {
	if len(l) == 0 {
		return "[]"
	}
	parts := make([]string, len(l))
	for i, o := range l {
		parts[i] = by + "  " + o.indented(by+"  ")
	}
	return "[\n" + strings.Join(parts, ",\n") + "\n" + by + "]"
}

// text returns a JSON string as Python writes it with ensure_ascii=False, with the minimum of escapes. Go's encoder escapes more.
func text(s string) raw {
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		case '\b':
			b.WriteString(`\b`)
		case '\f':
			b.WriteString(`\f`)
		default:
			if c < 0x20 {
				fmt.Fprintf(&b, `\u%04x`, c)
			} else {
				b.WriteByte(c)
			}
		}
	}
	b.WriteByte('"')
	return raw(b.String())
}

package migrate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/migrate/sessionfile"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/memory"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// NanobotSession reads a conversation of nanobot: a line about it, then one message per line. Message ids are derived from their text and
// time, because nanobot drops the oldest messages of its file and positions change. Fields without an equivalent become metadata.
func NanobotSession(in io.Reader, name string, o Options, leave func(Skipped)) (*sessionfile.File, error) {
	c := newConversation(&memsidecarv1.Session{Id: name}, o, leave)
	_, err := records(in, nil, c.sink, func(line int, fields map[string]json.RawMessage) error {
		var kind string
		if json.Unmarshal(fields["_type"], &kind) == nil && kind == "metadata" {
			c.about(line, fields)
		} else {
			c.message(line, fields)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c.file, nil
}

// conversation is the state of reading a conversation.
type conversation struct {
	file *sessionfile.File
	o    Options
	sink Sink
	seen map[string]int // number of identical messages so far
}

func newConversation(s *memsidecarv1.Session, o Options, leave func(Skipped)) *conversation {
	return &conversation{file: &sessionfile.File{Session: s}, o: o, sink: Sink{Skip: leave}, seen: map[string]int{}}
}

func (c *conversation) about(line int, fields map[string]json.RawMessage) {
	r := newRow(fields, c.o)
	s := c.file.Session
	if key := r.id("key"); key != "" {
		s.Id = key
	}
	s.CreateTime, s.UpdateTime = stamp(r.past("created_at")), stamp(r.past("updated_at"))
	if metadata := string(fields["metadata"]); strings.HasPrefix(metadata, "{") && metadata != "{}" {
		s.MetadataJson = metadata
	}
	if r.err != nil {
		c.sink.reject(line, "%v", r.err)
	}
}

var roles = map[string]memsidecarv1.Role{
	"user": memsidecarv1.Role_ROLE_USER, "assistant": memsidecarv1.Role_ROLE_ASSISTANT,
	"system": memsidecarv1.Role_ROLE_SYSTEM, "tool": memsidecarv1.Role_ROLE_TOOL,
}

func (c *conversation) message(line int, fields map[string]json.RawMessage) {
	r := newRow(fields, c.o)
	role := roles[r.text("role")]
	if role == 0 {
		r.wrong("its role is none of user, assistant, system and tool")
	}
	m := &memsidecarv1.Message{Role: role, Content: r.content(), SendTime: stamp(r.past("timestamp")), ToolCalls: r.toolCalls()}
	if rest := r.others("role", "content"); len(rest) > 0 {
		if data, err := json.Marshal(rest); err == nil {
			m.MetadataJson = string(data)
		}
	}
	if r.err != nil {
		c.sink.reject(line, "%v", r.err)
		return
	}
	c.add(line, m, string(fields["timestamp"]))
}

// add passes on a message, unless the sidecar would refuse it.
func (c *conversation) add(line int, m *memsidecarv1.Message, said string) {
	if m.GetContent() == "" && len(m.GetToolCalls()) == 0 {
		c.sink.skipLine(line, "the message is empty")
		return
	}
	if problem := MessageProblem(m); problem != "" {
		c.sink.reject(line, "%s", problem)
		return
	}
	sum := sha256.Sum256([]byte(said + "\x00" + m.GetRole().String() + "\x00" + m.GetContent()))
	id := "nanobot-" + hex.EncodeToString(sum[:12])
	c.seen[id]++
	if n := c.seen[id]; n > 1 {
		id = fmt.Sprintf("%s-%d", id, n)
	}
	m.Id = id
	c.file.Messages, c.file.Lines = append(c.file.Messages, m), append(c.file.Lines, line)
}

// MessageProblem returns why the sidecar would refuse a message, or "".
func MessageProblem(m *memsidecarv1.Message) string {
	size := max(len(m.GetContent()), len(m.GetMetadataJson()))
	for _, call := range m.GetToolCalls() {
		size = max(size, len(call.GetArgumentsJson()), len(call.GetResult()))
	}
	if size > memory.MaxContentBytes {
		return fmt.Sprintf("the message has %d bytes, more than %d", size, memory.MaxContentBytes)
	}
	for name, id := range map[string]string{"id": m.GetId(), "speaker_id": m.GetSpeakerId(), "agent_id": m.GetAgentId()} {
		if problem := memory.IDProblem(id); problem != "" {
			return "the message's " + name + " " + problem
		}
	}
	return ""
}

// content is a text, or the text parts of a message with pictures.
func (r *row) content() string {
	value := lookup(r.fields, "content")
	var text string
	var parts []struct{ Type, Text string }
	switch {
	case value == nil || json.Unmarshal(value, &text) == nil:
		return text
	case json.Unmarshal(value, &parts) != nil:
		r.wrong("content is neither a text nor a list of parts")
	}
	var texts []string
	for _, part := range parts {
		if part.Type == "text" {
			texts = append(texts, part.Text)
		} else {
			texts = append(texts, "["+strings.TrimSuffix(part.Type, "_url")+"]")
		}
	}
	return strings.Join(texts, "\n")
}

// toolCalls are the tool calls of an answer, in the format of OpenAI's API.
func (r *row) toolCalls() (calls []*memsidecarv1.ToolCall) {
	var list []struct {
		ID       string
		Function struct {
			Name      string
			Arguments json.RawMessage
		}
	}
	if json.Unmarshal(lookup(r.fields, "tool_calls"), &list) != nil || len(list) > memory.MaxToolCalls {
		return nil // stays in the metadata
	}
	r.used["tool_calls"] = true
	for _, call := range list {
		arguments := string(call.Function.Arguments)
		var text string
		if json.Unmarshal(call.Function.Arguments, &text) == nil && json.Valid([]byte(text)) {
			arguments = text
		}
		calls = append(calls, &memsidecarv1.ToolCall{Id: call.ID, Name: call.Function.Name, ArgumentsJson: arguments})
	}
	return calls
}

// NanobotHistory reads nanobot's log of events, HISTORY.md or history.jsonl, as a session. Each entry becomes a message of the bot.
// Messages are searched separately from memories.
func NanobotHistory(in io.Reader, session string, lines bool, o Options, leave func(Skipped)) (*sessionfile.File, error) {
	c := newConversation(&memsidecarv1.Session{Id: session, Title: "nanobot's history"}, o, leave)
	if !lines {
		text, err := readText(in)
		if err != nil {
			return nil, err
		}
		c.entries(text)
		return c.file, nil
	}
	_, err := records(in, nil, c.sink, func(line int, fields map[string]json.RawMessage) error {
		r := newRow(fields, o)
		text, at := r.text("content"), r.past("timestamp")
		if r.err == nil {
			c.entry(line, strings.TrimSpace(text), at, string(fields["timestamp"]))
		} else {
			c.sink.reject(line, "%v", r.err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c.file, nil
}

// began matches the start of an entry of HISTORY.md.
var began = lazyregexp.New(`^\[(\d{4}-\d\d-\d\d)(?: (\d\d:\d\d))?[^\]]*\]`)

func (c *conversation) entries(text string) {
	var entry []string
	var at time.Time
	var wrong error
	var said string
	start, number := 0, 0
	flush := func() {
		if text := strings.TrimSpace(strings.Join(entry, "\n")); text != "" && wrong != nil {
			c.sink.reject(start, "%v", wrong)
		} else if text != "" {
			c.entry(start, text, at, said)
		}
		entry = nil
	}
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if found := began.FindStringSubmatch(line); found != nil {
			flush()
			said, start = found[0], number
			at, wrong = time.ParseInLocation("2006-01-02 15:04", found[1]+" "+orNoon(found[2]), c.o.Zone)
			if wrong != nil || at.After(c.o.Now.Add(48*time.Hour)) || memory.TimeProblem(at) != "" {
				wrong = fmt.Errorf("%s is not a time at which something was said", clipped(said))
			}
		} else if start == 0 {
			if heading.MatchString(line) || strings.TrimSpace(line) == "" {
				continue // the title
			}
			start = number
		}
		entry = append(entry, line)
	}
	flush()
}

func (c *conversation) entry(line int, text string, at time.Time, said string) {
	c.add(line, &memsidecarv1.Message{Role: memsidecarv1.Role_ROLE_ASSISTANT, Content: text, SendTime: stamp(at)}, said)
}

// The kinds of nanobot's files.
const (
	NanobotNotes        = "notes"
	NanobotLog          = "log"
	NanobotConversation = "conversation"
)

var daily = lazyregexp.New(`^(\d{4}-\d\d-\d\d)\.md$`)

// NanobotFile returns the kind of a file of nanobot's by its name, or "".
func NanobotFile(name string) string {
	switch {
	case name == "MEMORY.md", daily.MatchString(name):
		return NanobotNotes
	case name == "HISTORY.md", name == "history.jsonl":
		return NanobotLog
	case strings.HasSuffix(name, ".jsonl"):
		return NanobotConversation
	}
	return ""
}

// DayOf returns noon of the day in the name of daily notes, or zero.
func DayOf(name string, o Options) time.Time {
	if found := daily.FindStringSubmatch(name); found != nil {
		if t, err := time.ParseInLocation("2006-01-02 15:04", found[1]+" 12:00", o.Zone); err == nil {
			return t
		}
	}
	return time.Time{}
}

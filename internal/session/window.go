package session

import (
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Limits are how long a window may be.
type Limits struct {
	MaxMessages int
	MaxTurns    int // a turn is what people say until they are answered, and the answer
	MaxRunes    int // of what was said, and of the payloads of tools where they are part of it
}

// cut returns where the window begins: the longest end of the messages, which are oldest first, within the limits and
// beginning with what a person said. Where there is none such, it is the newest message alone; tooLong says that even that
// has too many characters.
func (l Limits) cut(messages []Message) (start int, tooLong bool) {
	last := len(messages) - 1
	if last < 0 {
		return 0, false
	}
	start = last
	runes, turns := 0, 1
	for i := last; i >= 0; i-- {
		m := &messages[i].Message
		if runes += said(m); runes > l.MaxRunes && i == last {
			return last, true
		}
		if m.Role == memory.RoleAssistant && askedAfter(messages, i) {
			turns++
		}
		if runes > l.MaxRunes || last-i >= l.MaxMessages || turns > l.MaxTurns {
			break
		}
		if m.Role == memory.RoleUser {
			start = i
		}
	}
	return start, false
}

// askedAfter reports whether the next thing that anybody says after a message is a person's: then a turn ends there.
func askedAfter(messages []Message, i int) bool {
	for j := i + 1; j < len(messages); j++ {
		switch messages[j].Role {
		case memory.RoleUser:
			return true
		case memory.RoleAssistant:
			return false
		case memory.RoleSystem, memory.RoleTool:
		}
	}
	return false
}

// said is how many characters a message has.
func said(m *memory.Message) int {
	n := utf8.RuneCountInString(m.Content)
	for _, call := range m.Tools {
		n += utf8.RuneCountInString(call.Arguments) + utf8.RuneCountInString(call.Result)
	}
	return n
}

// withoutPayloads takes out what tools were called with and answered, and leaves which were called.
func withoutPayloads(messages []Message) {
	for i := range messages {
		m := &messages[i]
		if len(m.Tools) == 0 {
			continue
		}
		calls := make([]memory.ToolCall, len(m.Tools))
		for j, call := range m.Tools {
			call.Arguments, call.Result = "", ""
			calls[j] = call
		}
		m.Tools = calls
	}
}

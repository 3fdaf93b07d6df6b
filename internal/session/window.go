package session

import (
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Limits limit the length of a window.
type Limits struct {
	MaxMessages int
	MaxTurns    int // a turn is people's messages and the answer to them
	MaxRunes    int // of the content, and of tool payloads if they are included
}

// cut returns where the window starts: the longest suffix of the messages (oldest first) that is within the limits and starts with a
// person's message. If there is none, it is the newest message alone; tooLong reports that even that has too many characters.
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

// askedAfter reports whether the next message by a person or the bot is a person's: then a turn ends there.
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

// said returns the number of characters of a message.
func said(m *memory.Message) int {
	n := utf8.RuneCountInString(m.Content)
	for _, call := range m.Tools {
		n += utf8.RuneCountInString(call.Arguments) + utf8.RuneCountInString(call.Result)
	}
	return n
}

// withoutPayloads removes arguments and results of tool calls, and keeps the names.
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

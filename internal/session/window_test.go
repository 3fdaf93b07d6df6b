package session

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// turns counts turns differently than cut: a person's message after an answer begins a new one.
func turns(messages []Message) int {
	n, answered := 0, true
	for _, m := range messages {
		switch {
		case m.Role == memory.RoleUser && answered:
			n++
			answered = false
		case m.Role == memory.RoleAssistant:
			answered = true
		}
	}
	return n
}

// TestCutReturnsTheLongestEnd: A window is the longest end of the messages that begins with a person and keeps to the limits. If none
// does, it is the newest message, which is flagged only if it is too long.
func TestCutReturnsTheLongestEnd(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	roles := []memory.Role{memory.RoleUser, memory.RoleUser, memory.RoleAssistant, memory.RoleAssistant, memory.RoleTool, memory.RoleSystem}
	for range 20_000 {
		messages := make([]Message, random.IntN(14))
		for i := range messages {
			messages[i].Role = roles[random.IntN(len(roles))]
			messages[i].Content = strings.Repeat("字", random.IntN(12))
			if random.IntN(4) == 0 {
				messages[i].Tools = []memory.ToolCall{{Arguments: strings.Repeat("参", random.IntN(5)), Result: strings.Repeat("果", random.IntN(5))}}
			}
		}
		l := Limits{MaxMessages: 1 + random.IntN(10), MaxTurns: 1 + random.IntN(4), MaxRunes: 1 + random.IntN(60)}
		fits := func(start int) bool {
			runes := 0
			for i := range messages[start:] {
				runes += said(&messages[start+i].Message)
			}
			return len(messages)-start <= l.MaxMessages && turns(messages[start:]) <= l.MaxTurns && runes <= l.MaxRunes
		}
		want, wantTooLong := max(0, len(messages)-1), false
		for start := range messages {
			if messages[start].Role == memory.RoleUser && fits(start) {
				want = start
				break
			}
		}
		if len(messages) > 0 {
			wantTooLong = said(&messages[len(messages)-1].Message) > l.MaxRunes
		}
		if start, tooLong := l.cut(messages); start != want || tooLong != wantTooLong {
			t.Fatalf("%+v of %d: begins at %d (%t), want %d (%t)\n%v", l, len(messages), start, tooLong, want, wantTooLong, messages)
		}
	}
}

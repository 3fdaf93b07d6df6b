package decide

import (
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
)

// What of the conversation before the new messages is read with them.
const (
	earlierDialogues = 8
	earlierMessages  = 12
	earlierRunes     = 6000
	// earlierWithin is the longest time between the earlier messages and the new ones, by the messages' own times: "the answer is yes"
	// the next morning still answers the question of the evening.
	earlierWithin = 24 * time.Hour
)

// earlierTurns are the last turns before a job's messages.
type earlierTurns struct {
	messages []memory.Message
	refs     []string // as Transcript.Ref names them
	// considerations took the messages.
	considerations []string
}

// earlier returns the last turns before a job's messages, without secrets and without echoes.
func (c *Considerer) earlier(ctx context.Context, job queue.Job) (earlierTurns, error) {
	dialogues, err := c.Queue.Preceding(ctx, job.Seq, earlierDialogues)
	if err != nil || len(dialogues) == 0 {
		return earlierTurns{}, err
	}
	turns := lastTurns(dialogues, job.Dialogue.Messages)
	if len(turns.messages) == 0 {
		return turns, nil
	}
	d, _ := c.Redactor.Dialogue(memory.Dialogue{Scope: job.Dialogue.Scope, Messages: turns.messages})
	if c.Echoes != nil {
		if d, _, err = c.Echoes.Clean(ctx, job.User(), d); err != nil {
			return earlierTurns{}, err
		}
	}
	turns.messages = d.Messages
	return turns, nil
}

// lastTurns selects messages of dialogues, newest first, that were said shortly before the new messages. A bot that hands over messages
// once more does not make them earlier ones.
func lastTurns(dialogues []queue.Preceding, fresh []memory.Message) earlierTurns {
	var turns earlierTurns
	first, last := fresh[0].Time, fresh[0].Time
	again := map[string]bool{}
	for i := range fresh {
		first, last = earliest(first, fresh[i].Time), latest(last, fresh[i].Time)
		again[sameMessage(&fresh[i])] = true
	}
	runes := 0
	for _, d := range dialogues {
		for i, m := range slices.Backward(d.Messages) {
			if m.Content == "" || m.Time.After(last) || again[sameMessage(&m)] {
				continue
			}
			runes += utf8.RuneCountInString(m.Content)
			if m.Time.Before(first.Add(-earlierWithin)) || runes > earlierRunes || len(turns.messages) == earlierMessages {
				return turns.inOrder()
			}
			ref := m.ID
			if ref == "" {
				ref = d.ConsiderationID + memory.PositionRef(i)
			}
			turns.messages, turns.refs = append(turns.messages, m), append(turns.refs, ref)
			if n := len(turns.considerations); n == 0 || turns.considerations[n-1] != d.ConsiderationID {
				turns.considerations = append(turns.considerations, d.ConsiderationID)
			}
		}
	}
	return turns.inOrder()
}

func (t earlierTurns) inOrder() earlierTurns {
	slices.Reverse(t.messages)
	slices.Reverse(t.refs)
	return t
}

// sameMessage is equal for messages that are the same one.
func sameMessage(m *memory.Message) string {
	if m.ID != "" {
		return m.ID
	}
	return string(m.Role) + "\x00" + m.Speaker + "\x00" + m.Time.UTC().Format(time.RFC3339Nano) + "\x00" + m.Content
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

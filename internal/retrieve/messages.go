package retrieve

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve/recall"
	"github.com/memsidecar/memsidecar/internal/session"
)

// Source is where to look.
type Source string

// The sources.
const (
	Memories Source = "memories"
	Messages Source = "messages"
)

// MessageHit is a message of the past with its score, and those around it in its session, oldest first.
type MessageHit struct {
	Message       session.Message
	Score         float64
	Parts         ScoreBreakdown
	Before, After []session.Message
	// Later is what superseded a memory that rests on the message, or nil.
	Later *recall.Later
}

// messageWriter writes past messages for the prompt.
type messageWriter struct {
	Prompt
	userID   string
	labels   map[string]string
	location *time.Location
}

// excerpt is a piece of a session: whole with the messages around those found, found without.
type excerpt struct{ whole, found string }

// excerpts cuts pieces out of the sessions, the one with the best message first. Pieces that touch are one, so that no
// message is shown twice.
func (w messageWriter) excerpts(hits []MessageHit) []excerpt {
	type piece struct {
		session     string
		first, last int64
		messages    map[int64]*session.Message
		found       map[int64]bool
		later       map[int64]*recall.Later
	}
	var pieces []*piece
	for i := range hits {
		h := &hits[i]
		p := &piece{session: h.Message.SessionID + h.Message.SessionRef, messages: map[int64]*session.Message{}, found: map[int64]bool{h.Message.Position: true}}
		p.later = map[int64]*recall.Later{h.Message.Position: h.Later}
		p.first, p.last = h.Message.Position, h.Message.Position
		for _, list := range [][]session.Message{h.Before, {h.Message}, h.After} {
			for j := range list {
				m := &list[j]
				p.messages[m.Position] = m
				p.first, p.last = min(p.first, m.Position), max(p.last, m.Position)
			}
		}
		// The earlier ones in the list are better: they keep their places.
		pieces = append(pieces, p)
		for j := len(pieces) - 2; j >= 0; j-- {
			other := pieces[j]
			if other.session != p.session || other.first > p.last || p.first > other.last {
				continue
			}
			maps.Copy(other.messages, p.messages)
			maps.Copy(other.found, p.found)
			maps.Copy(other.later, p.later)
			other.first, other.last = min(other.first, p.first), max(other.last, p.last)
			pieces = slices.DeleteFunc(pieces, func(q *piece) bool { return q == p })
			p = other // which may touch yet another now
		}
	}
	var list []excerpt
	for _, p := range pieces {
		var e excerpt
		for _, position := range slices.Sorted(maps.Keys(p.messages)) {
			line := w.line(p.messages[position], p.later[position])
			e.whole += line
			if p.found[position] {
				e.found += line
			}
		}
		list = append(list, e)
	}
	return list
}

// line is a message as a line: its day, who said it, what, and what is known since.
func (w messageWriter) line(m *session.Message, later *recall.Later) string {
	who := w.User
	switch {
	case m.Role == memory.RoleAssistant:
		who = cmp.Or(w.labels[m.AgentID], w.Assistant)
	case w.labels[m.Speaker] != "":
		who = w.labels[m.Speaker]
	case m.Speaker != w.userID:
		who += " " + m.Speaker
	}
	return "[" + m.Time.In(w.location).Format(time.DateOnly) + "] " + w.harmless(who) + ": " + w.harmless(m.Content) + w.since(later) + "\n"
}

func (w messageWriter) since(later *recall.Later) string {
	if later == nil {
		return ""
	}
	return strings.ReplaceAll(w.Later, "{text}", w.harmless(later.Text))
}

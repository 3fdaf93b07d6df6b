package session

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/usage"
)

// Limits of one step. A session of a million messages is summarised in many steps, and other sessions are handled between them.
const (
	stepMessages = 200
	stepRunes    = 20_000
	stepsAtOnce  = 10
)

// summarize updates a session's summaries: that of all agents and, if several take part, one of each.
func (k *Service) summarize(ctx context.Context, t task) error {
	first, err := k.Store.Older(ctx, t.namespace, t.session, 0, "", 0)
	if err != nil {
		return err
	}
	s := first.Session
	if k.Summarizer == nil || k.expired(&s) {
		return k.Store.SummaryDone(ctx, t.namespace, t.session, s.Last, first.ReadAt)
	}
	if len(s.Participants) == 1 {
		ctx = usage.WithUser(ctx, memory.User{Namespace: t.namespace, ID: s.Participants[0]})
	}
	agents := []string{""}
	if len(s.Agents) > 1 {
		agents = append(agents, s.Agents...)
	}
	steps := 0
	for _, agent := range agents {
		for after, more := k.latest(&first, agent).Last, true; more; {
			if steps == stepsAtOnce {
				d := Due{Namespace: t.namespace, SessionID: t.session, Kind: DueSummarize}
				return k.Store.Postpone(ctx, d, k.Now())
			}
			if more, after, err = k.fold(ctx, t, agent, after); err != nil {
				return err
			}
			if more { // agents without new messages must not use up the steps of the others
				steps++
			}
		}
	}
	return k.Store.SummaryDone(ctx, t.namespace, t.session, s.Last, first.ReadAt)
}

// expired reports whether the session's window has expired.
func (k *Service) expired(s *Session) bool {
	ttl := k.Policy(s.Namespace).TTL
	return ttl > 0 && !s.ActiveAt.IsZero() && !k.Now().Before(s.ActiveAt.Add(ttl))
}

// latest returns an agent's summary, or the zero Summary. One that was extracted because nobody had read the session yet does not count
// when somebody has: the model writes it anew.
func (k *Service) latest(o *Older, agent string) Summary {
	i := slices.IndexFunc(o.Summaries, func(s Summary) bool { return s.AgentID == agent })
	if i < 0 {
		return Summary{}
	}
	found := o.Summaries[i]
	if k.extractsFirst() && found.MadeBy == k.Extract.Name() && found.At.Before(o.ReadAt) {
		return Summary{}
	}
	return found
}

// extractsFirst reports whether summaries are extracted until somebody reads the session: a model's cost money.
func (k *Service) extractsFirst() bool {
	return k.Extract != nil && k.Summarizer != nil && k.Extract.Name() != k.Summarizer.Name()
}

// fold takes one step: it adds to the summary the oldest messages that come after the position and are no longer in the default window.
// It returns the last position covered now, and whether there may be more.
func (k *Service) fold(ctx context.Context, t task, agent string, after int64) (more bool, last int64, err error) {
	limit := stepMessages + k.options.Window.MaxMessages
	o, err := k.Store.Older(ctx, t.namespace, t.session, after, agent, limit)
	if err != nil {
		return false, after, err
	}
	previous := k.latest(&o, agent)
	if previous.Last != after { // it was deleted with a user's messages, or with the window
		return true, previous.Last, nil
	}
	n := stepMessages
	if len(o.Messages) < limit {
		if int64(len(o.Messages)) <= k.summarizeAfter() {
			return false, after, nil
		}
		withoutPayloads(o.Messages) // like the default window
		n, _ = k.options.Window.cut(o.Messages)
	}
	dropped := bounded(o.Messages[:n])
	if len(dropped) == 0 {
		return false, after, nil
	}
	next := Summary{
		AgentID: agent, Text: previous.Text, MadeBy: cmp.Or(previous.MadeBy, k.Summarizer.Name()), At: k.Now(),
		Last: dropped[len(dropped)-1].Position, Messages: previous.Messages + int64(len(dropped)),
	}
	s := Summarizing{Previous: previous.Text, Language: languageOf(o.Messages)}
	s.Lines = k.labels(&o.Session, k.options.Wordings.of(s.Language), nil).forSummary(dropped)
	if len(s.Lines) > 0 {
		if next.Text, next.MadeBy, err = k.fresh(ctx, t, s, !o.ReadAt.IsZero()); err != nil {
			return false, after, err
		}
	}
	return true, next.Last, k.Store.SaveSummary(ctx, t.namespace, t.session, o.Revision, next)
}

// forSummary returns the messages with content.
func (l labels) forSummary(messages []Message) (lines []Line) {
	for i := range messages {
		if m := &messages[i].Message; strings.TrimSpace(m.Content) != "" {
			lines = append(lines, Line{Label: l.of(m), Role: m.Role, Content: m.Content, Time: m.Time})
		}
	}
	return lines
}

// maxBridged limits the messages that a caller's request summarises.
const maxBridged = 100

// bridge extends the summary over the messages between it and the window: they are not yet summarised in the background, or the
// requested window is shorter than the default one.
func (k *Service) bridge(ctx context.Context, w *Window, left []Message, agent string) (*Summary, error) {
	after, first := w.Session.WindowStart-1, w.Session.Last+1
	if w.Summary != nil {
		after = w.Summary.Last
	}
	if len(left) > 0 {
		first = left[0].Position
	}
	if k.Extract == nil || after+1 >= first {
		return w.Summary, nil
	}
	o, err := k.Store.Older(ctx, w.Session.Namespace, cmp.Or(w.Session.Ref, w.Session.ID), after, agent, maxBridged)
	if err != nil {
		return nil, err
	}
	n, _ := slices.BinarySearchFunc(o.Messages, first, func(m Message, position int64) int { return cmp.Compare(m.Position, position) })
	between := bounded(o.Messages[:n])
	if len(between) == 0 {
		return w.Summary, nil
	}
	s := Summarizing{Language: languageOf(between)}
	s.Lines = k.labels(&w.Session, k.options.Wordings.of(s.Language), nil).forSummary(between)
	if len(s.Lines) == 0 {
		return w.Summary, nil
	}
	next := &Summary{
		AgentID: agent, MadeBy: k.Extract.Name(), At: k.Now(), Last: between[len(between)-1].Position, Messages: int64(len(between)),
	}
	written := "" // by a model: stays unchanged
	if before := w.Summary; before != nil {
		next.Messages += before.Messages
		if before.MadeBy == next.MadeBy {
			s.Previous = before.Text
		} else if before.Text != "" {
			written = before.Text + "\n"
			next.MadeBy = before.MadeBy + ", " + next.MadeBy
		}
	}
	if next.Text, err = k.Extract.Summarize(ctx, s); err != nil {
		return nil, err
	}
	next.Text = written + next.Text
	return next, nil
}

// bounded returns as many messages as one step takes, at least one. A single message that is too long is cut.
func bounded(messages []Message) []Message {
	runes := 0
	for i := range messages {
		m := &messages[i].Message
		n := said(&memory.Message{Content: m.Content})
		if runes += n; runes <= stepRunes {
			continue
		}
		if i > 0 {
			return messages[:i]
		}
		m.Content = string([]rune(m.Content)[:stepRunes])
		return messages[:1]
	}
	return messages
}

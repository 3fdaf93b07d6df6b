package decide

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/decide/echo"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// nearest is the number of memories, the most similar by keywords, with which a sentence is compared.
const nearest = 8

// Echoes recognises text in dialogues that Retrieve returned before.
type Echoes struct {
	Filter   *echo.Filter
	Memories interface {
		SearchKeyword(ctx context.Context, user memory.User, query string, filter vectorstore.Filter, limit int) ([]vectorstore.Hit, error)
	}
	// Visibility decides which memories Retrieve may return in a channel. Only those can echo there.
	Visibility memory.Visibility
}

// Clean removes echoes from a dialogue and returns how many lines and sentences it removed. Messages keep their positions.
func (e *Echoes) Clean(ctx context.Context, user memory.User, d memory.Dialogue) (memory.Dialogue, int, error) {
	return e.Filter.Clean(ctx, d, func(ctx context.Context, text string) ([]string, error) {
		// Superseded memories were returned by Retrieve in their time.
		hits, err := e.near(ctx, d.Scope.WithUser(user.ID), text, memory.Statuses())
		texts := make([]string, len(hits))
		for i, h := range hits {
			texts[i] = h.Memory.Text
		}
		return texts, err
	})
}

func (e *Echoes) near(ctx context.Context, scope memory.Scope, text string, statuses []memory.Status) ([]vectorstore.Hit, error) {
	filter := vectorstore.Filter{Audience: e.Visibility.AudienceOf(scope), Statuses: statuses}
	return e.Memories.SearchKeyword(ctx, scope.User(), text, filter, nearest)
}

// withoutEchoes returns the transcript without echoes, for considering only: sessions keep the original messages. note says what was
// removed; it is the whole reason when nothing of the speaker is left.
func (c *Considerer) withoutEchoes(ctx context.Context, t Transcript) (clean Transcript, note string, err error) {
	t.Notes = &Remarks{}
	if c.Echoes == nil {
		return t, "", nil
	}
	var removed int
	t.Dialogue, removed, err = c.Echoes.Clean(ctx, memory.User{Namespace: t.Dialogue.Scope.Namespace, ID: t.Speaker}, t.Dialogue)
	switch {
	case err != nil:
		return t, "", fmt.Errorf("looking for repetitions of retrieved memories: %w", err)
	case removed == 0:
		return t, "", nil
	case !t.spoken():
		return t, fmt.Sprintf("nothing of the user's words is left without %s of what memsidecar itself had handed out", lines(removed)), nil
	}
	return t, fmt.Sprintf("; without %s of what memsidecar itself had handed out", lines(removed)), nil
}

func lines(n int) string {
	if n == 1 {
		return "1 line"
	}
	return fmt.Sprintf("%d lines", n)
}

// Reasons to reject a statement for which the speaker said only yes, or nothing.
const (
	onlyAcknowledged = "it rests on the assistant's words, which the user took note of and did not confirm"
	onlyRepeated     = "it repeats an existing memory, and the user did not say it"
	restsOnNothing   = "it is based on no words of the user"
)

// Check decides about a statement that may be an echo of a memory. leftOut is the reason to exclude it, or empty. A statement that
// the user confirmed and that a memory says already gets that memory's text, so that the memory is reinforced and not stored again; it
// also cites what was confirmed. A nil *Echoes knows no memories.
func (e *Echoes) Check(ctx context.Context, t Transcript, s *memory.Statement) (leftOut string, err error) {
	if s.Explicit {
		return "", nil // in the user's own words
	}
	own, asked := t.grounds(s)
	reply := echo.Acknowledge
	for _, i := range own {
		if !t.New(i) {
			continue // its words were considered before; what counts is what the user says to it now
		}
		switch echo.ReplyOf(t.Dialogue.Messages[i].Content) {
		case echo.Words:
			return e.repeated(ctx, t, s, own)
		case echo.Affirm:
			reply = echo.Affirm
		case echo.Acknowledge:
		}
	}
	// A yes says no more than the question.
	if len(own) == 0 || !slices.ContainsFunc(asked, func(i int) bool { return echo.Shares(s.Text, t.Dialogue.Messages[i].Content) }) {
		return restsOnNothing, nil
	}
	question := slices.ContainsFunc(asked, func(i int) bool { return echo.Asks(t.Dialogue.Messages[i].Content) })
	if !question && reply == echo.Acknowledge && !arranged(s.Kind) {
		return onlyAcknowledged, nil
	}
	for _, i := range asked {
		t.cite(s, i)
	}
	hits, err := e.similar(ctx, t, s.Text)
	if err != nil {
		return "", err
	}
	told := t.retold(s, asked)
	for _, h := range hits {
		if !slices.ContainsFunc(told, func(text string) bool { return echo.Told(text, h.Memory.Text) }) {
			continue
		}
		if h.Memory.Channel.VisibilityKey() != t.Dialogue.Scope.Channel.VisibilityKey() {
			return onlyRepeated, nil // it was learned elsewhere and may be seen here
		}
		s.Text, s.Language = h.Memory.Text, h.Memory.Language
		return "", nil
	}
	// A retelling that changes a detail is the assistant's claim, unless the assistant asked.
	if !question && !arranged(s.Kind) && slices.ContainsFunc(hits, func(h vectorstore.Hit) bool { return echo.Near(s.Text, h.Memory.Text) }) {
		return onlyAcknowledged, nil
	}
	return "", nil
}

// retold returns the wordings of a statement: its own, and the sentence of the assistant that it retells.
func (t Transcript) retold(s *memory.Statement, asked []int) []string {
	wordings := []string{s.Text}
	for _, i := range asked {
		for _, sentence := range echo.Sentences(t.Dialogue.Messages[i].Content) {
			if echo.Within(s.Text, sentence) {
				wordings = append(wordings, sentence)
			}
		}
	}
	return wordings
}

// repeated excludes a statement that a memory says already and that shares no word with the user's words it cites: the model read the
// memory somewhere else.
func (e *Echoes) repeated(ctx context.Context, t Transcript, s *memory.Statement, own []int) (leftOut string, err error) {
	for _, i := range own {
		if echo.Shares(s.Text, t.Dialogue.Messages[i].Content) {
			return "", nil
		}
	}
	hits, err := e.similar(ctx, t, s.Text)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(hits, func(h vectorstore.Hit) bool { return echo.Told(s.Text, h.Memory.Text) }) {
		return onlyRepeated, nil
	}
	return "", nil
}

// similar returns current memories that are similar to a text.
func (e *Echoes) similar(ctx context.Context, t Transcript, text string) ([]vectorstore.Hit, error) {
	if e == nil {
		return nil, nil
	}
	return e.near(ctx, t.Dialogue.Scope.WithUser(t.Speaker), text, []memory.Status{memory.StatusActive})
}

// arranged reports whether acknowledging a statement of this kind agrees to it: "I'll come at three." "Ok."
func arranged(k memory.Kind) bool {
	switch k {
	case memory.KindAppointment, memory.KindPlan, memory.KindTask, memory.KindDecision, memory.KindRequest:
		return true
	default:
		return false
	}
}

// grounds returns the messages that a statement cites: the speaker's own, and the assistant's. If it cites none of the assistant's,
// asked are those that the speaker answered.
func (t Transcript) grounds(s *memory.Statement) (own, asked []int) {
	var answered []int
	last, cites := -1, false
	for i, m := range t.Dialogue.Messages {
		cited := slices.Contains(s.MessageIDs, t.Ref(i))
		switch {
		case m.Role == memory.RoleAssistant && strings.TrimSpace(m.Content) != "":
			last = i
			cites = cites || cited
			if cited && !t.replied(i) {
				asked = append(asked, i)
			}
		case cited && m.Role == memory.RoleUser && m.Speaker == t.Speaker:
			own = append(own, i)
			if last >= 0 && t.New(i) && !t.replied(last) && !slices.Contains(answered, last) {
				answered = append(answered, last)
			}
		}
	}
	if !cites {
		asked = answered
	}
	return own, asked
}

// replied reports whether the speaker said yes to a message, or acknowledged it, in the last turns. A yes in the new messages means
// something else.
func (t Transcript) replied(message int) bool {
	for i := message + 1; i < t.Earlier; i++ {
		m := t.Dialogue.Messages[i]
		if m.Role == memory.RoleUser && m.Speaker == t.Speaker && echo.ReplyOf(m.Content) != echo.Words {
			return true
		}
	}
	return false
}

// cite adds a message to the statement's citations, which stay in the order of the dialogue.
func (t Transcript) cite(s *memory.Statement, message int) {
	refs := append([]string{t.Ref(message)}, s.MessageIDs...)
	s.MessageIDs = nil
	for i, m := range t.Dialogue.Messages {
		if ref := t.Ref(i); slices.Contains(refs, ref) {
			s.MessageIDs = append(s.MessageIDs, ref)
			if m.Time.After(s.ObservedAt) {
				s.ObservedAt = m.Time
			}
		}
	}
}

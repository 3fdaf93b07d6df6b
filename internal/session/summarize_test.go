package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/session/summary/extract"
)

// joiner summarises by joining all lines and records its calls. It returns the errors first.
type joiner struct {
	mu     sync.Mutex
	errors []error
	asked  []session.Summarizing
	at     []time.Time
	during func() // optional
}

func (*joiner) Name() string { return "test/joiner" }

func (j *joiner) Summarize(_ context.Context, s session.Summarizing) (string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asked, j.at = append(j.asked, s), append(j.at, time.Now())
	if len(j.errors) > 0 {
		err := j.errors[0]
		j.errors = j.errors[1:]
		return "", err
	}
	if j.during != nil {
		j.during()
	}
	text := s.Previous
	for _, l := range s.Lines {
		text += "|" + l.Label + ":" + l.Content
	}
	return strings.TrimPrefix(text, "|"), nil
}

// exchange appends numbered messages and their answers.
func (w *world) exchange(s memory.Scope, from, to int) {
	w.Helper()
	for i := from; i < to; i++ {
		w.say(s, fmt.Sprint("q", i), fmt.Sprint("A: a", i))
	}
	synctest.Wait()
	w.pass(time.Second)
}

func (w *world) summary(s memory.Scope) session.Summary {
	w.Helper()
	found, err := w.store.Window(w.Context(), viewer(s), s.SessionID, session.WindowQuery{Limit: 1})
	if err != nil {
		w.Fatal(err)
	}
	if found.Summary == nil {
		return session.Summary{}
	}
	return *found.Summary
}

// TestRollingSummary: Messages that leave the window are soon in the summary, once. Window and summary together cover all but the newest
// that left.
func TestRollingSummary(t *testing.T) {
	bubble(t, func(w *world) {
		j := &joiner{}
		w.parts.Summarizer = j
		w.restart()
		defer w.stop()
		s := scope("ann", "s")
		w.exchange(s, 0, 6)
		if got := w.summary(s); got.Last != 0 || len(j.asked) != 0 {
			w.Errorf("before a summary is needed: %+v", got)
		}
		w.exchange(s, 6, 7)
		if got := w.summary(s); got.Text != "User:q0|Assistant:a0|User:q1|Assistant:a1" || got.Last != 4 || got.Messages != 4 ||
			got.MadeBy != "test/joiner" {
			w.Errorf("the first summary: %+v", got)
		}
		for i := 7; i < 30; i++ {
			w.exchange(s, i, i+1)
			c := w.window(s)
			if gap := c.Messages[0].Position - 1 - c.Summary.Last; gap < 0 || gap > 3 || c.Dropped != c.Messages[0].Position-1 {
				w.Errorf(
					"after %d: the summary goes to %d, the window begins at %d (%d dropped)",
					i,
					c.Summary.Last,
					c.Messages[0].Position,
					c.Dropped,
				)
			}
		}
		got := w.summary(s)
		if n := strings.Count(got.Text, "User:"); n != strings.Count(got.Text, "Assistant:") || int64(2*n) != got.Messages ||
			got.Last != got.Messages {
			w.Errorf("the last summary: %+v", got)
		}
		if calls := len(j.asked); calls > 15 {
			w.Errorf("the model was asked %d times in 30 turns", calls)
		}
		r := w.request(s)
		r.Limits = session.Limits{MaxMessages: 100, MaxTurns: 100, MaxRunes: 10_000}
		if c := w.Service.Context(w.Context(), r); len(c.Messages) != 60 || c.Summary != nil {
			w.Errorf("when all of it is in the window: %d messages and %+v", len(c.Messages), c.Summary)
		}
		block := w.window(s).PromptContext
		if !strings.Contains(block, "\n\nSummary of what came before:\n- User:q0|") || !strings.Contains(block, "\n\nUser: q25\n") {
			w.Errorf("the block is\n%s", block)
		}
		w.pass(24 * time.Hour)
		w.say(s, "hello again")
		if c := w.window(s); c.Summary != nil || len(c.Messages) != 1 || w.summary(s).Last != 0 {
			w.Errorf("in a new window: %+v", c)
		}
		asked := len(j.asked)
		w.pass(10 * time.Hour)
		if len(j.asked) != asked {
			w.Errorf("asked %d times more", len(j.asked)-asked)
		}
	})
}

// TestSummaryOfEachAgent: Each of several agents has its own summary, which holds no words of another.
func TestSummaryOfEachAgent(t *testing.T) {
	bubble(t, func(w *world) {
		j := &joiner{}
		w.parts.Summarizer = j
		w.restart()
		defer w.stop()
		one, two := scope("ann", "s"), scope("ann", "s")
		one.AgentID, two.AgentID = "one", "two"
		w.exchange(one, 0, 20)
		w.exchange(two, 100, 103)
		w.exchange(one, 20, 25)
		w.pass(time.Minute) // a summary that was made while messages arrived is due again after a pause
		agent := func(id string) session.Context {
			r := w.request(one)
			r.AgentID = &id
			return w.Service.Context(w.Context(), r)
		}
		if c := agent("one"); c.Summary == nil || strings.Contains(c.Summary.Text, "q100") || c.Summary.Last >= c.Messages[0].Position ||
			c.Summary.Messages < 30 {
			w.Errorf("of the one: %+v", c.Summary)
		}
		if c := agent("two"); c.Summary != nil || len(c.Messages) != 6 {
			w.Errorf("of the other, all of which is in the window: %+v", c)
		}
		if got := w.summary(one); !strings.Contains(got.Text, "q100") || !strings.Contains(got.Text, "Assistant two:a100") {
			w.Errorf("of all: %+v", got)
		}
	})
}

// TestSummaryLeavesOutTools: Tool messages are not in a summary and cause no additional calls of the model.
func TestSummaryLeavesOutTools(t *testing.T) {
	bubble(t, func(w *world) {
		j := &joiner{}
		w.parts.Summarizer = j
		w.restart()
		defer w.stop()
		s := scope("ann", "s")
		for i := range 20 {
			w.say(s, fmt.Sprint("q", i), "T: raw", "T: rawer", fmt.Sprint("A: a", i))
			synctest.Wait()
			w.pass(time.Second)
		}
		if got := w.summary(s); strings.Contains(got.Text, "raw") || got.Messages < 26 || len(j.asked) > 8 {
			w.Errorf("asked %d times: %+v", len(j.asked), got)
		}
	})
}

// TestLongSessionIsSummarizedInSteps: A long session is summarised in bounded steps, between which other sessions have their turn.
func TestLongSessionIsSummarizedInSteps(t *testing.T) {
	bubble(t, func(w *world) {
		w.options.Workers = 1
		j := &joiner{}
		w.parts.Summarizer = j
		w.Service = w.newService()
		long, short := scope("ann", "long"), scope("ben", "short")
		for range 2 {
			lines := make([]string, 1000)
			for i := range lines {
				lines[i] = "line " + strings.Repeat("x", 2*(i%10))
			}
			lines[7] = strings.Repeat("长", 50_000)
			w.say(long, lines...)
		}
		w.pass(time.Millisecond)
		for i := range 7 {
			w.say(short, fmt.Sprint("q", i), "A: yes")
		}
		w.restart()
		defer w.stop()
		w.pass(time.Minute)
		if got := w.summary(long); got.Messages != 1990 || got.Last != 1990 {
			w.Errorf("of the long session: %d messages up to %d", got.Messages, got.Last)
		}
		shortAt := -1
		for i, s := range j.asked {
			runes := 0
			for _, l := range s.Lines {
				runes += len([]rune(l.Content))
				if l.Content == "q0" {
					shortAt = i
				}
			}
			if len(s.Lines) > 200 || runes > 20_000 {
				w.Errorf("step %d has %d messages, %d characters", i, len(s.Lines), runes)
			}
		}
		if shortAt < 0 || shortAt > 10 {
			w.Errorf("the short session's turn was step %d of %d", shortAt, len(j.asked))
		}
	})
}

// TestSummaryIsPostponedWhileItsModelFails: While the model is unavailable the summary is postponed. After a refusal the pauses grow.
func TestSummaryIsPostponedWhileItsModelFails(t *testing.T) {
	bubble(t, func(w *world) {
		j := &joiner{errors: []error{
			&memory.TransientError{Err: errors.New("unavailable")},
			&memory.TransientError{Err: errors.New("unavailable"), RetryAfter: 24 * time.Hour}, errors.New("blocked"),
		}}
		w.parts.Summarizer = j
		var until time.Time // when the model may be asked again
		w.options.Unavailable = func() (time.Time, bool) { return until, !until.IsZero() }
		w.restart()
		defer w.stop()
		s := scope("ann", "s")
		w.exchange(s, 0, 7)
		w.pass(2 * time.Hour)
		var pauses []time.Duration
		for i := range j.at[1:] {
			pauses = append(pauses, j.at[i+1].Sub(j.at[i]))
		}
		if len(pauses) != 3 || pauses[0] > 2*time.Second || pauses[1] > 4*time.Second || pauses[2] < time.Hour {
			w.Errorf("pauses are %v", pauses)
		}
		if got := w.summary(s); got.Last != 4 {
			w.Errorf("the last summary: %+v", got)
		}
		// An expired window needs no summary.
		until = time.Now().Add(25 * time.Hour)
		asked := len(j.asked)
		w.exchange(s, 7, 20)
		w.pass(72 * time.Hour)
		if n := len(j.asked) - asked; n != 0 {
			w.Errorf("asked %d times about the expired window", n)
		}
	})
}

// TestSummaryAndForgetting: Words that are forgotten during the model's call are in no summary.
func TestSummaryAndForgetting(t *testing.T) {
	bubble(t, func(w *world) {
		s := memory.Scope{Namespace: namespace, UserID: "ann", SessionID: "s", Channel: memory.Channel{Kind: memory.ChannelGroup, ID: "g"}}
		j := &joiner{}
		j.during = func() {
			j.during = nil
			if _, err := w.store.Forget(w.Context(), memory.User{Namespace: namespace, ID: "bob"}); err != nil {
				w.Error(err)
			}
		}
		w.parts.Summarizer = j
		w.Service = w.newService()
		for i := range 10 {
			w.say(s, fmt.Sprint("ann: fine ", i), fmt.Sprint("bob: secret ", i))
		}
		for i := range 6 {
			w.say(s, fmt.Sprint("ann: more ", i))
		}
		w.restart()
		defer w.stop()
		w.pass(time.Minute)
		if got := w.summary(s); strings.Contains(got.Text, "secret") ||
			!strings.HasPrefix(got.Text, "User ann:fine 0|User ann:fine 1|") && !strings.HasPrefix(got.Text, "User:fine 0|User:fine 1|") {
			w.Errorf("%+v", got)
		}
	})
}

// TestExtractedSummary: Without a model the block still contains what was said long ago.
func TestExtractedSummary(t *testing.T) {
	bubble(t, func(w *world) {
		w.parts.Summarizer = extract.New(300)
		w.restart()
		defer w.stop()
		s := scope("ann", "s")
		w.say(s, "你好", "A: 你好，有什么可以帮你？", "我对花生过敏，下周三要去成都出差", "A: 好的，我记住了你对花生过敏")
		for i := range 20 {
			w.say(s, "嗯嗯", "A: 好的")
			if i%5 == 0 {
				w.say(s, "成都有什么不含花生的小吃？", "A: 可以试试龙抄手")
			}
			synctest.Wait()
			w.pass(time.Second)
		}
		c := w.window(s)
		if c.Summary == nil || !strings.Contains(c.Summary.Text, "用户: 我对花生过敏，下周三要去成都出差") || c.Summary.MadeBy != "extract" ||
			len([]rune(c.Summary.Text)) > 300 {
			w.Errorf("the summary is %+v", c.Summary)
		}
		if i := slices.IndexFunc(strings.Split(c.PromptContext, "\n"), func(l string) bool { return l == "- 用户: 我对花生过敏，下周三要去成都出差" }); i < 0 {
			w.Errorf("the block is\n%s", c.PromptContext)
		}
	})
}

// TestSummaryOfManyAgents: However many agents take part, summarising ends.
func TestSummaryOfManyAgents(t *testing.T) {
	bubble(t, func(w *world) {
		j := &joiner{}
		w.parts.Summarizer = j
		w.restart()
		defer w.stop()
		s := scope("ann", "s")
		for i := range 30 {
			s.AgentID = fmt.Sprint("agent ", i)
			w.say(s, "hello", "A: hi")
		}
		w.pass(time.Minute)
		due, next, err := w.store.Due(w.Context(), time.Now(), 10)
		if err != nil || slices.ContainsFunc(due, func(d session.Due) bool { return d.Kind == session.DueSummarize }) {
			w.Errorf("after a minute due are %v, then %v, %v", due, next, err)
		}
	})
}

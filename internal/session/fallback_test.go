package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/session/summary/extract"
	"github.com/memsidecar/memsidecar/internal/trace"
)

// failing is a summarizer whose model always fails in the same way.
type failing struct {
	err   error
	asked int
}

func (*failing) Name() string { return "test/failing" }

func (f *failing) Summarize(context.Context, session.Summarizing) (string, error) {
	f.asked++
	return "", f.err
}

// TestUnusableSummaryIsExtractedImmediately: A model that refuses or returns unusable answers does not delay a session's summary. The log,
// the counter and the trace name the reason. If the provider cannot be reached, the summary is postponed.
func TestUnusableSummaryIsExtractedImmediately(t *testing.T) {
	for _, c := range []struct {
		name   string
		err    error
		counts string // the reason that is counted; "" if the summary is postponed
	}{
		{"unusable answers", errors.New("the model's answers cannot be used: no valid JSON"), session.FallbackUnusable},
		{"a refusal", fmt.Errorf("summarising: %w", &memory.RefusedError{Err: errors.New("HTTP 400")}), session.FallbackRefused},
		{"a used up budget", &memory.BudgetError{}, session.FallbackBudget},
		{"a provider that cannot be reached", &memory.TransientError{Err: errors.New("connection refused")}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(w *world) {
				model := &failing{err: c.err}
				var counted []string
				w.parts.Summarizer, w.parts.Extract = model, extract.New(300)
				w.options.Fallback = func(reason string) { counted = append(counted, reason) }
				w.restart()
				defer w.stop()
				s := scope("ann", "s")
				w.say(s, "我对花生过敏，下周三要去成都出差", "A: 好的，我记住了你对花生过敏")
				w.window(s) // nobody pays for the summary of a session that is not read
				w.exchange(s, 0, 7)
				w.pass(time.Minute)
				got := w.summary(s)
				if c.counts == "" {
					if got.Last != 0 || len(counted) != 0 || model.asked < 2 {
						w.Errorf("asked %d times, counted %v: %+v", model.asked, counted, got)
					}
					return
				}
				if got.Last == 0 || got.MadeBy != "extract" || !strings.Contains(got.Text, "花生过敏") {
					w.Errorf("after a minute the summary is %+v", got)
				}
				if len(counted) == 0 || slices.ContainsFunc(counted, func(r string) bool { return r != c.counts }) {
					w.Errorf("counted %v, want %q", counted, c.counts)
				}
				w.window(s)
				want := []trace.Degradation{{Component: "summary", Reason: "made by extract instead of test/failing"}}
				if last := w.traces.records[len(w.traces.records)-1]; !slices.Equal(last.Degraded, want) {
					w.Errorf("the trace says %+v", last.Degraded)
				}
			})
		})
	}
}

// TestSessionsThatNobodyReadsAreExtracted: No model summarises a session before its context is asked for. Then the extract serves until the
// model has written the summary anew.
func TestSessionsThatNobodyReadsAreExtracted(t *testing.T) {
	bubble(t, func(w *world) {
		j := &joiner{}
		w.parts.Summarizer, w.parts.Extract = j, extract.New(300)
		w.restart()
		defer w.stop()
		s := scope("ann", "s")
		w.say(s, "我对花生过敏，下周三要去成都出差", "A: 好的，我记住了你对花生过敏")
		w.exchange(s, 0, 20)
		if got := w.summary(s); len(j.asked) != 0 || got.MadeBy != "extract" || got.Last == 0 {
			w.Fatalf("unread, the model was asked %d times: %+v", len(j.asked), got)
		}
		w.pass(time.Minute)
		if c := w.window(s); c.Summary == nil || !strings.HasPrefix(c.Summary.MadeBy, "extract") {
			w.Errorf("at first the context has %+v", c.Summary)
		}
		w.pass(time.Second)
		if got := w.summary(s); got.MadeBy != j.Name() || !strings.Contains(got.Text, "成都") || !strings.Contains(got.Text, ":q0|") {
			w.Errorf("read, the summary is %+v", got)
		}
		asked := len(j.asked)
		w.pass(5 * time.Minute)
		if len(j.asked) != asked {
			w.Errorf("without new messages the model was asked %d times more", len(j.asked)-asked)
		}
	})
}

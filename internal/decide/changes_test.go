package decide_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// stating makes a statement of each line that is said.
func stating() *judge {
	return &judge{summarize: func(t decide.Transcript) ([]memory.Statement, error) {
		var list []memory.Statement
		for i, m := range t.Dialogue.Messages {
			for line := range strings.Lines(m.Content) {
				s := memory.Statement{
					Language: "en", Kind: memory.KindFact, Importance: 0.5,
					MessageIDs: []string{t.Ref(i)}, Quote: m.Content, ObservedAt: m.Time,
				}
				s.Text, s.Forget = strings.CutPrefix(strings.TrimSpace(line), "FORGET ")
				if text, doubtful := strings.CutPrefix(s.Text, "DOUBT "); doubtful {
					s.Text, s.Quarantine = text, "no message says so"
				}
				list = append(list, s)
			}
		}
		return list, nil
	}}
}

// talk is what a user says at a time, in a group.
func talk(id, group string, at time.Time, lines ...string) decide.Request {
	return decide.Request{Wait: time.Minute, Dialogue: memory.Dialogue{
		Scope:    memory.Scope{Namespace: "n", UserID: id, Channel: memory.Channel{Kind: memory.ChannelGroup, ID: group}},
		Messages: []memory.Message{{Role: memory.RoleUser, Speaker: id, Content: strings.Join(lines, "\n"), Time: at}},
	}}
}

// in lists what a user's memories of some statuses say, oldest first.
func (s *system) in(t *testing.T, id string, statuses ...memory.Status) []memory.Memory {
	t.Helper()
	page, err := s.store.List(t.Context(), user(id), vectorstore.ListQuery{
		Filter: vectorstore.Filter{Audience: memory.Everything(), Statuses: statuses}, OldestFirst: true, Limit: 100,
	})
	if err != nil {
		t.Fatal(err)
	}
	return page.Memories
}

func (s *system) holds(t *testing.T, id string, want ...string) {
	t.Helper()
	var got []string
	for _, m := range s.in(t, id) {
		got = append(got, m.Text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s's memories are %q, want %q", id, got, want)
	}
}

var monday = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// TestSuperseded: what is said later takes the place of what it contradicts, which stays as history; what repeats it is
// counted; and what was said before, but comes after, is history at once.
func TestSuperseded(t *testing.T) {
	s := newSystem(t, stating())
	first := s.consider(t, talk("u", "g", monday, "The user lives in Beijing.", "The user likes jazz."))
	second := s.consider(t, talk("u", "g", monday.AddDate(0, 0, 2), "The user lives in Beijing. => The user moved to Shanghai.", "The user likes jazz."))
	s.holds(t, "u", "The user likes jazz.", "The user moved to Shanghai.")
	c := second.Outcome.Changes
	if len(c) != 2 || c[0].Action != memory.ActionUpdated || !slices.Equal(c[0].Related, []string{first.Outcome.Changes[0].MemoryID}) ||
		!strings.Contains(
			c[0].Reason,
			"Beijing",
		) || c[1].Action != memory.ActionReinforced || c[1].MemoryID != first.Outcome.Changes[1].MemoryID {
		t.Errorf("the changes are %+v", c)
	}
	jazz := s.in(t, "u")[0]
	if jazz.Mentions != 2 || !jazz.LastSaidAt.Equal(monday.AddDate(0, 0, 2)) {
		t.Errorf("what was repeated is %+v", jazz)
	}
	late := s.consider(t, talk("u", "g", monday.AddDate(0, 0, 1), "The user moved to Shanghai. => The user lives in Chengdu."))
	if c := late.Outcome.Changes; c[0].Action != memory.ActionOutdated ||
		!slices.Equal(c[0].Related, []string{second.Outcome.Changes[0].MemoryID}) ||
		c[0].Reason == "" {
		t.Errorf("what comes late is %+v", c)
	}
	s.holds(t, "u", "The user likes jazz.", "The user moved to Shanghai.")
	history := s.in(t, "u", memory.StatusSuperseded)
	if len(history) != 2 || !history[0].ValidTo.Equal(monday.AddDate(0, 0, 2)) || !history[1].ValidTo.Equal(monday.AddDate(0, 0, 2)) {
		t.Errorf("the history is %+v", history)
	}
	s.consider(t, talk("u", "g", monday.AddDate(0, 0, 5), "The user moved to Shanghai. => The user lives in Beijing."))
	s.holds(t, "u", "The user likes jazz.", "The user lives in Beijing.")
}

// TestReconciledInOneDialogue: who corrects themselves is believed.
func TestReconciledInOneDialogue(t *testing.T) {
	s := newSystem(t, stating())
	c := s.consider(t, talk("u", "g", monday, "The user lives in Beijing.",
		"The user lives in Beijing. => The user lives in Shanghai.", "The user lives in Shanghai."))
	s.holds(t, "u", "The user lives in Shanghai.")
	for i, want := range []memory.Action{memory.ActionAdded, memory.ActionUpdated, memory.ActionReinforced} {
		if c.Outcome.Changes[i].Action != want {
			t.Errorf("change %d is %+v", i, c.Outcome.Changes[i])
		}
	}
}

// TestReconciledWithinVisibility: what was said elsewhere, or by somebody else, is not compared.
func TestReconciledWithinVisibility(t *testing.T) {
	s := newSystem(t, stating())
	s.consider(t, talk("u", "g", monday, "The user lives in Beijing.", "The user likes cats."))
	s.consider(t, talk("v", "g", monday, "The user lives in Beijing."))
	c := s.consider(
		t,
		talk("u", "h", monday.AddDate(0, 0, 1), "The user lives in Beijing. => The user moved to Shanghai.", "The user likes cats.",
			"FORGET The user likes cats."),
	)
	if c.Outcome.Changes[0].Action != memory.ActionAdded || len(c.Outcome.Changes[2].Related) != 1 {
		t.Errorf("in another group: %+v", c.Outcome.Changes)
	}
	s.holds(t, "u", "The user lives in Beijing.", "The user likes cats.", "The user moved to Shanghai.")
	s.holds(t, "v", "The user lives in Beijing.")
}

// TestForgetRequest: what the user asks to forget is withdrawn, and the request itself is no memory.
func TestForgetRequest(t *testing.T) {
	s := newSystem(t, stating())
	first := s.consider(t, talk("u", "g", monday, "The user's ex is called Tom.", "The user likes cats."))
	c := s.consider(t, talk("u", "g", monday, "FORGET The user's ex", "FORGET the user's parrot", "The user likes tea."))
	s.holds(t, "u", "The user likes cats.", "The user likes tea.")
	changes := c.Outcome.Changes
	if len(changes) != 3 || changes[0].Action != memory.ActionWithdrawn || changes[0].MemoryID != first.Outcome.Changes[0].MemoryID || changes[0].Reason == "" ||
		changes[1].Action != memory.ActionNotFound || changes[1].MemoryID != "" || changes[1].Reason == "" ||
		changes[2].Action != memory.ActionAdded {
		t.Errorf("the changes are %+v", changes)
	}
	if gone := s.in(t, "u", memory.StatusWithdrawn); len(gone) != 1 || gone[0].Text != "The user's ex is called Tom." {
		t.Errorf("withdrawn is %+v", gone)
	}
	if c := s.consider(t, talk("u", "g", monday, "FORGET the user's parrot")); c.State != memory.StateRemembered ||
		len(c.Outcome.Changes) != 1 {
		t.Errorf("nothing to forget: %+v", c)
	}
}

// TestDoubtful: a statement that is not trusted is stored, and takes no place.
func TestDoubtful(t *testing.T) {
	s := newSystem(t, stating())
	s.consider(t, talk("u", "g", monday, "The user lives in Beijing."))
	c := s.consider(t, talk("u", "g", monday, "DOUBT The user lives in Beijing. => The user moved to Shanghai."))
	if change := c.Outcome.Changes[0]; change.Action != memory.ActionQuarantined || change.Reason != "no message says so" {
		t.Errorf("%+v", change)
	}
	s.holds(t, "u", "The user lives in Beijing.")
}

// TestOpsDecidedOnce: a crash between the decision and its effect decides nothing anew, though what is known changed.
func TestOpsDecidedOnce(t *testing.T) {
	s := newSystem(t, stating())
	s.consider(t, talk("u", "g", monday, "The user lives in Beijing."))
	s.memories.fail(&memory.TransientError{Err: errors.New("hiccup")}, &memory.TransientError{Err: errors.New("hiccup")})
	c := s.consider(t, talk("u", "g", monday, "The user lives in Beijing. => The user moved to Shanghai."))
	if c.Attempts != 3 || c.Outcome.Changes[0].Action != memory.ActionUpdated || len(s.judge.asked()) != 2 {
		t.Errorf("asked %d times: %+v", len(s.judge.asked()), c)
	}
	s.holds(t, "u", "The user moved to Shanghai.")
}

// failing is an extractor that fails at first.
type failing struct {
	decide.Extractor
	errs []error
}

func (f *failing) Extract(ctx context.Context, in decide.Input) (decide.Extraction, error) {
	if len(f.errs) > 0 {
		err := f.errs[0]
		f.errs = f.errs[1:]
		return decide.Extraction{}, err
	}
	return f.Extractor.Extract(ctx, in)
}

// TestLocalDecidesInstead: while a model cannot be reached the dialogue waits; when its budget is used up, or its answers cannot be
// used, the local extractor decides, and the outcome says so.
func TestLocalDecidesInstead(t *testing.T) {
	unreachable := &memory.TransientError{Err: errors.New("503")}
	for name, test := range map[string]struct {
		errs     []error
		attempts int
		says     string
	}{
		"unreachable": {[]error{unreachable, unreachable}, 3, ""},
		"budget":      {[]error{&memory.BudgetError{}}, 1, "token budget"},
		"nonsense":    {[]error{errors.New("the model's answers cannot be used")}, 1, "cannot be used"},
	} {
		j := stating()
		s := newSystem(t, j, func(deps *decide.Deps, _ *decide.Options) {
			deps.Extractor, deps.Local = &failing{asker{j}, test.errs}, asker{j}
		})
		c := s.consider(t, talk("u", "g", monday, "The user moved to Shanghai."))
		if c.Attempts != test.attempts || !strings.Contains(c.Outcome.Fallback, test.says) || (c.Outcome.Fallback == "") != (test.says == "") {
			t.Errorf("%s: %+v", name, c)
		}
		s.holds(t, "u", "The user moved to Shanghai.")
	}
}

// TestKnownIsUnreadable: when storage fails while known memories are read, the dialogue waits.
func TestKnownIsUnreadable(t *testing.T) {
	s := newSystem(t, stating())
	for i := range 50 { // more than are passed whole, so that they are searched
		s.consider(t, talk("u", "g", monday, "The user likes tea number "+strconv.Itoa(i)+"."))
	}
	s.memories.failSearch(&memory.TransientError{Err: errors.New("hiccup")})
	if c := s.consider(t, talk("u", "g", monday, "The user likes tea.")); c.Attempts != 2 || c.State != memory.StateRemembered {
		t.Errorf("%+v", c)
	}
}

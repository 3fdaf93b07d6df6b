package decide_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/decide/echo"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// dialogue is between alice and her bot: lines that begin with "bot: " are the bot's.
func dialogue(lines ...string) decide.Request {
	d := memory.Dialogue{Scope: memory.Scope{Namespace: "n", UserID: "alice", Channel: memory.Channel{Kind: memory.ChannelDirect}}}
	at := time.Date(2026, 11, 21, 15, 4, 0, 0, time.UTC)
	for i, line := range lines {
		m := memory.Message{Role: memory.RoleUser, Speaker: "alice", Content: line, Time: at.Add(time.Duration(i) * time.Second)}
		if rest, ok := strings.CutPrefix(line, "bot: "); ok {
			m.Role, m.Speaker, m.Content = memory.RoleAssistant, "", rest
		}
		d.Messages = append(d.Messages, m)
	}
	return decide.Request{Dialogue: d, Wait: time.Minute}
}

// stating is a model that states something, citing messages.
func says(text string, kind memory.Kind, cited ...string) *judge {
	return &judge{summarize: func(t decide.Transcript) ([]memory.Statement, error) {
		t.Notes.Add("a remark of the model")
		return []memory.Statement{
			{
				Text:       text,
				Language:   "en",
				Kind:       kind,
				Importance: 0.5,
				MessageIDs: cited,
				Quote:      "q",
				Reason:     "r",
				ObservedAt: t.Dialogue.Messages[0].Time,
			},
		}, nil
	}}
}

func (s *system) all(t *testing.T) []memory.Memory {
	t.Helper()
	page, err := s.store.List(t.Context(), user("alice"), vectorstore.ListQuery{
		Filter: vectorstore.Filter{Audience: memory.Everything(), Statuses: memory.Statuses()}, Limit: 100,
	})
	if err != nil {
		t.Fatal(err)
	}
	return page.Memories
}

// TestQuarantine: a statement with a figure that was never said is stored apart, is not found, and is stored once.
func TestQuarantine(t *testing.T) {
	s := newSystem(t, says("The user's sister has 14 cats.", memory.KindRelationship, "#0"))
	for range 3 {
		if c := s.consider(t, dialogue("my sister visits me")); c.State != memory.StateRemembered || len(c.Outcome.Changes) != 1 ||
			!strings.Contains(c.Outcome.Reason, "a remark of the model") {
			t.Errorf("it is %+v", c)
		}
	}
	all := s.all(t)
	if len(all) != 1 || all[0].StatusAt(time.Now()) != memory.StatusQuarantined || !strings.Contains(all[0].Quarantine, `number "14"`) ||
		all[0].Mentions != 1 {
		t.Errorf("stored %+v", all)
	}
	hits, err := s.store.SearchKeyword(t.Context(), user("alice"), "sister cats", vectorstore.Filter{Audience: memory.Everything()}, 10)
	if err != nil || len(hits) > 0 {
		t.Errorf("found %v, %v", hits, err)
	}
	// Once somebody says so, it is trusted.
	if s.consider(t, dialogue("my sister has 14 cats")); s.all(t)[0].StatusAt(time.Now()) != memory.StatusActive {
		t.Errorf("said, and still %+v", s.all(t)[0])
	}
}

// TestCitesWhereItWasSaid: a detail that the user gave in another message is no reason for doubt, but that is cited too.
func TestCitesWhereItWasSaid(t *testing.T) {
	s := newSystem(t, says("The user's sister has 14 cats.", memory.KindRelationship, "#2"))
	s.consider(t, dialogue("14 cats, imagine!", "bot: Who is that?", "she's my sister", "bye"))
	if m := s.all(t); len(m) != 1 || m[0].Quarantine != "" || !slices.Equal(m[0].Provenance.MessageIDs, []string{"#0", "#2"}) {
		t.Errorf("stored %+v", m)
	}
	s = newSystem(t, says("The user's sister has 14 cats.", memory.KindRelationship, "#2"))
	s.consider(t, dialogue("hello", "bot: Does your sister have 14 cats?", "she's my sister, yes"))
	if m := s.all(t); len(m) != 1 || m[0].Quarantine == "" {
		t.Errorf("what only the bot said, and the statement does not cite, is %+v", m)
	}
}

// TestConfirming: what the assistant says counts when the user confirms it, and then both are cited.
func TestConfirming(t *testing.T) {
	for name, test := range map[string]struct {
		lines  []string
		text   string
		kind   memory.Kind
		cited  []string
		wanted []string // the citations; nil: nothing is stored
		reason string
	}{
		"asked": {
			[]string{"bot: Do you live in Berlin?", "yes"},
			"The user lives in Berlin.", memory.KindFact,
			[]string{"#1"},
			[]string{"#0", "#1"},
			"",
		},
		"stated and affirmed": {
			[]string{"bot: You live in Berlin.", "yes, right"},
			"The user lives in Berlin.", memory.KindFact,
			[]string{"#0", "#1"},
			[]string{"#0", "#1"},
			"",
		},
		"stated and taken note of": {
			[]string{"bot: You live in Berlin.", "ok"},
			"The user lives in Berlin.", memory.KindFact,
			[]string{"#0", "#1"},
			nil, "did not confirm",
		},
		"arranged": {
			[]string{"bot: I'll book the dentist for Friday at 3.", "ok, thanks"},
			"The user sees the dentist on Friday at 3.", memory.KindAppointment,
			[]string{"#0", "#1"},
			[]string{"#0", "#1"},
			"",
		},
		"in the user's words": {[]string{"bot: Where do you live?", "Berlin"}, "The user lives in Berlin.", memory.KindFact, []string{"#1"}, []string{"#1"}, ""},
		"about nothing": {
			[]string{"bot: Do you live in Berlin?", "yes"},
			"The user has a motorcycle.", memory.KindFact,
			[]string{"#1"},
			nil, "is based on no words",
		},
		"to nobody": {[]string{"ok", "thanks"}, "The user has a motorcycle.", memory.KindFact, []string{"#0"}, nil, "is based on no words"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSystem(t, says(test.text, test.kind, test.cited...))
			c := s.consider(t, dialogue(test.lines...))
			m := s.all(t)
			if test.wanted == nil {
				if len(m) > 0 || c.State != memory.StateSkipped || !strings.Contains(c.Outcome.Reason, test.reason) {
					t.Errorf("stored %+v: %+v", m, c)
				}
				return
			}
			if len(m) != 1 || m[0].Quarantine != "" || !slices.Equal(m[0].Provenance.MessageIDs, test.wanted) {
				t.Errorf("stored %+v", m)
			}
		})
	}
}

// TestConfirmingWhatIsKnown: a yes to what is remembered reinforces it; a retelling that changes a detail is the assistant's
// word.
func TestConfirmingWhatIsKnown(t *testing.T) {
	j := &judge{}
	s := newSystem(t, j)
	s.Echoes = &decide.Echoes{
		Filter:     echo.NewFilter(nil),
		Memories:   s.store,
		Visibility: memory.NewVisibility(memory.VisibilityChannel, nil),
	}
	say := func(statement string, lines ...string) []memory.MemoryChange {
		j.mu.Lock()
		j.summarize = says(statement, memory.KindFact, "#0", "#1").summarize
		j.mu.Unlock()
		return s.consider(t, dialogue(lines...)).Outcome.Changes
	}
	say("The user lives in Berlin with two cats.", "I live in Berlin with two cats", "really")
	if got := say("The user resides in Berlin with two cats", "bot: So you live in Berlin with two cats?", "yes"); len(got) != 1 ||
		got[0].Action != memory.ActionReinforced {
		t.Errorf("confirmed: %+v", got)
	}
	if got := say("The user lives in Hamburg with two cats.", "bot: You live in Hamburg with two cats, so you need a lift.", "right"); len(
		got,
	) != 0 {
		t.Errorf("a changed detail: %+v", got)
	}
	if got := say("The user lives in Hamburg with two cats.", "bot: Do you live in Hamburg with two cats now?", "yes"); len(got) != 1 ||
		got[0].Action != memory.ActionAdded {
		t.Errorf("asked for and confirmed: %+v", got)
	}
}

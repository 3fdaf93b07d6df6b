package local_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/decide/classify"
	"github.com/memsidecar/memsidecar/internal/decide/local"
	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// said is a Classifier that knows sentences. Others are small talk.
type said map[string]classify.Reading

func (s said) Read(u classify.Unit) classify.Reading {
	if r, ok := s[u.Text()]; ok {
		return r
	}
	return classify.Certain(classify.Chat, "")
}

func (said) Why(classify.Unit, classify.Label, int) []string { return []string{"because"} }

var friday = time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)

// talk is a conversation: lines that begin with "bot: " are the bot's. The first earlier lines are of the last turns.
func talk(earlier int, lines ...string) decide.Transcript {
	t := decide.Transcript{Speaker: "ann", Earlier: earlier, Location: time.UTC}
	for i, line := range lines {
		m := memory.Message{ID: fmt.Sprintf("m%d", i), Role: memory.RoleUser, Speaker: "ann", Content: line, Time: friday.Add(time.Duration(i) * time.Minute)}
		if rest, ok := strings.CutPrefix(line, "bot: "); ok {
			m.Role, m.Speaker, m.Content = memory.RoleAssistant, "", rest
		}
		t.Dialogue.Messages = append(t.Dialogue.Messages, m)
	}
	return t
}

// knows returns a known memory with its number as its id.
func knows(number int, text, slot string, messages ...string) decide.Known {
	return decide.Known{JustNow: len(messages) > 0, Memory: memory.Memory{
		ID: fmt.Sprintf("k%d", number), Text: text, Kind: memory.KindFact, ObservedAt: friday.Add(-time.Hour),
		Provenance: memory.Provenance{Slot: slot, MessageIDs: messages, DecidedBy: "rules"},
	}}
}

func extract(t *testing.T, model said, in decide.Transcript, known ...decide.Known) decide.Extraction {
	t.Helper()
	found, err := local.New(model, local.Options{}).Extract(context.Background(), decide.Input{
		Transcript: in, Known: func() ([]decide.Known, error) { return known, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// ops writes what was found: the action, the memories concerned and the text of each op.
func ops(found decide.Extraction) string {
	var lines []string
	for _, op := range found.Ops {
		lines = append(lines, strings.Join(append([]string{string(op.Action)}, append(op.IDs, op.Statement.Text)...), " "))
	}
	return strings.Join(lines, "\n")
}

// TestQuotes: A memory is what the user said, word for word, with what it needs to be understood.
func TestQuotes(t *testing.T) {
	fact := classify.Certain(classify.Fact, "")
	for name, test := range map[string]struct {
		model said
		talk  decide.Transcript
		want  string
	}{
		"one sentence of several": {
			said{"I moved to York in May.": fact}, talk(0, "Hi there! I moved to York in May. How do I cook rice?"), "add I moved to York in May.",
		},
		"an answer": {
			said{"mountains, always": classify.Certain(classify.Preference, "", "q")},
			talk(2, "no idea where to go", "bot: Lucky you! Would you rather have beach, city or mountains?", "mountains, always"),
			"add Would you rather have beach, city or mountains? — mountains, always",
		},
		"an answer in Chinese": {
			said{"古筝": classify.Certain(classify.Fact, "", "q")}, talk(2, "你好", "bot: 你好呀！你在学什么乐器？", "古筝"), "add 你在学什么乐器？ — 古筝",
		},
		"dates": {
			said{"dentist next friday at 3": classify.Certain(classify.Appointment, "", "dated")},
			talk(0, "dentist next friday at 3"),
			"add dentist next friday at 3 [2026-11-27]",
		},
		"dates in Chinese": {
			said{"下周五下午三点看牙医": classify.Certain(classify.Appointment, "", "dated")}, talk(0, "下周五下午三点看牙医"), "add 下周五下午三点[2026-11-27]看牙医",
		},
		"a pronoun in the same message": {
			said{"My sister visits.": fact, "She lives in Oslo.": classify.Certain(classify.Relationship, "sibling", "p")},
			talk(0, "My sister visits. She lives in Oslo."), "add My sister visits. She lives in Oslo.",
		},
		"a pronoun of the turn before": {
			said{
				"she lives in Oslo":              classify.Certain(classify.Relationship, "sibling", "p"),
				"is my sister right about snow?": classify.Certain(classify.Question, ""),
			},
			talk(2, "is my sister right about snow?", "bot: Quite.", "she lives in Oslo"), "add is my sister right about snow? — she lives in Oslo",
		},
		"two of one message": {
			said{"I fence.": fact, "I have a parrot.": fact}, talk(0, "I fence. I have a parrot."), "add I fence.\nadd I have a parrot.",
		},
		"nothing but a secret": {
			said{"it is [redacted password]": fact}, talk(0, "it is [redacted password]"), "",
		},
	} {
		if got := ops(extract(t, test.model, test.talk)); got != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, test.want)
		}
	}
}

// TestCompares: What was said is compared with what is known.
func TestCompares(t *testing.T) {
	york, rex := knows(1, "I moved to York in May.", "home"), knows(2, "my dog is called Rex", "pet")
	for name, test := range map[string]struct {
		model said
		talk  decide.Transcript
		known []decide.Known
		want  string
	}{
		"the same": {
			said{"i moved to york in may": classify.Certain(classify.Fact, "home")},
			talk(0, "i moved to york in may"),
			[]decide.Known{york, rex},
			"same k1 i moved to york in may",
		},
		"an update by what it is about": {
			said{"we live in Bath now, it is so quiet there": classify.Certain(classify.Fact, "home", "update")},
			talk(0, "we live in Bath now, it is so quiet there"),
			[]decide.Known{york, rex},
			"update k1 we live in Bath now, it is so quiet there",
		},
		"an update by its words, too short alone": {
			said{"the dog is gone": classify.Certain(classify.Relationship, "", "update")},
			talk(0, "the dog is gone"),
			[]decide.Known{york, rex},
			"update k2 my dog is called Rex — the dog is gone",
		},
		"a correction of what was just said": {
			said{"no, the ninth": classify.Certain(classify.Appointment, "", "correction", "p")},
			talk(2, "vet on the eighth at 3", "bot: Noted.", "no, the ninth"),
			[]decide.Known{rex, knows(3, "vet on the eighth at 3", "", "m0")},
			"update k3 vet on the eighth at 3 — no, the ninth",
		},
		"nothing in common": {
			said{"I stopped smoking": classify.Certain(classify.Fact, "health", "update")},
			talk(0, "I stopped smoking"),
			[]decide.Known{york, rex},
			"add I stopped smoking",
		},
		"forget what was just said": {
			said{"forget that": classify.Certain(classify.ForgetLast, "")},
			talk(2, "I lost at poker", "bot: Oh no.", "forget that"),
			[]decide.Known{york, knows(3, "I lost at poker", "", "m0")},
			"forget k3 forget that",
		},
		"forget what was said in the same message": {
			said{"I lost at poker.": classify.Certain(classify.Experience, ""), "Actually forget that.": classify.Certain(classify.ForgetLast, "")},
			talk(0, "I lost at poker. Actually forget that."),
			[]decide.Known{york},
			"add I lost at poker.\nforget op#0 Actually forget that.",
		},
		"forget something named": {
			said{"forget my dog please": classify.Certain(classify.ForgetNamed, "pet")},
			talk(0, "forget my dog please"),
			[]decide.Known{york, rex},
			"forget k2 forget my dog please",
		},
		"forget something that is not known": {
			said{"forget my parrot": classify.Certain(classify.ForgetNamed, "")}, talk(0, "forget my parrot"), []decide.Known{york}, "forget " + "forget my parrot",
		},
		"what others wrote has no slot": {
			said{
				"we live in Bath now, it is so quiet there": classify.Certain(classify.Fact, "home", "update"),
				"The user's house is in York.":              classify.Certain(classify.Fact, "home"),
			},
			talk(0, "we live in Bath now, it is so quiet there"),
			[]decide.Known{knows(1, "The user's house is in York.", "")},
			"update k1 we live in Bath now, it is so quiet there",
		},
		"forget a part": {
			said{
				"could you forget about the parrot": classify.Certain(classify.ForgetNamed, ""),
				"my daughter plays rugby":           classify.Certain(classify.Relationship, "child"),
			},
			talk(0, "could you forget about the parrot"),
			[]decide.Known{knows(3, "we've a parrot named Biscuit and my daughter plays rugby", "")},
			"forget k3 could you forget about the parrot\nadd my daughter plays rugby",
		},
		"forget all if the rest hangs on it": {
			said{"forget Tom": classify.Certain(classify.ForgetNamed, ""), "he works at Shell": classify.Certain(classify.Relationship, "", "p")},
			talk(0, "forget Tom"),
			[]decide.Known{knows(3, "my ex is called Tom, he works at Shell", "")},
			"forget k3 forget Tom",
		},
		"forget everything": {
			said{"forget all of it": classify.Certain(classify.ForgetAll, "")}, talk(0, "forget all of it"), []decide.Known{york}, "forget * forget all of it",
		},
	} {
		if got := ops(extract(t, test.model, test.talk, test.known...)); got != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, test.want)
		}
	}
}

// TestPrivate: Messages that are not to be kept are named, and nothing is kept of them.
func TestPrivate(t *testing.T) {
	fact := classify.Certain(classify.Fact, "")
	for name, test := range map[string]struct {
		model         said
		talk          decide.Transcript
		want, private string
	}{
		"this message": {
			said{"Off the record:": classify.Certain(classify.PrivateThis, ""), "I quit.": fact}, talk(0, "Off the record:\nI quit."), "", "m0",
		},
		"the message before": {
			said{"I quit": fact, "don't keep that.": classify.Certain(classify.PrivateBefore, ""), "I fence": fact},
			talk(0, "I quit", "don't keep that. I fence"), "add I fence", "m0",
		},
		"the message after": {
			said{"don't keep what comes": classify.Certain(classify.PrivateAfter, ""), "I quit": fact},
			talk(2, "don't keep what comes", "bot: Fine.", "I quit"),
			"", "m2",
		},
	} {
		found := extract(t, test.model, test.talk)
		if got := ops(found); got != test.want || strings.Join(found.Private, " ") != test.private {
			t.Errorf("%s: got %q, private %q", name, got, found.Private)
		}
	}
}

// TestSecretReason: A message that holds nothing but a secret says why nothing was kept.
func TestSecretReason(t *testing.T) {
	found := extract(t, said{"it is [redacted password]": classify.Certain(classify.Fact, "")}, talk(0, "it is [redacted password]"))
	if !strings.Contains(found.Reason, "nothing is left of it") {
		t.Errorf("the reason is %q", found.Reason)
	}
}

// TestScore: A problem with its solution is important for what it is. Other findings are if their words are, and an operator's signals
// count for all.
func TestScore(t *testing.T) {
	model := said{"I fence.": classify.Certain(classify.Fact, "")}
	signals := []local.Signal{{Weight: -3, Phrases: []string{"lorem"}}}
	e := local.New(model, local.Options{Signals: signals})
	for _, test := range []struct {
		text     string
		category digest.Category
		want     bool
	}{
		{"It crashes. Install more memory.", digest.Issue, true},
		{"It crashes with lorem. Install more memory.", digest.Issue, false},
		{"It crashes. Install more memory.", digest.Insight, false},
		{"I fence.", digest.Insight, true},
		{"", digest.Issue, false},
	} {
		if got, _, reason := e.Score(test.text, test.category); got != test.want || reason == "" {
			t.Errorf("%s %q: %t, %s", test.category, test.text, got, reason)
		}
	}
}

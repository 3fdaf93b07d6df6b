package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestMemoryNamesItsEvidence: Every memory names its evidence: speakers, messages and quotes. For an answer this includes the assistant's
// question.
func TestMemoryNamesItsEvidence(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	for _, test := range []struct {
		messages []*memsidecarv1.Message
		cited    []string // nil if nothing is remembered
		question string   // of the assistant's that is answered
		quote    string
	}{
		{messages("我对花生过敏。"), []string{"#0"}, "", "我对花生过敏。"},
		{messages("I am allergic to peanuts."), []string{"#0"}, "", "I am allergic to peanuts."},
		{messages("你好", "bot: 好的！你什么时候看牙医？", "周五三点"), []string{"#1", "#2"}, "你什么时候看牙医？", "周五三点"},
		{messages("hi", "bot: Hello! Where do you work?", "at a bakery in Lyon"), []string{"#1", "#2"}, "Where do you work?", "at a bakery in Lyon"},
		{messages("你好", "bot: 你在学什么乐器？", "古筝，学了三年了"), []string{"#1", "#2"}, "你在学什么乐器？", "古筝，学了三年了"},
		{messages("hi", "bot: Do you have any pets?", "yes, two cats"), []string{"#1", "#2"}, "Do you have any pets?", "yes, two cats"},
		// Statements of the assistant alone are only context.
		{messages("你好", "bot: 你住在北京，你喜欢猫。", "今天好热"), nil, "", ""},
		{messages("hi", "bot: You live in Berlin and you like cats.", "what's up?"), nil, "", ""},
	} {
		scope := sidecartest.Direct("user of " + test.messages[0].GetContent() + test.messages[len(test.messages)-1].GetContent())
		c := r.Consider(t, scope, test.messages...)
		if test.cited == nil {
			if c.GetState() != sidecartest.Skipped {
				t.Errorf("%v is %s", test.messages, c)
			}
			continue
		}
		found := false
		for _, m := range r.Memories(t, scope) {
			p := m.GetProvenance()
			if p.GetSpeakerId() != scope.GetUserId() || len(p.GetMessageIds()) == 0 || p.GetQuote() == "" {
				t.Errorf("%q rests on %v", m.GetText(), p)
			}
			found = found || slices.Equal(p.GetMessageIds(), test.cited) && p.GetQuestion() == test.question && p.GetQuote() == test.quote
		}
		if !found {
			t.Errorf("%v: nothing cites %v with %q and %q: %v (%s)", test.messages, test.cited, test.question, test.quote, r.Memories(t, scope), c.GetReason())
		}
	}
}

// messages are the user's messages, and the bot's if they begin with its prefix.
func messages(lines ...string) []*memsidecarv1.Message {
	var list []*memsidecarv1.Message
	for _, line := range lines {
		if rest, ok := strings.CutPrefix(line, "bot: "); ok {
			list = append(list, sidecartest.Answered(rest))
		} else {
			list = append(list, sidecartest.Said(line))
		}
	}
	return list
}

// TestUnsupportedStatementIsWithheld: A statement that a model adds without support in the dialogue is listed with the reason and not
// retrieved, until it is released or the user says it.
func TestUnsupportedStatementIsWithheld(t *testing.T) {
	t.Parallel()
	p := providertest.Start(t, 8)
	r := sidecartest.Serve(t, sidecartest.UseProvider("openai", p)...)
	const query = "用户的女儿几岁"
	p.Say("用户的女儿7岁")
	for _, released := range []bool{true, false} {
		scope := sidecartest.Direct(fmt.Sprint("released: ", released))
		c := r.Consider(t, scope, sidecartest.Said("我女儿今天上学了"))
		if len(c.GetChanges()) != 1 || c.GetChanges()[0].GetAction() != memsidecarv1.MemoryAction_MEMORY_ACTION_QUARANTINED {
			t.Errorf("an unsupported statement is %s", c)
		}
		listed := r.Memories(t, scope)
		if len(listed) != 1 || listed[0].GetState() != memsidecarv1.MemoryState_MEMORY_STATE_QUARANTINED || !strings.Contains(listed[0].GetQuarantineReason(), "7") {
			t.Fatalf("listed %v", listed)
		}
		if found := r.Texts(t, scope, query); len(found) > 0 {
			t.Errorf("retrieved the unsupported %q", found)
		}
		if released {
			sidecartest.Must(r.ReleaseMemory(t.Context(), &memsidecarv1.ReleaseMemoryRequest{Scope: scope, MemoryId: listed[0].GetId()}))(t)
		} else {
			r.Consider(t, scope, sidecartest.Said("我女儿七岁，今天上学了"))
		}
		if found := r.Texts(t, scope, query); !slices.Equal(found, []string{"用户的女儿7岁"}) {
			t.Errorf("released: %v, retrieved %q", released, found)
		}
	}
}

package memory_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

func TestAudience(t *testing.T) {
	direct := memory.Channel{Kind: memory.ChannelDirect, ID: "dm"}
	otherDirect := memory.Channel{Kind: memory.ChannelDirect, ID: "dm2"}
	g1 := memory.Channel{Kind: memory.ChannelGroup, ID: "g1"}
	g2 := memory.Channel{Kind: memory.ChannelGroup, ID: "g2"}
	named := memory.Channel{ID: "somewhere"}
	unset := memory.Channel{}
	all := []memory.Channel{direct, otherDirect, g1, g2, named, unset}
	for _, test := range []struct {
		from memory.Channel
		sees []memory.Channel
	}{
		{direct, all},
		{g1, []memory.Channel{g1}},
		{g2, []memory.Channel{g2}},
		{unset, []memory.Channel{unset, named}},
		{memory.Channel{Kind: "CHANNEL_KIND_99"}, nil},
	} {
		audience := memory.VisibilityChannel.AudienceOf(test.from)
		for _, c := range all {
			want := false
			for _, s := range test.sees {
				want = want || s == c
			}
			if got := audience.Sees(c); got != want {
				t.Errorf("from %v: sees %v is %v, want %v", test.from, c, got, want)
			}
			if !memory.VisibilityUser.AudienceOf(test.from).Sees(c) {
				t.Errorf("visibility user, from %v: does not see %v", test.from, c)
			}
			if (memory.Audience{}).Sees(c) || memory.VisibilityRule("typo").AudienceOf(test.from).Sees(c) {
				t.Errorf("an empty audience sees %v", c)
			}
		}
	}
}

func TestScopeNamesEveryWrongField(t *testing.T) {
	long := strings.Repeat("x", memory.MaxIDBytes+1)
	scope := memory.Scope{
		Namespace: "a//b", AgentID: long, Channel: memory.Channel{Kind: memory.ChannelGroup}, SessionID: "line\nbreak",
	}
	var got []string
	for _, v := range scope.Validate("scope", true) {
		got = append(got, v.Field)
	}
	want := "scope.namespace scope.user_id scope.agent_id scope.session_id scope.channel_id"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("wrong fields: %s, want %s", s, want)
	}
	for _, good := range []string{"default", "yantian/yantian-main", "租户/站点", "a.b_c-d/1/2/3/4/5/6/7"} {
		if v := (memory.Scope{Namespace: good, UserID: "u"}).Validate("scope", true); len(v) > 0 {
			t.Errorf("%q is refused: %v", good, v)
		}
	}
	for _, bad := range []string{"", "/", "a/", "../x", ".", "a b", "1/2/3/4/5/6/7/8/9", strings.Repeat("a", 201)} {
		if v := (memory.Scope{Namespace: bad, UserID: "u"}).Validate("scope", true); len(v) == 0 {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func message(content string) memory.Message {
	return memory.Message{Role: memory.RoleUser, Speaker: "u", Content: content, Time: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)}
}

func TestDialogueNamesEveryWrongField(t *testing.T) {
	bad := memory.Message{
		ID:       "same",
		Role:     "boss",
		Speaker:  "u",
		Content:  "\xff",
		Time:     time.Date(1800, 1, 1, 0, 0, 0, 0, time.UTC),
		Metadata: "[1]",
		Tools: []memory.ToolCall{
			{Arguments: "{", Duration: new(time.Duration(-1))},
		},
	}
	first := message("hi")
	first.ID = "same"
	got := memory.Dialogue{Messages: []memory.Message{first, bad}}.Validate()
	want := []string{
		"messages[1].role", "messages[1].speaker_id", "messages[1].send_time", "messages[1].content", "messages[1].metadata_json",
		"messages[1].tool_calls[0].arguments_json", "messages[1].tool_calls[0].duration", "messages[1].id",
	}
	var fields []string
	for _, v := range got {
		fields = append(fields, v.Field)
	}
	if fmt.Sprint(fields) != fmt.Sprint(want) {
		t.Errorf("wrong fields %v, want %v", fields, want)
	}
	var invalid *memory.InvalidError
	if !errors.As(got.Err(), &invalid) || !strings.Contains(invalid.Error(), "messages[1].role is required") {
		t.Errorf("the error does not name the problem: %v", got.Err())
	}
}

func TestDialogueLimits(t *testing.T) {
	big := message(strings.Repeat("x", memory.MaxContentBytes))
	for name, test := range map[string]struct {
		messages []memory.Message
		wrong    string
	}{
		"none":                 {nil, "messages"},
		"one of the size":      {[]memory.Message{big}, ""},
		"one larger":           {[]memory.Message{message(big.Content + "x")}, "messages[0].content"},
		"as many as allowed":   {make1000(memory.MaxMessages), ""},
		"one more":             {make1000(memory.MaxMessages + 1), "messages"},
		"large together":       {repeat(big, memory.MaxDialogueBytes/memory.MaxContentBytes+1), "messages"},
		"large integers, nest": {[]memory.Message{{Role: memory.RoleUser, Time: big.Time, Metadata: `{"id":9007199254740993,"a":{"b":[]}}`}}, ""},
	} {
		v := memory.Dialogue{Messages: test.messages}.Validate()
		switch {
		case test.wrong == "" && len(v) > 0:
			t.Errorf("%s: refused: %v", name, v)
		case test.wrong != "" && (len(v) != 1 || v[0].Field != test.wrong):
			t.Errorf("%s: %v, want %s to be wrong", name, v, test.wrong)
		}
	}
}

func make1000(n int) []memory.Message { return repeat(message("hi"), n) }

func repeat(m memory.Message, n int) []memory.Message {
	messages := make([]memory.Message, n)
	for i := range messages {
		messages[i] = m
	}
	return messages
}

func TestWithoutRemovesOneSpeaker(t *testing.T) {
	bob, carol, bot := message("bob's"), message("carol's"), memory.Message{Role: memory.RoleAssistant, Content: "bot's"}
	bob.Speaker, carol.Speaker = "bob", "carol"
	d := memory.Dialogue{Scope: memory.Scope{UserID: "alice"}, Messages: []memory.Message{bob, bot, carol, bob}}
	if got := fmt.Sprint(d.Speakers()); got != "[alice bob carol]" {
		t.Errorf("speakers are %s", got)
	}
	rest, removed := d.Without("bob")
	if removed != 2 || rest.Messages[0].Content != "" || rest.Messages[1].Content != "bot's" || rest.Messages[2].Content != "carol's" {
		t.Errorf("removed %d, remaining %+v", removed, rest.Messages)
	}
	if d.Messages[0].Content != "bob's" {
		t.Error("the original was changed")
	}
	rest, _ = rest.Without("carol")
	for i, m := range rest.Messages {
		if m.Content != "" || m.Speaker != "" {
			t.Errorf("without participants message %d still has %q", i, m.Content)
		}
	}
}

func TestOnlyVisibility(t *testing.T) {
	group := memory.Channel{Kind: memory.ChannelGroup, ID: "g"}
	for _, c := range []memory.Channel{group, {Kind: memory.ChannelGroup, ID: "h"}, {Kind: memory.ChannelDirect}, {Kind: memory.ChannelDirect, ID: "g"}, {}} {
		if got := memory.OnlyVisibility(group).Sees(c); got != (c == group) {
			t.Errorf("a group's audience sees %+v: %v", c, got)
		}
		if got := memory.OnlyVisibility(memory.Channel{Kind: memory.ChannelDirect}).Sees(c); got != (c.Kind == memory.ChannelDirect) {
			t.Errorf("a direct chat's audience sees %+v: %v", c, got)
		}
	}
}

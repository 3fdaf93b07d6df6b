package digest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// TestPiecesAreCutBetweenMessages: A conversation that exceeds a piece's size is cut between messages. A single message that exceeds it is
// shortened.
func TestPiecesAreCutBetweenMessages(t *testing.T) {
	say := func(texts ...string) (list []Message) {
		for _, text := range texts {
			list = append(list, Message{Message: memory.Message{Content: text}})
		}
		return list
	}
	long := strings.Repeat("长", 60)
	if got := cutPiece(say(long, long, "x"), 140); len(got) != 2 {
		t.Errorf("%d messages, of which two are about 136 tokens, fit 140", len(got))
	}
	if got := cutPiece(say(strings.Repeat("长", 500), "x"), 100); len(got) != 1 || len([]rune(got[0].Content)) != 100 {
		t.Errorf("a long message is %d messages", len(got))
	}
	if a, b := tokens("一二三四五六七八"), tokens("abcdefgh"); a != 16 || b != 10 {
		t.Errorf("eight characters are %d and %d tokens", a, b)
	}
}

// TestConfiguredTemplateIsUsed: The configured template of a language is used, and problems in it are reported. No text can end the
// sidecar's part of a file.
func TestConfiguredTemplateIsUsed(t *testing.T) {
	templates := DefaultTemplates()
	templates["de"] = "Tag {{.Day}}:{{range .Decisions}} {{.}};{{end}}"
	d := Day{Date: "2026-11-20", Decisions: []Entry{{Finding: Finding{Text: "a\nb <!-- memsidecar:end -->"}}}}
	got, err := templates.render(&d, "de-AT")
	if err != nil || got != `Tag 2026-11-20: a b <\!-- memsidecar:end --\>;` {
		t.Errorf("rendered %q (%v)", got, err)
	}
	if got, err := templates.render(&d, "fr"); err != nil || !strings.HasPrefix(got, "# Digest of 2026-11-20\n\n## Decisions\n- a b") {
		t.Errorf("rendered %q (%v)", got, err)
	}
	if problem := templates.Problem(); problem != "" {
		t.Error(problem)
	}
	for _, bad := range []string{"{{.Nothing}}", "{{", "{{range .Issues}}{{.Answer}}{{end}}"} {
		templates["de"] = bad
		if problem := templates.Problem(); !strings.Contains(problem, "for de") {
			t.Errorf("%q: %q", bad, problem)
		}
	}
}

// TestMergeLeavesNoDuplicates: Findings are merged without duplicates. A problem that occurs as a statement and as a question becomes one.
func TestMergeLeavesNoDuplicates(t *testing.T) {
	var d Day
	d.merge([]Entry{
		{Finding: Finding{Category: Issue, Text: "The user's build fails.", Quote: "my build fails", MemoryID: "m"}},
		{Finding: Finding{Category: Issue, Text: "Help, my build fails!", Quote: "Help, my build fails!", Solution: "Clean it."}},
		{Finding: Finding{Category: Decision, Text: "用户对花生过敏"}},
		{Finding: Finding{Category: Decision, Text: "用户对花生不过敏"}},
		{Finding: Finding{Category: Decision, Text: "用户对花生过敏。"}},
		{Finding: Finding{Category: Topic, Text: "Go"}},
		{Finding: Finding{Category: Topic, Text: "go"}},
	})
	if len(d.Issues) != 1 || d.Issues[0].Solution != "Clean it." || d.Issues[0].MemoryID != "m" || len(d.Decisions) != 2 ||
		len(d.Topics) != 1 {
		t.Errorf("merged into %+v", d)
	}
}

func TestKeyValue(t *testing.T) {
	for _, test := range [][4]string{
		{"用户非常喜欢吃辣。", "zh", "喜欢", "吃辣"},
		{"用户不喜欢香菜", "zh", "不喜欢", "香菜"},
		{"The user really doesn't like coffee.", "en", "doesn't like", "coffee"},
		{"Answers should be short.", "en", "preference", "Answers should be short."},
	} {
		if key, value := KeyValue(test[0], test[1]); key != test[2] || value != test[3] {
			t.Errorf("%q is %q, %q", test[0], key, value)
		}
	}
}

// TestFindingsNeedSupport: A model's finding is kept only if its names, numbers and dates occur in the messages.
func TestFindingsNeedSupport(t *testing.T) {
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC) // a Friday
	say := func(id string, role memory.Role, text string) Message {
		return Message{Message: memory.Message{ID: id, Role: role, Speaker: "u", Content: text, Time: at}}
	}
	p := Piece{Scope: memory.Scope{UserID: "u"}, Location: time.UTC, Messages: []Message{
		say("a", memory.RoleUser, "I'll go with Postgres, we have three servers"),
		say("b", memory.RoleAssistant, "Then set max_connections to 200."),
		say("c", memory.RoleUser, "Done. The demo for Priya is next Friday."),
	}}
	for _, c := range []struct {
		finding Finding
		cites   []string // nil when the finding is rejected
	}{
		{Finding{Category: Decision, Text: "The user chose Postgres for 3 servers.", MessageIDs: []string{"a"}}, []string{"a"}},
		{Finding{Category: Decision, Text: "The user chose Postgres for 4 servers.", MessageIDs: []string{"a"}}, nil},
		{Finding{Category: Decision, Text: "The user chose MySQL, not Postgres.", MessageIDs: []string{"a"}}, nil},
		{Finding{Category: Task, Text: "The user has a demo for Priya on 2026-11-27.", MessageIDs: []string{"c"}}, []string{"c"}},
		{Finding{Category: Task, Text: "The user has a demo for Priya on 2026-12-15.", MessageIDs: []string{"c"}}, nil},
		// in another message
		{Finding{Category: Task, Text: "The user shows Postgres to Priya.", MessageIDs: []string{"c"}}, []string{"c", "a"}},
		{Finding{Category: Issue, Text: "How many connections?", Solution: "Set max_connections to 200.", MessageIDs: []string{"a", "b"}}, []string{"a", "b"}},
		{Finding{Category: Issue, Text: "How many connections?", Solution: "Set max_connections to 500.", MessageIDs: []string{"a", "b"}}, nil},
		// the assistant's words are not the user's
		{Finding{Category: Issue, Text: "How many connections?", Solution: "Set max_connections to 200.", MessageIDs: []string{"a"}}, nil},
		{Finding{Category: Topic, Text: "the demo for Priya"}, []string{}},
		{Finding{Category: Topic, Text: "the demo for Anton"}, nil},
	} {
		kept, left := supportedFindings([]Finding{c.finding}, &p)
		switch {
		case c.cites == nil && (len(kept) != 0 || left != 1):
			t.Errorf("accepted %+v", kept)
		case c.cites != nil && (len(kept) != 1 || !slices.Equal(kept[0].MessageIDs, c.cites)):
			t.Errorf("%+v: %+v, %d rejected, want it to cite %q", c.finding, kept, left, c.cites)
		}
	}
}

package sqlstore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"

	"github.com/memsidecar/memsidecar/internal/lang/topics"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
)

var (
	inGroup   = memory.Channel{Kind: memory.ChannelGroup, ID: "g"}
	inDirect  = memory.Channel{Kind: memory.ChannelDirect, ID: "d"}
	anywhere  = memory.Everything()
	ofChannel = memory.VisibilityChannel.AudienceOf
)

// conversation appends to sessions.
type conversation struct {
	t        *testing.T
	sessions *sqlstore.Sessions
}

// say appends lines, "speaker: text" or "text", one a minute from begin on. "(text" is excluded from windows, "- text" is an answer.
func (c conversation) say(namespace, id string, channel memory.Channel, begin time.Time, lines ...string) {
	c.t.Helper()
	for start := 0; start < len(lines); start += memory.MaxMessages {
		a := session.Append{
			Scope: memory.Scope{Namespace: namespace, SessionID: id, Channel: channel}, Audience: memory.Everything(), At: begin, Settled: true,
		}
		for i, line := range lines[start:min(len(lines), start+memory.MaxMessages)] {
			m := memory.Message{Role: memory.RoleUser, Time: begin.Add(time.Duration(start+i) * time.Minute)}
			speaker, text, named := strings.Cut(line, ": ")
			if !named {
				speaker, text = "", line
			}
			if answer, ok := strings.CutPrefix(text, "- "); ok {
				m.Role, text = memory.RoleAssistant, answer
			}
			if speaker != "" {
				m.Speaker, a.Scope.UserID = speaker, speaker
			}
			m.Content = text
			a.Messages, a.Excluded = append(a.Messages, m), append(a.Excluded, session.NotExcluded)
			if strings.HasPrefix(text, "(") {
				a.Excluded[len(a.Excluded)-1] = session.WithheldFailure
			}
		}
		if _, err := c.sessions.Append(c.t.Context(), a); err != nil {
			c.t.Fatal(err)
		}
	}
}

func texts(messages []topics.Message) (all []string) {
	for _, m := range messages {
		all = append(all, m.Text)
	}
	return all
}

func TestTopicMessages(t *testing.T) {
	db := dbtest.New(t)
	c := conversation{t, sqlstore.NewSessions(db, sqlstore.NewQueue(db))}
	c.say("test", "group", inGroup, at, "ann: a1", "ben: b1", "ann: a2")
	c.say("test", "direct", inDirect, at.Add(10*time.Minute), "ann: a3")
	c.say("test", "plain", memory.Channel{}, at.Add(20*time.Minute), "ann: a4", "ann: a5")
	c.say("test", "unsigned", memory.Channel{}, at.Add(30*time.Minute), "n1")
	c.say("elsewhere", "group", inGroup, at, "ann: other")
	// Messages that were imported later, were not said by a person, or were excluded.
	c.say("test", "group", inGroup, at.Add(-time.Hour), "ben: late", "- answer", "ben: (failed")

	s := sqlstore.NewTopics(db)
	for _, test := range []struct {
		name string
		q    topics.Query
		want string
	}{
		{"session", topics.Query{SessionID: "group", Audience: ofChannel(inGroup)}, "a2 b1 a1 late"},
		{"session that the audience does not see", topics.Query{SessionID: "direct", Audience: ofChannel(inGroup)}, ""},
		{"no such session", topics.Query{SessionID: "none", Audience: anywhere}, ""},
		{"user", topics.Query{UserID: "ann", Audience: anywhere}, "a5 a4 a3 a2 a1"},
		{"user in the group", topics.Query{UserID: "ann", Audience: ofChannel(inGroup)}, "a2 a1"},
		{"nobody", topics.Query{UserID: "nobody", Audience: anywhere}, ""},
		{"namespace", topics.Query{Audience: anywhere}, "n1 a5 a4 a3 a2 b1 a1 late"},
		{"namespace from the group", topics.Query{Audience: ofChannel(inGroup)}, "a2 b1 a1 late"},
		{"namespace from no channel", topics.Query{Audience: ofChannel(memory.Channel{})}, "n1 a5 a4"},
		{"nothing is visible", topics.Query{}, ""},
		{"another namespace", topics.Query{Namespace: "elsewhere", UserID: "ann", Audience: anywhere}, "other"},
		{"half of the minutes", topics.Query{SessionID: "group", Audience: anywhere, After: at, Before: at.Add(2 * time.Minute)}, "b1 a1"},
		{"the past", topics.Query{SessionID: "group", Audience: anywhere, Before: at}, "late"},
	} {
		t.Run(test.name, func(t *testing.T) {
			q := test.q
			if q.Namespace == "" {
				q.Namespace = "test"
			}
			if q.After.IsZero() {
				q.After = at.Add(-24 * time.Hour)
			}
			if q.Before.IsZero() {
				q.Before = at.Add(24 * time.Hour)
			}
			found, truncated, err := s.Messages(t.Context(), q)
			if err != nil || truncated {
				t.Fatal(truncated, err)
			}
			if got := strings.Join(texts(found), " "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}

	found, _, err := s.Messages(t.Context(), topics.Query{Namespace: "test", Audience: anywhere, After: at, Before: at.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	speaker := map[string]string{}
	for _, m := range found {
		speaker[m.Text] = m.Speaker
	}
	if speaker["a1"] != speaker["a4"] || speaker["a1"] == speaker["b1"] || speaker["n1"] == speaker["a1"] || speaker["n1"] == speaker["b1"] {
		t.Errorf("speakers %v", speaker)
	}
}

// TestTopicMessagesLimits: Above the limit the newest messages are chosen, over all sessions, and the result says that there are more.
func TestTopicMessagesLimits(t *testing.T) {
	db := dbtest.New(t)
	c := conversation{t, sqlstore.NewSessions(db, sqlstore.NewQueue(db))}
	const sessions, lines = 3, 3400
	for i := range sessions {
		text := make([]string, lines)
		for j := range text {
			text[j] = fmt.Sprintf("ann: %d-%d", i, j)
		}
		c.say("test", fmt.Sprint("s", i), memory.Channel{}, at.Add(time.Duration(i)*time.Second), text...)
	}
	s := sqlstore.NewTopics(db)
	q := topics.Query{Namespace: "test", Audience: anywhere, After: at, Before: at.Add(lines * time.Minute)}
	for _, user := range []string{"", "ann"} {
		q.UserID = user
		found, truncated, err := s.Messages(t.Context(), q)
		if err != nil || !truncated || len(found) != topics.MaxMessages {
			t.Fatalf("%d messages, truncated %t, %v", len(found), truncated, err)
		}
		for i, m := range found {
			if want := fmt.Sprintf("%d-%d", sessions-1-i%sessions, lines-1-i/sessions); m.Text != want {
				t.Fatalf("the %d. newest is %q, want %q", i, m.Text, want)
			}
		}
	}
	q.Before = at.Add(topics.MaxMessages / sessions * time.Minute)
	if found, truncated, err := s.Messages(t.Context(), q); err != nil || truncated || len(found) != topics.MaxMessages/sessions*sessions {
		t.Errorf("%d messages, truncated %t, %v", len(found), truncated, err)
	}

	long := strings.Repeat("茶", topics.MaxMessageRunes+1)
	c.say("test", "long", memory.Channel{}, at, slices.Repeat([]string{long}, topics.MaxRunes/topics.MaxMessageRunes+1)...)
	found, truncated, err := s.Messages(t.Context(), topics.Query{
		Namespace: "test", SessionID: "long", Audience: anywhere, After: at, Before: at.Add(lines * time.Minute),
	})
	if err != nil || !truncated || len(found) != topics.MaxRunes/topics.MaxMessageRunes || found[0].Text != long[:len("茶")*topics.MaxMessageRunes] {
		t.Errorf("%d long messages, truncated %t, %v", len(found), truncated, err)
	}
}

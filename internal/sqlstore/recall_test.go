package sqlstore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve/recall"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// history is a database with conversations.
type history struct {
	*testing.T
	db       sqldb.Access
	sessions *sqlstore.Sessions
	recall   *sqlstore.Recall
}

func newHistory(t *testing.T, db sqldb.Access) *history {
	t.Helper()
	return &history{T: t, db: db, sessions: sqlstore.NewSessions(db, sqlstore.NewQueue(db)), recall: sqlstore.NewRecall(db)}
}

// listener is the user whose messages are searched.
var listener = memory.User{Namespace: "n", ID: "ann"}

// spoken is when the first message of a test was said.
var spoken = time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)

func by(user string, text string) memory.Message {
	return memory.Message{Role: memory.RoleUser, Speaker: user, Content: text, Time: spoken}
}

func answer(text string) memory.Message {
	return memory.Message{Role: memory.RoleAssistant, AgentID: "bot", Content: text, Time: spoken}
}

func scope(user, sessionID string) memory.Scope {
	return memory.Scope{Namespace: "n", UserID: user, SessionID: sessionID}
}

// say appends messages to a session.
func (h *history) say(s memory.Scope, messages ...memory.Message) {
	h.Helper()
	_, err := h.sessions.Append(h.Context(), session.Append{
		Scope: s, Audience: memory.VisibilityChannel.AudienceOf(s.Channel), Messages: messages, At: spoken,
	})
	if err != nil {
		h.Fatal(err)
	}
}

// index brings the index up to date.
func (h *history) index() {
	h.Helper()
	for more := true; more; {
		var err error
		if more, err = h.recall.IndexNext(h.Context()); err != nil {
			h.Fatal(err)
		}
	}
}

func query(user memory.User, limit int) recall.Query {
	return recall.Query{User: user, Limit: limit, Filter: recall.Filter{Audience: memory.Everything()}}
}

func (h *history) search(q recall.Query, text string) []recall.Hit {
	h.Helper()
	hits, err := h.recall.SearchKeyword(h.Context(), q, text)
	if err != nil {
		h.Fatal(err)
	}
	return hits
}

func contents(hits []recall.Hit) (texts []string) {
	for _, h := range hits {
		texts = append(texts, h.Message.Content)
	}
	slices.Sort(texts)
	return texts
}

func (h *history) finds(q recall.Query, text string, want ...string) {
	h.Helper()
	slices.Sort(want)
	if got := contents(h.search(q, text)); !slices.Equal(got, want) {
		h.Errorf("%q finds %q, want %q", text, got, want)
	}
}

// filler is enough talk of something else for a user's messages to be indexed.
func filler(user string) (messages []memory.Message) {
	for i := range 70 {
		messages = append(messages, by(user, fmt.Sprintf("filler number %d", i)))
	}
	return messages
}

// atOnceAndIndexed runs the test with messages as they come and after they were indexed.
func atOnceAndIndexed(t *testing.T, test func(t *testing.T, h *history, settle func())) {
	t.Run("at once", func(t *testing.T) {
		test(t, newHistory(t, dbtest.Open(t, sqlite.Options{Dir: t.TempDir()})), func() {})
	})
	t.Run("indexed", func(t *testing.T) {
		s := dbtest.Open(t, sqlite.Options{Dir: t.TempDir()})
		h := newHistory(t, s)
		test(t, h, func() {
			for _, user := range []string{"ann", "bob", "eve"} {
				h.say(scope(user, "filler of "+user), filler(user)...)
			}
			h.index()
			if dbtest.Value[int](t, s, `SELECT count(*) FROM message_postings WHERE term = 'filler'`) != 3 {
				t.Fatal("not everybody is indexed: this test shows nothing")
			}
		})
	})
}

func TestRecallFinds(t *testing.T) {
	atOnceAndIndexed(t, func(t *testing.T, h *history, settle func()) {
		s := scope("ann", "s")
		withheld := answer("tea withheld")
		_, err := h.sessions.Append(t.Context(), session.Append{
			Scope: s, Audience: memory.Everything(), At: spoken, Messages: []memory.Message{withheld}, Withheld: []session.Withheld{session.WithheldFailure},
		})
		if err != nil {
			t.Fatal(err)
		}
		h.say(s, by("ann", "I drink green tea"), answer("Tea is healthy"), by("ann", "我对花生过敏"), answer("那就不吃花生酱"),
			memory.Message{Role: memory.RoleSystem, Content: "tea system", Time: spoken},
			memory.Message{Role: memory.RoleTool, Content: "tea tool", Time: spoken})
		h.say(scope("bob", "b"), by("bob", "bob drinks tea, too"), answer("Tea for bob"))
		h.say(memory.Scope{Namespace: "other", UserID: "ann", SessionID: "s"}, by("ann", "tea elsewhere"))
		settle()

		h.finds(query(listener, 10), "Which teas do I like?", "I drink green tea", "Tea is healthy")
		h.finds(query(listener, 10), "我能吃花生吗", "我对花生过敏", "那就不吃花生酱")
		h.finds(query(memory.User{Namespace: "n", ID: "bob"}, 10), "tea", "bob drinks tea, too", "Tea for bob")
		h.finds(query(memory.User{Namespace: "other", ID: "ann"}, 10), "tea", "tea elsewhere")
		h.finds(query(memory.User{Namespace: "n", ID: "nobody"}, 10), "tea")
		h.finds(query(listener, 10), "xylophone")
		h.finds(query(listener, 10), "…")
		h.finds(recall.Query{User: listener, Limit: 10}, "tea") // the zero filter sees nothing

		hits := h.search(query(listener, 1), "green tea")
		if len(hits) != 1 || hits[0].Message.Content != "I drink green tea" || !(hits[0].Score > 0.5 && hits[0].Score <= 1) {
			t.Errorf("%+v", hits)
		}
		m := hits[0].Message
		if m.SessionID != "s" || m.Position != 2 || m.Speaker != "ann" || !m.Time.Equal(spoken) || !m.ReceivedAt.Equal(spoken) {
			t.Errorf("%+v", m)
		}
		for name, filter := range map[string]recall.Filter{
			"said later":      {SaidFrom: spoken.Add(time.Second)},
			"said earlier":    {SaidBefore: spoken},
			"with another":    {AgentID: new("other")},
			"seen by nobody":  {Audience: memory.Audience{}},
			"seen by a group": {Audience: memory.VisibilityChannel.AudienceOf(memory.Channel{Kind: memory.ChannelGroup, ID: "g"})},
		} {
			if name[:4] != "seen" {
				filter.Audience = memory.Everything()
			}
			if hits := h.search(recall.Query{User: listener, Limit: 10, Filter: filter}, "tea"); len(hits) != 0 {
				t.Errorf("%s: %q", name, contents(hits))
			}
		}
		h.finds(recall.Query{User: listener, Limit: 10, Filter: recall.Filter{
			Audience: memory.Everything(), AgentID: new("bot"), SaidFrom: spoken, SaidBefore: spoken.Add(1),
		}}, "tea", "Tea is healthy")
	})
}

// TestRecallDays: a day is found however it is written.
func TestRecallDays(t *testing.T) {
	atOnceAndIndexed(t, func(t *testing.T, h *history, settle func()) {
		for i, day := range []string{"2023-05-08", "2023-05-09", "2023-06-08", "2024-05-08"} {
			at, err := time.Parse(time.DateOnly, day)
			if err != nil {
				t.Fatal(err)
			}
			h.say(scope("ann", "s"), memory.Message{Role: memory.RoleUser, Speaker: "ann", Content: fmt.Sprintf("violin %c", 'a'+i), Time: at})
		}
		settle()
		for _, text := range []string{"2023-05-08", "2023/5/8", "2023年5月8日", "8 May 2023", "May 8, 2023", "the 8th of May, 2023"} {
			hits := h.search(query(listener, 3), "violin "+text)
			if len(hits) != 3 || hits[0].Message.Content != "violin a" || hits[1].Message.Content != "violin b" {
				t.Errorf("%s: %+v", text, hits)
			}
		}
		if hits := h.search(query(listener, 2), "What happened in May 2023?"); !slices.Equal(contents(hits), []string{"violin a", "violin b"}) {
			t.Errorf("%q", contents(hits))
		}
	})
}

// TestRecallVisibility: what was said in a direct chat stays out of groups, and what one group hears out of others.
func TestRecallVisibility(t *testing.T) {
	atOnceAndIndexed(t, func(t *testing.T, h *history, settle func()) {
		channels := map[string]memory.Channel{
			"unspecified": {}, "direct": {Kind: memory.ChannelDirect, ID: "d"},
			"group a": {Kind: memory.ChannelGroup, ID: "a"}, "group b": {Kind: memory.ChannelGroup, ID: "b"},
		}
		for name, channel := range channels {
			s := scope("ann", name)
			s.Channel = channel
			h.say(s, by("bob", "before "+name), by("ann", "tea in "+name), by("bob", "tea of bob in "+name), answer("after"))
		}
		settle()
		for name, want := range map[string][]string{
			"unspecified": {"tea in unspecified"},
			"direct":      {"tea in unspecified", "tea in direct", "tea in group a", "tea in group b"},
			"group a":     {"tea in group a"},
			"group b":     {"tea in group b"},
		} {
			q := query(listener, 10)
			q.Filter.Audience = memory.VisibilityChannel.AudienceOf(channels[name])
			h.finds(q, "tea", want...)
		}
		// Whatever a caller asks to be surrounded, only what the audience sees comes.
		hits := h.search(query(listener, 10), "tea")
		q := query(listener, 10)
		q.Filter.Audience = memory.VisibilityChannel.AudienceOf(channels["group a"])
		var of []session.Message
		for _, hit := range hits {
			of = append(of, hit.Message)
		}
		neighbors, err := h.recall.Neighbors(t.Context(), q, of, 1)
		if err != nil || len(neighbors) != 4 {
			t.Fatal(neighbors, err)
		}
		for i, n := range neighbors {
			switch {
			case of[i].Channel != channels["group a"] && (n.Before != nil || n.After != nil):
				t.Errorf("group a is shown what was said in %v: %+v", of[i].Channel, n)
			case of[i].Channel == channels["group a"] && (len(n.Before) != 1 || n.Before[0].Content != "before group a" || len(n.After) != 1 || n.After[0].Content != "tea of bob in group a"):
				t.Errorf("%+v", n)
			}
		}
	})
}

func TestRecallNeighbors(t *testing.T) {
	h := newHistory(t, dbtest.Open(t, sqlite.Options{Dir: t.TempDir()}))
	other := answer("other")
	other.AgentID = "other"
	h.say(scope("ann", "s"), by("ann", "1"), answer("2"), memory.Message{Role: memory.RoleTool, Content: "3", Time: spoken}, other, by("ann", "tea"),
		memory.Message{Role: memory.RoleSystem, Content: "6", Time: spoken}, answer("7"), by("ann", "8"), answer("9"))
	h.say(scope("ann", "t"), by("ann", "elsewhere"))
	of := []session.Message{h.search(query(listener, 1), "tea")[0].Message}
	for _, test := range []struct {
		count         int
		agent         *string
		before, after string
	}{{0, nil, "", ""}, {1, nil, "other", "7"}, {2, nil, "2 other", "7 8"}, {20, nil, "1 2 other", "7 8 9"}, {1, new("bot"), "2", "7"}} {
		q := query(listener, 0)
		q.Filter.AgentID = test.agent
		neighbors, err := h.recall.Neighbors(t.Context(), q, of, test.count)
		if err != nil {
			t.Fatal(err)
		}
		join := func(messages []session.Message) string {
			var texts []string
			for _, m := range messages {
				texts = append(texts, m.Content)
			}
			return strings.Join(texts, " ")
		}
		if before, after := join(neighbors[0].Before), join(neighbors[0].After); before != test.before || after != test.after {
			t.Errorf("%d of %v: %q and %q, want %q and %q", test.count, test.agent, before, after, test.before, test.after)
		}
	}
}

package sqlstore_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve/recall"
	"github.com/memsidecar/memsidecar/internal/session"
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

// spoken is the time of the first message of a test.
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

// index updates the index.
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

// filler returns enough unrelated messages to trigger indexing.
func filler(user string) (messages []memory.Message) {
	for i := range 70 {
		messages = append(messages, by(user, fmt.Sprintf("filler number %d", i)))
	}
	return messages
}

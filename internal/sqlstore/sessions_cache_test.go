package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// conversations applies the same operations to the sessions of several databases.
type conversations struct {
	db       *sqlite.Storage
	queue    *sqlstore.Queue
	sessions *sqlstore.Sessions
	step     int
}

func converse(db *sqlite.Storage) *conversations {
	queue := sqlstore.NewQueue(db)
	return &conversations{db: db, queue: queue, sessions: sqlstore.NewSessions(db, queue)}
}

// dump returns all stored data of sessions.
func (c *conversations) dump(t *testing.T) (lines []string) {
	t.Helper()
	for _, table := range []string{
		"users", "sessions", "session_participants", "session_agents", "current_sessions", "session_messages", "session_summaries",
		"dialogues", "considerations", "digest_progress",
	} {
		err := c.db.Read(t.Context(), func(q sqldb.Querier) (err error) {
			rows, err := q.Query(t.Context(), `SELECT * FROM `+table+` ORDER BY 1, 2`)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, rows.Close()) }()
			columns, err := rows.Columns()
			if err != nil {
				return err
			}
			for rows.Next() {
				values := make([]any, len(columns))
				for i := range values {
					values[i] = new(any)
				}
				if err := rows.Scan(values...); err != nil {
					return err
				}
				line := table
				for i, v := range values {
					line += fmt.Sprintf(" %s=%v", columns[i], *v.(*any)) //nolint:errcheck // they are what was put in
				}
				lines = append(lines, line)
			}
			return rows.Err()
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return lines
}

// spoken is a request with a message.
func (c *conversations) spoken(scope memory.Scope) session.Record {
	c.step++
	now := at.Add(time.Duration(c.step) * time.Minute)
	messages := []memory.Message{
		{Role: memory.RoleUser, Speaker: scope.UserID, Content: fmt.Sprint("said in step ", c.step), Time: now},
		{Role: memory.RoleAssistant, Content: fmt.Sprint("answered in step ", c.step), Time: now},
	}
	return session.Record{
		Append: session.Append{
			Scope: scope, NewID: fmt.Sprint("new ", c.step), Messages: messages, At: now,
			Rules:   session.Rules{TTL: time.Hour, MemorizeEvery: 2, Idle: 10 * time.Minute, SummarizeAfter: 5},
			Digests: map[string]session.DigestRule{scope.UserID: {DayEnd: at.Add(24 * time.Hour)}},
		},
		Acceptance: queue.Acceptance{
			ID: fmt.Sprint("con ", c.step), Dialogue: memory.Dialogue{Scope: scope, Messages: messages}, Speakers: []string{scope.UserID},
			At: now, MaxPending: 1000, MaxPendingTotal: 1_000_000,
		},
	}
}

// say records a message and returns the answer as text.
func (c *conversations) say(ctx context.Context, scope memory.Scope) (sessionID, answer string) {
	r := c.spoken(scope)
	got, done, err := c.sessions.Record(ctx, r)
	return done.Session.ID, formatAnswer(got, done, err)
}

// formatAnswer formats answers as text, because pointers differ.
func formatAnswer(answers ...any) string {
	for i, a := range answers {
		if done, ok := a.(session.Appended); ok {
			a = done.Session
		}
		if s, ok := a.(session.Session); ok {
			every := -1
			if s.MemorizeEvery != nil {
				every, s.MemorizeEvery = *s.MemorizeEvery, nil
			}
			answers[i] = fmt.Sprintf("%+v, every %d", s, every)
		}
	}
	return fmt.Sprintf("%+v", answers)
}

// operations are operations on the session of a scope, with their answers.
var operations = map[string]func(ctx context.Context, c *conversations, scope memory.Scope, id string) string{ //nolint:gochecknoglobals // a constant
	"nothing": func(context.Context, *conversations, memory.Scope, string) string { return "" },
	"is updated": func(ctx context.Context, c *conversations, scope memory.Scope, id string) string {
		title, every := "a title", new(int)
		got, err := c.sessions.Update(ctx, viewerOf(scope), id, session.Patch{Title: &title, MemorizeEvery: &every, At: at})
		return formatAnswer(got, err)
	},
	"is left for another": func(ctx context.Context, c *conversations, scope memory.Scope, _ string) string {
		got, created, err := c.sessions.Switch(ctx, viewerOf(scope), fmt.Sprint("more ", c.step), at)
		return formatAnswer(got, created, err)
	},
	"is left for none": func(ctx context.Context, c *conversations, scope memory.Scope, _ string) string {
		got, created, err := c.sessions.Switch(ctx, viewerOf(scope), "", at)
		return formatAnswer(got, created, err)
	},
	"is deleted": func(ctx context.Context, c *conversations, scope memory.Scope, id string) string {
		got, err := c.sessions.Delete(ctx, viewerOf(scope), id)
		return formatAnswer(got, err)
	},
	"loses its user": func(ctx context.Context, c *conversations, scope memory.Scope, _ string) string {
		got, err := c.sessions.Forget(ctx, scope.User())
		return formatAnswer(got, err)
	},
	"loses its first messages": func(ctx context.Context, c *conversations, scope memory.Scope, _ string) string {
		got, err := c.sessions.Expire(ctx, session.Expiry{Namespace: scope.Namespace, Before: at.Add(time.Duration(c.step) * time.Minute), Limit: 1})
		return formatAnswer(got, err)
	},
	"is appended to": func(ctx context.Context, c *conversations, scope memory.Scope, _ string) string {
		done, err := c.sessions.Append(ctx, c.spoken(scope).Append)
		return formatAnswer(done, err)
	},
	"is appended to by its name, and considered": func(ctx context.Context, c *conversations, scope memory.Scope, id string) string {
		scope.SessionID = id
		r := c.spoken(scope)
		done, err := c.sessions.Append(ctx, r.Append)
		r.Acceptance.Dialogue = memory.Dialogue{Scope: scope}
		got, ok, taken := c.sessions.Take(ctx, session.Take{Namespace: scope.Namespace, SessionID: id, Last: done.Session.Last, Acceptance: r.Acceptance})
		return formatAnswer(done, err, got, ok, taken)
	},
	"is put off": func(ctx context.Context, c *conversations, scope memory.Scope, id string) string {
		if _, err := c.sessions.Append(ctx, c.spoken(scope).Append); err != nil {
			return err.Error()
		}
		return formatAnswer(c.sessions.Postpone(ctx, session.Due{Namespace: scope.Namespace, SessionID: id, Kind: session.DueConsider}, at.Add(time.Hour)))
	},
	"needs no summary": func(ctx context.Context, c *conversations, scope memory.Scope, id string) string {
		for range 3 {
			if _, err := c.sessions.Append(ctx, c.spoken(scope).Append); err != nil {
				return err.Error()
			}
		}
		return formatAnswer(c.sessions.SummaryDone(ctx, scope.Namespace, id, 1000, time.Time{}))
	},
	"is refused something when all of it was written": func(ctx context.Context, c *conversations, scope memory.Scope, _ string) string {
		r := c.spoken(scope)
		r.Acceptance.MaxPending = 0
		got, done, err := c.sessions.Record(ctx, r)
		return formatAnswer(got, done, err)
	},
}

// TestSessionCacheAnswersLikeNoCache: Whatever happens to a session between two dialogues, the answers and the rows equal those of a store
// without a cache.
func TestSessionCacheAnswersLikeNoCache(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) { // the same time for both
		cached, reading := converse(dbtest.Open(t, sqlite.Options{Dir: first})), converse(dbtest.Open(t, sqlite.Options{Dir: second}))
		unknown := func() { // undone writes leave nothing in the cache
			undone := errors.New("undone")
			if err := reading.db.Write(t.Context(), func(sqldb.Tx) error { return undone }); !errors.Is(err, undone) {
				t.Fatal(err)
			}
		}
		inLobby := memory.Scope{Namespace: ann.Namespace, UserID: "ben", Channel: memory.Channel{Kind: memory.ChannelGroup, ID: "lobby"}}
		some := []string{"is left for another", "is deleted", "loses its user"}
		for _, p := range []struct {
			place      string
			scope      memory.Scope
			happenings []string
		}{{"the current one", chat(""), slices.Sorted(maps.Keys(operations))}, {"one that is named", chat("named"), some}, {"a group's", inLobby, some}} {
			place, scope := p.place, p.scope
			for _, operation := range p.happenings {
				id, got := cached.say(t.Context(), scope)
				_, want := reading.say(t.Context(), scope)
				unknown()
				got += operations[operation](t.Context(), cached, scope, id)
				want += operations[operation](t.Context(), reading, scope, id)
				unknown()
				_, last := cached.say(t.Context(), scope)
				got += last
				_, last = reading.say(t.Context(), scope)
				want += last
				unknown()
				if got != want {
					t.Errorf("%s %s: answered\n%s\nbut when everything is read\n%s", place, operation, got, want)
				}
				if same(t, cached.dump(t), reading.dump(t)); t.Failed() {
					t.Fatalf("this was when %s %s", place, operation)
				}
			}
		}
	})
}

// same compares dumps.
func same(t *testing.T, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("this is missing: %s", want[i])
		case i >= len(want):
			t.Errorf("this should not be there: %s", got[i])
		case got[i] != want[i]:
			t.Errorf("there is\n%s\nin place of\n%s", got[i], want[i])
		}
	}
}

// TestRefusedDialogueDoesNotAffectItsCommit: Dialogues that share a commit with a refused one are stored once, as if they had come one by one, and their
// callers get the stored results.
func TestRefusedDialogueDoesNotAffectItsCommit(t *testing.T) {
	one, other := t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		together, alone := converse(dbtest.Open(t, sqlite.Options{Dir: one})), converse(dbtest.Open(t, sqlite.Options{Dir: other}))
		scopes := []memory.Scope{chat(""), chat("named"), chat(""), chat(""), chat("other"), chat("named")}
		// Twice: the second time after a commit with a refusal.
		for range 2 {
			requests := make([]session.Record, len(scopes))
			for i, scope := range scopes {
				requests[i] = together.spoken(scope)
			}
			requests[3].Acceptance.MaxPending = 0
			type answer struct {
				consideration memory.Consideration
				done          session.Appended
				err           error
			}
			answers := make([]answer, len(requests))
			release := dbtest.Hold(t, together.db)
			for i, r := range requests {
				go func() {
					a := &answers[i]
					a.consideration, a.done, a.err = together.sessions.Record(t.Context(), r)
				}()
				synctest.Wait()
			}
			release()
			synctest.Wait()
			for i, r := range requests {
				var want answer
				want.consideration, want.done, want.err = alone.sessions.Record(t.Context(), r)
				if refused := new(memory.OverloadError); i == 3 && !errors.As(answers[i].err, &refused) {
					t.Errorf("%d: %v, want that it is refused", i, answers[i].err)
				}
				if got, want := fmt.Sprintf("%+v", answers[i]), fmt.Sprintf("%+v", want); i != 3 && got != want {
					t.Errorf("%d: answered\n%s\nbut alone\n%s", i, got, want)
				}
			}
			same(t, together.dump(t), alone.dump(t))
			if got, want := together.queue.Pending(), alone.queue.Pending(); got != want || got.Considerations == 0 {
				t.Errorf("%+v wait, one by one %+v", got, want)
			}
		}
	})
}

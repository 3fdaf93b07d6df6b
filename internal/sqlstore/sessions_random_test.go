package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"
)

var errUndone = errors.New("undone")

// undoingDB undoes the next writes after they were executed.
type undoingDB struct {
	sqldb.Access
	next int
}

func (u *undoingDB) Write(ctx context.Context, fn func(sqldb.Tx) error) error {
	return u.Access.Write(ctx, func(tx sqldb.Tx) error {
		if err := fn(tx); err != nil || u.next <= 0 {
			return err
		}
		u.next--
		return errUndone
	})
}

// chosen holds the random values of a step.
type chosen struct {
	*conversations
	scope memory.Scope
	id    string // of a session of the scope
	now   time.Time
}

// sessionSteps are the methods of sqlstore.Sessions that write.
var sessionSteps = map[string]func(context.Context, chosen) error{
	"Append": func(ctx context.Context, c chosen) error {
		_, err := c.sessions.Append(ctx, c.spoken(c.scope).Append)
		return err
	},
	"Record": func(ctx context.Context, c chosen) error {
		_, _, err := c.sessions.Record(ctx, c.spoken(c.scope))
		return err
	},
	"Take": func(ctx context.Context, c chosen) error {
		r := c.spoken(c.scope)
		done, err := c.sessions.Append(ctx, r.Append)
		if err != nil {
			return err
		}
		r.Acceptance.Dialogue = memory.Dialogue{Scope: c.scope}
		_, _, err = c.sessions.Take(ctx, session.Take{
			Namespace: c.scope.Namespace, SessionID: done.Session.Ref, Last: done.Session.Last, Acceptance: r.Acceptance,
		})
		return err
	},
	"Update": func(ctx context.Context, c chosen) error {
		title := fmt.Sprint("title ", c.step)
		every := &c.step
		_, err := c.sessions.Update(ctx, viewerOf(c.scope), c.id, session.Patch{Title: &title, MemorizeEvery: &every, At: c.now})
		return err
	},
	"Switch": func(ctx context.Context, c chosen) error {
		to := []string{"", "named", fmt.Sprint("new ", c.step)}[c.step%3]
		_, _, err := c.sessions.Switch(ctx, viewerOf(c.scope), to, c.now)
		return err
	},
	"Delete": func(ctx context.Context, c chosen) error {
		_, err := c.sessions.Delete(ctx, viewerOf(c.scope), c.id)
		return err
	},
	"Sweep": func(ctx context.Context, c chosen) error { return c.sessions.Sweep(ctx) },
	"Postpone": func(ctx context.Context, c chosen) error {
		kind := session.DueConsider
		if c.step%2 == 0 {
			kind = session.DueSummarize
		}
		return c.sessions.Postpone(ctx, session.Due{Namespace: c.scope.Namespace, SessionID: c.id, Kind: kind}, c.now.Add(time.Hour))
	},
	"MakeDue":    func(ctx context.Context, c chosen) error { return c.sessions.MakeDue(ctx, at, c.now) },
	"ResetClock": func(ctx context.Context, c chosen) error { return c.sessions.ResetClock(ctx, at, at) },
	"SaveSummary": func(ctx context.Context, c chosen) error {
		return c.sessions.SaveSummary(ctx, c.scope.Namespace, c.id, int64(c.step), session.Summary{Text: "a summary", Last: 1, At: c.now})
	},
	"MarkRead": func(ctx context.Context, c chosen) error {
		return c.sessions.MarkRead(ctx, c.scope.Namespace, c.id, "", c.now)
	},
	"Exclude": func(ctx context.Context, c chosen) error {
		var id string
		err := c.db.Read(ctx, func(q sqldb.Querier) error {
			return q.QueryRow(ctx, `SELECT coalesce(max(id), '') FROM dialogues`).Scan(&id)
		})
		if err != nil {
			return err
		}
		return c.sessions.Exclude(ctx, c.scope.User(), id, []string{"#0"})
	},
	"SummaryDone": func(ctx context.Context, c chosen) error {
		return c.sessions.SummaryDone(ctx, c.scope.Namespace, c.id, 1_000_000, time.Time{})
	},
	"Forget": func(ctx context.Context, c chosen) error {
		_, err := c.sessions.Forget(ctx, c.scope.User())
		if err == nil && c.step%2 == 0 {
			_, err = c.queue.Forget(ctx, c.scope.User())
		}
		return err
	},
	"Expire": func(ctx context.Context, c chosen) error {
		_, err := c.sessions.Expire(ctx, session.Expiry{Namespace: c.scope.Namespace, Before: c.now.Add(-20 * time.Minute), Limit: 1})
		return err
	},
}

// readers are the methods of sqlstore.Sessions that only read.
var readers = []string{
	"Get", "Participants", "Unconsidered", "Current", "Due", "List", "Namespaces", "Messages", "Window", "Older", "Sessions", "OwnMessages",
}

// TestSessionCacheMatchesRows calls all methods of Sessions that write, in random order. After each call it compares the cache and the
// queue's count with the rows. Some writes are undone.
func TestSessionCacheMatchesRows(t *testing.T) {
	for m := range reflect.TypeFor[*sqlstore.Sessions]().Methods() {
		if _, ok := sessionSteps[m.Name]; !ok && m.Name != "CompareCache" && !slices.Contains(readers, m.Name) {
			t.Errorf("this test does not call %s: if it writes, the cache may be wrong after it", m.Name)
		}
	}
	storage := dbtest.New(t)
	db := &undoingDB{Access: storage}
	jobs := sqlstore.NewQueue(db)
	c := &conversations{db: storage, queue: jobs, sessions: sqlstore.NewSessions(db, jobs)}
	lobby := memory.Channel{Kind: memory.ChannelGroup, ID: "lobby"}
	scopes := []memory.Scope{
		chat(""),
		chat("named"),
		{Namespace: ann.Namespace, UserID: "ben"},
		{Namespace: ann.Namespace, UserID: "ben", SessionID: "named"},
		{Namespace: ann.Namespace, UserID: "ann", Channel: lobby},
		{Namespace: ann.Namespace, UserID: "ben", Channel: lobby},
	}
	// Append and Record fill the cache, so that the others find something in it.
	steps := slices.Sorted(maps.Keys(sessionSteps))
	random := rand.New(rand.NewPCG(1, 2))
	seen, called := 0, map[string]int{}
	for range 200 {
		for _, scope := range scopes {
			if random.IntN(2) == 0 {
				c.say(t.Context(), scope)
			}
		}
		step := steps[random.IntN(len(steps))]
		scope := scopes[random.IntN(len(scopes))]
		id, err := c.sessions.Current(t.Context(), viewerOf(scope))
		if err != nil {
			t.Fatal(err)
		}
		if scope.SessionID != "" {
			id = scope.SessionID
		}
		undone := random.IntN(4) == 0
		if undone {
			db.next = 1
		}
		c.step++
		err = sessionSteps[step](t.Context(), chosen{c, scope, id, at.Add(time.Duration(c.step) * time.Minute)})
		if db.next = 0; err == nil {
			called[step]++
		} else if !errors.Is(err, errUndone) && !errors.Is(err, memory.ErrNotFound) && !errors.Is(err, memory.ErrPrecondition) {
			t.Fatalf("%s: %v", step, err)
		}
		var cached int
		var different []string
		err = storage.Read(t.Context(), func(q sqldb.Querier) (err error) {
			cached, different, err = c.sessions.CompareCache(t.Context(), q)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(different) > 0 {
			t.Fatalf("after %s (undone: %t) in %+v the cache is wrong: %s", step, undone, scope, different[0])
		}
		if jobs.Pending().Counted {
			wantCounted(t, storage, jobs)
		}
		if t.Failed() {
			t.Fatalf("this was after %s (undone: %t) in %+v", step, undone, scope)
		}
		seen += cached
	}
	if len(called) < len(sessionSteps) || seen < 200 {
		t.Errorf("only %v were called, and %d sessions were in the cache: this test shows little", called, seen)
	}
}

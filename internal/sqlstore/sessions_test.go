package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/session/sessiontest"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/testkit/leftover"
)

func TestSessions(t *testing.T) {
	sessiontest.Run(t, func(t *testing.T) sessiontest.Stores {
		db := dbtest.New(t)
		return sessiontest.Stores{Sessions: sqlstore.NewSessions(db, sqlstore.NewQueue(db)), Queue: sqlstore.NewQueue(db)}
	})
}

// chat is a session of ann's.
func chat(id string) memory.Scope {
	return memory.Scope{
		Namespace: ann.Namespace, UserID: ann.ID, SessionID: id, Channel: memory.Channel{Kind: memory.ChannelDirect},
	}
}

func viewerOf(scope memory.Scope) session.Viewer {
	return session.Viewer{Namespace: scope.Namespace, UserID: scope.UserID, Channel: scope.Channel, Audience: memory.Everything()}
}

// appendTexts appends messages of the scope's user.
func appendTexts(t *testing.T, s *sqlstore.Sessions, scope memory.Scope, texts ...string) session.Appended {
	t.Helper()
	a := session.Append{Scope: scope, NewID: "new", At: at, Rules: session.Rules{MemorizeEvery: 10, Idle: time.Hour}}
	for _, text := range texts {
		a.Messages = append(a.Messages, memory.Message{Role: memory.RoleUser, Speaker: scope.UserID, Content: text, Time: at})
	}
	done, err := s.Append(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// failingDB lets this many writes succeed.
type failingDB struct {
	sqldb.Access
	left int
}

var errKilled = errors.New("killed")

func (f *failingDB) Write(ctx context.Context, fn func(sqldb.Tx) error) error {
	if f.left--; f.left < 0 {
		return errKilled
	}
	return f.Access.Write(ctx, fn)
}

// TestInterruptedDeleteIsCompleted: If the deletion of a session is interrupted at any point, the session is gone, its id can be used again, and
// Sweep completes the deletion.
func TestInterruptedDeleteIsCompleted(t *testing.T) {
	db := dbtest.New(t)
	s, q := sqlstore.NewSessions(db, sqlstore.NewQueue(db)), sqlstore.NewQueue(db)
	finished := false
	for steps := 1; !finished; steps++ {
		if _, _, err := s.Switch(t.Context(), viewerOf(chat("s")), "s", at); err != nil {
			t.Fatal(err)
		}
		appendTexts(t, s, chat(""), "one", "two")
		pending, err := s.Unconsidered(t.Context(), ann.Namespace, "s")
		if err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprint("con_", steps)
		_, _, err = s.Take(t.Context(), session.Take{Namespace: ann.Namespace, SessionID: "s", Last: pending.Last, Acceptance: queue.Acceptance{
			ID: id, Dialogue: memory.Dialogue{Scope: pending.Scope}, At: at, MaxPending: 10,
		}})
		if err != nil {
			t.Fatal(err)
		}
		dbtest.Exec(t, db, `UPDATE considerations SET state = 'failed', checkpoint = '{}', due_at = NULL`)
		_, err = sqlstore.NewSessions(&failingDB{db, steps}, sqlstore.NewQueue(&failingDB{db, steps})).Delete(t.Context(), viewerOf(chat("s")), "s")
		if finished = err == nil; !finished && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		if _, err := s.Get(t.Context(), viewerOf(chat("s")), "s"); !errors.Is(err, memory.ErrNotFound) {
			t.Errorf("after %d steps the session is there: %v", steps, err)
		}
		if id, err := s.Current(t.Context(), viewerOf(chat(""))); err != nil || id != "" {
			t.Errorf("after %d steps the current session is %q, %v", steps, id, err)
		}
		if list, _, err := s.Sessions(t.Context(), ann, "", 10); err != nil || len(list) != 0 {
			t.Errorf("after %d steps ann has %+v, %v", steps, list, err)
		}
		appendTexts(t, s, chat("s"), "three") // under the same id
		if err := s.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := dbtest.Value[int](t, db, `SELECT count(*) FROM session_messages`); n != 1 {
			t.Errorf("after %d steps %d messages are left", steps, n)
		}
		if n := dbtest.Value[int](t, db, `SELECT count(*) FROM sessions`); n != 1 {
			t.Errorf("after %d steps %d sessions are left", steps, n)
		}
		if n := dbtest.Value[int](t, db, `SELECT count(*) FROM dialogues WHERE messages LIKE '%one%' OR session_row IS NOT NULL`); n != 0 {
			t.Errorf("after %d steps %d dialogues have words", steps, n)
		}
		if c, err := q.Get(t.Context(), ann, id, memory.Everything()); err != nil || c.State != memory.StateFailed || c.MessageCount != 2 {
			t.Errorf("after %d steps the outcome is %+v, %v", steps, c, err)
		}
		if _, err := s.Delete(t.Context(), viewerOf(chat("s")), "s"); err != nil {
			t.Fatal(err)
		}
		if steps > 10 {
			t.Fatal("it never ends")
		}
	}
	if n := dbtest.Value[int](t, db, `SELECT count(*) FROM users`); n != 0 {
		t.Errorf("%d users are left of whom nothing is stored", n)
	}
}

// TestInterruptedForgetIsCompleted: If the erasure is interrupted at any point, repeating it completes it.
func TestInterruptedForgetIsCompleted(t *testing.T) {
	db := dbtest.New(t)
	s := sqlstore.NewSessions(db, sqlstore.NewQueue(db))
	finished := false
	for steps := 0; !finished; steps++ {
		appendTexts(t, s, chat("s"), "one", "two")
		appendTexts(t, s, chat(""), "three")
		_, err := sqlstore.NewSessions(&failingDB{db, steps}, sqlstore.NewQueue(&failingDB{db, steps})).Forget(t.Context(), ann)
		if finished = err == nil; !finished && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		if _, err := s.Forget(t.Context(), ann); err != nil {
			t.Fatal(err)
		}
		if err := s.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{"sessions", "session_messages", "session_participants", "current_sessions", "users"} {
			if n := dbtest.Value[int](t, db, `SELECT count(*) FROM `+table); n != 0 {
				t.Errorf("after %d steps %d rows of %s are left", steps, n, table)
			}
		}
		if steps > 20 {
			t.Fatal("it never ends")
		}
	}
}

// TestForgetDuringAppendIsComplete: Messages appended during the erasure leave nothing of the user that a second erasure does not find, and the
// session remains usable.
func TestForgetDuringAppendIsComplete(t *testing.T) {
	db := dbtest.New(t)
	hooked := &hookedDB{Access: db}
	s := sqlstore.NewSessions(hooked, sqlstore.NewQueue(hooked))
	appendTexts(t, s, chat("s"), "one")
	for range 3 {
		hooked.then = func() { appendTexts(t, s, chat("s"), "meanwhile") }
		if _, err := s.Forget(t.Context(), ann); err != nil {
			t.Fatal(err)
		}
		hooked.then = nil
		got, err := s.Get(t.Context(), viewerOf(chat("s")), "s")
		if err == nil && !slices.Contains(got.Participants, ann.ID) || err != nil && !errors.Is(err, memory.ErrNotFound) {
			t.Errorf("the session is %+v, %v", got, err)
		}
		if err != nil && dbtest.Value[int](t, db, `SELECT count(*) FROM session_messages`) != 0 {
			t.Error("unreachable data is left")
		}
	}
	if _, err := s.Forget(t.Context(), ann); err != nil {
		t.Fatal(err)
	}
	if n := dbtest.Value[int](t, db, `SELECT (SELECT count(*) FROM session_messages) + (SELECT count(*) FROM sessions)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

// hookedDB calls a function after each write.
type hookedDB struct {
	sqldb.Access
	then func()
}

func (b *hookedDB) Write(ctx context.Context, fn func(sqldb.Tx) error) error {
	err := b.Access.Write(ctx, fn)
	if then := b.then; then != nil {
		b.then = nil // the function writes, too
		then()
		b.then = then
	}
	return err
}

// TestDeletedSessionsLeaveNoBytes: No file contains text of a deleted session.
func TestDeletedSessionsLeaveNoBytes(t *testing.T) {
	dir := t.TempDir()
	db := dbtest.Open(t, sqlite.Options{Dir: dir})
	s := sqlstore.NewSessions(db, sqlstore.NewQueue(db))
	found := func() []string {
		t.Helper()
		if _, err := db.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
		return leftover.In(t, dir, "xylophone")
	}
	for name, remove := range map[string]func() error{
		"deleted":   func() error { _, err := s.Delete(t.Context(), viewerOf(chat("s")), "s"); return err },
		"forgotten": func() error { _, err := s.Forget(t.Context(), ann); return err },
		"expired": func() error {
			_, err := s.Expire(t.Context(), session.Expiry{Namespace: ann.Namespace, Before: at.Add(time.Second), Limit: 100})
			return err
		},
	} {
		texts := slices.Repeat([]string{"xylophone"}, 50)
		appendTexts(t, s, chat("s"), texts...)
		if err := s.SaveSummary(t.Context(), ann.Namespace, "s", older(t, s, "s").Revision, session.Summary{Text: "xylophone", Last: 1, At: at}); err != nil {
			t.Fatal(err)
		}
		if got := found(); len(got) == 0 {
			t.Fatal("this test looks in the wrong place")
		}
		if err := remove(); err != nil {
			t.Fatal(err)
		}
		if got := found(); len(got) > 0 {
			t.Errorf("%s, the words are still in %q", name, got)
		}
	}
}

func older(t *testing.T, s *sqlstore.Sessions, id string) session.Older {
	t.Helper()
	o, err := s.Older(t.Context(), ann.Namespace, id, 0, "", 10)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestSessionKnowsManyParticipants: A session lists a limited number of participants, but still knows all of them.
func TestSessionKnowsManyParticipants(t *testing.T) {
	db := dbtest.New(t)
	s := sqlstore.NewSessions(db, sqlstore.NewQueue(db))
	appendTexts(t, s, chat("s"), "one")
	dbtest.Exec(t, db,
		fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			INSERT INTO users (namespace, user_id) SELECT 'test', 'user' || i FROM n`, session.MaxNamed+500),
		`INSERT INTO session_participants (session_row, number, user_row) SELECT 1, id + 10, id FROM users WHERE user_id LIKE 'user%'`,
		fmt.Sprintf(`UPDATE sessions SET participants = %d`, session.MaxNamed+501),
	)
	last := chat("s")
	last.UserID = fmt.Sprint("user", session.MaxNamed+500)
	got, err := s.Get(t.Context(), viewerOf(last), "s")
	if err != nil || len(got.Participants) != session.MaxNamed || got.Participants[0] != ann.ID || !slices.Contains(got.Participants, last.UserID) {
		t.Fatalf("the last sees %d who take part, %v", len(got.Participants), err)
	}
	appendTexts(t, s, last, "two")
	list, _, err := s.List(t.Context(), viewerOf(last), "", 10)
	if err != nil || len(list) != 1 || !slices.Contains(list[0].Participants, last.UserID) {
		t.Errorf("the last sees %d sessions, %v", len(list), err)
	}
	stranger := chat("s")
	stranger.UserID = "stranger"
	if _, err := s.Get(t.Context(), viewerOf(stranger), "s"); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("a stranger sees it: %v", err)
	}
	if _, err := s.Delete(t.Context(), viewerOf(chat("s")), "s"); err != nil {
		t.Fatal(err)
	}
	if n := dbtest.Value[int](t, db, `SELECT (SELECT count(*) FROM sessions) + (SELECT count(*) FROM users)`); n != 0 {
		t.Errorf("%d sessions and users are left", n)
	}
}

// TestSessionsSurviveARestart: Sessions, counters and due times survive a restart.
func TestSessionsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir, Log: discard})
	if err != nil {
		t.Fatal(err)
	}
	appended := appendTexts(t, sqlstore.NewSessions(db, sqlstore.NewQueue(db)), chat(""), "one", "two")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = dbtest.Open(t, sqlite.Options{Dir: dir})
	s := sqlstore.NewSessions(db, sqlstore.NewQueue(db))
	got, err := s.Current(t.Context(), viewerOf(chat("")))
	if err != nil || got != appended.Session.ID {
		t.Errorf("the current session is %q, %v", got, err)
	}
	again := appendTexts(t, s, chat(""), "three")
	if again.Created || again.Session.Unconsidered != 3 || again.Positions[0] != 3 {
		t.Errorf("after a restart: %+v", again)
	}
	due, _, err := s.Due(t.Context(), at.Add(time.Hour), 10)
	if err != nil || len(due) != 1 || !due[0].At.Equal(at.Add(time.Hour)) {
		t.Errorf("due are %+v, %v", due, err)
	}
}

// TestUnansweredBotMessagesDoNotAccumulate: Messages of a bot that no user answers do not accumulate as pending.
func TestUnansweredBotMessagesDoNotAccumulate(t *testing.T) {
	db := dbtest.New(t)
	s := sqlstore.NewSessions(db, sqlstore.NewQueue(db))
	news := session.Append{Scope: chat("s"), At: at, Messages: slices.Repeat([]memory.Message{{Role: memory.RoleAssistant, Content: "news", Time: at}}, 30)}
	waiting := func(most int) {
		t.Helper()
		if n := dbtest.Value[int](t, db, `SELECT count(*) FROM session_messages WHERE settled = 0`); n > most {
			t.Errorf("%d messages wait", n)
		}
	}
	if _, err := s.Append(t.Context(), news); err != nil {
		t.Fatal(err)
	}
	waiting(20)
	news.Messages = append(news.Messages, memory.Message{Role: memory.RoleUser, Speaker: ann.ID, Content: "stop", Time: at})
	if _, err := s.Append(t.Context(), news); err != nil {
		t.Fatal(err)
	}
	pending, err := s.Unconsidered(t.Context(), ann.Namespace, "s")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = s.Take(t.Context(), session.Take{Namespace: ann.Namespace, SessionID: "s", Last: pending.Last, Acceptance: queue.Acceptance{
		ID: "con_1", Dialogue: memory.Dialogue{Scope: pending.Scope}, At: at, MaxPending: 10,
	}})
	if err != nil {
		t.Fatal(err)
	}
	waiting(0)
}

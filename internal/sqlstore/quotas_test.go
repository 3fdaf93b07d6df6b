package sqlstore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// TestUsageCountersMatchStoredData: After any writes, refusals and rollbacks, the quotas' counters equal a fresh count.
func TestUsageCountersMatchStoredData(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			u := &usageTest{T: t, rand: rand.New(rand.NewPCG(seed, 15)), dir: t.TempDir()}
			u.open()
			writes := []func(){u.say, u.say, u.say, u.say, u.record, u.record, u.rollBack, u.atOnce, u.rewrite, u.expire, u.remove, u.forget, u.reopen}
			for range 120 {
				writes[u.rand.IntN(len(writes))]()
				u.compare()
			}
			if n := dbtest.Value[int](t, u.storage, `SELECT seq FROM sqlite_sequence WHERE name = 'session_messages'`); n < 600 || u.refused == 0 {
				t.Errorf("%d messages were stored and %d writes refused: this test shows little", n, u.refused)
			}
			u.close()
			if r := dbtest.Check(t, sqlite.DatabasePath(u.dir), false); !r.Sound() {
				t.Errorf("the database is not sound: %+v", r.Findings)
			}
		})
	}
}

// usageTest makes random writes to a database in which a quota refuses some of them.
type usageTest struct {
	*testing.T
	rand     *rand.Rand
	dir      string
	storage  *sqlite.Storage
	sessions *sqlstore.Sessions
	usage    *sqlstore.Usage
	now      int // minutes
	refused  int
}

func (u *usageTest) open() {
	storage, err := sqlite.Open(u.Context(), sqlite.Options{Dir: u.dir, Log: discard})
	if err != nil {
		u.Fatal(err)
	}
	u.storage, u.sessions = storage, sqlstore.NewSessions(storage, sqlstore.NewQueue(storage))
	u.sessions.Quotas = &sqlstore.Quotas{Limit: func(namespace string, name memory.QuotaName) int64 {
		switch {
		case namespace == "tight" && name == memory.QuotaNamespaceHistory:
			return 20_000
		case namespace == "tight" && name == memory.QuotaUserHistory:
			return 9_000
		}
		return 0
	}}
	u.usage = sqlstore.NewUsage(storage, u.sessions.Quotas)
}

func (u *usageTest) close() {
	if err := u.storage.Close(); err != nil {
		u.Fatal(err)
	}
}

func (u *usageTest) reopen() {
	if u.rand.IntN(4) == 0 {
		u.close()
		u.open()
	}
}

func (u *usageTest) namespace() string { return []string{"n", "tight"}[u.rand.IntN(2)] }

// user returns a user, or "".
func (u *usageTest) user() string { return []string{"ann", "bob", "eve", ""}[u.rand.IntN(4)] }

// scope returns a session of a group, of a direct chat, or without a user.
func (u *usageTest) scope() memory.Scope {
	s := memory.Scope{Namespace: u.namespace(), UserID: u.user()}
	if u.rand.IntN(2) == 0 {
		s.Channel = memory.Channel{Kind: memory.ChannelGroup, ID: "g"}
		s.SessionID = fmt.Sprint("group", u.rand.IntN(3))
	} else {
		s.SessionID = s.UserID + fmt.Sprint("'s", u.rand.IntN(3))
	}
	return s
}

func (u *usageTest) at() time.Time {
	u.now++
	return spoken.Add(time.Duration(u.now) * time.Minute)
}

func (u *usageTest) append(s memory.Scope) session.Append {
	a := session.Append{Scope: s, Audience: memory.VisibilityChannel.AudienceOf(s.Channel), At: u.at(), Rules: session.Rules{MemorizeEvery: 1000}}
	for range 1 + u.rand.IntN(30) {
		m := by(s.UserID, strings.Repeat("字", u.rand.IntN(40)))
		switch u.rand.IntN(4) {
		case 0:
			m = answer("Yes.")
		case 1:
			if s.Channel.Kind == memory.ChannelGroup {
				m.Speaker = u.user()
			}
		case 2:
			m.ID = fmt.Sprint("id", u.rand.IntN(5000))
		}
		a.Messages = append(a.Messages, m)
	}
	return a
}

// allow accepts a quota's refusal, and the error for an id that another message has.
func (u *usageTest) allow(err error) {
	u.Helper()
	var over *memory.QuotaError
	var invalid *memory.InvalidError
	switch {
	case errors.As(err, &over):
		u.refused++
	case err != nil && !errors.As(err, &invalid) && !errors.Is(err, memory.ErrPrecondition) && !errors.Is(err, memory.ErrNotFound):
		u.Fatal(err)
	}
}

func (u *usageTest) say() {
	_, err := u.sessions.Append(u.Context(), u.append(u.scope()))
	u.allow(err)
}

func (u *usageTest) record() {
	s := u.scope()
	if s.UserID == "" {
		s.UserID = "ann"
	}
	a := u.append(s)
	d := memory.Dialogue{Scope: s, Messages: a.Messages}
	_, _, err := u.sessions.Record(u.Context(), session.Record{Append: a, Acceptance: queue.Acceptance{
		ID: fmt.Sprint("c", u.now), Dialogue: d, Speakers: d.Speakers(), At: a.At, MaxPending: 1000,
	}})
	u.allow(err)
}

// rollBack undoes a write that is alone in its transaction.
func (u *usageTest) rollBack() {
	failed := errors.New("failed")
	err := u.storage.Write(u.Context(), func(tx sqldb.Tx) error {
		_, err := tx.Exec(u.Context(), `INSERT INTO session_messages (session_row, position, owner_row, hash, role, agent_id, withheld,
			settled, message, said_at, received_at)
			WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
			SELECT s.row, 1000000 + i, (SELECT min(id) FROM users), x'', 'user', '', 0, 1, '{}', 0, 0 FROM n, (SELECT min(row) AS row FROM sessions) AS s
			WHERE s.row IS NOT NULL`)
		return errors.Join(err, failed)
	})
	if !errors.Is(err, failed) || u.storage.Status().Reason != "" {
		u.Fatal(err)
	}
}

// atOnce makes several writes in one commit, each in its own savepoint.
func (u *usageTest) atOnce() {
	var all []session.Append
	for range 8 {
		all = append(all, u.append(u.scope()))
	}
	errs := make([]error, len(all))
	var writers sync.WaitGroup
	for i, a := range all {
		writers.Go(func() { _, errs[i] = u.sessions.Append(u.Context(), a) })
	}
	writers.Wait()
	for _, err := range errs {
		u.allow(err)
	}
}

// rewrite changes messages in a namespace without a quota, which would not be checked.
func (u *usageTest) rewrite() {
	dbtest.Exec(u.T, u.storage, fmt.Sprintf(`UPDATE session_messages SET message = json_set(message, '$.content', '%s')
		WHERE row %% 7 = %d AND row > (SELECT max(row) FROM session_messages) - 300
		AND session_row IN (SELECT row FROM sessions WHERE namespace = 'n')`, strings.Repeat("x", u.rand.IntN(100)), u.rand.IntN(7)))
}

func (u *usageTest) expire() {
	before := spoken.Add(time.Duration(u.now-u.rand.IntN(40)) * time.Minute)
	if _, err := u.sessions.Expire(u.Context(), session.Expiry{Namespace: u.namespace(), Before: before, Limit: 1 + u.rand.IntN(50)}); err != nil {
		u.Fatal(err)
	}
}

func (u *usageTest) remove() {
	s := u.scope()
	v := session.Viewer{Namespace: s.Namespace, UserID: s.UserID, Channel: s.Channel, Audience: memory.Everything()}
	_, err := u.sessions.Delete(u.Context(), v, s.SessionID)
	u.allow(err)
}

func (u *usageTest) forget() {
	if u.rand.IntN(3) == 0 {
		if _, err := u.sessions.Forget(u.Context(), memory.User{Namespace: u.namespace(), ID: "eve"}); err != nil {
			u.Fatal(err)
		}
	}
}

// compare compares the counters with fresh counts.
func (u *usageTest) compare() {
	u.Helper()
	for _, namespace := range []string{"n", "tight"} {
		whole := dbtest.Value[int64](u.T, u.storage, `SELECT coalesce(sum(octet_length(message)), 0) FROM session_messages
			WHERE session_row IN (SELECT row FROM sessions WHERE namespace = ?)`, namespace)
		for _, user := range []string{"ann", "bob", "eve"} {
			own := dbtest.Value[int64](u.T, u.storage, `SELECT coalesce(sum(octet_length(message)), 0) FROM session_messages
				WHERE owner_row = (SELECT id FROM users WHERE namespace = ? AND user_id = ?)`, namespace, user)
			u.compareUser(namespace, user)
			list, err := u.usage.Standings(u.Context(), memory.User{Namespace: namespace, ID: user})
			if err != nil {
				u.Fatal(err)
			}
			for _, s := range list {
				if s.Quota == memory.QuotaUserHistory && s.Used != own || s.Quota == memory.QuotaNamespaceHistory && s.Used != whole {
					u.Fatalf("%s counts %d bytes for %s in %s; stored are %d of the user and %d of all", s.Quota, s.Used, user, namespace, own, whole)
				}
				if s.Limit > 0 && s.Used > s.Limit {
					u.Fatalf("%s of %s in %s is passed: %d of %d", s.Quota, user, namespace, s.Used, s.Limit)
				}
			}
		}
	}
}

// compareUser compares a user's row in the list of users with fresh counts.
func (u *usageTest) compareUser(namespace, user string) {
	u.Helper()
	page, err := sqlstore.NewUsers(u.storage).List(u.Context(), memory.UserQuery{Namespace: namespace, Prefix: user, Limit: 1})
	if err != nil {
		u.Fatal(err)
	}
	const row = `(SELECT id FROM users WHERE namespace = ? AND user_id = ?)`
	count := func(from string) int64 {
		return dbtest.Value[int64](u.T, u.storage, `SELECT count(*) FROM `+from+` = `+row, namespace, user)
	}
	want := memory.UserSummary{
		ID: user, Messages: count(`session_messages WHERE owner_row`), Sessions: count(`session_participants WHERE user_row`),
		Pending: dbtest.Value[int64](u.T, u.storage, `SELECT count(*) FROM considerations
			WHERE state IN ('pending', 'running') AND namespace = ? AND user_id = ?`, namespace, user),
	}
	if len(page.Users) == 0 { // the sessions of a forgotten user are gone; this test leaves the jobs to the queue
		if want.Pending = 0; want != (memory.UserSummary{ID: user}) {
			u.Fatalf("%s is not listed in %s and has %+v", user, namespace, want)
		}
		return
	}
	got := page.Users[0]
	last := dbtest.Value[int64](u.T, u.storage, `SELECT coalesce(max(received_at), 0) FROM session_messages WHERE owner_row = `+row, namespace, user)
	if want.LastActive = got.LastActive; got != want || got.LastActive.Add(memory.UserActivityStep).UnixMicro() < last {
		u.Fatalf("%s in %s is listed as %+v, want %+v, last active at %s", user, namespace, got, want, time.UnixMicro(last))
	}
}

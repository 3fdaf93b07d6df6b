package sqlstore_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"
)

// talk records a user's message in a direct chat.
func talk(t *testing.T, sessions *sqlstore.Sessions, namespace, user string, at time.Time) {
	t.Helper()
	_, err := sessions.Append(t.Context(), session.Append{
		Scope: memory.Scope{Namespace: namespace, UserID: user, SessionID: user + "'s"}, Audience: memory.Everything(),
		Messages: []memory.Message{by(user, "hello"), answer("Hello.")}, At: at,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// pagesOfUsers reads all pages, and calls between after each.
func pagesOfUsers(t *testing.T, users *sqlstore.Users, query memory.UserQuery, between func()) (ids []string) {
	t.Helper()
	for {
		page, err := users.List(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Users) > query.Limit {
			t.Errorf("a page of %d has %d users", query.Limit, len(page.Users))
		}
		for _, u := range page.Users {
			ids = append(ids, u.ID)
		}
		if query.After = page.Next; query.After == "" {
			return ids
		}
		between()
	}
}

func TestListUsersPagesInBothOrders(t *testing.T) {
	s := dbtest.New(t)
	sessions, users := sqlstore.NewSessions(s, sqlstore.NewQueue(s)), sqlstore.NewUsers(s)
	for i, id := range []string{"b", "tg:2", "a", "tg:10", "小林", "tg:1", "tg;", "tg"} {
		talk(t, sessions, "n", id, spoken.Add(time.Duration(i)*time.Hour))
	}
	talk(t, sessions, "other", "a stranger", spoken)
	nothing := func() {}
	for _, c := range []struct {
		query memory.UserQuery
		want  []string
	}{
		{memory.UserQuery{}, []string{"a", "b", "tg", "tg:1", "tg:10", "tg:2", "tg;", "小林"}},
		{memory.UserQuery{Prefix: "tg:"}, []string{"tg:1", "tg:10", "tg:2"}},
		{memory.UserQuery{Prefix: "tg:1"}, []string{"tg:1", "tg:10"}},
		{memory.UserQuery{Prefix: "小"}, []string{"小林"}},
		{memory.UserQuery{Prefix: "x"}, nil},
		{memory.UserQuery{Order: memory.UsersByActivity}, []string{"tg", "tg;", "tg:1", "小林", "tg:10", "a", "tg:2", "b"}},
	} {
		for _, limit := range []int{1, 2, 3, 8, 100} {
			c.query.Namespace, c.query.Limit = "n", limit
			if got := pagesOfUsers(t, users, c.query, nothing); !slices.Equal(got, c.want) {
				t.Errorf("%+v lists %q, want %q", c.query, got, c.want)
			}
		}
	}
	_, err := users.List(t.Context(), memory.UserQuery{Namespace: "n", Order: memory.UsersByActivity, After: "x", Limit: 1})
	if _, ok := errors.AsType[*memory.InvalidError](err); !ok {
		t.Errorf("a place that is none is answered %v", err)
	}
}

// TestListUsersWhileUsersComeAndGo: A user who exists all the time is listed once by id, and no user is listed twice in any order.
func TestListUsersWhileUsersComeAndGo(t *testing.T) {
	for name, order := range map[string]memory.UserOrder{"by id": memory.UsersByID, "by activity": memory.UsersByActivity} {
		t.Run(name, func(t *testing.T) {
			s := dbtest.New(t)
			sessions, users := sqlstore.NewSessions(s, sqlstore.NewQueue(s)), sqlstore.NewUsers(s)
			for i := range 40 {
				talk(t, sessions, "n", fmt.Sprintf("user-%02d", i), spoken.Add(time.Duration(i)*time.Hour))
			}
			round := 0
			got := pagesOfUsers(t, users, memory.UserQuery{Namespace: "n", Order: order, Limit: 3}, func() {
				round++
				at := spoken.Add(time.Duration(100+round) * time.Hour)
				talk(t, sessions, "n", fmt.Sprintf("user-%02d", (round*7)%40), at)
				talk(t, sessions, "n", fmt.Sprintf("user-%02d-new", round), at)
				gone := fmt.Sprintf("user-%02d-new", round-1)
				if _, err := sessions.Forget(t.Context(), memory.User{Namespace: "n", ID: gone}); err != nil {
					t.Fatal(err)
				}
			})
			counts := map[string]int{}
			for _, id := range got {
				if counts[id]++; counts[id] > 1 {
					t.Errorf("%s is listed %d times", id, counts[id])
				}
			}
			for i := range 40 {
				if id := fmt.Sprintf("user-%02d", i); order == memory.UsersByID && counts[id] != 1 {
					t.Errorf("%s is listed %d times", id, counts[id])
				}
			}
		})
	}
}

func TestLastActivityIsWrittenOnceInAStep(t *testing.T) {
	s := dbtest.New(t)
	sessions, users := sqlstore.NewSessions(s, sqlstore.NewQueue(s)), sqlstore.NewUsers(s)
	for _, c := range []struct{ said, listed time.Duration }{
		{0, 0},
		{memory.UserActivityStep, 0},
		{memory.UserActivityStep + 1*time.Microsecond, memory.UserActivityStep + 1*time.Microsecond},
		{time.Minute, memory.UserActivityStep + 1*time.Microsecond}, // the clock was set back
		{time.Hour, time.Hour},
	} {
		talk(t, sessions, "n", "ann", spoken.Add(c.said))
		page, err := users.List(t.Context(), memory.UserQuery{Namespace: "n", Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		if got := page.Users[0].LastActive.Sub(spoken); got != c.listed {
			t.Errorf("after %s ann was last active after %s, want %s", c.said, got, c.listed)
		}
	}
}

// manyUsers stores n users with two sessions each, one of them with messages, directly as rows.
func manyUsers(t testing.TB, s *sqlite.Storage, count int) {
	t.Helper()
	dbtest.Exec(t, s,
		fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			INSERT INTO users (id, namespace, user_id, active_at) SELECT i, 'n', format('user-%%06d', i), 1790000000000000 + i * 7919 %% 1000003 FROM n`, count),
		`INSERT INTO sessions (row, namespace, ref, id, channel_kind, channel_id, visibility, title, metadata, messages, user_messages, unconsidered,
			created_at, updated_at, oldest_at, window_start, last_position, revision, default_every, idle, participants)
			SELECT id, 'n', 'u' || user_id, 's', 'direct', '', '', '', '', 2, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1 FROM users`,
		`INSERT INTO session_participants (session_row, number, user_row) SELECT id, 1, id FROM users`,
		`INSERT INTO session_participants (session_row, number, user_row) SELECT id, 2, id + 1 FROM users WHERE id < (SELECT max(id) FROM users)`,
		`INSERT INTO session_messages (session_row, position, owner_row, hash, role, agent_id, withheld, settled, said_at, received_at, message)
			SELECT u.id, p.value, u.id, x'', 'user', '', 0, 1, 0, 0, '{}' FROM users u, json_each('[1, 2]') p`,
	)
}

// TestListUsersReadsOnlyThePage: Both orders use an index, however many users the namespace has, and nothing is sorted.
func TestListUsersReadsOnlyThePage(t *testing.T) {
	s := dbtest.New(t)
	for _, page := range sqlstore.UserPages {
		var plan []string
		err := s.Read(t.Context(), func(q sqldb.Querier) error {
			rows, err := q.Query(t.Context(), `EXPLAIN QUERY PLAN `+page.Query, "n", "", 50, 50)
			if err != nil {
				return err
			}
			plan, err = sqldb.Collect(rows, func(scan func(...any) error) (step string, err error) {
				var id, parent, unused int
				err = scan(&id, &parent, &unused, &step)
				return step, err
			})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(plan[0], "SEARCH u USING") || !strings.HasSuffix(plan[0], page.Search) {
			t.Errorf("the page is found by %q, want a search by %s", plan[0], page.Search)
		}
		for _, step := range plan {
			if strings.HasPrefix(step, "SCAN") && !strings.Contains(step, "usage_progress") || strings.Contains(step, "TEMP B-TREE") {
				t.Errorf("%q in the plan %q", step, plan)
			}
		}
	}
}

// BenchmarkListUsers reads pages of 50 in the middle of 100,000 users.
func BenchmarkListUsers(b *testing.B) {
	s := dbtest.New(b)
	manyUsers(b, s, 100_000)
	users := sqlstore.NewUsers(s)
	for _, c := range []struct {
		name  string
		query memory.UserQuery
	}{
		{"by id", memory.UserQuery{After: "user-050000"}},
		{"by prefix", memory.UserQuery{Prefix: "user-0777"}},
		{"by activity", memory.UserQuery{Order: memory.UsersByActivity, After: "1790000000500000/"}},
	} {
		for _, limit := range []int{50, 1000} {
			b.Run(fmt.Sprintf("%s, pages of %d", c.name, limit), func(b *testing.B) {
				c.query.Namespace, c.query.Limit = "n", limit
				took := make([]time.Duration, 0, b.N)
				for b.Loop() {
					began := time.Now()
					page, err := users.List(b.Context(), c.query)
					if err != nil || len(page.Users) == 0 || page.Users[0].Messages != 2 || page.Users[0].Sessions != 2 {
						b.Fatalf("%+v, %v", page, err)
					}
					took = append(took, time.Since(began))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			})
		}
	}
}

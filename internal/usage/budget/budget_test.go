package budget_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/testkit/leaks"
	"github.com/memsidecar/memsidecar/internal/usage"
	"github.com/memsidecar/memsidecar/internal/usage/budget"
)

func TestMain(m *testing.M) { leaks.Main(m) }

var (
	ann       = memory.User{Namespace: "site", ID: "ann"}
	ben       = memory.User{Namespace: "site", ID: "ben"}
	noUser    = memory.User{Namespace: "site"}
	elsewhere = memory.User{Namespace: "elsewhere", ID: "ann"}
	noon      = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
)

// world is a meter on a real database, with its own clock.
type world struct {
	*budget.Meter
	t      *testing.T
	dir    string
	now    atomic.Pointer[time.Time]
	limits budget.Limits
	log    strings.Builder
	stop   func()
}

func newWorld(t *testing.T, limits budget.Limits) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), limits: limits}
	w.now.Store(&noon)
	w.start()
	t.Cleanup(func() { w.stop() })
	return w
}

func (w *world) start() {
	w.t.Helper()
	log := slog.New(slog.NewTextHandler(&w.log, nil))
	storage, err := sqlite.Open(w.t.Context(), sqlite.Options{Dir: w.dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.Meter = budget.NewMeter(sqlstore.NewTokens(storage), budget.Options{
		Limits: func(namespace string) budget.Limits {
			if namespace == "elsewhere" {
				return budget.Limits{}
			}
			return w.limits
		},
		Now: func() time.Time { return *w.now.Load() }, Log: log,
	})
	w.stop = sync.OnceFunc(func() {
		w.Close()
		if err := storage.Close(); err != nil {
			w.t.Error(err)
		}
	})
}

func (w *world) at(t time.Time) { w.now.Store(&t) }

// call reserves and settles tokens, or returns the refusal.
func (w *world) call(user memory.User, estimate, took int64) *memory.BudgetError {
	w.t.Helper()
	settle, err := w.Reserve(usage.WithUser(w.t.Context(), user), estimate)
	if over, ok := errors.AsType[*memory.BudgetError](err); ok {
		return over
	}
	if err != nil {
		w.t.Fatal(err)
	}
	settle(took)
	return nil
}

func (w *world) wantAdmitted(user memory.User, estimate, took int64) {
	w.t.Helper()
	if over := w.call(user, estimate, took); over != nil {
		w.t.Errorf("refused: %v", over)
	}
}

func (w *world) wantRefused(user memory.User, estimate int64, want memory.BudgetError) {
	w.t.Helper()
	if over := w.call(user, estimate, 0); over == nil || *over != want {
		w.t.Errorf("got %+v, want %+v", over, want)
	}
}

var midnight = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

// TestBudgetsOfUsersAndNamespace: Each user has a budget of their own. The namespace's budget counts all users.
func TestBudgetsOfUsersAndNamespace(t *testing.T) {
	w := newWorld(t, budget.Limits{Namespace: 250, User: 100})
	w.wantAdmitted(ann, 60, 90)
	w.wantAdmitted(ann, 10, 1) // exactly
	w.wantRefused(ann, 10, memory.BudgetError{Of: memory.BudgetOfUser, Limit: 100, Used: 91, Needed: 10, Until: midnight})
	w.wantAdmitted(ann, 9, 9) // a call that still fits is admitted
	w.wantAdmitted(ben, 60, 100)
	w.wantRefused(ben, 1, memory.BudgetError{Of: memory.BudgetOfUser, Limit: 100, Used: 100, Needed: 1, Until: midnight})
	w.wantAdmitted(noUser, 50, 50)
	w.wantRefused(noUser, 1, memory.BudgetError{Of: memory.BudgetOfNamespace, Limit: 250, Used: 250, Needed: 1, Until: midnight})
	newcomer := memory.User{Namespace: "site", ID: "new"}
	w.wantRefused(newcomer, 1, memory.BudgetError{Of: memory.BudgetOfNamespace, Limit: 250, Used: 250, Needed: 1, Until: midnight})
	w.wantAdmitted(elsewhere, 1_000_000, 1_000_000)
	standings, err := w.Standings(t.Context(), ann)
	if err != nil || len(standings) != 2 {
		t.Fatalf("%+v, %v", standings, err)
	}
	want := budget.Standing{User: noUser, Limit: 250, Count: budget.Count{Tokens: 250, Refused: 2}, RefusedUsers: 2, Until: midnight}
	if got := standings[0]; got != want {
		t.Errorf("the namespace: %+v, want %+v", got, want)
	}
	if got, want := standings[1], (budget.Standing{User: ann, Limit: 100, Count: budget.Count{Tokens: 100, Refused: 1}, Until: midnight}); got != want {
		t.Errorf("ann: %+v, want %+v", got, want)
	}
	if standings, err := w.Standings(t.Context(), elsewhere); len(standings) != 0 || err != nil {
		t.Errorf("without limits: %+v, %v", standings, err)
	}
	if n := strings.Count(w.log.String(), "daily token budget is used up"); n != 2 { // one of users, one of the namespace
		t.Errorf("%d lines in the log:\n%s", n, w.log.String())
	}
	if strings.Contains(w.log.String(), "ann") || strings.Contains(w.log.String(), "ben") {
		t.Errorf("the log names users:\n%s", w.log.String())
	}
}

// TestBudgetIsFullAtMidnight: At midnight UTC the budget is full again, also after a call that spans it.
func TestBudgetIsFullAtMidnight(t *testing.T) {
	w := newWorld(t, budget.Limits{Namespace: 100})
	settle, err := w.Reserve(usage.WithUser(t.Context(), ann), 60)
	if err != nil {
		t.Fatal(err)
	}
	w.wantRefused(ben, 60, memory.BudgetError{Of: memory.BudgetOfNamespace, Limit: 100, Used: 60, Needed: 60, Until: midnight})
	w.at(midnight.Add(-time.Nanosecond))
	w.wantRefused(ben, 60, memory.BudgetError{Of: memory.BudgetOfNamespace, Limit: 100, Used: 60, Needed: 60, Until: midnight})
	w.at(midnight.In(time.FixedZone("east", 8*3600)))
	w.wantAdmitted(ben, 60, 60)
	settle(30) // counts for the day on which it ends
	w.wantRefused(ben, 11, memory.BudgetError{Of: memory.BudgetOfNamespace, Limit: 100, Used: 90, Needed: 11, Until: midnight.Add(24 * time.Hour)})
	w.wantAdmitted(ben, 10, 10)
	if n := strings.Count(w.log.String(), "daily token budget is used up"); n != 2 { // one a day
		t.Errorf("%d lines in the log:\n%s", n, w.log.String())
	}
}

// TestUsageSurvivesARestart: After a restart the used tokens and the refusals are known.
func TestUsageSurvivesARestart(t *testing.T) {
	w := newWorld(t, budget.Limits{Namespace: 100, User: 80})
	w.wantAdmitted(ann, 10, 75)
	w.wantRefused(ann, 6, memory.BudgetError{Of: memory.BudgetOfUser, Limit: 80, Used: 75, Needed: 6, Until: midnight})
	w.Add(ben, 15) // such as an embedding: it counts and is never refused
	w.stop()
	w.start()
	w.wantRefused(ann, 6, memory.BudgetError{Of: memory.BudgetOfUser, Limit: 80, Used: 75, Needed: 6, Until: midnight})
	w.wantRefused(ben, 11, memory.BudgetError{Of: memory.BudgetOfNamespace, Limit: 100, Used: 90, Needed: 11, Until: midnight})
	if today, err := w.Today(t.Context(), ann); err != nil || today != (budget.Entry{Day: "2026-11-20", User: ann, Count: budget.Count{Tokens: 75, Refused: 2}}) {
		t.Errorf("ann today: %+v, %v", today, err)
	}
}

// TestForgetResetsTheUsersBudget: A forgotten user's budget is full again. The namespace's is not.
func TestForgetResetsTheUsersBudget(t *testing.T) {
	w := newWorld(t, budget.Limits{Namespace: 100, User: 50})
	w.wantAdmitted(ann, 10, 50)
	if had, err := w.Forget(t.Context(), ann); !had || err != nil {
		t.Errorf("%t, %v", had, err)
	}
	w.wantAdmitted(ann, 10, 49)
	w.wantRefused(ben, 2, memory.BudgetError{Of: memory.BudgetOfNamespace, Limit: 100, Used: 99, Needed: 2, Until: midnight})
}

// TestConcurrentCallsReserveTokens: Concurrent calls cannot reserve the same tokens, whatever they finally use.
func TestConcurrentCallsReserveTokens(t *testing.T) {
	w := newWorld(t, budget.Limits{Namespace: 100})
	var let, refused atomic.Int64
	var all sync.WaitGroup
	release := make(chan struct{})
	for range 20 {
		all.Go(func() {
			settle, err := w.Reserve(usage.WithUser(t.Context(), ann), 30)
			if err != nil {
				refused.Add(1)
				return
			}
			if let.Add(1) == 3 {
				close(release)
			}
			<-release
			settle(0) // it failed and used nothing
		})
	}
	all.Wait()
	if let.Load() < 3 || let.Load()+refused.Load() != 20 {
		t.Errorf("%d were admitted, %d refused", let.Load(), refused.Load())
	}
	w.wantAdmitted(ann, 100, 100) // reserved tokens are free again
}

// TestStorageOutageRefusesLimitedCalls: If the usage cannot be read, calls of limited users are refused.
func TestStorageOutageRefusesLimitedCalls(t *testing.T) {
	meter := budget.NewMeter(down{}, budget.Options{Limits: func(string) budget.Limits { return budget.Limits{User: 1} }, Log: slog.New(slog.DiscardHandler)})
	defer meter.Close()
	if _, err := meter.Reserve(usage.WithUser(t.Context(), ann), 1); !errors.Is(err, memory.ErrUnavailable) {
		t.Errorf("with a limit: %v", err)
	}
	if settle, err := meter.Reserve(usage.WithUser(t.Context(), noUser), 1); err != nil { // it has no limit
		t.Errorf("without a limit: %v", err)
	} else {
		settle(1)
	}
}

type down struct{}

func (down) Add(context.Context, []budget.Entry) error { return memory.ErrUnavailable }

func (down) Get(context.Context, string, memory.User) (budget.Count, error) {
	return budget.Count{}, memory.ErrUnavailable
}

func (down) RefusedUsers(context.Context, string, string) (int64, error) {
	return 0, memory.ErrUnavailable
}

func (down) Forget(context.Context, memory.User) (bool, error) { return false, memory.ErrUnavailable }

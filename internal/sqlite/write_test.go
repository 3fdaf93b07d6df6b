package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"

	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// outcome is the result of a background write.
type outcome struct {
	err error
}

// start writes in the background and returns when the write is in the writer's queue.
func start(ctx context.Context, s *sqlite.Storage, fn func(sqldb.Tx) error) *outcome {
	o := &outcome{errors.New("has not returned")}
	go func() { o.err = s.Write(ctx, fn) }()
	synctest.Wait()
	return o
}

func insert(ctx context.Context, id int) func(sqldb.Tx) error {
	return func(tx sqldb.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO notes (id) VALUES (?)`, id)
		return err
	}
}

func ids(t *testing.T, s *sqlite.Storage) (ids []int) {
	t.Helper()
	for text := range strings.SplitSeq(dbtest.Value[string](t, s, `SELECT coalesce(group_concat(id ORDER BY id), '') FROM notes`), ",") {
		var id int
		if _, err := fmt.Sscan(text, &id); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

const createNotes = `CREATE TABLE notes (id INTEGER PRIMARY KEY) STRICT`

// TestFailedRequestIsUndoneAlone: If one of several requests in a commit fails or panics, the others are not affected.
func TestFailedRequestIsUndoneAlone(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s := dbtest.Open(t, sqlite.Options{Dir: dir})
		dbtest.Exec(t, s, createNotes)
		release := dbtest.Hold(t, s)
		mistake := errors.New("a mistake")
		first := start(ctx, s, insert(ctx, 1))
		failing := start(ctx, s, func(tx sqldb.Tx) error { return errors.Join(insert(ctx, 2)(tx), mistake) })
		second := start(ctx, s, insert(ctx, 3))
		panicking := start(ctx, s, func(tx sqldb.Tx) error {
			if err := insert(ctx, 4)(tx); err != nil {
				return err
			}
			rows, err := tx.Query(ctx, `SELECT id FROM notes`) // deliberately not closed
			if err != nil {
				return err
			}
			rows.Next()
			panic("oops")
		})
		violating := start(ctx, s, insert(ctx, 3))
		third := start(ctx, s, insert(ctx, 5))
		release()
		synctest.Wait()

		for name, o := range map[string]*outcome{"first": first, "second": second, "third": third} {
			if o.err != nil {
				t.Errorf("%s: %v", name, o.err)
			}
		}
		if !errors.Is(failing.err, mistake) {
			t.Errorf("failing: %v", failing.err)
		}
		if panicking.err == nil || !strings.Contains(panicking.err.Error(), "oops") || errors.Is(panicking.err, memory.ErrUnavailable) {
			t.Errorf("panicking: %v", panicking.err)
		}
		if violating.err == nil || errors.Is(violating.err, memory.ErrUnavailable) {
			t.Errorf("violating: %v", violating.err)
		}
		if got := ids(t, s); !slices.Equal(got, []int{1, 3, 5}) {
			t.Errorf("stored %v", got)
		}
		if done, err := s.Purge(ctx); !done || err != nil {
			t.Errorf("purging after the panic: %t, %v", done, err)
		}
		if status := s.Status(); status.State != breaker.Closed {
			t.Errorf("status %+v", status)
		}
	})
}

// TestOutageFailsTheWholeCommit: When the database fails in the middle of a commit, nothing is stored and all callers get an error, also
// those whose part had succeeded.
func TestOutageFailsTheWholeCommit(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s := dbtest.Open(t, sqlite.Options{Dir: dir})
		dbtest.Exec(t, s, createNotes)
		release := dbtest.Hold(t, s)
		before := start(ctx, s, insert(ctx, 1))
		failing := start(ctx, s, func(tx sqldb.Tx) error {
			if _, err := tx.Exec(ctx, `PRAGMA query_only = ON`); err != nil { // as if the disk became read-only
				return err
			}
			return insert(ctx, 2)(tx)
		})
		after := start(ctx, s, insert(ctx, 3))
		release()
		synctest.Wait()
		for i, o := range []*outcome{before, failing, after} {
			if !errors.Is(o.err, memory.ErrUnavailable) {
				t.Errorf("%d: %v, want ErrUnavailable", i, o.err)
			}
		}
		if err := exec(ctx, s, `INSERT INTO notes (id) VALUES (5)`); !errors.Is(err, memory.ErrUnavailable) {
			t.Errorf("the next write: %v", err)
		}
		if got := ids(t, s); got != nil { // stored rows can still be read
			t.Errorf("during the outage %v are stored", got)
		}

		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := ids(t, s); got != nil {
			t.Errorf("stored %v", got)
		}
		dbtest.Exec(t, s, `INSERT INTO notes (id) VALUES (4)`)
	})
}

func TestCancelledWrites(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := dbtest.Open(t, sqlite.Options{Dir: dir})
		dbtest.Exec(t, s, createNotes)
		ctx, cancel := context.WithCancel(t.Context())
		release := dbtest.Hold(t, s)
		waiting := start(ctx, s, insert(ctx, 1))
		cancel()
		synctest.Wait()
		if !errors.Is(waiting.err, context.Canceled) {
			t.Errorf("cancelled while it waited: %v", waiting.err)
		}
		release()
		synctest.Wait()
		if got := ids(t, s); got != nil {
			t.Errorf("stored %v in spite of the answer", got)
		}

		// Once writing has begun, the caller must wait for the result.
		ctx, cancel = context.WithCancel(t.Context())
		entered, leave := make(chan struct{}), make(chan struct{})
		written := start(ctx, s, func(tx sqldb.Tx) error {
			close(entered)
			<-leave
			return insert(ctx, 2)(tx)
		})
		<-entered
		cancel()
		synctest.Wait()
		if errors.Is(written.err, context.Canceled) {
			t.Error("the caller got the result too early")
		}
		close(leave)
		synctest.Wait()
		if written.err != nil {
			t.Errorf("cancelled while it was written: %v", written.err)
		}
		if got := ids(t, s); !slices.Equal(got, []int{2}) {
			t.Errorf("stored %v", got)
		}

		for range 20 { // select chooses at random
			if err := s.Write(ctx, insert(ctx, 3)); !errors.Is(err, context.Canceled) {
				t.Fatalf("cancelled before: %v", err)
			}
		}
		if got := ids(t, s); !slices.Equal(got, []int{2}) {
			t.Errorf("stored %v", got)
		}
	})
}

// TestCloseStoresOrRefusesWrites: Each write is either stored or refused.
func TestCloseStoresOrRefusesWrites(t *testing.T) {
	dir := t.TempDir()
	s := dbtest.Open(t, sqlite.Options{Dir: dir})
	dbtest.Exec(t, s, createNotes)
	ctx := t.Context()
	const writers = 8
	stored := make([][]int, writers)
	enough := make(chan struct{}, writers)
	var tasks sync.WaitGroup
	for w := range writers {
		tasks.Go(func() {
			for i := 0; ; i++ {
				id := i*writers + w
				switch err := s.Write(ctx, insert(ctx, id)); {
				case err == nil:
					stored[w] = append(stored[w], id)
				case !errors.Is(err, memory.ErrUnavailable):
					t.Error(err)
					fallthrough
				default:
					return
				}
				if i == 5 {
					enough <- struct{}{}
				}
			}
		})
	}
	for range writers {
		<-enough
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	tasks.Wait()

	s = dbtest.Open(t, sqlite.Options{Dir: dir})
	want := slices.Concat(stored...)
	slices.Sort(want)
	if got := ids(t, s); !slices.Equal(got, want) {
		t.Errorf("%d rows are stored, %d writes succeeded", len(got), len(want))
	}
}

package trace_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/testkit/leaks"
	"github.com/memsidecar/memsidecar/internal/trace"
)

func TestMain(m *testing.M) { leaks.Main(m) }

var (
	ann = memory.User{Namespace: "test", ID: "ann"}
	ben = memory.User{Namespace: "test", ID: "ben"}
)

// world is a recorder with its own database.
type world struct {
	*trace.Recorder
	store *sqlstore.Traces
	db    *sqlite.Storage
}

// bubble runs a test with the synctest clock.
func bubble(t *testing.T, options trace.Options, run func(t *testing.T, w *world)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir, CheckEvery: time.Hour, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		options.Log = log
		w := &world{store: sqlstore.NewTraces(db), db: db}
		w.Recorder = trace.NewRecorder(w.store, options)
		defer func() {
			w.Close()
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}()
		run(t, w)
	})
}

// note records a call of the user.
func (w *world) note(id string, user memory.User) {
	w.Record(trace.Record{
		ID: id, Scope: memory.Scope{Namespace: user.Namespace, UserID: user.ID, SessionID: "s"}, At: time.Now(),
		Retrieve: &trace.RetrieveDetail{},
	})
}

// stored returns the ids of a user's stored records, oldest first.
func (w *world) stored(t *testing.T, user memory.User) string {
	t.Helper()
	records, _, err := w.store.List(t.Context(), trace.ListQuery{User: user, Audience: memory.Everything(), OldestFirst: true, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, r := range records {
		ids = append(ids, r.ID)
	}
	return strings.Join(ids, " ")
}

func TestRecordsAreWrittenInBatches(t *testing.T) {
	bubble(t, trace.Options{Retention: time.Hour}, func(t *testing.T, w *world) {
		w.note("1", ann)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		w.note("2", ann)
		if got := w.stored(t, ann); got != "1" {
			t.Errorf("written %q", got)
		}
		w.Close()
		if got := w.stored(t, ann); got != "1 2" {
			t.Errorf("after Close %q", got)
		}
		w.Recorder = trace.NewRecorder(w.store, trace.Options{Retention: time.Hour, Log: slog.New(slog.DiscardHandler)})
	})
}

// TestReadsIncludePendingRecords: Reads include records that are not written yet.
func TestReadsIncludePendingRecords(t *testing.T) {
	bubble(t, trace.Options{Retention: time.Hour}, func(t *testing.T, w *world) {
		w.note("1", ann)
		if r, err := w.Get(t.Context(), ann, "1", memory.Everything()); err != nil || r.ID != "1" {
			t.Errorf("got %+v, %v", r, err)
		}
		w.note("2", ann)
		records, _, err := w.List(t.Context(), trace.ListQuery{User: ann, Audience: memory.Everything(), Limit: 10})
		if err != nil || len(records) != 2 {
			t.Errorf("listed %+v, %v", records, err)
		}
		w.note("3", ann)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for range 100 { // a cancelled read must not lose pending records
			_, _, _ = w.List(gone, trace.ListQuery{User: ann, Audience: memory.Everything(), Limit: 10})
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := w.stored(t, ann); got != "1 2 3" {
			t.Errorf("stored %q", got)
		}
	})
}

// TestDisabledRecorderDeletesRecords: Nothing is recorded, and existing records are deleted.
func TestDisabledRecorderDeletesRecords(t *testing.T) {
	bubble(t, trace.Options{Retention: time.Hour}, func(t *testing.T, w *world) {
		w.note("1", ann)
		w.Close()
		w.Recorder = trace.NewRecorder(w.store, trace.Options{Log: slog.New(slog.DiscardHandler)})
		if w.Enabled() {
			t.Error("enabled without retention")
		}
		w.note("2", ann)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := w.stored(t, ann); got != "" {
			t.Errorf("stored %q", got)
		}
	})
}

// TestForgetIncludesPendingRecords: Pending records are deleted too, those of other users are not.
func TestForgetIncludesPendingRecords(t *testing.T) {
	bubble(t, trace.Options{Retention: time.Hour}, func(t *testing.T, w *world) {
		w.note("1", ann)
		time.Sleep(2 * time.Second)
		w.note("2", ann)
		w.note("3", ben)
		if n, err := w.Forget(t.Context(), ann); n != 2 || err != nil {
			t.Errorf("forgot %d, %v", n, err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if a, b := w.stored(t, ann), w.stored(t, ben); a != "" || b != "3" {
			t.Errorf("%q and %q remain", a, b)
		}
		w.note("4", ben)
		if n, err := w.ForgetSession(t.Context(), "test", "s", memory.Channel{}); n != 2 || err != nil {
			t.Errorf("forgot %d of the session, %v", n, err)
		}
		if err := w.db.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Forget(t.Context(), ann); !errors.Is(err, memory.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
	})
}

// TestExpiredRecordsAreDeleted: Records are deleted at most one minute after their retention has ended, and at the start.
func TestExpiredRecordsAreDeleted(t *testing.T) {
	bubble(t, trace.Options{Retention: 24 * time.Hour}, func(t *testing.T, w *world) {
		w.note("1", ann)
		time.Sleep(time.Hour)
		w.note("2", ann)
		time.Sleep(23 * time.Hour)
		synctest.Wait()
		if got := w.stored(t, ann); got != "1 2" {
			t.Errorf("a day later: %q", got)
		}
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if got := w.stored(t, ann); got != "2" {
			t.Errorf("a minute after that: %q", got)
		}
		w.Close()
		time.Sleep(time.Hour)
		w.Recorder = trace.NewRecorder(w.store, trace.Options{Retention: 24 * time.Hour, Log: slog.New(slog.DiscardHandler)})
		synctest.Wait()
		if got := w.stored(t, ann); got != "" {
			t.Errorf("after the next start: %q", got)
		}
	})
}

// TestExcessRecordsAreDeleted: Above the limit the oldest records are deleted, whichever user's they are.
func TestExcessRecordsAreDeleted(t *testing.T) {
	bubble(t, trace.Options{Retention: 24 * time.Hour, MaxRecords: 3}, func(t *testing.T, w *world) {
		for i := range 1203 { // several steps
			time.Sleep(time.Millisecond)
			w.note(fmt.Sprint(i), []memory.User{ann, ben}[i%2])
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if a, b := w.stored(t, ann), w.stored(t, ben); a != "1200 1202" || b != "1201" {
			t.Errorf("%q and %q remain", a, b)
		}
	})
}

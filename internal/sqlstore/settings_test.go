package sqlstore_test

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

var (
	ann       = memory.User{Namespace: "test", ID: "ann"}
	ben       = memory.User{Namespace: "test", ID: "ben"}
	elsewhere = memory.User{Namespace: "elsewhere", ID: "ann"}
	at        = time.Date(2026, 11, 20, 8, 30, 0, 123_456_000, time.UTC)
)

func TestSettings(t *testing.T) {
	dir := t.TempDir()
	db := dbtest.Open(t, sqlite.Options{Dir: dir})
	s := sqlstore.NewSettings(db)
	check := func(user memory.User, want memory.Settings) {
		t.Helper()
		for _, settings := range []*sqlstore.Settings{s, sqlstore.NewSettings(db)} { // what is cached, and what is stored
			if got, err := settings.Get(t.Context(), user); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("settings of %v: %+v, %v, want %+v", user, got, err, want)
			}
		}
	}
	check(ann, memory.Settings{})
	paused := memory.Settings{TimeZone: "Asia/Shanghai", Language: "zh", Paused: true, MemorizeEvery: new(int), UpdatedAt: at}
	got, err := s.Update(t.Context(), ann, func(x *memory.Settings) { *x = paused })
	if err != nil || !reflect.DeepEqual(got, paused) {
		t.Errorf("updated %+v, %v", got, err)
	}
	check(ann, paused)
	check(ben, memory.Settings{})
	check(elsewhere, memory.Settings{})
	paused.Language, paused.UpdatedAt = "en", at.Add(time.Hour)
	_, err = s.Update(t.Context(), ann, func(x *memory.Settings) {
		if x.TimeZone != "Asia/Shanghai" {
			t.Errorf("to be changed: %+v", x)
		}
		x.Language, x.UpdatedAt = paused.Language, paused.UpdatedAt
	})
	if err != nil {
		t.Fatal(err)
	}
	check(ann, paused)

	if _, err := s.Update(t.Context(), ben, func(x *memory.Settings) { x.UpdatedAt = at }); err != nil {
		t.Fatal(err)
	}
	for user, want := range map[memory.User]bool{ann: true, elsewhere: false} {
		if had, err := s.Forget(t.Context(), user); had != want || err != nil {
			t.Errorf("forgot %v: %t, %v", user, had, err)
		}
	}
	check(ann, memory.Settings{})
	check(ben, memory.Settings{UpdatedAt: at})
}

// TestSettingsForgetOnlySettings: what else is stored of the user stays.
func TestSettingsForgetOnlySettings(t *testing.T) {
	db := dbtest.Open(t, sqlite.Options{Dir: t.TempDir()})
	s := sqlstore.NewSettings(db)
	err := db.Write(t.Context(), func(tx sqldb.Tx) error {
		row, err := sqlstore.EnsureUserRow(t.Context(), tx, ann)
		if err != nil {
			return err
		}
		// Its memory was deleted; that it was applied must stay known.
		_, err = tx.Exec(t.Context(), `INSERT INTO applied_statements (user_row, statement_id, memory_id, action, payload_hash)
			VALUES (?, 's1', 'mem_1', 'added', x'')`, row)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(t.Context(), ann, func(x *memory.Settings) { x.UpdatedAt = at }); err != nil {
		t.Fatal(err)
	}
	if had, err := s.Forget(t.Context(), ann); !had || err != nil {
		t.Fatal(had, err)
	}
	if n := dbtest.Value[int](t, db, `SELECT count(*) FROM applied_statements`); n != 1 {
		t.Error("forgetting the settings deleted what was applied")
	}
}

// TestSettingsAreNotStale: nobody sees, after a change has returned, what was before.
func TestSettingsAreNotStale(t *testing.T) {
	s := sqlstore.NewSettings(dbtest.Open(t, sqlite.Options{Dir: t.TempDir()}))
	var stop atomic.Bool
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer stop.Store(true)
	for range 3 {
		tasks.Go(func() {
			for !stop.Load() {
				if _, err := s.Get(context.Background(), ann); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 60 {
		want := i%2 == 0
		if _, err := s.Update(t.Context(), ann, func(x *memory.Settings) { x.Paused, x.UpdatedAt = want, at }); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if got, err := s.Get(t.Context(), ann); err != nil || got.Paused != want {
				t.Fatalf("after change %d: %+v, %v", i, got, err)
			}
		}
	}
}

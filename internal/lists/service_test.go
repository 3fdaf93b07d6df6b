package lists_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/lists"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
)

var (
	discard = slog.New(slog.DiscardHandler)
	scope   = memory.Scope{Namespace: "n", UserID: "ann", Channel: memory.Channel{Kind: memory.ChannelDirect}}
)

func view() lists.View {
	r, _ := lists.RegistryOf(scope, "", "")
	return lists.View{Registry: r, Audience: memory.Everything()}
}

func here() lists.Place {
	p, _ := lists.PlaceOf(scope, memory.Everything())
	return p
}

func openStore(t *testing.T) *sqlstore.NumberedLists {
	t.Helper()
	storage, err := sqlite.Open(t.Context(), sqlite.Options{Dir: t.TempDir(), Log: discard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = storage.Close() })
	return sqlstore.NewNumberedLists(storage)
}

func put(t *testing.T, k *lists.Service, mode lists.Mode, keys ...string) lists.PutResult {
	t.Helper()
	place := here()
	p := lists.Put{View: view(), Mode: mode, Place: &place}
	for _, key := range keys {
		p.Items = append(p.Items, lists.Item{Key: key})
	}
	done, err := k.Put(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func seen(t *testing.T, k *lists.Service) string {
	t.Helper()
	page, err := k.Items(t.Context(), view(), "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, item := range page.Items {
		keys = append(keys, item.Key)
	}
	return strings.Join(keys, " ")
}

// TestListTTL: a list is being shown until another is, however long that takes, unless numbered_lists.list_ttl says how long.
func TestListTTL(t *testing.T) {
	now := time.Date(2026, 2, 19, 9, 0, 0, 0, time.UTC)
	store := openStore(t)
	forever := lists.NewService(
		store,
		lists.Options{MaxItems: 100, MaxAge: 90 * 24 * time.Hour, Now: func() time.Time { return now }, Log: discard},
	)
	put(t, forever, lists.Manual, "a", "b", "c")
	now = now.Add(10 * 365 * 24 * time.Hour)
	if err := forever.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c, err := forever.Select(t.Context(), here(), "", 3); err != nil || c.Items[0].Key != "c" || seen(t, forever) != "" {
		t.Errorf("after ten years 3 is %+v, %v", c, err)
	}

	hour := lists.NewService(store, lists.Options{MaxItems: 100, ListTTL: time.Hour, Now: func() time.Time { return now }, Log: discard})
	put(t, hour, lists.Manual, "d")
	now = now.Add(time.Hour - time.Microsecond)
	last, err := hour.Select(t.Context(), here(), "", -1)
	if err != nil || last.Items[0].Key != "d" || !hour.Expiry(&last.Shown).Equal(now.Add(time.Microsecond)) {
		t.Errorf("before the hour is over: %+v, %v, expires %s", last, err, hour.Expiry(&last.Shown))
	}
	now = now.Add(time.Microsecond)
	if _, err := hour.Select(t.Context(), here(), "", 1); !errors.Is(err, memory.ErrPrecondition) ||
		!strings.Contains(err.Error(), "numbered_lists.list_ttl, 1h") {
		t.Errorf("after an hour: %v", err)
	}
	if _, err := hour.Shown(t.Context(), here(), ""); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("after an hour: %v", err)
	}
	if err := hour.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := forever.Select(t.Context(), here(), "", 1); !errors.Is(err, memory.ErrPrecondition) {
		t.Errorf("an expired list is still stored: %v", err)
	}
}

// TestMaxAge: an item ages from when it was last seen, and the limit holds whatever lists show.
func TestMaxAge(t *testing.T) {
	now := time.Date(2026, 2, 19, 9, 0, 0, 0, time.UTC)
	k := lists.NewService(openStore(t), lists.Options{MaxItems: 3, MaxAge: time.Hour, Now: func() time.Time { return now }, Log: discard})
	put(t, k, lists.Scheduled, "old")
	put(t, k, lists.Manual, "shown")
	now = now.Add(time.Hour + time.Second)
	if got := seen(t, k); got != "old shown" {
		t.Errorf("reading evicts: %q", got)
	}
	if done := put(t, k, lists.Scheduled, "old", "new"); done.Items[0].New || done.Evicted != 1 {
		t.Errorf("put %+v", done)
	}
	if got := seen(t, k); got != "new old" {
		t.Errorf("seen %q", got)
	}
	now = now.Add(time.Second)
	if done := put(t, k, lists.Scheduled, "2", "3"); done.Evicted != 1 {
		t.Errorf("put %+v", done)
	}
	if got := seen(t, k); got != "2 3 new" {
		t.Errorf("too many are %q", got)
	}
}

// TestSweepsInTheBackground: what nobody touches goes, too.
func TestSweepsInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sweeps{}
		k := lists.NewService(s, lists.Options{MaxAge: 24 * time.Hour, Log: discard})
		k.Start()
		synctest.Wait()
		if count, _ := s.done(); count != 2 { // one that deletes, one that finds nothing more
			t.Errorf("at the start sweeps %d times", count)
		}
		started := time.Now()
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		count, last := s.done()
		if count != 8 {
			t.Errorf("after three hours swept %d times", count)
		}
		if want := started.Add(-21 * time.Hour); !last.SeenAfter.Equal(want) || !last.ShownAfter.IsZero() {
			t.Errorf("swept %+v, want %s", last, want)
		}
		k.Stop()
	})
}

// sweeps is a store in which every other sweep finds something.
type sweeps struct {
	lists.Store
	mu    sync.Mutex
	count int
	last  lists.Limits
}

func (s *sweeps) done() (int, lists.Limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count, s.last
}

func (s *sweeps) Sweep(_ context.Context, l lists.Limits, _ int) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	s.last = l
	return int64(s.count % 2), nil
}

func TestSelectOutside(t *testing.T) {
	k := lists.NewService(openStore(t), lists.Options{MaxItems: 100, Log: discard})
	put(t, k, lists.Manual, "a", "b")
	for _, o := range []lists.Ordinal{0, 3, -3} {
		_, err := k.Select(t.Context(), here(), "", o)
		outside, ok := errors.AsType[*memory.RangeError](err)
		if !ok || outside.First != 1 || outside.Last != 2 || !strings.Contains(err.Error(), "1 to 2") {
			t.Errorf("%d: %v", o, err)
		}
	}
}

// TestSelectText: what the grammar does not know may be a title; a number that the list does not have, too.
func TestSelectText(t *testing.T) {
	k := lists.NewService(openStore(t), lists.Options{MaxItems: 100, Log: discard})
	place := here()
	_, err := k.Put(t.Context(), lists.Put{View: view(), Mode: lists.Manual, Place: &place, Items: []lists.Item{
		{
			Key:   "a",
			Title: "1917",
		}, {Key: "b", Title: "她"}, {Key: "c", Title: "Her"}, {Key: "d", Title: "重复"}, {Key: "e", Title: "重复"}, {Key: "f"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"1917": "a", "她": "b", "Her!": "c", "2": "b", "4、6": "d f", "last and first": "f a", "前两个": "a b", "都不要": "", "all": "a b c d e f",
		"重复": "not understood", "1 and 1": "not understood", "1 and first": "not understood", "hello": "not understood", "1918": "outside", "5-7": "outside",
	} {
		c, understood, err := k.SelectText(t.Context(), place, "", text)
		var keys []string
		for _, item := range c.Items {
			keys = append(keys, item.Key)
		}
		got := strings.Join(keys, " ")
		if _, outside := errors.AsType[*memory.RangeError](err); outside {
			got = "outside"
		} else if err != nil {
			t.Fatal(err)
		} else if !understood {
			got = "not understood"
		}
		if got != want {
			t.Errorf("%q selects %q, want %q", text, got, want)
		}
	}
	if _, understood, _ := k.SelectText(t.Context(), place, "papers", "她"); understood {
		t.Error("a title of no list is understood")
	}
	if _, understood, err := k.SelectText(t.Context(), place, "papers", "none of them"); !understood ||
		!errors.Is(err, memory.ErrPrecondition) {
		t.Errorf("of no list: %v, %v", understood, err)
	}
}

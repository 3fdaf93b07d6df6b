package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"
	"github.com/memsidecar/memsidecar/internal/testkit/leftover"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve/recall"
	"github.com/memsidecar/memsidecar/internal/retrieve/recall/recalltest"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// sameAsWithoutIndex compares searches with their results without an index.
func (h *history) sameAsWithoutIndex(texts ...string) {
	h.Helper()
	stores := recalltest.Stores{Sessions: h.sessions, Search: h.recall, Index: h.recall}
	recalltest.SameAsUnindexed(h.T, stores, listener, "s", texts...)
}

// holds reports whether a term is in any postings.
func (h *history) holds(term string) (found bool) {
	h.Helper()
	err := h.db.Read(h.Context(), func(q sqldb.Querier) error {
		return q.QueryRow(h.Context(), `SELECT EXISTS (SELECT 1 FROM message_postings WHERE term = ?)`, term).Scan(&found)
	})
	if err != nil {
		h.Fatal(err)
	}
	return found
}

// TestRecallDeletesIndexedWords: After a deletion no key of the index holds a deleted word, and no file a byte of it.
const secret = "allergic to xylophone music"

func TestRecallDeletesIndexedWords(t *testing.T) {
	for name, remove := range map[string]func(h *history) error{
		"session": func(h *history) error {
			viewer := session.Viewer{Namespace: "n", UserID: "ann", Audience: memory.Everything()}
			_, err := h.sessions.Delete(h.Context(), viewer, "secret")
			return err
		},
		"user": func(h *history) error {
			_, err := h.sessions.Forget(h.Context(), listener)
			return err
		},
		"retention": func(h *history) error {
			_, err := h.sessions.Expire(h.Context(), session.Expiry{Namespace: "n", Before: spoken.Add(-time.Hour), Limit: 10})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := dbtest.Open(t, sqlite.Options{Dir: dir})
			h := newHistory(t, s)
			// Other data of the user is stored, so the user's row stays.
			if _, err := sqlstore.NewSettings(s).Update(t.Context(), listener, func(m *memory.Settings) { m.UpdatedAt = spoken }); err != nil {
				t.Fatal(err)
			}
			h.say(scope("ann", "s"), append(filler("ann"), by("ann", "tea before"))...)
			h.say(scope("bob", "b"), append(filler("bob"), by("bob", "bob drinks tea"))...)
			h.index()
			for _, messages := range [][]memory.Message{
				append(filler("ann")[:64], by("ann", secret+" and tea")), // indexed
				{answer("xylophone music, tea and marimbas")},            // not indexed yet
			} {
				_, err := h.sessions.Append(t.Context(), session.Append{
					Scope: scope("ann", "secret"), Audience: memory.Everything(), Messages: messages, At: spoken.Add(-2 * time.Hour),
				})
				if err != nil {
					t.Fatal(err)
				}
				h.index()
			}
			err := h.recall.SetVectors(t.Context(), "m@1", []recall.Vector{{
				Row:     dbtest.Value[int64](t, s, `SELECT max(row) FROM session_messages`),
				UserRow: dbtest.Value[int64](t, s, `SELECT id FROM users WHERE user_id = 'ann'`), Vector: []float32{0.123456789},
			}}, 999, 1000)
			if err != nil {
				t.Fatal(err)
			}
			if !h.holds("xylophon") || dbtest.Value[int](t, s, `SELECT count(*) FROM message_embeddings`) != 1 {
				t.Fatal("the word is not indexed: this test shows nothing")
			}
			if err := remove(h); err != nil {
				t.Fatal(err)
			}
			for _, term := range []string{"xylophon", "music", "marimba", "allerg"} {
				if h.holds(term) {
					t.Errorf("%q is still in the index", term)
				}
			}
			if n := dbtest.Value[int](t, s, `SELECT count(*) FROM message_embeddings`); n != 0 {
				t.Errorf("%d vectors are left", n)
			}
			if _, err := s.Purge(t.Context()); err != nil {
				t.Fatal(err)
			}
			if names := leftover.In(t, dir, secret); names != nil {
				t.Errorf("the secret is still in %v", names)
			}
			h.finds(query(memory.User{Namespace: "n", ID: "bob"}, 10), "tea", "bob drinks tea")
			if name == "user" {
				h.finds(query(listener, 10), "tea")
				if n := dbtest.Value[int](t, s, `SELECT count(*) FROM message_postings WHERE user_row <> (SELECT id FROM users WHERE user_id = 'bob')`); n != 0 {
					t.Errorf("%d blocks are left", n)
				}
			} else {
				h.finds(query(listener, 10), "tea", "tea before")
				h.sameAsWithoutIndex("tea before", "filler number 7", "2026-03-05")
			}
		})
	}
}

// interruptedDB is a database that fails in the middle of the work, or calls a function there.
type interruptedDB struct {
	sqldb.Access
	writes int
	before func(write int) error
}

func (a *interruptedDB) Write(ctx context.Context, fn func(sqldb.Tx) error) error {
	a.writes++
	if err := a.before(a.writes); err != nil {
		return err
	}
	return a.Access.Write(ctx, fn)
}

// manyWords returns messages with so many different words that they are indexed in several transactions.
func manyWords() (messages []memory.Message) {
	for i := range 80 {
		var words []string
		for j := range 10 {
			words = append(words, fmt.Sprintf("%c%c%c%dz", 'a'+j, 'a'+i%26, 'a'+i/26, i*j%7))
		}
		messages = append(messages, by("ann", "tea "+strings.Join(words, " ")))
	}
	return messages
}

// TestRecallAfterCrash: Wherever the indexing is interrupted, searches find every message once, also after it has continued, and
// deletions leave no word.
func TestRecallAfterCrash(t *testing.T) {
	crash := errors.New("killed")
	s := dbtest.New(t)
	h := newHistory(t, s)
	h.say(scope("ann", "s"), manyWords()...)
	h.index()
	for at := 1; ; at++ {
		h.say(scope("ann", "s"), manyWords()...)
		killed := sqlstore.NewRecall(&interruptedDB{Access: s, before: func(write int) error {
			if write >= at {
				return crash
			}
			return nil
		}})
		_, err := killed.IndexNext(t.Context())
		if err != nil && !errors.Is(err, crash) {
			t.Fatal(err)
		}
		h.sameAsWithoutIndex("aba0z tea", "2026-03-05")
		h.say(scope("ann", "x"), by("ann", "xylophone")) // changes the batch of the next attempt
		h.recall = sqlstore.NewRecall(s)                 // as after a restart
		h.index()
		viewer := session.Viewer{Namespace: "n", UserID: "ann", Audience: memory.Everything()}
		if _, err := h.sessions.Delete(t.Context(), viewer, "x"); err != nil {
			t.Fatal(err)
		}
		h.sameAsWithoutIndex("aba0z tea", "2026-03-05")
		if h.holds("xylophon") {
			t.Error("a deleted word is still in the index")
		}
		if err == nil {
			if at < 4 {
				t.Errorf("the indexing took %d writes: this test shows little", at-1)
			}
			break
		}
	}
	// Deleted right after a crash, with part of the batch in the postings.
	h.say(scope("ann", "y"), append(manyWords(), by("ann", "aaa marimba"))...)
	killed := sqlstore.NewRecall(&interruptedDB{Access: s, before: func(write int) error {
		if write > 1 {
			return crash
		}
		return nil
	}})
	if _, err := killed.IndexNext(t.Context()); !errors.Is(err, crash) || !h.holds("aaa") {
		t.Fatal(err)
	}
	if _, err := h.sessions.Delete(t.Context(), session.Viewer{Namespace: "n", UserID: "ann", Audience: memory.Everything()}, "y"); err != nil {
		t.Fatal(err)
	}
	if h.holds("aaa") {
		t.Error("a word of an interrupted batch is still in the index")
	}
	h.sameAsWithoutIndex("aba0z tea", "2026-03-05")
}

// TestRecallAfterCrashInALongBatch: This covers a frequent word that fills more than a block.
func TestRecallAfterCrashInALongBatch(t *testing.T) {
	s := dbtest.New(t)
	h := newHistory(t, s)
	h.say(scope("ann", "s"), manyWords()...)
	h.index()
	h.say(scope("ann", "s"), slices.Repeat(manyWords(), 6)...)
	h.recall = sqlstore.NewRecall(&interruptedDB{Access: s, before: func(write int) error {
		if write > 1 {
			return errors.New("killed")
		}
		return nil
	}})
	if _, err := h.recall.IndexNext(t.Context()); err == nil {
		t.Fatal("the indexing ended")
	}
	if n := dbtest.Value[int](t, s, `SELECT count(*) FROM message_postings WHERE term = '2026-03'`); n < 2 {
		t.Fatalf("there are %d blocks: this test shows nothing", n)
	}
	h.sameAsWithoutIndex("2026-03-05")
	h.recall = sqlstore.NewRecall(s)
	h.index()
	h.sameAsWithoutIndex("2026-03-05")
}

// TestRecallOmitsMessagesDeletedDuringIndexing: Messages that are deleted while they are being indexed leave no words.
func TestRecallOmitsMessagesDeletedDuringIndexing(t *testing.T) {
	s := dbtest.New(t)
	h := newHistory(t, s)
	for at := 1; at <= 4; at++ {
		h.say(scope("ann", "s"), manyWords()...)
		h.say(scope("ann", "x"), by("ann", "aaa marimba zzz"))
		h.recall = sqlstore.NewRecall(&interruptedDB{Access: s, before: func(write int) error {
			if write != at {
				return nil
			}
			_, err := h.sessions.Delete(t.Context(), session.Viewer{Namespace: "n", UserID: "ann", Audience: memory.Everything()}, "x")
			return err
		}})
		h.index()
		for _, term := range []string{"aaa", "marimba", "zzz"} {
			if h.holds(term) {
				t.Errorf("deleted before write %d: %q is in the index", at, term)
			}
		}
		h.sameAsWithoutIndex("aba0z tea", "2026-03-05")
	}
}

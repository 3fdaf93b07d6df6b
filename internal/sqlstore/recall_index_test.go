package sqlstore_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"
	"github.com/memsidecar/memsidecar/internal/testkit/leftover"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve/recall"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// document is a message with its terms.
type document struct {
	message session.Message
	terms   []string
}

// documents are the messages of ann's session s that can be found.
func (h *history) documents() (all []document) {
	h.Helper()
	for after := ""; ; {
		page, err := h.sessions.Messages(h.Context(), session.Viewer{Namespace: "n", UserID: "ann", Audience: memory.Everything()}, "s",
			session.MessageQuery{After: after, Limit: 1000})
		if err != nil {
			h.Fatal(err)
		}
		for _, m := range page.Messages {
			if m.Withheld == session.NotWithheld && recall.Indexed(m.Role) {
				all = append(all, document{m, recall.Terms(&m.Message)})
			}
		}
		if after = page.Next; after == "" {
			return all
		}
	}
}

// ranked is what a search over all documents would answer, without any index. Documents are in the order of their session.
func ranked(all []document, text string, neighborWeight float64) (hits []recall.Hit) {
	terms := recall.QueryTerms(text)
	holders := make([]int64, len(terms))
	var length int64
	for _, d := range all {
		length += int64(len(d.terms))
		for j, term := range terms {
			if slices.Contains(d.terms, term) {
				holders[j]++
			}
		}
	}
	scorer := recall.NewScorer(terms, holders, int64(len(all)), length)
	scored := make([]recall.Hit, len(all))
	for i, d := range all {
		scored[i] = recall.Hit{Message: d.message, Score: scorer.Score(d.terms)}
	}
	better := func(a, b recall.Hit) int {
		return cmp.Or(cmp.Compare(b.Relevance(), a.Relevance()), cmp.Compare(b.Message.Position, a.Message.Position))
	}
	best := slices.SortedFunc(slices.Values(scored), better)
	for _, lifting := range best[:min(16, len(best))] {
		at := slices.IndexFunc(scored, func(h recall.Hit) bool { return h.Message.Position == lifting.Message.Position })
		for steps, share := range map[int]float64{1: 1, 2: 0.6, -1: 2.0 / 3, -2: 2.0 / 3 * 0.6} {
			if i := at + steps; i >= 0 && i < len(scored) && max(scored[i].Message.Position-scored[at].Message.Position, scored[at].Message.Position-scored[i].Message.Position) <= 6 {
				scored[i].Neighbors = max(scored[i].Neighbors, neighborWeight*share*lifting.Score)
			}
		}
	}
	for _, h := range slices.SortedFunc(slices.Values(scored), better) {
		if h.Relevance() > 0 {
			hits = append(hits, h)
		}
	}
	return hits
}

// sameAsWithoutIndex compares searches with what they would answer without an index.
func (h *history) sameAsWithoutIndex(texts ...string) {
	h.Helper()
	all := h.documents()
	for _, text := range texts {
		for _, weight := range []float64{0, 0.6} {
			want := ranked(all, text, weight)
			for _, limit := range []int{10_000, 10} {
				q := query(listener, limit)
				q.NeighborWeight = weight
				h.same(fmt.Sprintf("%q, %v, up to %d", text, weight, limit), h.search(q, text), want[:min(limit, len(want))], limit > 10)
			}
		}
	}
}

// same compares what was found, of the same places in the ranking only when told: which of equals come in may differ.
func (h *history) same(what string, got, want []recall.Hit, places bool) {
	h.Helper()
	if len(got) != len(want) {
		h.Errorf("%s: %d hits, want %d", what, len(got), len(want))
		return
	}
	for i := range got {
		got, want := &got[i], &want[i]
		if math.Abs(got.Relevance()-want.Relevance()) > 1e-9 || places && (got.Message.Position != want.Message.Position ||
			math.Abs(got.Neighbors-want.Neighbors) > 1e-9) {
			h.Errorf("%s: hit %d is %d with %v and %v, want %d with %v and %v", what, i, got.Message.Position, got.Score, got.Neighbors,
				want.Message.Position, want.Score, want.Neighbors)
			return
		}
	}
}

var randomWords = strings.Fields(`tea 茶 green 绿茶 花生 过敏 peanut piano 钢琴 violin 下雨 rain sunshine 北京 上海 Paris train 火车 flight 飞机
	book 书 reading 读书 mountain 爬山 swimming 游泳 cat 猫 dog 狗 birthday 生日 2026-03-05`)

func randomText(random *rand.Rand, most int) string {
	var words []string
	for range 1 + random.IntN(most) {
		words = append(words, randomWords[int(float64(len(randomWords))*math.Pow(random.Float64(), 2))])
	}
	return strings.Join(words, " ")
}

// TestRecallRanksAsWithoutIndex: whether a message is in the postings, waits for it, or was deleted again.
func TestRecallRanksAsWithoutIndex(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	h := newHistory(t, dbtest.Open(t, sqlite.Options{Dir: t.TempDir()}))
	talk := func(n int) {
		var messages []memory.Message
		for i := range n {
			m := by("ann", randomText(random, 12))
			if i%2 == 1 {
				m = answer(m.Content)
			}
			m.Time = spoken.Add(time.Duration(random.IntN(10*24)) * time.Hour)
			messages = append(messages, m)
		}
		messages[n/2].Role, messages[n/2].Speaker, messages[n/2].AgentID = memory.RoleTool, "", ""
		withheld := make([]session.Withheld, n)
		withheld[n/3] = session.WithheldFailure
		_, err := h.sessions.Append(t.Context(), session.Append{
			Scope: scope("ann", "s"), Audience: memory.Everything(), Messages: messages, Withheld: withheld, At: spoken,
		})
		if err != nil {
			t.Fatal(err)
		}
		h.say(scope("bob", "b"), by("bob", "tea and more tea")) // whose rows lie between
	}
	compare := func() {
		var texts []string
		for range 6 {
			texts = append(texts, randomText(random, 4))
		}
		h.sameAsWithoutIndex(texts...)
	}
	talk(50)
	h.index()
	compare() // all in the tail
	talk(30)
	h.index()
	compare() // all in the postings
	talk(40)
	h.index()
	compare() // some here, some there
	for range 3 {
		talk(100)
		h.index()
		compare()
	}
	if _, err := h.sessions.Expire(t.Context(), session.Expiry{Namespace: "n", Before: spoken, Limit: 100}); err != nil {
		t.Fatal(err)
	}
	compare()
}

// holds reports whether a term is in anybody's postings.
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

// TestRecallForgetsWords: after a deletion no key of the index holds a deleted word, and no file a byte of it.
const secret = "allergic to xylophone music"

func TestRecallForgetsWords(t *testing.T) {
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
			// Something else is stored of the user, too: then the user's row stays.
			if _, err := sqlstore.NewSettings(s).Update(t.Context(), listener, func(m *memory.Settings) { m.UpdatedAt = spoken }); err != nil {
				t.Fatal(err)
			}
			h.say(scope("ann", "s"), append(filler("ann"), by("ann", "tea before"))...)
			h.say(scope("bob", "b"), append(filler("bob"), by("bob", "bob drinks tea"))...)
			h.index()
			for _, messages := range [][]memory.Message{
				append(filler("ann")[:64], by("ann", secret+" and tea")), // indexed
				{answer("xylophone music, tea and marimbas")},            // waits for it
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

// stopping is a database that stops in the middle of the work, or lets something happen there.
type stopping struct {
	sqldb.Access
	writes int
	before func(write int) error
}

func (a *stopping) Write(ctx context.Context, fn func(sqldb.Tx) error) error {
	a.writes++
	if err := a.before(a.writes); err != nil {
		return err
	}
	return a.Access.Write(ctx, fn)
}

// manyWords are messages with so many different words that they are indexed in several transactions.
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

// TestRecallAfterCrash: whenever the indexing ends, searches find everything once, also after it has gone on, and what is
// deleted leaves no word.
func TestRecallAfterCrash(t *testing.T) {
	crash := errors.New("killed")
	s := dbtest.Open(t, sqlite.Options{Dir: t.TempDir()})
	h := newHistory(t, s)
	h.say(scope("ann", "s"), manyWords()...)
	h.index()
	for at := 1; ; at++ {
		h.say(scope("ann", "s"), manyWords()...)
		killed := sqlstore.NewRecall(&stopping{Access: s, before: func(write int) error {
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
		h.say(scope("ann", "x"), by("ann", "xylophone")) // the batch is another one when it is tried again
		h.recall = sqlstore.NewRecall(s)                 // the next process
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
	// Deleted right after a crash, with only a part of the batch in the postings.
	h.say(scope("ann", "y"), append(manyWords(), by("ann", "aaa marimba"))...)
	killed := sqlstore.NewRecall(&stopping{Access: s, before: func(write int) error {
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

// TestRecallAfterCrashInALongBatch: as before, when a frequent word fills more than a block.
func TestRecallAfterCrashInALongBatch(t *testing.T) {
	s := dbtest.Open(t, sqlite.Options{Dir: t.TempDir()})
	h := newHistory(t, s)
	h.say(scope("ann", "s"), manyWords()...)
	h.index()
	h.say(scope("ann", "s"), slices.Repeat(manyWords(), 6)...)
	h.recall = sqlstore.NewRecall(&stopping{Access: s, before: func(write int) error {
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

// TestRecallDeletedMeanwhile: messages that are deleted while their words are being indexed leave none.
func TestRecallDeletedMeanwhile(t *testing.T) {
	s := dbtest.Open(t, sqlite.Options{Dir: t.TempDir()})
	h := newHistory(t, s)
	for at := 1; at <= 4; at++ {
		h.say(scope("ann", "s"), manyWords()...)
		h.say(scope("ann", "x"), by("ann", "aaa marimba zzz"))
		h.recall = sqlstore.NewRecall(&stopping{Access: s, before: func(write int) error {
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

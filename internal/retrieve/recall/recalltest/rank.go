package recalltest

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve/recall"
	"github.com/memsidecar/memsidecar/internal/session"
)

// document is a message with its terms.
type document struct {
	message session.Message
	terms   []string
}

// documents are the messages of a session that can be found.
func documents(t *testing.T, sessions session.Store, user memory.User, sessionID string) (all []document) {
	t.Helper()
	for _, m := range messages(t, sessions, user, sessionID) {
		if m.Excluded == session.NotExcluded && recall.Indexed(m.Role) {
			all = append(all, document{m, recall.Terms(&m.Message)})
		}
	}
	return all
}

// score gives each document its own score for the text.
func score(all []document, text string) []recall.Hit {
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
	return scored
}

// ranked is what a search over all documents answers without any index. Documents are in the order of their session.
func ranked(all []document, text string, neighborWeight float64) (hits []recall.Hit) {
	scored := score(all, text)
	better := func(a, b recall.Hit) int {
		return cmp.Or(cmp.Compare(b.Relevance(), a.Relevance()), cmp.Compare(b.Message.Position, a.Message.Position))
	}
	best := slices.SortedFunc(slices.Values(scored), better)
	for _, lifting := range best[:min(recall.Lifting, len(best))] {
		at := slices.IndexFunc(scored, func(h recall.Hit) bool { return h.Message.Position == lifting.Message.Position })
		for steps, share := range map[int]float64{1: 1, 2: 0.6, -1: 2.0 / 3, -2: 2.0 / 3 * 0.6} {
			i := at + steps
			if i < 0 || i >= len(scored) {
				continue
			}
			if d := scored[i].Message.Position - scored[at].Message.Position; d >= -recall.Within && d <= recall.Within {
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

// SameAsUnindexed checks that searches for the texts answer what they would answer without an index. All messages of the user
// must be in the session, and all messages in the session must be the user's.
func SameAsUnindexed(t *testing.T, stores Stores, user memory.User, sessionID string, texts ...string) {
	t.Helper()
	documents := documents(t, stores.Sessions, user, sessionID)
	for _, text := range texts {
		for _, weight := range []float64{0, 0.6} {
			want := ranked(documents, text, weight)
			for _, limit := range []int{10_000, 10} {
				q := all(user, limit)
				q.NeighborWeight = weight
				got, err := stores.Search.SearchKeyword(t.Context(), q, text)
				if err != nil {
					t.Fatal(err)
				}
				what := fmt.Sprintf("%q, weight %v, up to %d", text, weight, limit)
				// With a small limit a store may choose among equal hits.
				if problem := differ(got, want[:min(limit, len(want))], limit > 10); problem != "" {
					t.Errorf("%s: %s", what, problem)
				}
			}
		}
	}
}

// differ says how hits differ in relevance and, if order is set, in their order; it is empty when they do not.
func differ(got, want []recall.Hit, order bool) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d hits, want %d", len(got), len(want))
	}
	for i := range got {
		got, want := &got[i], &want[i]
		same := math.Abs(got.Relevance()-want.Relevance()) < 1e-9
		if order {
			same = same && got.Message.Position == want.Message.Position && math.Abs(got.Neighbors-want.Neighbors) < 1e-9
		}
		if !same {
			return fmt.Sprintf("hit %d is %d with %v and %v, want %d with %v and %v", i,
				got.Message.Position, got.Score, got.Neighbors, want.Message.Position, want.Score, want.Neighbors)
		}
	}
	return ""
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

// testRankAsWithoutIndex: the ranking does not depend on whether a message is indexed yet, nor on what was deleted.
func testRankAsWithoutIndex(s *suite) {
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // the same in every run
	talk := func(n int) {
		s.Helper()
		var list []memory.Message
		for i := range n {
			m := by(ann, randomText(random, 12))
			if i%2 == 1 {
				m = answer(m.Content)
			}
			m.Time = t0.Add(time.Duration(random.IntN(10*24)) * time.Hour)
			list = append(list, m)
		}
		list[n/2].Role, list[n/2].Speaker, list[n/2].AgentID = memory.RoleTool, "", ""
		withheld := make([]session.Exclusion, n)
		withheld[n/3] = session.WithheldFailure
		s.append(session.Append{Scope: in(ann, "s"), Messages: list, Excluded: withheld})
		s.say(in(bob, "b"), by(bob, "tea and more tea")) // stored between
	}
	compare := func() {
		s.Helper()
		for range 6 {
			SameAsUnindexed(s.T, s.Stores, ann, "s", randomText(random, 4))
		}
	}
	for _, n := range []int{50, 30, 40, 100, 100, 100} { // fewer and more than are indexed together
		talk(n)
		compare()
		s.index()
		compare()
	}
	if _, err := s.Sessions.Expire(s.Context(), session.Expiry{Namespace: ann.Namespace, Before: t0.Add(time.Second), Limit: 100}); err != nil {
		s.Fatal(err)
	}
	talk(30)
	compare()
	s.index()
	compare()
}

// testSearchWhileWriting: a stored message is found immediately and once, also while it is being indexed.
func testSearchWhileWriting(s *suite) {
	var writers, indexer sync.WaitGroup
	done := make(chan struct{})
	indexer.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if _, err := s.Index.IndexNext(s.Context()); err != nil {
				s.Error(err)
				return
			}
		}
	})
	const batches, each = 12, 20
	for _, user := range []memory.User{ann, bob, elsewhere} {
		writers.Go(func() { s.sayAndFind(user, batches, each) })
	}
	writers.Wait()
	close(done)
	indexer.Wait()
	s.index()
	for _, user := range []memory.User{ann, bob, elsewhere} {
		if hits := s.search(all(user, 1000), "tea"); len(hits) != batches*each {
			s.Errorf("%v: %d hits", user, len(hits))
		}
	}
}

// sayAndFind appends batches of messages and searches for all of them after each.
func (s *suite) sayAndFind(user memory.User, batches, each int) {
	for i := range batches {
		a := session.Append{Scope: in(user, "s of "+user.ID), Audience: memory.Everything(), At: t0}
		for j := range each {
			a.Messages = append(a.Messages, by(user, fmt.Sprintf("tea %d word%dx%d", i, i, j)))
		}
		if _, err := s.Sessions.Append(s.Context(), a); err != nil {
			s.Error(err)
			return
		}
		hits, err := s.Search.SearchKeyword(s.Context(), all(user, 1000), "tea")
		if err != nil || len(hits) != each*(i+1) {
			s.Errorf("after %d messages of %v: %d hits, %v", each*(i+1), user, len(hits), err)
		}
	}
}

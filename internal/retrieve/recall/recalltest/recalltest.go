// Package recalltest is the conformance suite of recall.Store and recall.Index.
package recalltest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve/recall"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/testkit/storetest"
)

// Stores are the search and the index under test, and the sessions that they search. They share one storage.
type Stores struct {
	Sessions session.Store
	Search   recall.Store
	Index    recall.Index
	Close    func() // makes the storage unavailable
}

// Run runs the suite. Each call of open returns stores that are empty and last until the end of the test.
func Run(t *testing.T, open func(t *testing.T) Stores) {
	run := func(name string, test func(*suite)) {
		t.Run(name, func(t *testing.T) { test(&suite{T: t, Stores: open(t), settle: func() {}}) })
	}
	// Searches return the same before and after the messages are indexed.
	for _, c := range []struct {
		name string
		run  func(*suite)
	}{
		{"Find", testFind},
		{"FindKeepsEverything", testFindKeepsEverything},
		{"Filter", testFilter},
		{"FindDays", testFindDays},
		{"FindNames", testFindNames},
		{"Visibility", testVisibility},
		{"Neighbors", testNeighbors},
		{"SaidUntil", testSaidUntil},
		{"LiftAnswers", testLiftAnswers},
		{"LiftOwnOnly", testLiftOwnOnly},
		{"Remove", testRemove},
	} {
		run(c.name+"/Unindexed", c.run)
		run(c.name+"/Indexed", func(s *suite) {
			s.settle = s.fillAndIndex
			c.run(s)
		})
	}
	run("RankAsWithoutIndex", testRankAsWithoutIndex)
	run("SearchWhileWriting", testSearchWhileWriting)
	run("Vectors", testVectors)
	run("VectorsOfNewest", testVectorsOfNewest)
	run("VectorsOfOthers", testVectorsOfOthers)
	run("VectorsRemoved", testVectorsRemoved)
	run("Progress", testProgress)
	run("UnknownUser", testUnknownUser)
	run("Unavailable", testUnavailable)
	run("Cancelled", testCancelled)
}

var (
	ann       = memory.User{Namespace: "tenant/site", ID: "ann"}
	bob       = memory.User{Namespace: "tenant/site", ID: "bob"}
	elsewhere = memory.User{Namespace: "tenant/other", ID: "ann"}
)

// t0 is the time of the tests' messages.
var t0 = time.Date(2026, 3, 5, 12, 0, 0, 123_456_000, time.UTC)

// suite is one test with its stores.
type suite struct {
	*testing.T
	Stores

	settle func() // called between writing and searching
}

func by(user memory.User, text string) memory.Message {
	return memory.Message{Role: memory.RoleUser, Speaker: user.ID, Content: text, Time: t0}
}

func answer(text string) memory.Message {
	return memory.Message{Role: memory.RoleAssistant, AgentID: "bot", Content: text, Time: t0}
}

// in returns the scope of a user's session without a channel.
func in(user memory.User, sessionID string) memory.Scope {
	return memory.Scope{Namespace: user.Namespace, UserID: user.ID, SessionID: sessionID}
}

// say appends messages to a session.
func (s *suite) say(scope memory.Scope, messages ...memory.Message) {
	s.Helper()
	s.append(session.Append{Scope: scope, Messages: messages})
}

func (s *suite) append(a session.Append) {
	s.Helper()
	a.Audience, a.At = memory.Everything(), t0
	if _, err := s.Sessions.Append(s.Context(), a); err != nil {
		s.Fatal(err)
	}
}

// filler returns so many unrelated messages, enough for the user's messages to be indexed.
func filler(user memory.User) (messages []memory.Message) {
	for i := range 70 {
		messages = append(messages, by(user, fmt.Sprintf("filler number %d", i)))
	}
	return messages
}

// index brings the index up to date.
func (s *suite) index() {
	s.Helper()
	for more := true; more; {
		var err error
		if more, err = s.Index.IndexNext(s.Context()); err != nil {
			s.Fatal(err)
		}
	}
}

func (s *suite) fillAndIndex() {
	s.Helper()
	for _, user := range []memory.User{ann, bob, elsewhere} {
		s.say(in(user, "filler of "+user.ID), filler(user)...)
	}
	s.index()
}

// all returns a query for up to limit messages of a user in any channel.
func all(user memory.User, limit int) recall.Query {
	return recall.Query{User: user, Limit: limit, Filter: recall.Filter{Audience: memory.Everything()}}
}

// lifting returns a query in which a good hit raises the scores of the messages next to it.
func lifting(user memory.User) recall.Query {
	q := all(user, 10)
	q.NeighborWeight = 0.6
	return q
}

func (s *suite) search(q recall.Query, text string) []recall.Hit {
	s.Helper()
	hits, err := s.Search.SearchKeyword(s.Context(), q, text)
	if err != nil {
		s.Fatal(err)
	}
	for i := range hits {
		if h := &hits[i]; h.Score < 0 || h.Score > 1 || i > 0 && h.Relevance() > hits[i-1].Relevance()+1e-9 {
			s.Errorf("%q: hit %d has score %v and relevance %v", text, i, h.Score, h.Relevance())
		}
	}
	return hits
}

// contents returns the sorted texts of hits.
func contents(hits []recall.Hit) (texts []string) {
	for _, h := range hits {
		texts = append(texts, h.Message.Content)
	}
	slices.Sort(texts)
	return texts
}

// finds checks which messages a search finds, in any order.
func (s *suite) finds(q recall.Query, text string, want ...string) {
	s.Helper()
	slices.Sort(want)
	if got := contents(s.search(q, text)); !slices.Equal(got, want) {
		s.Errorf("%q finds %q, want %q", text, got, want)
	}
}

// viewer returns a viewer that sees every session of the user.
func viewer(user memory.User) session.Viewer {
	return session.Viewer{Namespace: user.Namespace, UserID: user.ID, Audience: memory.Everything()}
}

// messages reads all messages of a session.
func messages(t *testing.T, sessions session.Store, user memory.User, sessionID string) (list []session.Message) {
	t.Helper()
	for after := ""; ; {
		page, err := sessions.Messages(t.Context(), viewer(user), sessionID, session.MessageQuery{After: after, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, page.Messages...)
		if after = page.Next; after == "" {
			return list
		}
	}
}

func near(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 }

// calls returns a call of each method.
func (s *suite) calls() storetest.Calls {
	q := all(ann, 1)
	of := []session.Message{{SessionID: "s", SessionRef: "s", Position: 1}}
	return storetest.Calls{
		"SearchKeyword": func(ctx context.Context) error { _, err := s.Search.SearchKeyword(ctx, q, "tea"); return err },
		"SearchVector": func(ctx context.Context) error {
			_, err := s.Search.SearchVector(ctx, q, fingerprint, []float32{1, 0})
			return err
		},
		"Neighbors":  func(ctx context.Context) error { _, err := s.Search.Neighbors(ctx, q, of, 1); return err },
		"IndexNext":  func(ctx context.Context) error { _, err := s.Index.IndexNext(ctx); return err },
		"Progress":   func(ctx context.Context) error { _, err := s.Index.Progress(ctx, fingerprint); return err },
		"Missing":    func(ctx context.Context) error { _, _, err := s.Index.Missing(ctx, 0, 1, 1); return err },
		"SetVectors": func(ctx context.Context) error { return s.Index.SetVectors(ctx, fingerprint, nil, 0, 1) },
		"DropOthers": func(ctx context.Context) error { _, err := s.Index.DropOthers(ctx, fingerprint, 1); return err },
	}
}

func testUnknownUser(s *suite) {
	for name, call := range s.calls() {
		if err := call(s.Context()); err != nil {
			s.Errorf("%s: %v", name, err)
		}
	}
}

func testUnavailable(s *suite) {
	s.say(in(ann, "s"), by(ann, "tea"))
	s.Close()
	storetest.CheckUnavailable(s.T, s.calls())
}

func testCancelled(s *suite) {
	s.say(in(ann, "s"), by(ann, "tea"))
	storetest.CheckCancelled(s.T, s.calls())
	s.finds(all(ann, 10), "tea", "tea")
}

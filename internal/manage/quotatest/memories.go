package quotatest

import (
	"fmt"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// entry returns a new memory with this text.
func (s *suite) entry(text string) vectorstore.Entry {
	id := s.name("mem_")
	return vectorstore.Entry{StatementID: id, Memory: memory.Memory{
		ID: id, Text: text, Kind: memory.KindFact, Mentions: 1, CreatedAt: t0, UpdatedAt: t0, ObservedAt: t0, LastSaidAt: t0,
	}}
}

func (s *suite) remember(user memory.User, texts ...string) error {
	var entries []vectorstore.Entry
	for _, text := range texts {
		entries = append(entries, s.entry(text))
	}
	return s.apply(user, entries...)
}

func (s *suite) apply(user memory.User, entries ...vectorstore.Entry) error {
	_, err := s.Memories.Apply(s.Context(), user, entries)
	return err
}

// memories returns all memories of a user, of any status.
func (s *suite) memories(user memory.User) (list []memory.Memory) {
	s.Helper()
	page, err := s.Memories.List(s.Context(), user, vectorstore.ListQuery{
		Filter: vectorstore.Filter{Audience: memory.Everything(), Statuses: memory.Statuses()}, Limit: 1000,
	})
	if err != nil {
		s.Fatal(err)
	}
	return page.Memories
}

// testMemories: All users of a namespace share the quota, and history counts. A write that adds nothing is never refused.
func testMemories(s *suite) {
	const quota = memory.QuotaNamespaceMemories
	full := memory.Standing{Quota: quota, Limit: 3, Used: 3}
	s.allow(quota, 3)
	s.must(s.remember(ann, "likes tea", "plays the cello"))
	s.must(s.remember(ben, "has a dog"))
	s.wantRefused(s.remember(ann, "lives in A"), full, 1)
	s.wantRefused(s.remember(ben, "lives in A"), full, 1)
	s.must(s.remember(elsewhere, "a", "b", "c", "d"))
	s.wantUsed(quota, elsewhere, 4)
	s.wantUsed(quota, ann, 3)

	again := s.entry("likes tea")
	again.Reinforce = true
	s.must(s.apply(ann, again))
	tea := s.memories(ann)[0]
	_, err := s.Memories.Update(s.Context(), ann, tea.ID, memory.Everything(), vectorstore.Patch{Text: new("likes green tea"), At: t0})
	s.must(err)
	withdrawal := s.entry("forget it")
	withdrawal.Withdraws = []string{tea.ID}
	s.must(s.apply(ann, withdrawal))
	successor := s.entry("plays the viola")
	successor.Supersedes = []string{s.memories(ann)[1].ID}
	s.wantRefused(s.apply(ann, successor), full, 1) // the old one stays as history

	s.allow(quota, 2) // below what is stored
	s.wantRefused(s.remember(ann, "lives in A"), memory.Standing{Quota: quota, Limit: 2, Used: 3}, 1)
	again.StatementID = "said again"
	s.must(s.apply(ann, again)) // it adds nothing
	s.allow(quota, 3)
	s.must(s.Memories.Delete(s.Context(), ann, tea.ID, memory.Everything()))
	s.wantUsed(quota, ann, 2)
	s.must(s.remember(ann, "lives in B"))
	_, err = s.Memories.Forget(s.Context(), ann)
	s.must(err)
	s.wantUsed(quota, ann, 1)
	s.must(s.remember(ann, "lives in C", "lives in D"))
	s.allow(quota, 0)
	s.must(s.remember(ann, "lives in E"))
}

// testMemoriesAllOrNone: A write that exceeds the quota stores nothing.
func testMemoriesAllOrNone(s *suite) {
	s.allow(memory.QuotaNamespaceMemories, 3)
	s.must(s.remember(ann, "likes tea", "plays the cello"))
	before := fmt.Sprint(s.memories(ann))
	again := s.entry("likes tea")
	again.Reinforce = true
	err := s.apply(ann, again, s.entry("one"), s.entry("two"))
	s.wantRefused(err, memory.Standing{Quota: memory.QuotaNamespaceMemories, Limit: 3, Used: 2}, 2)
	if after := fmt.Sprint(s.memories(ann)); after != before {
		s.Errorf("stored are %s\nbefore %s", after, before)
	}
	s.wantUsed(memory.QuotaNamespaceMemories, ann, 2)
	if hits, err := s.Memories.SearchKeyword(s.Context(), ann, "one two", vectorstore.Filter{Audience: memory.Everything()}, 10); len(hits) != 0 ||
		err != nil {
		s.Errorf("found %+v, %v", hits, err)
	}
	s.must(s.remember(ann, "one")) // there is room for one
}

func testMemoriesConcurrently(s *suite) {
	s.allow(memory.QuotaNamespaceMemories, 10)
	users := []memory.User{ann, ben}
	stored := s.concurrently(memory.QuotaNamespaceMemories, 16, func(i int) error { return s.remember(users[i%2], fmt.Sprint("has number ", i)) })
	if n := len(s.memories(ann)) + len(s.memories(ben)); stored != 10 || n != 10 {
		s.Errorf("%d writes were stored, and there are %d memories, want 10", stored, n)
	}
	s.wantUsed(memory.QuotaNamespaceMemories, ann, 10)
}

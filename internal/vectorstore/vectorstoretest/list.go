package vectorstoretest

import (
	"fmt"
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

func listTests() []test {
	return []test{
		{"Filter", testFilter},
		{"Pages", testPages},
		{"PagesOfAFilter", testPagesOfAFilter},
		{"PagesWhileWriting", testPagesWhileWriting},
	}
}

// testFilter: List and both searches agree on what matches.
func testFilter(s *suite) {
	all := everything()
	add := func(name string, change func(*memory.Memory)) {
		m := s.memory("likes tea with " + name)
		m.ID = name
		m.AgentID = ""
		m.CreatedAt, m.ObservedAt = t0, t0
		change(&m)
		s.add(ann, m, 1, 0, 0)
	}
	add("plain", func(*memory.Memory) {})
	add("plan", func(m *memory.Memory) { m.Kind = memory.KindPlan })
	add("task", func(m *memory.Memory) { m.Kind = memory.KindTask })
	add("agent", func(m *memory.Memory) { m.AgentID = "nora" })
	add("chinese", func(m *memory.Memory) { m.Language = "zh" })
	add("explicit", func(m *memory.Memory) { m.Explicit = true })
	add("trifle", func(m *memory.Memory) { m.Importance = 0 })
	add("vital", func(m *memory.Memory) { m.Importance = 1 })
	add("old", func(m *memory.Memory) { m.CreatedAt = t0.Add(-time.Hour) })
	add("young", func(m *memory.Memory) { m.CreatedAt = t0.Add(time.Hour) })
	add("said before", func(m *memory.Memory) { m.ObservedAt = t0.Add(-time.Microsecond) })
	add("said later", func(m *memory.Memory) { m.ObservedAt = t0.Add(time.Microsecond) })
	names := ids(s.list(ann, all))
	but := func(others ...string) (rest []string) {
		for _, name := range names {
			if !slices.Contains(others, name) {
				rest = append(rest, name)
			}
		}
		return rest
	}
	for _, c := range []struct {
		name   string
		change func(*vectorstore.Filter)
		want   []string
	}{
		{"all", func(*vectorstore.Filter) {}, names},
		{"one kind", func(f *vectorstore.Filter) { f.Kinds = []memory.Kind{memory.KindPlan} }, []string{"plan"}},
		{"two kinds", func(f *vectorstore.Filter) { f.Kinds = []memory.Kind{memory.KindPlan, memory.KindTask} }, []string{"plan", "task"}},
		{"a kind nobody has", func(f *vectorstore.Filter) { f.Kinds = []memory.Kind{memory.KindProblem} }, nil},
		{"an agent", func(f *vectorstore.Filter) { f.AgentID = new("nora") }, []string{"agent"}},
		{"no agent", func(f *vectorstore.Filter) { f.AgentID = new("") }, but("agent")},
		{"a language", func(f *vectorstore.Filter) { f.Language = new("zh") }, []string{"chinese"}},
		{"explicit", func(f *vectorstore.Filter) { f.Explicit = new(true) }, []string{"explicit"}},
		{"not explicit", func(f *vectorstore.Filter) { f.Explicit = new(false) }, but("explicit")},
		{"at least", func(f *vectorstore.Filter) { f.Importance.Min = new(1.0) }, []string{"vital"}},
		{"at most", func(f *vectorstore.Filter) { f.Importance.Max = new(0.0) }, []string{"trifle"}},
		{"between", func(f *vectorstore.Filter) { f.Importance = vectorstore.Range{Min: new(0.5), Max: new(0.5)} }, but("trifle", "vital")},
		{"created from", func(f *vectorstore.Filter) { f.Created.From = t0 }, but("old")},
		{"created before", func(f *vectorstore.Filter) { f.Created.Before = t0 }, []string{"old"}},
		{"created in", func(f *vectorstore.Filter) {
			f.Created = vectorstore.Period{From: t0.Add(-time.Hour), Before: t0.Add(time.Hour)}
		}, but("young")},
		{"observed from", func(f *vectorstore.Filter) { f.Observed.From = t0.Add(time.Microsecond) }, []string{"said later"}},
		{"observed before", func(f *vectorstore.Filter) { f.Observed.Before = t0.In(time.FixedZone("", 3600)) }, []string{"said before"}},
		{"several", func(f *vectorstore.Filter) { f.Kinds, f.Explicit = []memory.Kind{memory.KindFact}, new(true) }, []string{"explicit"}},
		{"nobody", func(f *vectorstore.Filter) { f.Audience = memory.Audience{} }, nil},
	} {
		filter := all
		c.change(&filter)
		s.is(c.name+": List", ids(s.list(ann, filter)), c.want...)
		s.is(c.name+": SearchVector", idsOf(s.byVector(ann, filter, 1, 0, 0)), c.want...)
		s.is(c.name+": SearchKeyword", idsOf(s.byKeyword(ann, filter, "tea")), c.want...)
	}
}

// pages reads all pages, and calls between before each but the first.
func (s *suite) pages(q vectorstore.ListQuery, between func()) (all []string) {
	s.Helper()
	for {
		page, err := s.store.List(s.Context(), ann, q)
		if err != nil {
			s.Fatal(err)
		}
		if n := len(page.Memories); n > q.Limit || n < q.Limit && page.Next != "" || n == 0 && q.After != "" {
			s.Fatalf("a page of %d with limit %d and next %q", n, q.Limit, page.Next)
		}
		for _, m := range page.Memories {
			all = append(all, m.ID)
		}
		if q.After = page.Next; q.After == "" {
			return all
		}
		between()
	}
}

// timeline stores memories, some with the same time, and returns their ids, oldest first.
func (s *suite) timeline(count int) (byTime [][]string) {
	for i := range count {
		m := s.memory(fmt.Sprint("likes tea number ", i))
		m.CreatedAt = t0.Add(time.Duration(i/3) * time.Microsecond)
		if i%3 == 0 {
			byTime = append(byTime, nil)
		}
		byTime[i/3] = append(byTime[i/3], m.ID)
		s.add(ann, m, 1, 0, 0)
	}
	return byTime
}

// inOrder checks that the ids are in order of time, each once.
func (s *suite) inOrder(what string, got []string, byTime [][]string, oldestFirst bool) {
	s.Helper()
	byTime = slices.Clone(byTime)
	if !oldestFirst {
		slices.Reverse(byTime)
	}
	rest := got
	for _, group := range byTime {
		if len(rest) < len(group) {
			s.Fatalf("%s: got %q, want %q", what, got, byTime)
		}
		part := slices.Sorted(slices.Values(rest[:len(group)]))
		if !slices.Equal(part, slices.Sorted(slices.Values(group))) {
			s.Fatalf("%s: got %q, want %q", what, got, byTime)
		}
		rest = rest[len(group):]
	}
	if len(rest) > 0 {
		s.Fatalf("%s: got %q, want %q", what, got, byTime)
	}
}

func testPages(s *suite) {
	page, err := s.store.List(s.Context(), ann, vectorstore.ListQuery{Filter: everything(), Limit: 1})
	if err != nil || len(page.Memories) != 0 || page.Next != "" {
		s.Errorf("without memories: %+v, %v", page, err)
	}
	const count = 10
	byTime := s.timeline(count)
	for _, oldestFirst := range []bool{true, false} {
		for limit := 1; limit <= count+1; limit++ {
			q := vectorstore.ListQuery{Filter: everything(), OldestFirst: oldestFirst, Limit: limit}
			s.inOrder(fmt.Sprintf("oldest first %t, limit %d", oldestFirst, limit), s.pages(q, func() {}), byTime, oldestFirst)
		}
	}
}

func testPagesOfAFilter(s *suite) {
	var want [][]string
	for i := range 12 {
		m := s.memory(fmt.Sprint("likes tea number ", i))
		if i%4 == 1 {
			m.Kind = memory.KindPlan
			want = append(want, []string{m.ID})
		}
		s.add(ann, m, 1, 0, 0)
	}
	filter := everything()
	filter.Kinds = []memory.Kind{memory.KindPlan}
	for limit := 1; limit <= 4; limit++ {
		s.inOrder(fmt.Sprint("limit ", limit), s.pages(vectorstore.ListQuery{Filter: filter, Limit: limit}, func() {}), want, false)
	}
}

// testPagesWhileWriting: A memory stored before the first page is listed exactly once, also during concurrent writes and deletions.
func testPagesWhileWriting(s *suite) {
	byTime := s.timeline(9)
	before := slices.Concat(byTime...)
	for _, oldestFirst := range []bool{true, false} {
		added := 0
		between := func() {
			for _, at := range []time.Duration{-time.Hour, 0, time.Microsecond, time.Hour} {
				if added++; added > 20 {
					return
				}
				m := s.memory(fmt.Sprint("likes tea with ", oldestFirst, " number ", added))
				m.CreatedAt = t0.Add(at)
				s.add(ann, m, 1, 0, 0)
			}
		}
		all := s.pages(vectorstore.ListQuery{Filter: everything(), OldestFirst: oldestFirst, Limit: 2}, between)
		if unique := slices.Compact(slices.Sorted(slices.Values(all))); len(unique) != len(all) {
			s.Errorf("oldest first %t: some occur twice: %q", oldestFirst, all)
		}
		seen := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return !slices.Contains(before, id) })
		s.inOrder(fmt.Sprint("oldest first ", oldestFirst), seen, byTime, oldestFirst)
		for _, m := range s.list(ann, everything()) {
			if !slices.Contains(before, m.ID) {
				s.remove(ann, m.ID)
			}
		}
	}

	// The last memory of a page may be deleted before the next page is read.
	q := vectorstore.ListQuery{Filter: everything(), OldestFirst: true, Limit: 4}
	page, err := s.store.List(s.Context(), ann, q)
	if err != nil {
		s.Fatal(err)
	}
	s.remove(ann, page.Memories[3].ID)
	q.After, q.Limit = page.Next, 100
	rest, err := s.store.List(s.Context(), ann, q)
	if err != nil || len(rest.Memories) != 5 {
		s.Errorf("after the last memory of a page was deleted: %d more, %v", len(rest.Memories), err)
	}
}

package digesttest

import (
	"errors"
	"fmt"
	"time"

	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/memory"
)

func testFind(s *suite) {
	with := func(agent, text string, minutes int) digest.Finding {
		f := finding(text, minutes)
		f.AgentID = agent
		return f
	}
	s.save(s.contribution(chat(ann, "s"), with("nora", "d3", 3), with("", "d1", 1), with("", "d1b", 1)))
	s.save(s.contribution(scope(ann, lobby, "g"), with("nora", "g2", 2)))
	s.save(s.contribution(scope(ann, memory.Channel{}, "u"), with("", "u0", 0)))
	s.save(s.contribution(chat(ben, "s"), with("", "ben", 1)))
	s.save(s.contribution(chat(elsewhere, "s"), with("", "other", 1)))
	at := func(minute int) time.Time { return t0.Add(time.Duration(minute) * time.Minute) }
	none := time.Time{}
	for _, test := range []struct {
		name         string
		user         memory.User
		seen         digest.Seen
		from, before time.Time
		want         string
		newest       int // minutes, -1 for none
	}{
		{"in the order in which it was said", ann, everything, none, none, "u0 d1 d1b g2 d3", 3},
		{"nothing is seen", ann, digest.Seen{}, none, none, "", -1},
		{"direct", ann, seenIn(direct), none, none, "u0 d1 d1b g2 d3", 3},
		{"the group", ann, seenIn(lobby), none, none, "g2", 2},
		{"another group", ann, seenIn(attic), none, none, "", -1},
		{"unspecified", ann, seenIn(memory.Channel{}), none, none, "u0", 0},
		{"an agent", ann, digest.Seen{Audience: memory.Everything(), AgentID: new("nora")}, none, none, "g2 d3", 3},
		{"no agent", ann, digest.Seen{Audience: memory.Everything(), AgentID: new("")}, none, none, "u0 d1 d1b", 1},
		{"between", ann, everything, at(1), at(3), "d1 d1b g2", 2},
		{"a microsecond later", ann, everything, at(1).Add(time.Microsecond), at(3).Add(time.Microsecond), "g2 d3", 3},
		{"from", ann, everything, at(2), none, "g2 d3", 3},
		{"before", ann, everything, none, at(1), "u0", 0},
		{"before all", ann, everything, none, at(0), "", -1},
		{"another user", ben, everything, none, none, "ben", 1},
		{"another namespace", elsewhere, everything, none, none, "other", 1},
	} {
		s.want(test.name, texts(s.find(test.user, test.seen, test.from, test.before)), test.want)
		want := time.Time{}
		if test.newest >= 0 {
			want = at(test.newest)
		}
		newest, err := s.Digests.Newest(s.Context(), test.user, test.seen, test.before)
		if err != nil || !newest.Equal(want) {
			s.Errorf("%s: the newest message is of %s, %v, want %s", test.name, newest, err, want)
		}
	}
}

// testList: Pages return every entry once, in the order in which they were stored, also if entries are added between pages.
func testList(s *suite) {
	const want = "f0 f1 f2 f3 f4 f5 f6 "
	for i := range 7 {
		text := fmt.Sprint("f", i)
		s.save(s.contribution(chat(ann, "s"), finding(text, -i)))
		s.save(s.contribution(chat(ben, "s"), finding("ben", 0)))
	}
	for _, limit := range []int{1, 3, 7, 8} {
		got, after := "", ""
		for pages := 0; ; pages++ {
			page, next, err := s.Digests.List(s.Context(), ann, after, limit)
			if err != nil || len(page) > limit || pages > 8 {
				s.Fatalf("page %d has %d entries, %v", pages, len(page), err)
			}
			for _, e := range page {
				got += e.Text + " "
			}
			if after = next; next == "" {
				break
			}
		}
		s.want(fmt.Sprint("pages of ", limit), got, want)
	}
	first, next, err := s.Digests.List(s.Context(), ann, "", 7)
	if err != nil || len(first) != 7 {
		s.Fatal(len(first), err)
	}
	s.save(s.contribution(chat(ann, "s"), finding("late", -100)))
	if next != "" { // a store need not detect the last page
		page, _, err := s.Digests.List(s.Context(), ann, next, 7)
		if err != nil || texts(page) != "late" {
			s.Errorf("the next page is %q, %v", texts(page), err)
		}
	}
	for _, token := range []string{"x", "1x", "99999999999999999999"} {
		_, _, err := s.Digests.List(s.Context(), ann, token, 7)
		if invalid := (*memory.InvalidError)(nil); !errors.As(err, &invalid) || invalid.Violations[0].Field != "page_token" {
			s.Errorf("page token %q: %v", token, err)
		}
	}
}

// testRemembered: Important findings are returned until they are marked as remembered.
func testRemembered(s *suite) {
	weighed := func(text string, importance float64, memoryID string) digest.Finding {
		f := finding(text, 0)
		f.Importance, f.MemoryID = importance, memoryID
		return f
	}
	first := s.contribution(chat(ann, "s"), weighed("b", 0.2, ""), weighed("unimportant", 0, ""), weighed("known", 0.9, "mem_0"))
	s.save(first)
	second := s.contribution(scope(ann, lobby, "g"), weighed("a", 0.1, ""))
	s.save(second)
	s.save(s.contribution(chat(ben, "s"), weighed("ben", 0.5, "")))
	s.save(s.contribution(chat(elsewhere, "s"), weighed("other", 0.5, "")))
	unremembered := func(user memory.User) string {
		s.Helper()
		list, err := s.Digests.Unremembered(s.Context(), user)
		if err != nil {
			s.Error(err)
		}
		return texts(list)
	}
	s.want("at first", unremembered(ann), "b a")
	ids := map[string]string{first.ID + "/0": "mem_1", "unknown/0": "mem_2", first.ID + "/9": "mem_3"}
	if err := s.Digests.Remembered(s.Context(), ben, ids); err != nil { // another user's
		s.Error(err)
	}
	s.want("another user's ids", unremembered(ann)+"|"+unremembered(ben), "b a|ben")
	for range 2 {
		if err := s.Digests.Remembered(s.Context(), ann, ids); err != nil {
			s.Error(err)
		}
		s.want("after the first", unremembered(ann), "a")
	}
	for _, e := range s.found(ann) {
		want := map[string]string{"b": "mem_1", "known": "mem_0"}[e.Text]
		s.want("the memory of "+e.Text, e.MemoryID, want)
	}
	if err := s.Digests.Remembered(s.Context(), ann, map[string]string{"no number": "mem_1"}); err == nil {
		s.Error("an invalid id is no error")
	}
	if err := s.Digests.Remembered(s.Context(), ann, nil); err != nil {
		s.Error(err)
	}
	s.want("others", unremembered(ben)+" "+unremembered(elsewhere), "ben other")
}

func testForget(s *suite) {
	for _, user := range []memory.User{ann, ben, elsewhere} {
		s.say(chat(user, "s"), 1, "word")
		s.save(s.contribution(chat(user, "s"), finding("f1", 0), finding("f2", 1)))
	}
	s.wantDue(time.Hour, "ann ben ann")
	for _, want := range []int64{2, 0} {
		if n, err := s.Digests.Forget(s.Context(), ann); n != want || err != nil {
			s.Errorf("forgot %d findings, %v, want %d", n, err, want)
		}
	}
	s.want("left", texts(s.found(ann))+"|"+texts(s.found(ben))+"|"+texts(s.found(elsewhere)), "|f1 f2|f1 f2")
	due, _, err := s.Digests.Due(s.Context(), t0.Add(time.Hour), 10)
	if err != nil || len(due) != 2 || due[0] != ben || due[1] != elsewhere {
		s.Errorf("due are %v, %v", due, err)
	}
	if list, next, err := s.Digests.List(s.Context(), ann, "", 10); len(list) != 0 || next != "" || err != nil {
		s.Errorf("listed %+v, %q, %v", list, next, err)
	}
	// A forgotten user may return.
	s.save(s.contribution(chat(ann, "s"), finding("new", 0)))
	s.want("stored later", texts(s.found(ann)), "new")
}

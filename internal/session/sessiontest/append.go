package sessiontest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
)

func testAppend(s *suite) {
	scope := direct("ann", "s1")
	scope.AgentID = "nora"
	first := said("ann", "one")
	first.Time = t0.Add(-time.Hour)
	done := s.add(scope, first, answered("two"))
	want := session.Session{
		Namespace: namespace, ID: "s1", Ref: done.Session.Ref, Channel: scope.Channel, Participants: []string{"ann"}, Agents: []string{"nora"},
		Messages: 2, UserMessages: 1, Unconsidered: 1, FirstSaidAt: t0.Add(-time.Hour), LastSaidAt: t0, CreatedAt: t0, UpdatedAt: t0,
		ActiveAt: t0, WindowStart: 1, Last: 2,
	}
	if !done.Created || done.Added != 2 || !slices.Equal(done.Positions, []int64{1, 2}) || !reflect.DeepEqual(done.Session, want) {
		s.Errorf("appended %+v, want %+v", done, want)
	}
	if got := s.get(scope); !reflect.DeepEqual(got, want) {
		s.Errorf("got %+v, want %+v", got, want)
	}
	s.later(time.Minute)
	early := answered("three")
	early.Time = t0.Add(-2 * time.Hour) // a message may tell any time
	done = s.add(scope, early)
	want.Messages, want.FirstSaidAt, want.UpdatedAt, want.ActiveAt, want.Last = 3, early.Time, s.now, s.now, 3
	if done.Created || done.Added != 1 || !slices.Equal(done.Positions, []int64{3}) || !reflect.DeepEqual(done.Session, want) {
		s.Errorf("appended %+v, want %+v", done, want)
	}
	s.expect(scope, "one", "two", "three")

	elsewhere := scope
	elsewhere.Namespace = "elsewhere"
	if done := s.add(elsewhere, said("ann", "other")); !done.Created || done.Session.Last != 1 {
		s.Errorf("in another namespace: %+v", done)
	}
	s.expect(scope, "one", "two", "three")
}

func testAppendKeepsEveryByte(s *suite) {
	scope := direct("ann", "s1")
	sent := []memory.Message{
		{
			ID: "m<1>", Role: memory.RoleUser, Speaker: "ann", Time: t0.Add(789),
			Content:  "我喜欢喝茶 🍵\r\n\t\"quoted\" <b>&amp;</b> \\u0000 \x00 \u2028 end",
			Metadata: `{ "b":1.50,"a":[ ] , "big": 9007199254740993, "<":"é\u00e9" }`,
		},
		{
			Role: memory.RoleAssistant, AgentID: "nora", Time: t0.Add(time.Minute),
			Tools: []memory.ToolCall{{
				ID: "t1", Name: "search", Arguments: `{"q": 1e3, "n": 123456789012345678901234567890}`, Result: "ok\n", Status: "done",
				Time: t0.Add(time.Second),
			}, {}},
		},
		{Role: memory.RoleTool, Time: time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)},
		{Role: memory.RoleSystem, Content: "be kind", Time: time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)},
	}
	a := s.request(scope, slices.Clone(sent)...)
	a.Excluded = []session.Exclusion{session.NotExcluded, session.WithheldFailure, session.NotExcluded, session.NotExcluded}
	s.do(a)
	got := s.all(scope)
	if len(got) != len(sent) {
		s.Fatalf("got %d messages", len(got))
	}
	for i, m := range got {
		want := session.Message{
			Message: sent[i], SessionID: "s1", Channel: scope.Channel, Position: int64(i + 1), ReceivedAt: t0, Excluded: a.Excluded[i],
		}
		if !reflect.DeepEqual(m, want) {
			s.Errorf("got  %+v\nwant %+v", m, want)
		}
	}
}

func testAppendKnowsIDs(s *suite) {
	scope := direct("ann", "s1")
	one, two, three := said("ann", "one"), answered("two"), said("ann", "three")
	one.ID, two.ID, three.ID = "m1", "m2", "m3"
	s.add(scope, one, two)
	before := s.get(scope)
	s.later(time.Hour)
	if done := s.add(scope, two, one); done.Added != 0 || done.Created || !slices.Equal(done.Positions, []int64{2, 1}) {
		s.Errorf("all known: %+v", done)
	}
	if after := s.get(scope); !reflect.DeepEqual(after, before) {
		s.Errorf("knowing all changed the session to %+v", after)
	}
	if done := s.add(scope, one, three, two); done.Added != 1 || !slices.Equal(done.Positions, []int64{1, 3, 2}) {
		s.Errorf("two known: %+v", done)
	}

	changed := two
	changed.Content = "something else"
	_, err := s.store.Append(s.Context(), s.request(scope, said("ann", "four"), changed))
	if !invalid(err, "messages[1].id") {
		s.Errorf("the same id with other content: %v", err)
	}
	s.expect(scope, "one", "two", "three") // all or none
	if done := s.add(direct("ann", "s2"), changed); done.Added != 1 {
		s.Errorf("an id is its session's own: %+v", done)
	}
	// Without an id every message is new.
	s.add(direct("ann", "s3"), said("ann", "哈哈"))
	s.add(direct("ann", "s3"), said("ann", "哈哈"))
	s.expect(direct("ann", "s3"), "哈哈", "哈哈")
}

func testAppendConcurrently(s *suite) {
	const senders, each = 4, 10
	requests := make([][]session.Append, senders)
	for i := range requests {
		for n := range each {
			m := said(fmt.Sprint("user", i), fmt.Sprint(n))
			m.ID = fmt.Sprint(i, "-", n)
			requests[i] = append(requests[i], s.request(lobby(m.Speaker, "s1"), m))
		}
	}
	var tasks sync.WaitGroup
	for _, list := range requests {
		tasks.Go(func() {
			for _, a := range list {
				for range 2 { // sent again, as after an answer that was lost
					if _, err := s.store.Append(s.Context(), a); err != nil {
						s.Error(err)
					}
				}
			}
		})
	}
	tasks.Wait()
	next := map[string]int{}
	for i, m := range s.all(lobby("user0", "s1")) {
		if m.Content != fmt.Sprint(next[m.Speaker]) || m.Position != int64(i+1) {
			s.Errorf("at %d is %q of %s, want %d", m.Position, m.Content, m.Speaker, next[m.Speaker])
		}
		next[m.Speaker]++
	}
	got := s.get(lobby("user0", "s1"))
	if got.Messages != senders*each || got.UserMessages != senders*each || got.Unconsidered != senders*each || len(got.Participants) != senders {
		s.Errorf("the session is %+v", got)
	}
}

// testCurrentByAppending: without a name the current session is meant, or a new one becomes it.
func testCurrentByAppending(s *suite) {
	first := s.add(direct("ann", ""), said("ann", "one"))
	if !first.Created || first.Session.ID == "" {
		s.Errorf("appended %+v", first)
	}
	again := s.add(direct("ann", ""), said("ann", "two"))
	if again.Created || again.Session.ID != first.Session.ID || again.Session.Last != 2 {
		s.Errorf("the second is in %+v", again)
	}
	otherChat := direct("ann", "")
	otherChat.Channel.ID = "another bot"
	unspecified := memory.Scope{Namespace: namespace, UserID: "ann"}
	inGroup := s.add(lobby("ann", ""), said("ann", "hello"))
	seen := []string{first.Session.ID, inGroup.Session.ID}
	for _, scope := range []memory.Scope{direct("ben", ""), otherChat, unspecified, {Namespace: "elsewhere", UserID: "ann"}} {
		done := s.add(scope, said(scope.UserID, "one"))
		if !done.Created || slices.Contains(seen, done.Session.ID) {
			s.Errorf("%+v is in %+v", scope, done)
		}
		seen = append(seen, done.Session.ID)
	}
	for _, scope := range []memory.Scope{lobby("ben", ""), lobby("", "")} { // a group has one for everybody
		if done := s.add(scope, said("ben", "hi")); done.Session.ID != inGroup.Session.ID {
			s.Errorf("%q writes to %+v", scope.UserID, done.Session)
		}
	}
	nobody := memory.Scope{Namespace: namespace}
	one, two := s.add(nobody, said("", "who am I")), s.add(nobody, said("", "who are you"))
	if one.Session.ID == two.Session.ID || !two.Created {
		s.Errorf("callers without a user share %+v", two.Session)
	}
	for scope, want := range map[memory.Scope]string{
		direct("ann", ""): first.Session.ID, lobby("eve", ""): inGroup.Session.ID, lobby("", ""): inGroup.Session.ID, direct("eve", ""): "", nobody: "",
	} {
		if id, err := s.store.Current(s.Context(), viewer(scope)); err != nil || id != want {
			s.Errorf("the current session of %+v is %q, %v, want %q", scope, id, err, want)
		}
	}
	// One with a name is not the current one for that.
	s.add(direct("ann", "named"), said("ann", "three"))
	if id, err := s.store.Current(s.Context(), viewer(direct("ann", ""))); err != nil || id != first.Session.ID {
		s.Errorf("the current session became %q, %v", id, err)
	}
}

func testWhoMayAppend(s *suite) {
	s.add(direct("ann", "hers"), said("ann", "one"))
	s.add(lobby("ann", "all"), said("ann", "one"))
	s.add(memory.Scope{Namespace: namespace, SessionID: "nobody's"}, said("", "one"))
	if _, _, err := s.store.Switch(s.Context(), viewer(direct("ann", "")), "prepared", s.now); err != nil { // nothing is said in it yet
		s.Fatal(err)
	}
	otherGroup := lobby("ann", "all")
	otherGroup.Channel.ID = "attic"
	// An id means the user's own session, in a group the group's.
	const same, fresh, refusal = "the session that is there", "a new one", "refused"
	for _, test := range []struct {
		scope memory.Scope
		want  string
	}{
		{direct("ann", "hers"), same},
		{direct("ben", "hers"), fresh},
		{direct("", "hers"), fresh},
		{direct("ben", "prepared"), fresh},
		{direct("", "prepared"), fresh},
		{direct("ann", "prepared"), same},
		{lobby("ann", "hers"), fresh},
		{memory.Scope{Namespace: namespace, UserID: "ann", SessionID: "hers"}, refusal},
		{lobby("ben", "all"), same},
		{lobby("", "all"), same},
		{direct("ann", "all"), fresh},
		{otherGroup, fresh},
		{memory.Scope{Namespace: namespace, SessionID: "nobody's"}, same},
		{memory.Scope{Namespace: namespace, UserID: "ann", SessionID: "nobody's"}, fresh},
	} {
		done, err := s.store.Append(s.Context(), s.request(test.scope, said(test.scope.UserID, "two")))
		if test.want == refusal && !refused(err) || test.want != refusal && (err != nil || done.Created != (test.want == fresh)) {
			s.Errorf("%+v: created %t, %v", test.scope, done.Created, err)
		}
	}
	if got := s.get(direct("ann", "hers")); got.Messages != 2 || !slices.Equal(got.Participants, []string{"ann"}) {
		s.Errorf("the session became %+v", got)
	}
}

func testWhoTakesPart(s *suite) {
	scope := lobby("ann", "s1")
	scope.AgentID = "nora"
	other := answered("hello")
	other.AgentID = "olga"
	s.add(scope, said("ben", "hi"), other, said("ann", "hi"), said("ben", "you"))
	scope.UserID = "eve"
	got := s.add(scope, answered("welcome")).Session
	if !slices.Equal(got.Participants, []string{"ann", "ben", "eve"}) || !slices.Equal(got.Agents, []string{"nora", "olga"}) {
		s.Errorf("there are %q and %q", got.Participants, got.Agents)
	}
	// A second user may join a direct chat, and sees it afterwards.
	s.add(direct("ann", "s2"), said("ann", "this is my brother"), said("ben", "hello"))
	if got := s.get(direct("ben", "s2")); !slices.Equal(got.Participants, []string{"ann", "ben"}) {
		s.Errorf("there are %q", got.Participants)
	}
	if _, err := s.store.Get(s.Context(), viewer(direct("eve", "s2")), "s2"); !errors.Is(err, memory.ErrNotFound) {
		s.Errorf("another user sees it: %v", err)
	}
}

func testImport(s *suite) {
	scope := direct("ann", "s1")
	every := 3
	about := session.Import{
		Title: "old times", Metadata: `{"a": 1}`, MemorizeEvery: &every,
		CreatedAt: t0.Add(-48 * time.Hour), UpdatedAt: t0.Add(-24 * time.Hour),
	}
	one, two, three := said("ann", "one"), answered("two"), said("ann", "three")
	two.ID = "m2"
	load := func(from int64, messages ...memory.Message) session.Appended {
		s.Helper()
		a := s.request(scope, messages...)
		about.From = from
		a.Import, a.Settled = &about, true
		return s.do(a)
	}
	load(0, one, two)
	s.later(time.Minute)
	got := load(2, three, three).Session
	want := session.Session{
		Namespace: namespace, ID: "s1", Ref: got.Ref, Channel: scope.Channel, Participants: []string{"ann"}, Agents: []string{}, Title: "old times",
		Metadata: `{"a": 1}`, MemorizeEvery: &every, Messages: 4, UserMessages: 3, FirstSaidAt: t0, LastSaidAt: t0,
		CreatedAt: about.CreatedAt, UpdatedAt: about.UpdatedAt, ActiveAt: s.now, WindowStart: 1, Last: 4,
	}
	if !reflect.DeepEqual(got, want) {
		s.Errorf("got %+v, want %+v", got, want)
	}
	about.Before = 4
	for from, messages := range map[int64][]memory.Message{0: {one, two}, 1: {two, three, three}, 3: {three}} {
		if done := load(from, messages...); done.Added != 0 {
			s.Errorf("imported again from %d: %+v", from, done)
		}
	}
	if done := load(4, three); done.Added != 1 || !slices.Equal(done.Positions, []int64{5}) {
		s.Errorf("one more: %+v", done)
	}
	s.expect(scope, "one", "two", "three", "three", "three")
	about.UpdatedAt = about.UpdatedAt.Add(-time.Hour)
	if done := load(5, said("ann", "six")); !done.Session.UpdatedAt.Equal(about.UpdatedAt.Add(time.Hour)) || !done.Session.CreatedAt.Equal(about.CreatedAt) {
		s.Errorf("an earlier time makes it %+v", done.Session)
	}
	s.later(time.Minute)
	if done := s.add(scope, said("ann", "seven")); !done.Session.UpdatedAt.Equal(s.now) {
		s.Errorf("appended to %+v", done.Session)
	}
	s.take(scope)
	if p := s.pending(scope); len(p.Speakers) != 0 {
		s.Errorf("settled messages are pending: %+v", p)
	}
	s.expectDue(0)
}

func testWindowExpires(s *suite) {
	scope := direct("ann", "s1")
	s.add(scope, said("ann", "one"), answered("two"))
	o := s.older(scope)
	s.save(scope, o.Revision, session.Summary{Text: "the first window", Last: 2, Messages: 2, MadeBy: "test", At: s.now})
	s.later(s.rules.TTL - time.Microsecond)
	if got := s.add(scope, said("ann", "three")).Session; got.WindowStart != 1 {
		s.Errorf("before it expires the window begins at %d", got.WindowStart)
	}
	if s.window(scope).Summary == nil {
		s.Error("the summary is gone before the window")
	}
	s.later(s.rules.TTL)
	fresh := s.add(scope, said("ann", "four"), said("ann", "five")).Session
	if fresh.WindowStart != 4 || fresh.Messages != 5 {
		s.Errorf("after it expired the session is %+v", fresh)
	}
	w := s.window(scope)
	if got := contents(w.Messages); !slices.Equal(got, []string{"four", "five"}) || w.Summary != nil {
		s.Errorf("the fresh window is %q with the summary %v", got, w.Summary)
	}
	s.save(scope, o.Revision, session.Summary{Text: "too late", Last: 2, Messages: 2, MadeBy: "test", At: s.now})
	if w := s.window(scope); w.Summary != nil {
		s.Errorf("a summary of the window before was stored: %+v", w.Summary)
	}
	s.expect(scope, "one", "two", "three", "four", "five")

	s.rules.TTL = 0
	s.later(1000 * time.Hour)
	if got := s.add(scope, said("ann", "six")).Session; got.WindowStart != 4 {
		s.Errorf("a window that never expires begins at %d", got.WindowStart)
	}
}

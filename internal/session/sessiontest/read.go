package sessiontest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
)

// window reads the session's window as the scope sees it.
func (s *suite) window(scope memory.Scope) session.Window {
	s.Helper()
	w, err := s.store.Window(s.Context(), viewer(scope), scope.SessionID, session.WindowQuery{Limit: 100})
	if err != nil {
		s.Fatal(err)
	}
	return w
}

// older reads the messages that a summary would cover.
func (s *suite) older(scope memory.Scope) session.Older {
	s.Helper()
	o, err := s.store.Older(s.Context(), scope.Namespace, scope.SessionID, 0, "", 1000)
	if err != nil {
		s.Fatal(err)
	}
	return o
}

func (s *suite) save(scope memory.Scope, revision int64, summary session.Summary) {
	s.Helper()
	if err := s.store.SaveSummary(s.Context(), scope.Namespace, scope.SessionID, revision, summary); err != nil {
		s.Fatal(err)
	}
}

// pages reads all pages of a session's messages.
func (s *suite) pages(scope memory.Scope, q session.MessageQuery) (list []string, pages int, total int64) {
	s.Helper()
	for {
		page, err := s.store.Messages(s.Context(), viewer(scope), scope.SessionID, q)
		if err != nil {
			s.Fatal(err)
		}
		if pages > 0 && page.Total != total {
			s.Errorf("the total went from %d to %d", total, page.Total)
		}
		pages++
		total = page.Total
		list = append(list, contents(page.Messages)...)
		if q.After = page.Next; q.After == "" {
			return list, pages, total
		}
	}
}

func testMessages(s *suite) {
	scope := direct("ann", "s1")
	for i := range 6 {
		scope.AgentID = []string{"nora", "olga"}[i%2]
		s.add(scope, said("ann", fmt.Sprint(i)))
	}
	s.add(direct("ann", "s2"), said("ann", "elsewhere"))
	nora, absent := "nora", "absent"
	for _, test := range []struct {
		query session.MessageQuery
		want  string
		pages int
	}{
		{session.MessageQuery{Limit: 2}, "[0 1 2 3 4 5]", 3},
		{session.MessageQuery{Limit: 4}, "[0 1 2 3 4 5]", 2},
		{session.MessageQuery{Limit: 6}, "[0 1 2 3 4 5]", 1},
		{session.MessageQuery{Limit: 4, NewestFirst: true}, "[5 4 3 2 1 0]", 2},
		{session.MessageQuery{Limit: 2, Start: 3}, "[2 3 4 5]", 2},
		{session.MessageQuery{Limit: 2, Start: 3, NewestFirst: true}, "[2 1 0]", 2},
		{session.MessageQuery{Limit: 2, Start: 7}, "[]", 1},
		{session.MessageQuery{Limit: 2, Start: 100, NewestFirst: true}, "[5 4 3 2 1 0]", 3},
		{session.MessageQuery{Limit: 2, AgentID: &nora}, "[0 2 4]", 2},
		{session.MessageQuery{Limit: 2, AgentID: &nora, NewestFirst: true, Start: 4}, "[2 0]", 1},
		{session.MessageQuery{Limit: 2, AgentID: &absent}, "[]", 1},
	} {
		got, pages, total := s.pages(scope, test.query)
		if fmt.Sprint(got) != test.want || pages != test.pages || total != int64(len(got)) {
			s.Errorf("%+v gives %q on %d pages, %d in all, want %s on %d", test.query, got, pages, total, test.want, test.pages)
		}
	}
	page, err := s.store.Messages(s.Context(), viewer(scope), "s1", session.MessageQuery{Limit: 1})
	if err != nil || page.Session.ID != "s1" || page.Session.Messages != 6 {
		s.Errorf("the page has %+v, %v", page.Session, err)
	}
	for _, after := range []string{"x", "-1"} {
		_, err := s.store.Messages(s.Context(), viewer(scope), "s1", session.MessageQuery{Limit: 1, After: after})
		if !invalid(err, "page_token") {
			s.Errorf("after %q: %v", after, err)
		}
	}
}

// testMessagesWithGaps: Positions of deleted messages stay empty, and the totals are correct.
func testMessagesWithGaps(s *suite) {
	scope := lobby("ben", "s1")
	for i := range 9 {
		speaker := []string{"ann", "ben", "eve"}[i%3]
		scope := lobby(speaker, "s1")
		scope.AgentID = []string{"nora", "olga"}[i%2]
		s.add(scope, said(speaker, fmt.Sprint(i)))
		s.later(time.Minute)
	}
	nora := "nora"
	check := func(q session.MessageQuery, want string) {
		s.Helper()
		got, _, total := s.pages(scope, q)
		if fmt.Sprint(got) != want || total != int64(len(got)) {
			s.Errorf("%+v gives %q, %d in all, want %s", q, got, total, want)
		}
	}
	if _, err := s.store.Expire(s.Context(), session.Expiry{Namespace: namespace, Before: t0.Add(2 * time.Minute), Limit: 100}); err != nil {
		s.Fatal(err)
	}
	check(session.MessageQuery{Limit: 2}, "[2 3 4 5 6 7 8]")
	check(session.MessageQuery{Limit: 2, Start: 2}, "[2 3 4 5 6 7 8]")
	check(session.MessageQuery{Limit: 2, Start: 5}, "[4 5 6 7 8]")
	check(session.MessageQuery{Limit: 2, Start: 5, NewestFirst: true}, "[4 3 2]")
	if _, err := s.store.Forget(s.Context(), user("ann")); err != nil {
		s.Fatal(err)
	}
	check(session.MessageQuery{Limit: 2}, "[2 4 5 7 8]")
	check(session.MessageQuery{Limit: 2, NewestFirst: true}, "[8 7 5 4 2]")
	check(session.MessageQuery{Limit: 2, Start: 4}, "[4 5 7 8]")
	check(session.MessageQuery{Limit: 2, Start: 7, NewestFirst: true}, "[5 4 2]")
	check(session.MessageQuery{Limit: 2, AgentID: &nora}, "[2 4 8]")
	check(session.MessageQuery{Limit: 2, AgentID: &nora, Start: 4}, "[4 8]")
	if done := s.add(scope, said("ben", "9")); !slices.Equal(done.Positions, []int64{10}) {
		s.Errorf("the next position is %v", done.Positions)
	}
}

func testWindow(s *suite) {
	scope := direct("ann", "s1")
	scope.AgentID = "nora"
	system, tool := memory.Message{Role: memory.RoleSystem, Content: "system", Time: t0}, memory.Message{Role: memory.RoleTool, Content: "tool", Time: t0}
	a := s.request(scope, said("ann", "one"), system, tool, answered("two"), answered("failed"), said("ann", "three"))
	a.Excluded = []session.Exclusion{4: session.WithheldFailure, 5: session.NotExcluded}
	s.do(a)
	scope.AgentID = "olga"
	s.add(scope, said("ann", "four"))
	olga, absent := "olga", "absent"
	for _, test := range []struct {
		query session.WindowQuery
		want  string
	}{
		{session.WindowQuery{Limit: 100}, "[one two three four]"},
		{session.WindowQuery{Limit: 3}, "[two three four]"},
		{session.WindowQuery{Limit: 1}, "[four]"},
		{session.WindowQuery{Limit: 100, Tools: true}, "[one tool two three four]"},
		{session.WindowQuery{Limit: 100, System: true}, "[one system two three four]"},
		{session.WindowQuery{Limit: 100, AgentID: &olga}, "[four]"},
		{session.WindowQuery{Limit: 100, AgentID: &absent}, "[]"},
	} {
		w, err := s.store.Window(s.Context(), viewer(scope), "s1", test.query)
		if err != nil || fmt.Sprint(contents(w.Messages)) != test.want || w.Session.Last != 7 || w.Summary != nil {
			s.Errorf("%+v gives %+v, %v, want %s", test.query, w, err, test.want)
		}
	}
	o, err := s.store.Older(s.Context(), namespace, "s1", 1, "nora", 2)
	if err != nil || fmt.Sprint(contents(o.Messages)) != "[two three]" || !slices.Equal(o.Session.Agents, []string{"nora", "olga"}) {
		s.Errorf("for a summary: %+v, %v", o, err)
	}
}

func testSummaries(s *suite) {
	scope := direct("ann", "s1")
	scope.AgentID = "nora"
	s.add(scope, many("ann", 3)...)
	all := session.Summary{Text: "of all", Last: 4, Messages: 4, MadeBy: "test", At: t0}
	s.save(scope, s.older(scope).Revision, all)
	nora := "nora"
	of := func(agent *string) *session.Summary {
		s.Helper()
		w, err := s.store.Window(s.Context(), viewer(scope), "s1", session.WindowQuery{Limit: 1, AgentID: agent})
		if err != nil {
			s.Fatal(err)
		}
		return w.Summary
	}
	if got := of(nil); got == nil || *got != all {
		s.Errorf("the summary is %+v", got)
	}
	if got := of(&nora); got == nil || *got != all {
		s.Errorf("the only agent's summary is %+v", got)
	}
	plain := direct("ann", "s2") // nora joins after the first messages
	s.add(plain, said("ann", "what nora did not hear"))
	plain.AgentID = nora
	s.add(plain, many("ann", 3)...)
	s.save(plain, s.older(plain).Revision, all)
	if w, err := s.store.Window(s.Context(), viewer(plain), "s2", session.WindowQuery{Limit: 1, AgentID: &nora}); err != nil || w.Summary != nil {
		s.Errorf("with nora alone and a message without a recipient, her summary is %+v, %v", w.Summary, err)
	}
	scope.AgentID = "olga"
	s.add(scope, said("ann", "hello olga"))
	if got := of(&nora); got != nil {
		s.Errorf("with another agent, nora's is %+v", got)
	}
	hers := session.Summary{AgentID: "nora", Text: "of nora", Last: 2, Messages: 2, MadeBy: "test", At: t0}
	s.save(scope, s.older(scope).Revision, hers)
	all.Text, all.Last = "of all, again", 6
	s.save(scope, s.older(scope).Revision, all)
	if got := of(&nora); got == nil || *got != hers {
		s.Errorf("nora's is %+v", got)
	}
	if got := s.older(scope).Summaries; !reflect.DeepEqual(got, []session.Summary{all, hers}) {
		s.Errorf("the summaries are %+v", got)
	}
	// No summary is stored for a deleted session, nor for a new one with its id.
	o := s.older(scope)
	if _, err := s.store.Delete(s.Context(), viewer(scope), "s1"); err != nil {
		s.Fatal(err)
	}
	s.save(scope, o.Revision, all)
	s.later(time.Second)
	s.add(scope, said("ann", "afresh"))
	s.save(scope, o.Revision, all)
	if got := s.window(scope).Summary; got != nil {
		s.Errorf("the new session has the summary %+v", got)
	}
}

func testSummaryDue(s *suite) {
	scope := direct("ann", "s1")
	s.rules.MemorizeEvery = 0
	s.add(scope, many("ann", 5)...)
	s.expectDue(0)
	s.later(time.Minute)
	s.add(scope, said("ann", "one more"))
	s.expectDue(0, "summarize s1")
	s.save(scope, s.older(scope).Revision, session.Summary{Text: "first", Last: 8, Messages: 8, MadeBy: "test", At: s.now})
	s.expectDue(0, "summarize s1")
	done := func(last int64) {
		s.Helper()
		if err := s.store.SummaryDone(s.Context(), namespace, "s1", last, time.Time{}); err != nil {
			s.Fatal(err)
		}
	}
	done(10) // messages followed
	s.expectDue(0, "summarize s1")
	done(11)
	s.expectDue(0)
	s.add(scope, many("ann", 3)...) // 9 are not covered
	s.expectDue(0)
	s.add(scope, many("ann", 1)...)
	s.expectDue(0, "summarize s1")
	due := session.Due{Namespace: namespace, SessionID: "s1", Kind: session.DueSummarize, At: s.now}
	if err := s.store.Postpone(s.Context(), due, s.now.Add(time.Hour)); err != nil {
		s.Fatal(err)
	}
	s.expectDue(time.Hour)
	s.add(scope, said("ann", "and another")) // does not make it due sooner
	s.expectDue(time.Hour)
}

func testList(s *suite) {
	for _, a := range []struct {
		scope memory.Scope
		who   string
	}{
		{direct("ann", "ann-direct"), "ann"},
		{lobby("ann", "group-1"), "ann"},
		{direct("ben", "ben-direct"), "ben"},
		{memory.Scope{Namespace: namespace, UserID: "ann", SessionID: "ann-plain"}, "ann"},
		{memory.Scope{Namespace: namespace, SessionID: "ownerless"}, ""},
		{lobby("ben", "group-2"), "ben"},
		{lobby("", "group-3"), ""},
		{memory.Scope{Namespace: "elsewhere", UserID: "ann", SessionID: "elsewhere"}, "ann"},
	} {
		s.later(time.Second)
		s.add(a.scope, said(a.who, "hello"))
	}
	s.later(time.Second)
	s.add(direct("ann", "ann-direct"), answered("again")) // the last one changed
	attic := lobby("ann", "")
	attic.Channel.ID = "attic"
	shared, everywhere := viewer(attic), viewer(attic)
	shared.Audience = memory.NewVisibility(memory.VisibilityChannel, []memory.SharedGroups{
		{Namespace: namespace, Channels: []string{"attic", lobby("", "").Channel.ID}},
	}).AudienceOf(attic)
	everywhere.Audience = memory.Everything()
	strange, unnamed := shared, shared
	strange.UserID, unnamed.UserID = "eve", ""
	blind, blindInGroup := viewer(direct("ann", "")), viewer(lobby("ann", ""))
	blind.Audience, blindInGroup.Audience = memory.Audience{}, memory.Audience{}
	for _, test := range []struct {
		viewer session.Viewer
		want   []string
	}{
		{viewer(direct("ann", "")), []string{"ann-direct", "ann-plain", "group-1"}},
		{viewer(direct("ben", "")), []string{"group-2", "ben-direct"}},
		{viewer(direct("eve", "")), nil},
		{viewer(lobby("ann", "")), []string{"group-3", "group-2", "group-1"}},
		{viewer(lobby("eve", "")), []string{"group-3", "group-2", "group-1"}},
		{viewer(attic), nil},
		{shared, []string{"group-1"}},
		{strange, nil},
		{unnamed, nil},
		{everywhere, []string{"ann-direct", "ann-plain", "group-1"}},
		{viewer(memory.Scope{Namespace: namespace, UserID: "ann"}), []string{"ann-plain"}},
		{viewer(memory.Scope{Namespace: namespace}), []string{"ownerless"}},
		{blind, nil},
		{blindInGroup, nil},
	} {
		list, next, err := s.store.List(s.Context(), test.viewer, "", 100)
		if err != nil || next != "" {
			s.Fatal(next, err)
		}
		var ids []string
		for _, got := range list {
			ids = append(ids, got.ID)
			if again, err := s.store.Get(s.Context(), test.viewer, got.ID); err != nil || !reflect.DeepEqual(again, got) {
				s.Errorf("listed %+v, got %+v, %v", got, again, err)
			}
		}
		if !slices.Equal(ids, test.want) {
			s.Errorf("%+v sees %q, want %q", test.viewer, ids, test.want)
		}
	}
}

func testListPages(s *suite) {
	for _, scope := range []memory.Scope{direct("ann", ""), lobby("ann", ""), {Namespace: namespace}} {
		var want []string
		for i := range 5 {
			scope.SessionID = fmt.Sprintf("%s-%d", scope.Channel.Kind, i)
			s.add(scope, said(scope.UserID, "hello")) // some simultaneously
			if i%2 == 0 {
				s.later(time.Second)
			}
			want = append([]string{scope.SessionID}, want...)
		}
		v := viewer(scope)
		if scope.Channel.Kind == memory.ChannelDirect {
			v.Audience = memory.VisibilityUser.AudienceOf(scope.Channel)
		}
		for limit := 1; limit <= 6; limit++ {
			if got := s.listed(v, limit); !slices.Equal(got, want) {
				s.Errorf("%d a page: %q, want %q", limit, got, want)
			}
		}
	}
	if _, _, err := s.store.List(s.Context(), viewer(direct("ann", "")), "nonsense", 1); !invalid(err, "page_token") {
		s.Errorf("an invalid page token gives %v", err)
	}
}

// listed reads all pages of the list of sessions.
func (s *suite) listed(v session.Viewer, limit int) (ids []string) {
	s.Helper()
	for after, pages := "", 0; pages == 0 || after != ""; pages++ {
		list, next, err := s.store.List(s.Context(), v, after, limit)
		if err != nil || len(list) > limit {
			s.Fatal(len(list), err)
		}
		for _, found := range list {
			ids = append(ids, found.ID)
		}
		after = next
	}
	return ids
}

// testUnknown: A session that does not exist or is not visible is not found.
func testUnknown(s *suite) {
	s.add(direct("ann", "hers"), said("ann", "one"))
	ctx := s.Context()
	for _, scope := range []memory.Scope{direct("ann", "unknown"), direct("ben", "hers"), lobby("ann", "hers")} {
		v, id := viewer(scope), scope.SessionID
		for name, call := range map[string]func() error{
			"Get":      func() error { _, err := s.store.Get(ctx, v, id); return err },
			"Messages": func() error { _, err := s.store.Messages(ctx, v, id, session.MessageQuery{Limit: 1}); return err },
			"Window":   func() error { _, err := s.store.Window(ctx, v, id, session.WindowQuery{Limit: 1}); return err },
			"Update":   func() error { _, err := s.store.Update(ctx, v, id, session.Patch{At: s.now}); return err },
			"Delete":   func() error { _, err := s.store.Delete(ctx, v, id); return err },
		} {
			if err := call(); !errors.Is(err, memory.ErrNotFound) {
				s.Errorf("%s of %+v: %v", name, scope, err)
			}
		}
	}
	for name, call := range map[string]func() error{
		"Unconsidered": func() error { _, err := s.store.Unconsidered(ctx, namespace, "unknown"); return err },
		"Older":        func() error { _, err := s.store.Older(ctx, namespace, "unknown", 0, "", 1); return err },
		"OwnMessages":  func() error { _, err := s.store.OwnMessages(ctx, user("ann"), "unknown", 0, 1); return err },
		"Take": func() error {
			_, _, err := s.store.Take(ctx, session.Take{Namespace: namespace, SessionID: "unknown", Acceptance: s.acceptance(direct("ann", "unknown"))})
			return err
		},
	} {
		if err := call(); !errors.Is(err, memory.ErrNotFound) {
			s.Errorf("%s: %v", name, err)
		}
	}
	s.expect(direct("ann", "hers"), "one")
}

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

func testDelete(s *suite) {
	scope := direct("ann", "s1")
	s.add(scope, withIDs(many("ann", 3)...)...)
	s.add(direct("ann", "s2"), said("ann", "elsewhere"))
	s.save(scope, s.older(scope).Revision, session.Summary{Text: "of all", Last: 4, Messages: 4, MadeBy: "test", At: s.now})
	s.add(lobby("ann", "group"), said("ann", "hello"))
	if _, err := s.store.Delete(s.Context(), viewer(direct("ann", "group")), "group"); !refused(err) {
		s.Errorf("a group's session was deleted from a direct chat: %v", err)
	}
	deleted, err := s.store.Delete(s.Context(), viewer(scope), "s1")
	if err != nil || deleted != (session.Deleted{Messages: 6}) {
		s.Errorf("deleted %+v, %v", deleted, err)
	}
	s.gone(scope)
	list, _, err := s.store.Sessions(s.Context(), user("ann"), "", 10)
	if err != nil || len(list) != 2 || list[0].ID != "s2" {
		s.Errorf("ann's sessions are %+v, %v", list, err)
	}
	s.expectDue(time.Hour)
	if _, err := s.store.Delete(s.Context(), viewer(scope), "s1"); !errors.Is(err, memory.ErrNotFound) {
		s.Errorf("deleted again: %v", err)
	}
	// The id can be used again, also by others. The new session has none of the old messages.
	done := s.add(direct("ben", "s1"), withIDs(said("ben", "word 0"))...)
	if !done.Created || done.Session.Last != 1 || !slices.Equal(done.Session.Participants, []string{"ben"}) {
		s.Errorf("the new session is %+v", done)
	}
	if w := s.window(direct("ben", "s1")); len(w.Messages) != 1 || w.Summary != nil {
		s.Errorf("its window is %+v", w)
	}
	s.expect(direct("ann", "s2"), "elsewhere")
	if err := s.store.Sweep(s.Context()); err != nil {
		s.Fatal(err)
	}
	s.expect(direct("ben", "s1"), "word 0")
}

// testDeleteWithConsiderations: Pending considerations are deleted and finished ones keep their outcome. Those that only carry the label
// stay unchanged.
func testDeleteWithConsiderations(s *suite) {
	scope := lobby("ann", "s1")
	ended, _, err := s.store.Record(s.Context(), s.record(scope, said("ann", "one"), said("ben", "two")))
	if err != nil {
		s.Fatal(err)
	}
	s.finish()
	waiting, _, err := s.store.Record(s.Context(), s.record(scope, said("ann", "three"), said("ben", "four")))
	if err != nil {
		s.Fatal(err)
	}
	s.add(scope, said("ann", "five"))
	taken, _ := s.take(scope)
	label := s.record(scope, said("ann", "six")).Acceptance // accepted without being recorded
	if _, err := s.queue.Accept(s.Context(), label); err != nil {
		s.Fatal(err)
	}
	deleted, err := s.store.Delete(s.Context(), viewer(scope), "s1")
	if err != nil || deleted != (session.Deleted{Messages: 5, Considerations: 3}) {
		s.Errorf("deleted %+v, %v", deleted, err)
	}
	for _, id := range []string{waiting.ID, taken.ID} {
		for _, who := range []string{"ann", "ben"} {
			if c, err := s.queue.Get(s.Context(), user(who), id, memory.Everything()); !errors.Is(err, memory.ErrNotFound) {
				s.Errorf("%s still has %+v, %v", who, c, err)
			}
		}
	}
	if c := s.consideration("ann", ended.ID); c.State != memory.StateRemembered || c.Outcome.Reason == "" || c.MessageCount != 2 {
		s.Errorf("the outcome changed to %+v", c)
	}
	if got := s.dialogue("ben", ended.ID); !slices.Equal(got, []string{"", ""}) {
		s.Errorf("the finished dialogue has %q", got)
	}
	if got := s.dialogue("ann", label.ID); !slices.Equal(got, []string{"six"}) {
		s.Errorf("the dialogue with the label has %q", got)
	}
	// The jobs that follow a deleted one run.
	jobs, _, err := s.queue.Claim(s.Context(), time.Now().Add(time.Hour), 10)
	if err != nil || len(jobs) != 1 || jobs[0].Consideration.ID != label.ID {
		s.Errorf("next are %+v, %v", jobs, err)
	}
}

func testForgetInDirectChat(s *suite) {
	scope := direct("ann", "s1")
	s.add(scope, many("ann", 2)...)
	s.add(direct("ann", ""), said("ann", "current"))
	if _, _, err := s.store.Switch(s.Context(), viewer(direct("ann", "")), "empty", s.now); err != nil {
		s.Fatal(err)
	}
	other := scope
	other.Namespace = "elsewhere"
	s.add(other, said("ann", "elsewhere"))
	forgotten, err := s.store.Forget(s.Context(), user("ann"))
	if err != nil || forgotten != (session.Forgotten{Messages: 5, Sessions: 3}) {
		s.Errorf("forgotten %+v, %v", forgotten, err)
	}
	for _, id := range []string{"s1", "empty"} {
		s.gone(direct("ann", id))
	}
	if id, err := s.store.Current(s.Context(), viewer(direct("ann", ""))); err != nil || id != "" {
		s.Errorf("the current session is %q, %v", id, err)
	}
	s.expectDue(time.Hour) // another user's
	s.expect(other, "elsewhere")
	if forgotten, err := s.store.Forget(s.Context(), user("ann")); err != nil || forgotten != (session.Forgotten{}) {
		s.Errorf("forgotten again %+v, %v", forgotten, err)
	}
	if done := s.add(direct("ben", "s1"), said("ben", "mine now")); !done.Created {
		s.Errorf("the id is in use: %+v", done)
	}
}

func testForgetInGroups(s *suite) {
	scope := lobby("ben", "s1")
	s.add(lobby("ann", "s1"), said("ann", "one"), answered("to ann"))
	first := said("ben", "two")
	first.Time = t0.Add(time.Hour)
	s.later(time.Minute)
	s.add(scope, first, answered("to ben"), said("ann", "three"))
	s.add(lobby("ann", "hers"), said("ann", "alone"))
	s.add(lobby("", "bot"), answered("to no user"))
	s.add(lobby("ann", "bot"), said("ann", "thanks"))
	s.add(lobby("", "unsigned"), said("", "unsigned words"), said("ann", "mine"))
	o := s.older(scope)
	summary := session.Summary{Text: "ann said one", Last: 3, Messages: 3, MadeBy: "test", At: s.now}
	s.save(scope, o.Revision, summary)

	forgotten, err := s.store.Forget(s.Context(), user("ann"))
	if err != nil || forgotten != (session.Forgotten{Messages: 7, Sessions: 2}) {
		s.Errorf("forgotten %+v, %v", forgotten, err)
	}
	s.expect(scope, "two", "to ben")
	s.gone(lobby("ben", "hers"))
	s.gone(lobby("ben", "bot")) // the bot named no recipient, but only ben took part
	s.expect(lobby("ben", "unsigned"), "unsigned words")
	got := s.get(scope)
	if got.Messages != 2 || got.UserMessages != 1 || got.Unconsidered != 1 || !slices.Equal(got.Participants, []string{"ben"}) ||
		!got.FirstSaidAt.Equal(t0) || !got.LastSaidAt.Equal(first.Time) {
		s.Errorf("the session is %+v", got)
	}
	// Summaries that include ann are deleted, also one in progress, and a new one is due.
	s.save(scope, o.Revision, summary)
	if w := s.window(scope); w.Summary != nil {
		s.Errorf("the summary is %+v", w.Summary)
	}
	due, _, err := s.store.Due(s.Context(), time.Now().Add(time.Hour), 10)
	if err != nil || !slices.ContainsFunc(due, func(d session.Due) bool { return d.Kind == session.DueSummarize && d.SessionID == "s1" }) {
		s.Errorf("due are %+v, %v", due, err)
	}
	if c, ok := s.take(scope); !ok || c.MessageCount != 2 {
		s.Errorf("taken %+v, %t", c, ok)
	}
	// A participant who wrote nothing keeps the session.
	s.add(lobby("ann", "joined"), said("ann", "come"))
	if _, _, err := s.store.Switch(s.Context(), viewer(lobby("ben", "")), "joined", s.now); err != nil {
		s.Fatal(err)
	}
	if forgotten, err := s.store.Forget(s.Context(), user("ann")); err != nil || forgotten != (session.Forgotten{Messages: 1}) {
		s.Errorf("forgotten %+v, %v", forgotten, err)
	}
	s.expect(lobby("ben", "joined"))
	// Without messages of a user nothing is due.
	s.add(lobby("eve", "s3"), said("eve", "x"))
	s.add(lobby("ben", "s3"), answered("y"))
	if _, err := s.store.Forget(s.Context(), user("eve")); err != nil {
		s.Fatal(err)
	}
	if got := s.get(lobby("ben", "s3")); got.Unconsidered != 0 {
		s.Errorf("the session is %+v", got)
	}
	for _, d := range s.everDue("s3") {
		s.Errorf("due is %+v", d)
	}
}

// everDue returns the due work of a session, at any time.
func (s *suite) everDue(sessionID string) (list []session.Due) {
	due, _, err := s.store.Due(s.Context(), s.now.Add(10_000*time.Hour), 100)
	if err != nil {
		s.Fatal(err)
	}
	for _, d := range due {
		if d.SessionID == sessionID {
			list = append(list, d)
		}
	}
	return list
}

func testExport(s *suite) {
	s.add(lobby("ben", "group"), said("ben", "hello"), answered("hello ben"))
	for i := range 3 {
		s.later(time.Second)
		s.add(direct("ann", fmt.Sprint("s", i)), said("ann", fmt.Sprint("word ", i)), answered("answer"))
	}
	s.add(lobby("ann", "group"), said("ann", "hi"), said("ben", "you"), answered("to ann"), memory.Message{Role: memory.RoleTool, Content: "tool", Time: t0})
	var ids []string
	for after, pages := "", 0; pages == 0 || after != ""; pages++ {
		list, next, err := s.store.Sessions(s.Context(), user("ann"), after, 2)
		if err != nil || len(list) > 2 {
			s.Fatal(list, err)
		}
		for _, found := range list {
			ids = append(ids, found.ID)
			if got := s.get(map[bool]memory.Scope{true: lobby("ann", found.ID), false: direct("ann", found.ID)}[found.ID == "group"]); !reflect.DeepEqual(got, found) {
				s.Errorf("exported %+v, want %+v", found, got)
			}
		}
		after = next
	}
	if !slices.Equal(ids, []string{"group", "s0", "s1", "s2"}) {
		s.Errorf("the sessions are %q", ids)
	}
	own := func(after int64, limit int) []string {
		s.Helper()
		messages, err := s.store.OwnMessages(s.Context(), user("ann"), "group", after, limit)
		if err != nil {
			s.Fatal(err)
		}
		return contents(messages)
	}
	if got := own(0, 10); !slices.Equal(got, []string{"hi", "to ann", "tool"}) {
		s.Errorf("ann's own are %q", got)
	}
	if got := own(3, 1); !slices.Equal(got, []string{"to ann"}) {
		s.Errorf("after the third message the next is %q", got)
	}
	if list, next, err := s.store.Sessions(s.Context(), user("eve"), "", 10); err != nil || len(list) != 0 || next != "" {
		s.Errorf("eve has %+v, %q, %v", list, next, err)
	}
}

func testExpire(s *suite) {
	scope := direct("ann", "s1")
	s.rules.SummarizeAfter = 0
	for i := range 5 {
		s.add(scope, said("ann", fmt.Sprint(i)))
		s.later(time.Hour)
	}
	s.add(direct("ann", "young"), said("ann", "young"))
	for _, ns := range []string{"elsewhere", "kept"} {
		other := scope
		other.Namespace = ns
		a := s.request(other, said("ann", ns))
		a.At = t0
		s.do(a)
	}
	expire := func(e session.Expiry, want int64) {
		s.Helper()
		if got, err := s.store.Expire(s.Context(), e); err != nil || got != want {
			s.Errorf("%+v deleted %d, %v, want %d", e, got, err, want)
		}
	}
	expire(session.Expiry{Namespace: namespace, Before: t0, Limit: 2}, 0)
	expire(session.Expiry{Namespace: namespace, Before: t0.Add(2*time.Hour + time.Microsecond), Limit: 2}, 3)
	s.expect(scope, "3", "4")
	if got := s.get(scope); got.Messages != 2 || got.Unconsidered != 2 || got.UserMessages != 2 || got.Last != 5 {
		s.Errorf("the session is %+v", got)
	}
	if got, err := s.store.Namespaces(s.Context()); err != nil || !slices.Equal(got, []string{"elsewhere", "kept", namespace}) {
		s.Errorf("there are %q, %v", got, err)
	}
	expire(session.Expiry{Namespace: "elsewhere", Before: s.now, Limit: 2}, 1)
	expire(session.Expiry{Namespace: namespace, Before: s.now, Limit: 2}, 2)
	s.gone(scope)
	s.expect(direct("ann", "young"), "young")
	kept := scope
	kept.Namespace = "kept"
	s.expect(kept, "kept")
	// A session is as old as its newest message. An old session does not keep another from expiring.
	s.now = t0
	if _, _, err := s.store.Switch(s.Context(), viewer(scope), "begun", s.now); err != nil {
		s.Fatal(err)
	}
	s.later(time.Hour)
	s.add(direct("ann", "other"), said("ann", "other"))
	s.later(time.Hour)
	s.add(direct("ann", "begun"), said("ann", "at last"))
	expire(session.Expiry{Namespace: namespace, Before: s.now, Limit: 100}, 1)
	s.expect(direct("ann", "begun"), "at last")
	s.gone(direct("ann", "other"))
	s.later(100 * time.Hour)
	s.later(time.Hour)
	s.add(scope, said("ann", "again"))
	expire(session.Expiry{Namespace: namespace, Before: s.now, Limit: 100}, 2) // the others
	s.expect(scope, "again")
}

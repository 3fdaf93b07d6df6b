package queuetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
)

// channels returns channels of every kind.
func channels() map[string]memory.Channel {
	return map[string]memory.Channel{
		"unset":  {},
		"direct": {Kind: memory.ChannelDirect, ID: "dm"},
		"lobby":  {Kind: memory.ChannelGroup, ID: "lobby"},
		"office": {Kind: memory.ChannelGroup, ID: "office"},
	}
}

// audiences lists what a request from each channel sees.
func audiences() map[string]struct {
	audience memory.Audience
	sees     []string
} {
	type row = struct {
		audience memory.Audience
		sees     []string
	}
	at := func(name string) memory.Audience { return memory.VisibilityChannel.AudienceOf(channels()[name]) }
	all := []string{"direct", "lobby", "office", "unset"}
	return map[string]row{
		"direct":          {at("direct"), all},
		"lobby":           {at("lobby"), []string{"lobby"}},
		"unset":           {at("unset"), []string{"unset"}},
		"another group":   {memory.VisibilityChannel.AudienceOf(memory.Channel{Kind: memory.ChannelGroup, ID: "dm"}), nil},
		"visibility user": {memory.VisibilityUser.AudienceOf(channels()["lobby"]), all},
		"nowhere":         {memory.Audience{}, nil},
	}
}

func testGet(s *suite) {
	ids := map[string]string{}
	for name, channel := range channels() {
		ids[name] = s.add(memory.Scope{Namespace: namespace, UserID: "ann", Channel: channel})
	}
	for from, row := range audiences() {
		for name, id := range ids {
			_, err := s.store.Get(s.Context(), user("ann"), id, row.audience)
			if want := slices.Contains(row.sees, name); want && err != nil || !want && !errors.Is(err, memory.ErrNotFound) {
				s.Errorf("from %s, of %s: %v", from, name, err)
			}
		}
	}
	for name, u := range map[string]memory.User{
		"another person": user("ben"), "another namespace": {Namespace: "elsewhere", ID: "ann"}, "nobody": {},
	} {
		if _, err := s.store.Get(s.Context(), u, ids["unset"], memory.Everything()); !errors.Is(err, memory.ErrNotFound) {
			s.Errorf("as %s: %v", name, err)
		}
	}
	if _, err := s.store.Get(s.Context(), user("ann"), "con_none", memory.Everything()); !errors.Is(err, memory.ErrNotFound) {
		s.Errorf("an unknown id: %v", err)
	}
}

func testList(s *suite) {
	names := map[string]string{} // by id
	for name, channel := range channels() {
		names[s.add(memory.Scope{Namespace: namespace, UserID: "ann", Channel: channel})] = name
	}
	s.add(direct("ben"))
	s.add(memory.Scope{Namespace: "elsewhere", UserID: "ann"})
	for from, row := range audiences() {
		jobs, next, err := s.store.List(s.Context(), user("ann"), queue.ListQuery{Audience: row.audience, Limit: 10})
		if err != nil || next != "" {
			s.Fatal(next, err)
		}
		var seen []string
		for _, job := range jobs {
			seen = append(seen, names[job.Consideration.ID])
			if len(job.Dialogue.Messages) != 2 {
				s.Errorf("listed without its dialogue: %+v", job)
			}
		}
		slices.Sort(seen)
		if !slices.Equal(seen, row.sees) {
			s.Errorf("from %s: %q, want %q", from, seen, row.sees)
		}
	}

	jobs, _ := s.claim(1)
	s.finish(jobs[0], memory.StateFailed)
	for _, c := range []struct {
		states []memory.State
		want   int
	}{
		{[]memory.State{memory.StateFailed}, 1},
		{[]memory.State{memory.StatePending}, 3},
		{[]memory.State{memory.StatePending, memory.StateFailed}, 4},
		{[]memory.State{memory.StateRemembered}, 0},
		{nil, 4},
	} {
		jobs, _, err := s.store.List(s.Context(), user("ann"), queue.ListQuery{Audience: memory.Everything(), States: c.states, Limit: 10})
		if err != nil || len(jobs) != c.want {
			s.Errorf("%q: %d, %v, want %d", c.states, len(jobs), err, c.want)
		}
	}
}

// pages reads all pages of ann's considerations.
func (s *suite) pages(q queue.ListQuery) (all []string) {
	s.Helper()
	for {
		jobs, next, err := s.store.List(s.Context(), user("ann"), q)
		if err != nil {
			s.Fatal(err)
		}
		if len(jobs) == 0 || len(jobs) > q.Limit || len(jobs) < q.Limit && next != "" {
			s.Fatalf("a page of %d with limit %d and next %q", len(jobs), q.Limit, next)
		}
		for _, job := range jobs {
			all = append(all, job.Consideration.ID)
		}
		if q.After = next; next == "" {
			return all
		}
	}
}

func testListPages(s *suite) {
	const count = 7
	want := make([]string, count)
	for i := range want {
		want[i] = s.add(direct("ann"))
		s.add(direct("ben"))
	}
	for _, oldestFirst := range []bool{true, false} {
		if !oldestFirst {
			slices.Reverse(want)
		}
		for limit := 1; limit <= count+1; limit++ {
			got := s.pages(queue.ListQuery{Audience: memory.Everything(), OldestFirst: oldestFirst, Limit: limit})
			if !slices.Equal(got, want) {
				s.Errorf("oldest first %t, limit %d: %q, want %q", oldestFirst, limit, got, want)
			}
		}
	}
	_, _, err := s.store.List(s.Context(), user("ann"), queue.ListQuery{Audience: memory.Everything(), Limit: 2, After: "1; DROP"})
	var invalid *memory.InvalidError
	if !errors.As(err, &invalid) || invalid.Violations[0].Field != "page_token" {
		s.Errorf("another list's page token: %v", err)
	}
}

func testStats(s *suite) {
	stats := func(namespace string) queue.Stats {
		s.Helper()
		stats, err := s.store.Stats(s.Context(), namespace)
		if err != nil {
			s.Fatal(err)
		}
		return stats
	}
	if got := stats(namespace); got != (queue.Stats{}) {
		s.Errorf("of an empty queue: %+v", got)
	}
	first := s.add(direct("ann"))
	second := s.now
	s.add(lobby("ben"), "ann")
	s.add(memory.Scope{Namespace: "elsewhere", UserID: "ann"})
	if got, want := stats(namespace), (queue.Stats{Pending: 3, OldestPending: t0}); got != want {
		s.Errorf("got %+v, want %+v", got, want)
	}
	jobs, _ := s.claim(10)
	if got, want := stats(namespace), (queue.Stats{Pending: 3, OldestPending: t0}); got != want {
		s.Errorf("with running ones: %+v, want %+v", got, want)
	}
	s.finish(jobs[0], memory.StateFailed)
	if got, want := stats(namespace), (queue.Stats{Pending: 2, Failed: 1, OldestPending: second}); got != want {
		s.Errorf("with a failed one: %+v, want %+v", got, want)
	}
	at := s.later(time.Hour)
	if _, err := s.store.Retry(s.Context(), user("ann"), first, memory.Everything(), at); err != nil {
		s.Fatal(err)
	}
	if got, want := stats(namespace), (queue.Stats{Pending: 3, OldestPending: second}); got != want {
		s.Errorf("with a retried one: %+v, want %+v", got, want)
	}
	if got := stats("nowhere"); got != (queue.Stats{}) {
		s.Errorf("of another namespace: %+v", got)
	}
}

func (s *suite) forget(u memory.User) queue.Forgotten {
	s.Helper()
	forgotten, err := s.store.Forget(s.Context(), u)
	if err != nil {
		s.Fatal(err)
	}
	return forgotten
}

func testForget(s *suite) {
	for range 3 {
		s.add(direct("ann"))
	}
	a := s.acceptance(direct("ann"))
	a.RequestID, a.PayloadHash = "r1", []byte{1}
	s.accept(a)
	b := s.add(direct("ben"))
	elsewhere := s.add(memory.Scope{Namespace: "elsewhere", UserID: "ann"})
	if got, want := s.forget(user("ann")), (queue.Forgotten{Considerations: 4}); got != want {
		s.Errorf("got %+v, want %+v", got, want)
	}
	if got := s.all(user("ann")); len(got) != 0 {
		s.Errorf("%q remain", names(got))
	}
	s.expect("ben "+b, "ann "+elsewhere)
	if got := s.forget(user("ann")); got != (queue.Forgotten{}) {
		s.Errorf("forgetting again: %+v", got)
	}
	// A forgotten user may return and use any request id.
	again := s.acceptance(direct("ann"))
	again.RequestID, again.PayloadHash = "r1", []byte{2}
	if c := s.accept(again); c.ID != again.ID {
		s.Errorf("accepted %+v", c)
	}
	s.expect("ann " + again.ID)
}

// testForgetInGroups: Of a dialogue that others considered too, the forgotten user's messages are deleted and the others keep their
// positions.
func testForgetInGroups(s *suite) {
	a := s.acceptance(lobby("ann"), "ben")
	a.RequestID, a.PayloadHash = "r1", []byte{1}
	a.Dialogue.Messages = append(a.Dialogue.Messages, a.Dialogue.Messages[1]) // ben speaks twice
	s.accept(a)
	ann := s.expect("ann "+a.ID, "ben "+a.ID)[0]
	if err := s.store.Checkpoint(s.Context(), ann.Seq, []byte(`{"quote":"ben says 1"}`)); err != nil {
		s.Fatal(err)
	}
	if got, want := s.forget(user("ben")), (queue.Forgotten{Considerations: 1, Messages: 2}); got != want {
		s.Errorf("got %+v, want %+v", got, want)
	}
	if _, err := s.store.Get(s.Context(), user("ben"), a.ID, memory.Everything()); !errors.Is(err, memory.ErrNotFound) {
		s.Errorf("ben's consideration still exists: %v", err)
	}
	rest := s.all(user("ann"))[0]
	text, err := json.Marshal(rest)
	if err != nil {
		s.Fatal(err)
	}
	if strings.Contains(string(text), `"ben`) {
		s.Errorf("ben is still in %s", text)
	}
	messages := rest.Dialogue.Messages
	if len(messages) != 4 || !reflect.DeepEqual(messages[0], a.Dialogue.Messages[0]) || messages[2].Content != "the bot answers" ||
		rest.Consideration.MessageCount != 4 {
		s.Errorf("%+v remain", messages)
	}
	if len(rest.Checkpoint) != 0 {
		s.Errorf("a checkpoint that may depend on ben's messages is kept: %s", rest.Checkpoint)
	}

	// The bot repeats its call. This must not restore the messages.
	repeated := a
	repeated.ID = "con_repeated"
	if c := s.accept(repeated); c.ID != a.ID {
		s.Errorf("the repetition was accepted as %s", c.ID)
	}
	if got := s.all(user("ben")); len(got) != 0 {
		s.Errorf("ben's jobs were restored: %q", names(got))
	}

	// If the scope's own user is forgotten, the others' considerations stay.
	last := s.acceptance(lobby("ann"), "eve")
	last.Call.TurnID = "ann-42"
	b := s.accept(last).ID
	if got, want := s.forget(user("ann")), (queue.Forgotten{Considerations: 2, Messages: 1}); got != want {
		s.Errorf("got %+v, want %+v", got, want)
	}
	left := s.all(user("eve"))
	if len(left) != 1 || left[0].Consideration.ID != b || left[0].Dialogue.Messages[1].Content != "eve says "+fmt.Sprint(s.count) {
		s.Errorf("eve sees %+v", left)
	}
	if answer := left[0].Dialogue.Messages[2].Content; answer != "" {
		s.Errorf("ann's answer is kept: %q", answer)
	}
	if text, err := json.Marshal(left); err != nil || strings.Contains(string(text), `"ann`) {
		s.Errorf("ann is still in %s, %v", text, err)
	}
	s.expect("eve " + b)
}

// testForgetWhileRunning: A job that reports after its user was forgotten changes nothing.
func testForgetWhileRunning(s *suite) {
	id := s.add(direct("ann"))
	job := s.expect("ann " + id)[0]
	s.forget(user("ann"))
	for name, err := range map[string]error{
		"Checkpoint": s.store.Checkpoint(s.Context(), job.Seq, []byte(`{}`)),
		"Postpone":   s.store.Postpone(s.Context(), job.Seq, s.now, memory.Outcome{}, s.now),
		"Finish":     s.store.Finish(s.Context(), job.Seq, memory.StateRemembered, memory.Outcome{}, s.now),
		"Recover":    s.store.Recover(s.Context(), nil, s.now),
	} {
		if err != nil {
			s.Errorf("%s: %v", name, err)
		}
	}
	if got := s.all(user("ann")); len(got) != 0 {
		s.Errorf("ann's jobs were restored: %q", names(got))
	}
	next := s.add(direct("ann"))
	s.expect("ann " + next)
}

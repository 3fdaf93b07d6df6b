package vectorstoretest

import (
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

func standingTests() []test {
	return []test{
		{"Standing", testStanding},
		{"StandingChanges", testStandingChanges},
		{"StandingIsTakenOver", testStandingIsTakenOver},
		{"StandingAt", testStandingAt},
	}
}

// standing returns the texts of the user's standing memories, in order.
func (s *suite) standing(user memory.User, filter vectorstore.Filter) (texts []string) {
	s.Helper()
	list, err := s.store.Standing(s.Context(), user, filter)
	if err != nil {
		s.Fatal(err)
	}
	for _, m := range list {
		if d := diffOne(s.get(user, m.ID), *m); d != "" {
			s.Errorf("Standing does not agree with Get: %s", d)
		}
		texts = append(texts, m.Text)
	}
	return texts
}

// stands compares the user's standing memories, all channels together.
func (s *suite) stands(what string, user memory.User, want ...string) {
	s.Helper()
	if got := s.standing(user, everything()); !slices.Equal(got, want) {
		s.Errorf("%s: %q, want %q", what, got, want)
	}
}

func (s *suite) marked(text string, class memory.StandingClass) memory.Memory {
	m := s.memory(text)
	m.Standing = class
	return m
}

func testStanding(s *suite) {
	s.stands("of nobody", ann)
	s.add(ann, s.memory("likes green tea"), 1, 0, 0)
	s.add(ann, s.marked("wants short answers", memory.StandingStyle))
	s.add(ann, s.marked("is allergic to nuts", memory.StandingSafety), 1, 0, 0)
	s.add(ann, s.marked("is called Ann", memory.StandingAddress))
	s.stands("first the important ones", ann, "is allergic to nuts", "is called Ann", "wants short answers")
	last := s.marked("is allergic to latex", memory.StandingSafety)
	last.Channel = memory.Channel{Kind: memory.ChannelGroup, ID: "lobby"}
	s.add(ann, last)
	s.stands("then the newest ones", ann, "is allergic to latex", "is allergic to nuts", "is called Ann", "wants short answers")
	s.stands("of another user", ben)
	in := func(channel memory.Channel) []string {
		return s.standing(ann, vectorstore.Filter{Audience: memory.VisibilityChannel.AudienceOf(channel)})
	}
	if got := in(last.Channel); !slices.Equal(got, []string{last.Text}) {
		s.Errorf("in the group: %q", got)
	}
	if got := in(memory.Channel{Kind: memory.ChannelGroup, ID: "office"}); got != nil {
		s.Errorf("in another group: %q", got)
	}
	doubted := s.marked("is allergic to water", memory.StandingSafety)
	doubted.Quarantine = "no such words"
	s.apply(ann, s.entry(doubted))
	over := s.marked("must not be called before noon", memory.StandingStyle)
	over.ValidTo = over.ObservedAt.Add(time.Minute)
	s.add(ann, over)
	s.stands("without what is not trusted or over", ann, "is allergic to latex", "is allergic to nuts", "is called Ann", "wants short answers")

	listed := s.list(ann, vectorstore.Filter{Audience: memory.Everything(), Standing: true})
	if len(listed) != 4 || slices.ContainsFunc(listed, func(m memory.Memory) bool { return m.Standing == "" }) {
		s.Errorf("listed: %+v", listed)
	}
	s.forget(ann)
	s.stands("after all is forgotten", ann)
}

func testStandingChanges(s *suite) {
	for i, warm := range []bool{false, true} {
		user := []memory.User{ann, ben}[i]
		m := s.add(user, s.memory("is called Ann"), 1, 0, 0)
		if warm {
			s.warm(user)
		}
		s.stands("not yet", user)
		patch := vectorstore.Patch{Standing: new(memory.StandingAddress), At: s.memory("").CreatedAt}
		if got, err := s.store.Update(s.Context(), user, m.ID, memory.Everything(), patch); err != nil || got.Standing != memory.StandingAddress {
			s.Errorf("%+v, %v", got, err)
		}
		s.stands("marked", user, m.Text)
		s.wantRevisions(user, m.ID, "edited: is called Ann > is called Ann", "added: is called Ann")
		if back, _ := s.revert(user, m.ID); back.Standing != "" {
			s.Errorf("undone: %+v", back)
		}
		s.stands("undone", user)

		again := s.entry(s.marked("is called Ann", memory.StandingAddress))
		again.Reinforce = true
		s.apply(user, again)
		s.stands("said again with the mark", user, m.Text)
		unmarked := s.entry(s.memory("is called Ann"))
		unmarked.Reinforce = true
		s.apply(user, unmarked)
		s.stands("said again without it", user, m.Text)
		s.withdraw(user, m.ID)
		s.stands("withdrawn", user)
		s.revert(user, m.ID)
		s.stands("withdrawn and undone", user, m.Text)
		patch = vectorstore.Patch{Standing: new(memory.StandingClass("")), At: s.memory("").CreatedAt}
		if _, err := s.store.Update(s.Context(), user, m.ID, memory.Everything(), patch); err != nil {
			s.Error(err)
		}
		s.stands("mark taken away", user)
		removed := s.add(user, s.marked("is allergic to nuts", memory.StandingSafety))
		s.remove(user, removed.ID)
		s.stands("deleted", user)
	}
}

func (s *suite) withdraw(user memory.User, id string) {
	s.Helper()
	request := s.entry(s.memory("what is to be forgotten"))
	request.Withdraws = []string{id}
	if applied := s.apply(user, request); len(applied[0].Related) != 1 {
		s.Fatalf("%+v", applied)
	}
}

func testStandingIsTakenOver(s *suite) {
	doc := s.add(ann, s.marked("wants to be called Doc", memory.StandingAddress))
	dee := s.entry(s.memory("wants to be called Dee"))
	dee.Supersedes = []string{doc.ID}
	if applied := s.apply(ann, dee); applied[0].Memory.Standing != memory.StandingAddress {
		s.Errorf("%+v", applied)
	}
	s.stands("the correction", ann, "wants to be called Dee")

	tea := s.add(ann, s.memory("likes tea"))
	coffee := s.entry(s.memory("likes coffee"))
	coffee.Supersedes = []string{tea.ID}
	s.apply(ann, coffee)
	s.stands("of a memory without one", ann, "wants to be called Dee")

	known := s.add(ann, s.memory("goes by Dan"))
	again := s.entry(s.memory("goes by Dan"))
	again.Reinforce, again.Supersedes = true, []string{dee.Memory.ID}
	if applied := s.apply(ann, again); applied[0].Memory.ID != known.ID || applied[0].Memory.Standing != memory.StandingAddress {
		s.Errorf("%+v", applied)
	}
	s.stands("a known memory in its place", ann, "goes by Dan")

	english := s.add(ann, s.marked("wants English answers", memory.StandingStyle))
	french := s.entry(s.marked("must be spoken to in French", memory.StandingSafety))
	french.Supersedes = []string{english.ID}
	s.apply(ann, french)
	s.stands("its own class", ann, "must be spoken to in French", "goes by Dan")
	s.revert(ann, english.ID)
	s.stands("undone", ann, "goes by Dan", "wants English answers")
}

func testStandingAt(s *suite) {
	doc := s.add(ann, s.marked("wants to be called Doc", memory.StandingAddress))
	dee := s.entry(s.memory("wants to be called Dee"))
	dee.Supersedes = []string{doc.ID}
	s.apply(ann, dee)
	then := vectorstore.Filter{Audience: memory.Everything(), At: doc.ObservedAt}
	then.Observed.Before = then.At.Add(time.Microsecond)
	if got := s.standing(ann, then); !slices.Equal(got, []string{doc.Text}) {
		s.Errorf("before the correction: %q", got)
	}
}

package recalltest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve/recall"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/testkit/storetest"
)

// testFind: people's and the bot's messages are found by a user's own words, unless they are withheld, and those of no other user.
func testFind(s *suite) {
	s.append(session.Append{
		Scope: in(ann, "s"), Messages: []memory.Message{answer("tea withheld")}, Excluded: []session.Exclusion{session.WithheldFailure},
	})
	s.say(in(ann, "s"), by(ann, "I drink green tea"), answer("Tea is healthy"), by(ann, "我对花生过敏"), answer("那就不吃花生酱"),
		memory.Message{Role: memory.RoleSystem, Content: "tea system", Time: t0},
		memory.Message{Role: memory.RoleTool, Content: "tea tool", Time: t0})
	s.say(in(bob, "b"), by(bob, "bob drinks tea, too"), answer("Tea for bob"))
	s.say(in(elsewhere, "s"), by(elsewhere, "tea elsewhere"))
	s.settle()

	s.finds(all(ann, 10), "Which teas do I like?", "I drink green tea", "Tea is healthy")
	s.finds(all(ann, 10), "我能吃花生吗", "我对花生过敏", "那就不吃花生酱")
	s.finds(all(bob, 10), "tea", "bob drinks tea, too", "Tea for bob")
	s.finds(all(elsewhere, 10), "tea", "tea elsewhere")
	s.finds(all(memory.User{Namespace: ann.Namespace, ID: "stranger"}, 10), "tea")
	s.finds(all(ann, 10), "xylophone")
	s.finds(all(ann, 10), "…")
	s.finds(all(ann, 10), "")
	for _, limit := range []int{0, -1} {
		s.finds(all(ann, limit), "tea")
	}
	hits := s.search(all(ann, 1), "green tea")
	if len(hits) != 1 || hits[0].Message.Content != "I drink green tea" || hits[0].Score <= 0.5 {
		s.Errorf("the best hit is %+v", hits)
	}
}

// testFindKeepsEverything: a hit holds the message as the session has it, byte by byte.
func testFindKeepsEverything(s *suite) {
	var stored []memory.Message
	for i, text := range append(storetest.Texts(), "a\x00b") {
		m := by(ann, text+" xylophone")
		m.ID, m.Metadata = fmt.Sprint("m<", i, ">"), `{ "b":1.50,"a":[ ] }`
		m.Time = t0.Add(time.Duration(i) * time.Microsecond)
		if i%2 == 1 {
			m.Role, m.Speaker, m.AgentID = memory.RoleAssistant, "", "bot 茶"
		}
		stored = append(stored, m)
	}
	stored[1].Time = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)
	stored[2].Time = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	scope := in(ann, "session <1> 茶")
	scope.Channel = memory.Channel{Kind: memory.ChannelGroup, ID: "lobby 🍵"}
	s.say(scope, stored...)
	s.settle()
	want := messages(s.T, s.Sessions, ann, scope.SessionID)
	hits := s.search(all(ann, 100), "xylophone")
	if len(hits) != len(want) || len(want) != len(stored) {
		s.Fatalf("%d hits for %d messages", len(hits), len(want))
	}
	for _, h := range hits {
		got, want := h.Message, want[h.Message.Position-1]
		want.SessionRef = got.SessionRef // only searches return it
		if got.SessionRef == "" || !reflect.DeepEqual(got, want) {
			s.Errorf("found %+v\nwant %+v", got, want)
		}
	}
}

func testFilter(s *suite) {
	s.say(in(ann, "s"), by(ann, "I drink tea"), answer("Tea is healthy"))
	s.settle()
	everything := memory.Everything()
	for name, test := range map[string]struct {
		filter recall.Filter
		want   []string
	}{
		"everything":           {recall.Filter{Audience: everything}, []string{"I drink tea", "Tea is healthy"}},
		"the zero filter":      {recall.Filter{}, nil},
		"said from":            {recall.Filter{Audience: everything, SaidFrom: t0}, []string{"I drink tea", "Tea is healthy"}},
		"said later":           {recall.Filter{Audience: everything, SaidFrom: t0.Add(time.Microsecond)}, nil},
		"said before":          {recall.Filter{Audience: everything, SaidBefore: t0.Add(time.Microsecond)}, []string{"I drink tea", "Tea is healthy"}},
		"said earlier":         {recall.Filter{Audience: everything, SaidBefore: t0}, nil},
		"an agent":             {recall.Filter{Audience: everything, AgentID: new("bot")}, []string{"Tea is healthy"}},
		"no agent":             {recall.Filter{Audience: everything, AgentID: new("")}, []string{"I drink tea"}},
		"another agent":        {recall.Filter{Audience: everything, AgentID: new("other")}, nil},
		"a group":              {recall.Filter{Audience: memory.VisibilityChannel.AudienceOf(group("g"))}, nil},
		"everything and agent": {recall.Filter{Audience: everything, AgentID: new("bot"), SaidFrom: t0, SaidBefore: t0.Add(time.Second)}, []string{"Tea is healthy"}},
	} {
		if got := contents(s.search(recall.Query{User: ann, Limit: 10, Filter: test.filter}, "tea")); !slices.Equal(got, test.want) {
			s.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// testFindDays: a day is found in whatever form it is written.
func testFindDays(s *suite) {
	for i, day := range []string{"2023-05-08", "2023-05-09", "2023-06-08", "2024-05-08"} {
		at, err := time.Parse(time.DateOnly, day)
		if err != nil {
			s.Fatal(err)
		}
		m := by(ann, fmt.Sprintf("violin %c", 'a'+i))
		m.Time = at
		s.say(in(ann, "s"), m)
	}
	s.settle()
	for _, text := range []string{"2023-05-08", "2023/5/8", "2023年5月8日", "8 May 2023", "May 8, 2023", "the 8th of May, 2023"} {
		hits := s.search(all(ann, 3), "violin "+text)
		if len(hits) != 3 || hits[0].Message.Content != "violin a" || hits[1].Message.Content != "violin b" {
			s.Errorf("%s: %+v", text, hits)
		}
	}
	s.finds(all(ann, 2), "What happened in May 2023?", "violin a", "violin b")
}

// testFindNames: a foreign name is found although Chinese has several ways to write it.
func testFindNames(s *suite) {
	for _, name := range []string{"安德鲁", "梅兰妮", "克里斯托弗"} {
		m := answer("周末我去学钢琴")
		m.AgentID = name
		s.say(in(ann, "s"), m)
	}
	s.say(in(ann, "s"), by(ann, "我喜欢拉小提琴"), by(ann, "塞巴斯蒂安教我的"), by(ann, "我哥哥教他的"))
	s.settle()
	if hits := s.search(all(ann, 1), "梅拉妮周末去学什么？"); len(hits) != 1 || hits[0].Message.AgentID != "梅兰妮" {
		s.Errorf("%+v", hits)
	}
	s.finds(all(ann, 1), "塞巴斯汀是谁？", "塞巴斯蒂安教我的")
}

func group(id string) memory.Channel { return memory.Channel{Kind: memory.ChannelGroup, ID: id} }

// testVisibility: a search from a group finds no messages of direct chats and of other groups.
func testVisibility(s *suite) {
	channels := map[string]memory.Channel{
		"unspecified": {}, "direct": {Kind: memory.ChannelDirect, ID: "d"}, "group a": group("a"), "group b": group("b"),
	}
	for name, channel := range channels {
		scope := in(ann, name)
		scope.Channel = channel
		s.say(scope, by(bob, "before "+name), by(ann, "tea in "+name), by(bob, "tea of bob in "+name), answer("after"))
	}
	s.settle()
	for name, want := range map[string][]string{
		"unspecified": {"tea in unspecified"},
		"direct":      {"tea in unspecified", "tea in direct", "tea in group a", "tea in group b"},
		"group a":     {"tea in group a"},
		"group b":     {"tea in group b"},
	} {
		q := all(ann, 10)
		q.Filter.Audience = memory.VisibilityChannel.AudienceOf(channels[name])
		s.finds(q, "tea", want...)
	}
	// Neighbors returns only what the audience sees, whatever messages it is asked about.
	var of []session.Message
	for _, hit := range s.search(all(ann, 10), "tea") {
		of = append(of, hit.Message)
	}
	q := all(ann, 10)
	q.Filter.Audience = memory.VisibilityChannel.AudienceOf(channels["group a"])
	neighbors, err := s.Search.Neighbors(s.Context(), q, of, 1)
	if err != nil || len(neighbors) != 4 {
		s.Fatal(neighbors, err)
	}
	for i, n := range neighbors {
		want := ""
		if of[i].Channel == channels["group a"] {
			want = "before group a|tea of bob in group a"
		}
		if got := join(n.Before) + "|" + join(n.After); got != want && (want != "" || got != "|") {
			s.Errorf("in %v group a sees %q, want %q", of[i].Channel, got, want)
		}
	}
}

func join(messages []session.Message) string {
	var texts []string
	for _, m := range messages {
		texts = append(texts, m.Content)
	}
	return strings.Join(texts, " ")
}

// testSaidUntil: what was said after the last time that counts is neither found nor a neighbor of what is found.
func testSaidUntil(s *suite) {
	later, latest := by(ann, "I drink black tea now"), answer("Tea again")
	later.Time, latest.Time = t0.Add(time.Hour), t0.Add(2*time.Hour)
	s.say(in(ann, "s"), by(ann, "I drink green tea"), later, latest)
	s.settle()
	for until, want := range map[time.Duration]int{-1: 0, 0: 1, time.Hour: 2, 2 * time.Hour: 3} {
		q := all(ann, 10)
		q.Filter.SaidUntil = t0.Add(until)
		if hits := s.search(q, "tea"); len(hits) != want {
			s.Errorf("until %s: found %d messages, want %d", until, len(hits), want)
		}
		for _, hit := range s.search(q, "green") {
			around, err := s.Search.Neighbors(s.Context(), q, []session.Message{hit.Message}, 5)
			if err != nil || len(around) != 1 || len(around[0].Before)+len(around[0].After) != want-1 {
				s.Errorf("until %s: around it are %+v, %v", until, around, err)
			}
		}
	}
}

// testNeighbors: they are the nearest messages of the session that people or the bot said, in order.
func testNeighbors(s *suite) {
	other := answer("other")
	other.AgentID = "other"
	s.say(in(ann, "s"), by(ann, "1"), answer("2"), memory.Message{Role: memory.RoleTool, Content: "3", Time: t0}, other, by(ann, "tea"),
		memory.Message{Role: memory.RoleSystem, Content: "6", Time: t0}, answer("7"), by(ann, "8"), answer("9"))
	s.append(session.Append{
		Scope: in(ann, "s"), Messages: []memory.Message{answer("withheld")}, Excluded: []session.Exclusion{session.WithheldFailure},
	})
	s.say(in(ann, "t"), by(ann, "elsewhere"))
	s.settle()
	of := []session.Message{s.search(all(ann, 1), "tea")[0].Message}
	for _, test := range []struct {
		count         int
		agent         *string
		before, after string
	}{
		{0, nil, "", ""},
		{-1, nil, "", ""},
		{1, nil, "other", "7"},
		{2, nil, "2 other", "7 8"},
		{20, nil, "1 2 other", "7 8 9"},
		{1, new("bot"), "2", "7"},
	} {
		q := all(ann, 0)
		q.Filter.AgentID = test.agent
		neighbors, err := s.Search.Neighbors(s.Context(), q, of, test.count)
		if err != nil || len(neighbors) != 1 {
			s.Fatal(neighbors, err)
		}
		if before, after := join(neighbors[0].Before), join(neighbors[0].After); before != test.before || after != test.after {
			s.Errorf("%d: %q and %q, want %q and %q", test.count, before, after, test.before, test.after)
		}
	}
	if none, err := s.Search.Neighbors(s.Context(), all(ann, 0), nil, 3); len(none) != 0 || err != nil {
		s.Errorf("of no messages: %+v, %v", none, err)
	}
	of[0].SessionRef = "unknown"
	neighbors, err := s.Search.Neighbors(s.Context(), all(ann, 0), of, 3)
	if err != nil || len(neighbors) != 1 || len(neighbors[0].Before)+len(neighbors[0].After) != 0 {
		s.Errorf("of an unknown session: %+v, %v", neighbors, err)
	}
}

// testLiftAnswers: a hit lifts the messages next to it in its session, so that an answer is found that shares no word with the
// question.
func testLiftAnswers(s *suite) {
	question := "So, where did you spend the honeymoon?"
	tool := memory.Message{Role: memory.RoleTool, Content: "found it", Time: t0}
	s.say(in(ann, "s"), by(ann, "nothing much"), by(ann, question), tool, tool, answer("In Kyoto, by the river"), by(ann, "lovely"),
		answer("goodbye"))
	s.say(in(ann, "t"), by(ann, "你们去哪里度蜜月了"), answer("京都"))
	s.say(in(ann, "u"), by(ann, "unrelated"))
	s.settle()

	hits := s.search(lifting(ann), "honeymoon")
	var found []string
	for _, hit := range hits {
		found = append(found, hit.Message.Content)
	}
	if want := []string{question, "In Kyoto, by the river", "nothing much", "lovely"}; !slices.Equal(found, want) {
		s.Fatalf("%q, want %q", found, want)
	}
	for i, share := range []float64{0, 0.6, 0.4, 0.36} {
		if own := hits[0].Score; i > 0 && (hits[i].Score != 0 || !near(hits[i].Neighbors, share*own)) || hits[i].Relevance() > 1 {
			s.Errorf("%q has %v and %v of %v", found[i], hits[i].Score, hits[i].Neighbors, own)
		}
	}
	if hits := s.search(lifting(ann), "蜜月去了哪里？"); len(hits) != 2 || hits[1].Message.Content != "京都" {
		s.Errorf("%q", contents(hits))
	}
	s.finds(all(ann, 10), "honeymoon", question)
}

// testLiftOwnOnly: what lifts and what is lifted are the user's own messages, and pass the filter.
func testLiftOwnOnly(s *suite) {
	scope := in(ann, "s")
	scope.Channel = group("g")
	s.say(scope, by(ann, "ann before"), by(bob, "violin of bob"), by(ann, "ann after"))
	other := answer("with another agent")
	other.AgentID = "other"
	s.append(session.Append{
		Scope:    in(ann, "t"),
		Messages: []memory.Message{by(ann, "piano withheld"), by(ann, "next to it"), by(ann, "harp"), other, by(ann, "long ago")},
		Excluded: []session.Exclusion{0: session.WithheldFailure, 4: session.NotExcluded},
	})
	s.settle()

	s.finds(lifting(ann), "violin")
	s.finds(lifting(bob), "violin", "violin of bob")
	// A message of another user between two is neither found nor counted as a step.
	if hits := s.search(lifting(ann), "before"); len(hits) != 2 || hits[1].Message.Content != "ann after" ||
		!near(hits[1].Neighbors, 0.6*hits[0].Score) {
		s.Errorf("%+v", hits)
	}
	s.finds(lifting(ann), "piano")
	s.finds(lifting(ann), "harp", "next to it", "harp", "with another agent", "long ago")

	q := lifting(ann)
	q.Filter.Audience = memory.VisibilityChannel.AudienceOf(group("g"))
	s.finds(q, "harp")
	s.finds(q, "before", "ann before", "ann after")
	q = lifting(ann)
	q.Filter.AgentID = new("other")
	s.finds(q, "harp")
	s.finds(q, "another", "with another agent")
	q.Filter.AgentID = new("")
	if hits := s.search(q, "harp"); len(hits) != 3 || hits[1].Message.Content != "long ago" || !near(hits[1].Neighbors, 0.6*hits[0].Score) {
		s.Errorf("%+v", hits)
	}
	q = lifting(ann)
	q.Filter.SaidFrom = t0.Add(time.Second)
	s.finds(q, "harp")
}

// testRemove: deleted messages are not found, and do not affect the scores of the others.
func testRemove(s *suite) {
	for _, user := range []memory.User{ann, bob} {
		s.say(in(user, "kept "+user.ID), by(user, "tea kept of "+user.ID))
	}
	s.settle()
	for _, user := range []memory.User{ann, bob} {
		for range 70 { // enough to be indexed
			s.say(in(user, "deleted "+user.ID), by(user, "tea deleted of "+user.ID), answer("marimba"))
		}
	}
	s.settle()
	if _, err := s.Sessions.Delete(s.Context(), viewer(ann), "deleted ann"); err != nil {
		s.Fatal(err)
	}
	s.finds(lifting(ann), "tea", "tea kept of ann")
	s.finds(lifting(ann), "marimba")
	if _, err := s.Sessions.Delete(s.Context(), viewer(ann), "filler of ann"); err != nil && !errors.Is(err, memory.ErrNotFound) {
		s.Fatal(err)
	}
	s.finds(lifting(ann), "filler")
	if problem := differ(s.search(lifting(ann), "tea"), ranked(documents(s.T, s.Sessions, ann, "kept ann"), "tea", 0.6), true); problem != "" {
		s.Errorf("after the deletions: %s", problem)
	}

	if _, err := s.Sessions.Forget(s.Context(), bob); err != nil {
		s.Fatal(err)
	}
	for _, word := range []string{"tea", "marimba", "filler"} {
		s.finds(lifting(bob), word)
	}
	s.finds(lifting(ann), "tea", "tea kept of ann")
	s.index()
	s.say(in(bob, "back"), by(bob, "tea again"))
	s.finds(lifting(bob), "tea", "tea again")

	if _, err := s.Sessions.Expire(s.Context(), session.Expiry{Namespace: ann.Namespace, Before: t0.Add(time.Second), Limit: 10}); err != nil {
		s.Fatal(err)
	}
	s.finds(lifting(ann), "tea")
	s.finds(lifting(bob), "tea")
}

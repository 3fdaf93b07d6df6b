package vectorstoretest

import (
	"reflect"
	"slices"
	"testing"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

func audienceTests() []test { return []test{{"Audience", testAudience}} }

// testAudience: Every method with an audience returns and changes only what the audience sees.
func testAudience(s *suite) {
	channels := map[string]memory.Channel{
		"unset":        {},
		"unset, named": {ID: "lobby"},
		"direct":       {Kind: memory.ChannelDirect, ID: "dm"},
		"lobby":        {Kind: memory.ChannelGroup, ID: "lobby"},
		"office":       {Kind: memory.ChannelGroup, ID: "office"},
	}
	from := memory.VisibilityChannel.AudienceOf
	all := []string{"direct", "lobby", "office", "unset", "unset, named"}
	for _, c := range []struct {
		name     string
		audience memory.Audience
		sees     []string
	}{
		{"direct", from(channels["direct"]), all},
		{"another direct", from(memory.Channel{Kind: memory.ChannelDirect, ID: "lobby"}), all},
		{"lobby", from(channels["lobby"]), []string{"lobby"}},
		{"office", from(channels["office"]), []string{"office"}},
		{"a group named as the direct chat", from(memory.Channel{Kind: memory.ChannelGroup, ID: "dm"}), nil},
		{"a group without name", from(memory.Channel{Kind: memory.ChannelGroup}), nil},
		{"unset", from(memory.Channel{}), []string{"unset", "unset, named"}},
		{"unset, named as a group", from(memory.Channel{ID: "office"}), []string{"unset", "unset, named"}},
		{"an unknown kind", from(memory.Channel{Kind: "thread", ID: "lobby"}), nil},
		{"visibility user", memory.VisibilityUser.AudienceOf(channels["lobby"]), all},
		{"an unknown rule", memory.VisibilityRule("").AudienceOf(channels["direct"]), nil},
		{"zero", memory.Audience{}, nil},
	} {
		s.Run(c.name, func(t *testing.T) {
			s := &suite{T: t, store: s.store}
			// The texts differ, because a text is stored once for each visibility.
			names := map[string]string{} // by id
			var all []memory.Memory
			for name, channel := range channels {
				m := s.memory("likes tea as it is served in " + name)
				m.Channel = channel
				names[m.ID] = name
				all = append(all, s.add(ann, m, 1, 1, 0))
			}
			defer s.forget(ann) // for the next case
			seen := func(list []string) []string {
				for i, id := range list {
					list[i] = names[id]
				}
				slices.Sort(list)
				return list
			}
			filter := vectorstore.Filter{Audience: c.audience}
			s.is("List", seen(ids(s.list(ann, filter))), c.sees...)
			s.is("SearchVector", seen(idsOf(s.byVector(ann, filter, 1, 1, 0))), c.sees...)
			s.is("SearchKeyword", seen(idsOf(s.byKeyword(ann, filter, "tea"))), c.sees...)
			one, err := s.store.SearchVector(s.Context(), ann, Fingerprint, []float32{1, 1, 0}, filter, 1)
			if want := min(1, len(c.sees)); err != nil || len(one) != want {
				s.Errorf("invisible memories displace visible ones: %d hits, %v", len(one), err)
			}

			for _, m := range all {
				s.touch(m, c.audience, slices.Contains(c.sees, names[m.ID]))
			}
		})
	}
}

// touch gets, changes and deletes one of ann's memories, which the audience may or may not see.
func (s *suite) touch(m memory.Memory, audience memory.Audience, visible bool) {
	s.Helper()
	check := func(method string, err error) {
		s.Helper()
		if visible && err != nil || !visible && !isNotFound(err) {
			s.Errorf("%s of %q: %v", method, m.Text, err)
		}
	}
	_, err := s.store.Get(s.Context(), ann, m.ID, audience)
	check("Get", err)
	_, err = s.store.Update(s.Context(), ann, m.ID, audience, vectorstore.Patch{Importance: new(0.75), At: t0})
	check("Update", err)
	if !visible && !reflect.DeepEqual(s.get(ann, m.ID), m) {
		s.Errorf("%q was changed", m.Text)
	}
	check("Delete", s.store.Delete(s.Context(), ann, m.ID, audience))
	if left := ids(s.list(ann, everything())); visible == slices.Contains(left, m.ID) {
		s.Errorf("after Delete of %q: %q", m.Text, left)
	}
}

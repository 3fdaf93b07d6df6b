package memory_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// TestGroupSeesTheGroupsOnItsLists: A group also sees the groups on its own lists, in its own namespace, and nothing else.
func TestGroupSeesTheGroupsOnItsLists(t *testing.T) {
	policy := memory.NewVisibility(memory.VisibilityChannel, []memory.SharedGroups{
		{Namespace: "default", Channels: []string{"a", "b"}},
		{Namespace: "default", Channels: []string{"b", "c"}},
		{Namespace: "other", Channels: []string{"a", "z"}},
	})
	group := func(id string) memory.Channel { return memory.Channel{Kind: memory.ChannelGroup, ID: id} }
	direct := memory.Channel{Kind: memory.ChannelDirect, ID: "a"}
	plain := memory.Channel{ID: "a"}
	all := []memory.Channel{group("a"), group("b"), group("c"), group("z"), direct, plain}
	for _, test := range []struct {
		namespace string
		from      memory.Channel
		want      []memory.Channel
	}{
		{"default", group("a"), []memory.Channel{group("a"), group("b")}},
		{"default", group("b"), []memory.Channel{group("a"), group("b"), group("c")}},
		{"default", group("c"), []memory.Channel{group("b"), group("c")}}, // a is two lists away
		{"default", group("z"), []memory.Channel{group("z")}},
		{"other", group("a"), []memory.Channel{group("a"), group("z")}},
		{"other", group("b"), []memory.Channel{group("b")}},
		{"default", direct, all},
		{"default", plain, []memory.Channel{plain}}, // without a kind it is no group
		{"default", memory.Channel{Kind: "odd", ID: "a"}, nil},
	} {
		audience := policy.AudienceOf(memory.Scope{Namespace: test.namespace, UserID: "u", Channel: test.from})
		keys, everything := audience.Keys()
		for _, at := range all {
			want := slices.Contains(test.want, at)
			if audience.Sees(at) != want || (everything || slices.Contains(keys, at.VisibilityKey())) != want {
				t.Errorf("in %s, %v sees %v: %v, keys %q; want %v", test.namespace, test.from, at, audience.Sees(at), keys, want)
			}
		}
	}
	user := memory.NewVisibility(memory.VisibilityUser, []memory.SharedGroups{{Namespace: "default", Channels: []string{"a", "b"}}})
	if got := user.AudienceOf(memory.Scope{Namespace: "default", Channel: group("a")}); fmt.Sprint(got) != fmt.Sprint(memory.Everything()) {
		t.Errorf("with the rule user, a group sees %v", got)
	}
	if got := (memory.Visibility{}).AudienceOf(memory.Scope{Channel: direct}); got.Sees(direct) {
		t.Error("without a policy something is visible")
	}
}

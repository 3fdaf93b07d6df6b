package session_test

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
)

// TestVisibilityWithoutUser: A session without a user is visible to requests without a user. A group's session is visible only from the
// group, also after a participant was forgotten.
func TestVisibilityWithoutUser(t *testing.T) {
	lobby := memory.Channel{Kind: memory.ChannelGroup, ID: "lobby"}
	chat := memory.Channel{Kind: memory.ChannelDirect}
	for _, test := range []struct {
		of, from memory.Channel
		user     string
		rule     memory.VisibilityRule
		want     bool
	}{
		{lobby, lobby, "", memory.VisibilityChannel, true},
		{lobby, lobby, "ann", memory.VisibilityChannel, true},
		{lobby, chat, "", memory.VisibilityChannel, false},
		{lobby, chat, "ann", memory.VisibilityChannel, false},
		{lobby, memory.Channel{Kind: memory.ChannelGroup, ID: "attic"}, "", memory.VisibilityUser, false},
		{memory.Channel{}, memory.Channel{}, "", memory.VisibilityChannel, true},
		{memory.Channel{}, memory.Channel{}, "ann", memory.VisibilityChannel, false},
		{chat, chat, "", memory.VisibilityChannel, true},
	} {
		v := session.Viewer{Namespace: namespace, UserID: test.user, Channel: test.from, Audience: test.rule.AudienceOf(test.from)}
		if got := v.Sees(&session.Session{Namespace: namespace, Channel: test.of}); got != test.want {
			t.Errorf("%q in %v sees a session of %v: %t", test.user, test.from, test.of, got)
		}
	}
}

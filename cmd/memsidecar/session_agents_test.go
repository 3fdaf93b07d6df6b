package main

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// TestDefaultWindowSeparatesAgents: two characters of a game talk to one player without naming a session. Neither sees the
// other's conversation, nor a summary of it.
func TestDefaultWindowSeparatesAgents(t *testing.T) {
	r := serve(t, "session.memorize_every=0", "digest.interval=0")
	for _, place := range []*memsidecarv1.Scope{direct("pia"), {UserId: "pia"}, group("pia", "guild")} {
		as := func(agent string) *memsidecarv1.Scope {
			scope := proto.CloneOf(place)
			scope.AgentId = agent
			return scope
		}
		for _, agent := range []string{"smith", "witch"} {
			for range 4 {
				r.appendTo(t, as(agent), said("secret for the "+agent), answered("kept by the "+agent))
			}
		}
		for agent, other := range map[string]string{"smith": "witch", "witch": "smith"} {
			for _, limit := range []int32{2, 100} { // the rest is summarised
				window := must(r.sessions().GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: as(agent), MaxMessages: &limit, MaxTurns: &limit}))(t)
				if len(window.GetMessages()) == 0 || strings.Contains(window.String(), other) || !strings.Contains(window.GetPromptContext(), "kept by the "+agent) {
					t.Errorf("%s sees %s", agent, window)
				}
			}
			both := must(r.sessions().GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: as(agent), Agent: byAny, MaxMessages: proto.Int32(100), MaxTurns: proto.Int32(100)}))(t)
			if len(both.GetMessages()) != 16 {
				t.Errorf("asked for all, %s sees %d messages", agent, len(both.GetMessages()))
			}
		}
	}
	// A session that is named is a room.
	for _, agent := range []string{"smith", "witch"} {
		scope := within(direct("pia"), "market")
		scope.AgentId = agent
		r.appendTo(t, scope, said("hello "+agent))
	}
	room := within(direct("pia"), "market")
	room.AgentId = "smith"
	if window := must(r.sessions().GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: room}))(t); len(window.GetMessages()) != 2 {
		t.Errorf("in the room the smith sees %s", window)
	}
}

// TestRefusedRecordingIsTyped: a program can tell that its dialogue is in no session, and why, without reading prose.
func TestRefusedRecordingIsTyped(t *testing.T) {
	r := serve(t)
	r.appendTo(t, within(direct("ina"), "talk"), said("hello"))
	for _, test := range []struct {
		scope *memsidecarv1.Scope
		want  memsidecarv1.NotRecorded
	}{
		{within(direct("ina"), "talk"), memsidecarv1.NotRecorded_NOT_RECORDED_UNSPECIFIED},
		{within(&memsidecarv1.Scope{UserId: "ina"}, "talk"), memsidecarv1.NotRecorded_NOT_RECORDED_OTHER_CHANNEL},
	} {
		resp := must(r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
			Scope: test.scope, Messages: []*memsidecarv1.Message{said("My name is Ina.")}, Wait: patiently(),
		}))(t)
		if resp.GetNotRecorded() != test.want || (resp.GetNotRecordedReason() == "") != (test.want == 0) ||
			resp.GetConsideration().GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED {
			t.Errorf("%s: %s", test.scope, resp)
		}
	}
	if got := r.history(t, within(direct("ina"), "talk")); !slices.Equal(got, []string{"hello", "My name is Ina."}) {
		t.Errorf("the session has %q", got)
	}
}

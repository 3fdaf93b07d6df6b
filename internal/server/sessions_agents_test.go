package server_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestDefaultWindowSeparatesAgents: Two characters of a game talk to one player without a session id. Neither sees the other's
// conversation or its summary.
func TestDefaultWindowSeparatesAgents(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "session.memorize_every=0", "digest.interval=0")
	for _, place := range []*memsidecarv1.Scope{sidecartest.Direct("pia"), {UserId: "pia"}, sidecartest.Group("pia", "guild")} {
		as := func(agent string) *memsidecarv1.Scope {
			scope := proto.CloneOf(place)
			scope.AgentId = agent
			return scope
		}
		for _, agent := range []string{"smith", "witch"} {
			for range 4 {
				r.AppendTo(t, as(agent), sidecartest.Said("secret for the "+agent), sidecartest.Answered("kept by the "+agent))
			}
		}
		for agent, other := range map[string]string{"smith": "witch", "witch": "smith"} {
			for _, limit := range []int32{2, 100} { // with 2, the rest is summarised
				window := sidecartest.Must(
					r.Sessions().GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: as(agent), MaxMessages: &limit, MaxTurns: &limit}),
				)(
					t,
				)
				if len(window.GetMessages()) == 0 || strings.Contains(window.String(), other) ||
					!strings.Contains(window.GetPromptContext(), "kept by the "+agent) {
					t.Errorf("%s sees %s", agent, window)
				}
			}
			both := sidecartest.Must(
				r.Sessions().
					GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: as(agent), Agent: byAny, MaxMessages: proto.Int32(100), MaxTurns: proto.Int32(100)}),
			)(
				t,
			)
			if len(both.GetMessages()) != 16 {
				t.Errorf("asked for all, %s sees %d messages", agent, len(both.GetMessages()))
			}
		}
	}
	// Agents share a session that is named.
	for _, agent := range []string{"smith", "witch"} {
		scope := sidecartest.InSession(sidecartest.Direct("pia"), "market")
		scope.AgentId = agent
		r.AppendTo(t, scope, sidecartest.Said("hello "+agent))
	}
	room := sidecartest.InSession(sidecartest.Direct("pia"), "market")
	room.AgentId = "smith"
	if window := sidecartest.Must(r.Sessions().GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: room}))(t); len(window.GetMessages()) != 2 {
		t.Errorf("in the room the smith sees %s", window)
	}
}

// TestRefusedRecordingHasAReasonCode: A program can tell from a code that its dialogue was not recorded, and why.
func TestRefusedRecordingHasAReasonCode(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	r.AppendTo(t, sidecartest.InSession(sidecartest.Direct("ina"), "talk"), sidecartest.Said("hello"))
	for _, test := range []struct {
		scope *memsidecarv1.Scope
		want  memsidecarv1.NotRecorded
	}{
		{sidecartest.InSession(sidecartest.Direct("ina"), "talk"), memsidecarv1.NotRecorded_NOT_RECORDED_UNSPECIFIED},
		{sidecartest.InSession(&memsidecarv1.Scope{UserId: "ina"}, "talk"), memsidecarv1.NotRecorded_NOT_RECORDED_OTHER_CHANNEL},
	} {
		resp := sidecartest.Must(r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
			Scope: test.scope, Messages: []*memsidecarv1.Message{sidecartest.Said("I work as a nurse.")}, Wait: sidecartest.LongWait(),
		}))(t)
		if resp.GetNotRecorded() != test.want || (resp.GetNotRecordedReason() == "") != (test.want == 0) ||
			resp.GetConsideration().GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED {
			t.Errorf("%s: %s", test.scope, resp)
		}
	}
	if got := r.History(t, sidecartest.InSession(sidecartest.Direct("ina"), "talk")); !slices.Equal(got, []string{"hello", "I work as a nurse."}) {
		t.Errorf("the session has %q", got)
	}
}

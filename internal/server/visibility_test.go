package server_test

import (
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// place is where something is said, or where a request comes from.
type place struct {
	name  string
	scope *memsidecarv1.Scope
}

func places() []place {
	otherDirect, named := sidecartest.Direct("vera"), sidecartest.WithoutChannel("vera")
	otherDirect.ChannelId, named.ChannelId = "another chat", "g1"
	return []place{
		{"direct", sidecartest.Direct("vera")},
		{"another direct", otherDirect},
		{"g1", sidecartest.Group("vera", "g1")},
		{"g2", sidecartest.Group("vera", "g2")},
		{"unspecified", sidecartest.WithoutChannel("vera")},
		{"unspecified, called g1", named},
	}
}

// visibleFrom is the table "Who may see what" of DESIGN.
var visibleFrom = map[string][]string{
	"direct":                 {"direct", "another direct", "g1", "g2", "unspecified", "unspecified, called g1"},
	"another direct":         {"direct", "another direct", "g1", "g2", "unspecified", "unspecified, called g1"},
	"g1":                     {"g1"},
	"g2":                     {"g2"},
	"unspecified":            {"unspecified", "unspecified, called g1"},
	"unspecified, called g1": {"unspecified", "unspecified, called g1"},
}

// storedObject is what was stored at a place.
type storedObject struct{ memory, consideration string }

// seen reports whether a call found an object. Errors other than NOT_FOUND and yes fail the test.
func seen(t *testing.T, err error, yes codes.Code) bool {
	t.Helper()
	code := status.Code(err)
	if code != yes && code != codes.NotFound {
		t.Errorf("answered %v", err)
	}
	return code == yes
}

// objectCalls are the calls that can show stored data. Each reports whether it is visible from a place.
func objectCalls() map[string]func(t *testing.T, r *sidecartest.Sidecar, from *memsidecarv1.Scope, what storedObject) bool {
	return map[string]func(t *testing.T, r *sidecartest.Sidecar, from *memsidecarv1.Scope, what storedObject) bool{
		"Retrieve": func(t *testing.T, r *sidecartest.Sidecar, from *memsidecarv1.Scope, what storedObject) bool {
			resp := sidecartest.Must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{
				Scope: from, Query: "allergic to peanuts", TopK: proto.Int32(100), ExcludeStanding: true,
			}))(t)
			return slices.ContainsFunc(resp.GetMemories(), func(h *memsidecarv1.RetrievedMemory) bool { return h.GetMemory().GetId() == what.memory })
		},
		"GetMemory": func(t *testing.T, r *sidecartest.Sidecar, from *memsidecarv1.Scope, what storedObject) bool {
			_, err := r.GetMemory(t.Context(), &memsidecarv1.GetMemoryRequest{Scope: from, MemoryId: what.memory})
			return seen(t, err, codes.OK)
		},
		"ListMemories": func(t *testing.T, r *sidecartest.Sidecar, from *memsidecarv1.Scope, what storedObject) bool {
			return slices.ContainsFunc(r.Memories(t, from), func(m *memsidecarv1.Memory) bool { return m.GetId() == what.memory })
		},
		"UpdateMemory": func(t *testing.T, r *sidecartest.Sidecar, from *memsidecarv1.Scope, what storedObject) bool {
			_, err := r.UpdateMemory(t.Context(), &memsidecarv1.UpdateMemoryRequest{
				Scope: from, Memory: &memsidecarv1.Memory{Id: what.memory, Importance: new(0.7)},
			})
			return seen(t, err, codes.OK)
		},
		"ListMemoryRevisions": func(t *testing.T, r *sidecartest.Sidecar, from *memsidecarv1.Scope, what storedObject) bool {
			_, err := r.ListMemoryRevisions(t.Context(), &memsidecarv1.ListMemoryRevisionsRequest{Scope: from, MemoryId: what.memory})
			return seen(t, err, codes.OK)
		},
		"ReleaseMemory": func(t *testing.T, r *sidecartest.Sidecar, from *memsidecarv1.Scope, what storedObject) bool {
			_, err := r.ReleaseMemory(t.Context(), &memsidecarv1.ReleaseMemoryRequest{Scope: from, MemoryId: what.memory})
			return seen(t, err, codes.FailedPrecondition) // not quarantined
		},
		"GetConsideration": func(t *testing.T, r *sidecartest.Sidecar, from *memsidecarv1.Scope, what storedObject) bool {
			_, err := r.GetConsideration(t.Context(), &memsidecarv1.GetConsiderationRequest{Scope: from, ConsiderationId: what.consideration})
			return seen(t, err, codes.OK)
		},
		"ListConsiderations": func(t *testing.T, r *sidecartest.Sidecar, from *memsidecarv1.Scope, what storedObject) bool {
			return slices.ContainsFunc(r.Considerations(t, from), func(c *memsidecarv1.Consideration) bool { return c.GetId() == what.consideration })
		},
		"RetryConsideration": func(t *testing.T, r *sidecartest.Sidecar, from *memsidecarv1.Scope, what storedObject) bool {
			_, err := r.RetryConsideration(t.Context(), &memsidecarv1.RetryConsiderationRequest{Scope: from, ConsiderationId: what.consideration})
			return seen(t, err, codes.FailedPrecondition) // not failed
		},
	}
}

func TestVisibilityLevels(t *testing.T) {
	t.Parallel()
	for rule, visible := range map[string]func(from, stored string) bool{
		"channel": func(from, stored string) bool { return slices.Contains(visibleFrom[from], stored) },
		"user":    func(string, string) bool { return true },
	} {
		t.Run(rule, func(t *testing.T) {
			r := sidecartest.Serve(t, "visibility="+rule)
			for _, stored := range places() {
				// The same text everywhere: it is one memory only within one audience.
				c := r.Consider(t, stored.scope, sidecartest.Said("I am allergic to peanuts."))
				what := storedObject{c.GetChanges()[0].GetMemoryId(), c.GetId()}
				for _, from := range places() {
					want := visible(from.name, stored.name)
					for name, call := range objectCalls() {
						if got := call(t, r, from.scope, what); got != want {
							t.Errorf("%s: data stored in %q is visible from %q: %v, want %v", name, stored.name, from.name, got, want)
						}
					}
					if got := deletable(t, r, from.scope, stored.scope); got != want {
						t.Errorf("data stored in %q can be deleted from %q: %v, want %v", stored.name, from.name, got, want)
					}
				}
			}
			mentions := map[int32]int{}
			for _, m := range r.Memories(t, sidecartest.Direct("vera")) {
				mentions[m.GetMentionCount()]++
			}
			// All direct chats are one audience, as are all unspecified channels. Each group is its own.
			if len(mentions) != 2 || mentions[2] != 2 || mentions[1] != 2 {
				t.Errorf("memories by the number of mentions are %v, want two of 2 and two of 1", mentions)
			}
		})
	}
}

// deletable stores something at one place and reports whether it can be deleted from another.
func deletable(t *testing.T, r *sidecartest.Sidecar, from, stored *memsidecarv1.Scope) bool {
	t.Helper()
	m := r.Create(t, stored, "A note for a moment")
	request := &memsidecarv1.DeleteMemoryRequest{Scope: from, MemoryId: m.GetId()}
	_, err := r.DeleteMemory(t.Context(), request)
	if seen(t, err, codes.OK) {
		_, err := r.GetMemory(t.Context(), &memsidecarv1.GetMemoryRequest{Scope: stored, MemoryId: m.GetId()})
		sidecartest.WantCode(t, err, codes.NotFound)
		return true
	}
	r.Memory(t, stored, m.GetId())
	request.Scope = stored
	sidecartest.Must(r.DeleteMemory(t.Context(), request))(t)
	return false
}

// TestCallsAboutWholeUsersRefuseAChannel: A channel would suggest that only a part is forgotten or exported.
func TestCallsAboutWholeUsersRefuseAChannel(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	for _, test := range []struct {
		scope *memsidecarv1.Scope
		wrong []string
	}{
		{sidecartest.Direct("u"), []string{"scope.channel_kind"}},
		{sidecartest.Group("u", "g"), []string{"scope.channel_id", "scope.channel_kind"}},
		{&memsidecarv1.Scope{UserId: "u", AgentId: "a", ChannelId: "c", SessionId: "s"}, []string{"scope.agent_id", "scope.channel_id", "scope.session_id"}},
	} {
		_, err := r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: test.scope})
		sidecartest.WantInvalid(t, err, test.wrong...)
		stream := sidecartest.Must(r.ExportUser(t.Context(), &memsidecarv1.ExportUserRequest{Scope: test.scope}))(t)
		_, err = stream.Recv()
		sidecartest.WantInvalid(t, err, test.wrong...)
	}
}

package server_test

import (
	"slices"
	"testing"

	"google.golang.org/grpc/codes"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

const sharing = "share_groups=[{channels: [a, b]}]"

// TestSharedGroupsWriteSeparately: Groups that share store their data separately. Visible data may be corrected and deleted by its user.
func TestSharedGroupsWriteSeparately(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, sharing)
	a, b := sidecartest.InSession(sidecartest.Group("vera", "a"), "in a"), sidecartest.InSession(sidecartest.Group("vera", "b"), "in b")
	text := "I am allergic to peanuts."
	first, second := r.Consider(t, a, sidecartest.Said(text)).GetChanges()[0].GetMemoryId(), r.Consider(t, b, sidecartest.Said(text)).GetChanges()[0].GetMemoryId()
	if first == second {
		t.Error("statements in two groups became one memory")
	}
	for _, id := range []string{first, second} {
		if m := r.Memory(t, a, id); m.GetMentionCount() != 1 {
			t.Errorf("%s was said once in each group", m)
		}
	}

	// Sessions belong to one channel.
	sessions := r.Sessions()
	_, err := sessions.UpdateSession(
		t.Context(),
		&memsidecarv1.UpdateSessionRequest{Scope: sidecartest.InSession(a, "in b"), Session: &memsidecarv1.Session{Title: "x"}},
	)
	sidecartest.WantCode(t, err, codes.FailedPrecondition)
	_, err = sessions.DeleteSession(t.Context(), &memsidecarv1.DeleteSessionRequest{Scope: sidecartest.InSession(a, "in b")})
	sidecartest.WantCode(t, err, codes.FailedPrecondition)
	r.AppendTo(t, b, sidecartest.Said("I live in Lisbon and work as a nurse."))
	_, err = r.ConsiderMemorizing(
		t.Context(),
		&memsidecarv1.ConsiderMemorizingRequest{Scope: sidecartest.InSession(a, "in b")},
	) // pending there
	sidecartest.WantCode(t, err, codes.FailedPrecondition)
	if got := sidecartest.Must(sessions.GetContext(
		t.Context(), &memsidecarv1.GetContextRequest{Scope: sidecartest.Group("vera", "a")},
	))(t); got.GetSessionId() == "in b" {
		t.Error("without an id, a's window is b's")
	}
	before := len(r.History(t, b))

	// The id is free for a session of a.
	resp := sidecartest.Must(r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
		Scope: sidecartest.InSession(
			a,
			"in b",
		), Messages: []*memsidecarv1.Message{sidecartest.Said("I live in Porto.")}, Wait: sidecartest.LongWait(),
	}))(t)
	if resp.GetNotRecordedReason() != "" ||
		r.Memory(t, a, resp.GetConsideration().GetChanges()[0].GetMemoryId()).GetScope().GetChannelId() != "a" {
		t.Errorf("a dialogue of a under the id of a session of b is %v", resp)
	}
	r.AppendTo(t, sidecartest.InSession(a, "in b"), sidecartest.Said("hello"))
	sidecartest.Must(sessions.SwitchSession(t.Context(), &memsidecarv1.SwitchSessionRequest{Scope: sidecartest.InSession(a, "in b")}))(t)
	if own, others := r.History(t, sidecartest.InSession(a, "in b")), r.History(t, b); len(own) != 2 || len(others) != before || before != 2 {
		t.Errorf("a's session has %q, b's %q", own, others)
	}
	sidecartest.Must(sessions.DeleteSession(t.Context(), &memsidecarv1.DeleteSessionRequest{Scope: sidecartest.InSession(a, "in b")}))(t)

	// Only participants see a session from another channel.
	for user, want := range map[string]codes.Code{"vera": codes.OK, "walt": codes.NotFound, "": codes.NotFound} {
		_, err := sessions.GetSession(
			t.Context(),
			&memsidecarv1.GetSessionRequest{Scope: sidecartest.InSession(sidecartest.Group(user, "a"), "in b")},
		)
		sidecartest.WantCode(t, err, want)
	}
	if got := r.Texts(t, sidecartest.Group("walt", "a"), "peanuts"); len(got) > 0 {
		t.Errorf("walt retrieves %q", got)
	}

	// Visible data can be corrected and deleted.
	changed := sidecartest.Must(r.UpdateMemory(t.Context(), &memsidecarv1.UpdateMemoryRequest{
		Scope: a, Memory: &memsidecarv1.Memory{Id: second, Importance: new(0.9)},
	}))(t).GetMemory()
	if changed.GetScope().GetChannelId() != "b" {
		t.Errorf("correcting moved it: %v", changed)
	}
	done := r.Considerations(t, b)[0].GetId()
	_, err = r.RetryConsideration(
		t.Context(),
		&memsidecarv1.RetryConsiderationRequest{Scope: sidecartest.Group("vera", "other"), ConsiderationId: done},
	)
	sidecartest.WantCode(t, err, codes.NotFound)
	ofB := slices.IndexFunc(r.Considerations(t, a), func(c *memsidecarv1.Consideration) bool { return c.GetScope().GetChannelId() == "b" })
	_, err = r.RetryConsideration(
		t.Context(),
		&memsidecarv1.RetryConsiderationRequest{Scope: a, ConsiderationId: r.Considerations(t, a)[ofB].GetId()},
	)
	sidecartest.WantCode(t, err, codes.FailedPrecondition) // visible, but not failed
	for _, from := range []*memsidecarv1.Scope{
		sidecartest.Group("vera", "other"), sidecartest.Group("walt", "a"),
		sidecartest.InNamespace("other", a), sidecartest.WithoutChannel("vera"),
	} {
		_, err := r.DeleteMemory(t.Context(), &memsidecarv1.DeleteMemoryRequest{Scope: from, MemoryId: second})
		sidecartest.WantCode(t, err, codes.NotFound)
	}
	sidecartest.Must(r.DeleteMemory(t.Context(), &memsidecarv1.DeleteMemoryRequest{Scope: a, MemoryId: second}))(t)
	_, err = r.GetMemory(t.Context(), &memsidecarv1.GetMemoryRequest{Scope: b, MemoryId: second})
	sidecartest.WantCode(t, err, codes.NotFound)
	if kept := r.Memory(t, b, first); kept.GetText() != r.Memory(t, a, first).GetText() {
		t.Errorf("a's own is %v", kept)
	}

	// Items shown in one group count as seen in the other. Each has its own list.
	putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: b, Items: listing(3)})
	if got := newKeys(putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: a, Items: listing(4), Mode: scheduled})); !slices.Equal(
		got,
		[]string{"/mv/x3"},
	) {
		t.Errorf("new in a is %q", got)
	}
	sidecartest.Must(lists(r).DeleteNumberedList(t.Context(), &memsidecarv1.DeleteNumberedListRequest{Scope: a}))(t)
	if in, of := seenKeys(t, r, a, 0), seenKeys(t, r, b, 0); len(in) != 0 || len(of) != 0 {
		t.Errorf("after a deleted all visible memories, a has %q and b %q", in, of)
	}
}

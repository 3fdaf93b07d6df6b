package main

import (
	"slices"
	"testing"

	"google.golang.org/grpc/codes"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

const sharing = "share_groups=[{channels: [a, b]}]"

// TestSharingIsForReading: groups that share stay apart in all that is stored. What may be seen may be corrected and
// deleted, by the user whose it is.
func TestSharingIsForReading(t *testing.T) {
	r := serve(t, sharing)
	a, b := within(group("vera", "a"), "in a"), within(group("vera", "b"), "in b")
	text := "I am allergic to peanuts."
	first, second := r.consider(t, a, said(text)).GetChanges()[0].GetMemoryId(), r.consider(t, b, said(text)).GetChanges()[0].GetMemoryId()
	if first == second {
		t.Error("what was said in two groups that share is one memory")
	}
	for _, id := range []string{first, second} {
		if m := r.get(t, a, id); m.GetMentionCount() != 1 {
			t.Errorf("%s was said once in each group", m)
		}
	}

	// Sessions belong to their channel.
	sessions := r.sessions()
	_, err := sessions.UpdateSession(t.Context(), &memsidecarv1.UpdateSessionRequest{Scope: within(a, "in b"), Session: &memsidecarv1.Session{Title: "x"}})
	wantCode(t, err, codes.FailedPrecondition)
	_, err = sessions.DeleteSession(t.Context(), &memsidecarv1.DeleteSessionRequest{Scope: within(a, "in b")})
	wantCode(t, err, codes.FailedPrecondition)
	r.appendTo(t, b, said("I live in Lisbon."))
	_, err = r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{Scope: within(a, "in b")}) // what waits there
	wantCode(t, err, codes.FailedPrecondition)
	if got := must(sessions.GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: group("vera", "a")}))(t); got.GetSessionId() == "in b" {
		t.Error("without an id, a's window is b's")
	}
	before := len(r.history(t, b))

	// The id is free for a session of a's own.
	resp := must(r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
		Scope: within(a, "in b"), Messages: []*memsidecarv1.Message{said("I live in Porto.")}, Wait: patiently(),
	}))(t)
	if resp.GetNotRecordedReason() != "" || r.get(t, a, resp.GetConsideration().GetChanges()[0].GetMemoryId()).GetScope().GetChannelId() != "a" {
		t.Errorf("a dialogue of a under the id of a session of b is %v", resp)
	}
	r.appendTo(t, within(a, "in b"), said("hello"))
	must(sessions.SwitchSession(t.Context(), &memsidecarv1.SwitchSessionRequest{Scope: within(a, "in b")}))(t)
	if own, others := r.history(t, within(a, "in b")), r.history(t, b); len(own) != 2 || len(others) != before || before != 2 {
		t.Errorf("a's session has %q, b's %q", own, others)
	}
	must(sessions.DeleteSession(t.Context(), &memsidecarv1.DeleteSessionRequest{Scope: within(a, "in b")}))(t)

	// Only who takes part sees a session from where it is not.
	for user, want := range map[string]codes.Code{"vera": codes.OK, "walt": codes.NotFound, "": codes.NotFound} {
		_, err := sessions.GetSession(t.Context(), &memsidecarv1.GetSessionRequest{Scope: within(group(user, "a"), "in b")})
		wantCode(t, err, want)
	}
	if got := r.retrieve(t, group("walt", "a"), "peanuts"); len(got) > 0 {
		t.Errorf("walt retrieves %q", got)
	}

	// Correcting and deleting follow seeing.
	changed := must(r.UpdateMemory(t.Context(), &memsidecarv1.UpdateMemoryRequest{
		Scope: a, Memory: &memsidecarv1.Memory{Id: second, Importance: new(0.9)},
	}))(t).GetMemory()
	if changed.GetScope().GetChannelId() != "b" {
		t.Errorf("correcting moved it: %v", changed)
	}
	done := r.considerations(t, b)[0].GetId()
	_, err = r.RetryConsideration(t.Context(), &memsidecarv1.RetryConsiderationRequest{Scope: group("vera", "other"), ConsiderationId: done})
	wantCode(t, err, codes.NotFound)
	ofB := slices.IndexFunc(r.considerations(t, a), func(c *memsidecarv1.Consideration) bool { return c.GetScope().GetChannelId() == "b" })
	_, err = r.RetryConsideration(t.Context(), &memsidecarv1.RetryConsiderationRequest{Scope: a, ConsiderationId: r.considerations(t, a)[ofB].GetId()})
	wantCode(t, err, codes.FailedPrecondition) // it is seen, and has not failed
	for _, from := range []*memsidecarv1.Scope{group("vera", "other"), group("walt", "a"), in("other", a), anywhere("vera")} {
		_, err := r.DeleteMemory(t.Context(), &memsidecarv1.DeleteMemoryRequest{Scope: from, MemoryId: second})
		wantCode(t, err, codes.NotFound)
	}
	must(r.DeleteMemory(t.Context(), &memsidecarv1.DeleteMemoryRequest{Scope: a, MemoryId: second}))(t)
	_, err = r.GetMemory(t.Context(), &memsidecarv1.GetMemoryRequest{Scope: b, MemoryId: second})
	wantCode(t, err, codes.NotFound)
	if kept := r.get(t, b, first); kept.GetText() != r.get(t, a, first).GetText() {
		t.Errorf("a's own is %v", kept)
	}

	// What one group was shown, the other need not be told; its list is its own.
	r.putItems(t, &memsidecarv1.PutItemsRequest{Scope: b, Items: listing(3)})
	if got := newKeys(r.putItems(t, &memsidecarv1.PutItemsRequest{Scope: a, Items: listing(4), Mode: scheduled})); !slices.Equal(got, []string{"/mv/x3"}) {
		t.Errorf("new in a is %q", got)
	}
	must(r.lists().DeleteNumberedList(t.Context(), &memsidecarv1.DeleteNumberedListRequest{Scope: a}))(t)
	if in, of := r.seenKeys(t, a, 0), r.seenKeys(t, b, 0); len(in) != 0 || len(of) != 0 {
		t.Errorf("after a deleted what it sees, a has %q and b %q", in, of)
	}
}

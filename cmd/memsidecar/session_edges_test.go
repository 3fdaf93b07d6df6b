package main

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// importInto hands over a session's messages; about may be nil.
func (r *running) importInto(t *testing.T, scope *memsidecarv1.Scope, about *memsidecarv1.Session, messages ...*memsidecarv1.Message) *memsidecarv1.ImportSessionResponse {
	t.Helper()
	stream, err := r.sessions().ImportSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = stream.Send(&memsidecarv1.ImportSessionRequest{Item: &memsidecarv1.ImportSessionRequest_Session{
		Session: &memsidecarv1.ImportedSession{Scope: scope, Session: about},
	}})
	for _, m := range messages {
		if err == nil {
			err = stream.Send(&memsidecarv1.ImportSessionRequest{Item: &memsidecarv1.ImportSessionRequest_Message{Message: m}})
		}
	}
	resp, closed := stream.CloseAndRecv()
	if closed != nil {
		t.Fatal(err, closed)
	}
	return resp
}

// TestNothingSaidAbout: a session, or settings, that a request leaves out are empty ones.
func TestNothingSaidAbout(t *testing.T) {
	r := serve(t)
	scope := within(direct("ann"), "s")
	if resp := r.importInto(t, scope, nil, said("one")); resp.GetAddedCount() != 1 || resp.GetSession().GetId() != "s" {
		t.Errorf("imported %v", resp)
	}
	mask := &fieldmaskpb.FieldMask{Paths: []string{"memorize_every"}}
	for _, s := range []*memsidecarv1.Session{{MemorizeEvery: proto.Int32(3)}, nil} {
		resp, err := r.sessions().UpdateSession(t.Context(), &memsidecarv1.UpdateSessionRequest{Scope: scope, Session: s, UpdateMask: mask})
		if err != nil || (resp.GetSession().MemorizeEvery != nil) != (s != nil) {
			t.Errorf("%v became %v, %v", s, resp, err)
		}
	}
	for _, s := range []*memsidecarv1.UserSettings{{MemorizeEvery: proto.Int32(3)}, nil} {
		resp, err := r.UpdateUserSettings(t.Context(), &memsidecarv1.UpdateUserSettingsRequest{Scope: direct("ann"), Settings: s, UpdateMask: mask})
		if err != nil || (resp.GetSettings().MemorizeEvery != nil) != (s != nil) {
			t.Errorf("%v became %v, %v", s, resp, err)
		}
	}
}

// TestPreparedSession: a session that somebody made, and in which nothing was said, is nobody else's.
func TestPreparedSession(t *testing.T) {
	r := serve(t)
	if _, err := r.sessions().SwitchSession(t.Context(), &memsidecarv1.SwitchSessionRequest{Scope: within(direct("mallory"), "main")}); err != nil {
		t.Fatal(err)
	}
	r.appendTo(t, within(direct("alice"), "main"), said("a secret"))
	resp, err := r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
		Scope: within(direct("alice"), "main"), Messages: []*memsidecarv1.Message{said("a secret")},
	})
	if err != nil || resp.GetNotRecordedReason() != "" {
		t.Errorf("considered: %v, %v", resp, err)
	}
	if got := r.history(t, within(direct("alice"), "main")); len(got) != 2 {
		t.Errorf("alice has %q", got)
	}
	if got := r.history(t, within(direct("mallory"), "main")); !slices.Equal(got, nil) {
		t.Errorf("mallory reads %q", got)
	}
}

// TestNumberOfASession: how often a session is considered, where it says so itself, goes before what its user has set, and
// counts at once.
func TestNumberOfASession(t *testing.T) {
	r := serve(t)
	if _, err := r.UpdateUserSettings(t.Context(), &memsidecarv1.UpdateUserSettingsRequest{
		Scope: direct("ann"), Settings: &memsidecarv1.UserSettings{MemorizeEvery: proto.Int32(0)},
	}); err != nil {
		t.Fatal(err)
	}
	scope := within(direct("ann"), "s")
	r.appendTo(t, scope, said("My name is Ann."))
	if _, err := r.sessions().UpdateSession(t.Context(), &memsidecarv1.UpdateSessionRequest{
		Scope: scope, Session: &memsidecarv1.Session{MemorizeEvery: proto.Int32(1)},
	}); err != nil {
		t.Fatal(err)
	}
	r.eventually(t, scope, 1)
}

// TestImportBehind: what an import adds behind a session's own messages is not taken for a later message of the import that
// says the same.
func TestImportBehind(t *testing.T) {
	r := serve(t)
	scope := within(direct("ann"), "s")
	r.appendTo(t, scope, said("1"), said("2"), said("3"))
	var messages []*memsidecarv1.Message
	var want []string
	for i := range 1100 { // more than are stored at once
		text := "word"
		if i%3 == 0 {
			text = "哈哈"
		}
		messages, want = append(messages, said(text)), append(want, text)
	}
	if resp := r.importInto(t, scope, nil, messages...); resp.GetAddedCount() != 1100 {
		t.Errorf("added %d, skipped %d", resp.GetAddedCount(), resp.GetSkippedCount())
	}
	if got := r.history(t, scope); !slices.Equal(got, append([]string{"1", "2", "3"}, want...)) {
		t.Errorf("the session has %d messages", len(got))
	}
}

// TestLargeMessages: a page holds as many messages as any client takes by default, and all pages together hold all.
func TestLargeMessages(t *testing.T) {
	r := serve(t, "session.memorize_every=0")
	scope := within(direct("ann"), "s")
	var want []string
	for i := range 20 {
		text := strings.Repeat(string(rune('a'+i)), 256<<10)
		r.appendTo(t, scope, said(text))
		want = append(want, text)
	}
	if got := r.history(t, scope); !slices.Equal(got, want) {
		t.Errorf("listed are %d messages", len(got))
	}
	if _, messages := r.exportSession(t, scope); len(messages) != 20 {
		t.Errorf("exported are %d messages", len(messages))
	}
	resp, err := r.sessions().GetSession(t.Context(), &memsidecarv1.GetSessionRequest{Scope: scope, RecentMessages: proto.Int32(20)})
	if err != nil {
		t.Fatal(err)
	}
	recent := resp.GetRecentMessages()
	if len(recent) < 5 || recent[len(recent)-1].GetMessage().GetContent() != want[19] {
		t.Errorf("%d messages are the newest", len(recent))
	}
}

// TestForgottenAnswers: what the bot answered to somebody who was forgotten goes, also where it was considered together with
// other people's words.
func TestForgottenAnswers(t *testing.T) {
	r := serve(t)
	ann, ben := within(group("ann", "g"), "s"), within(group("ben", "g"), "s")
	r.appendTo(t, ann, said("My number is sesame-4711."), answered("Thank you, sesame-4711 it is."))
	r.appendTo(t, ben, said("My name is Ben."), answered("Hello Ben."))
	c := r.consider(t, ben)
	if len(holdsBytes(t, r.dir, "sesame-4711")) == 0 {
		t.Error("the words are nowhere to begin with")
	}
	receipt, err := r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: &memsidecarv1.Scope{UserId: "ann"}})
	if err != nil || receipt.GetSessionMessageCount() != 2 {
		t.Errorf("forgotten %v, %v", receipt, err)
	}
	eventually(t, "no file holds the words", func() bool { return holdsBytes(t, r.dir, "sesame-4711") == nil }) // a reader may hold them for a moment
	left, err := r.GetConsideration(t.Context(), &memsidecarv1.GetConsiderationRequest{Scope: ben, ConsiderationId: c.GetId()})
	if err != nil || left.GetConsideration().GetState() != c.GetState() || left.GetConsideration().GetMessageCount() != 4 {
		t.Errorf("ben has %v, %v", left, err)
	}
	if got := r.history(t, ben); !slices.Equal(got, []string{"My name is Ben.", "Hello Ben."}) {
		t.Errorf("the session has %q", got)
	}
}

// TestDeletedWithMemories: nothing that was said in the session is left on the disk, and how it was considered is known still.
func TestDeletedWithMemories(t *testing.T) {
	r := serve(t)
	scope := within(direct("ann"), "s")
	c := r.consider(t, scope, said("Please remember: my number is sesame-4711."), answered("sesame-4711."))
	if len(c.GetChanges()) == 0 {
		t.Fatalf("nothing was remembered: %v", c)
	}
	deleted, err := r.sessions().DeleteSession(t.Context(), &memsidecarv1.DeleteSessionRequest{Scope: scope, DeleteMemories: true})
	if err != nil || deleted.GetMessageCount() != 2 || deleted.GetMemoryCount() != int64(len(c.GetChanges())) {
		t.Errorf("deleted %v, %v", deleted, err)
	}
	eventually(t, "no file holds the words", func() bool { return holdsBytes(t, r.dir, "sesame-4711") == nil }) // a reader may hold them for a moment
	left, err := r.GetConsideration(t.Context(), &memsidecarv1.GetConsiderationRequest{Scope: scope, ConsiderationId: c.GetId()})
	if err != nil || left.GetConsideration().GetState() != c.GetState() || left.GetConsideration().GetReason() == "" {
		t.Errorf("of the consideration is left %v, %v", left, err)
	}
}

// TestConsideredFromElsewhere: a group's session is considered from the group.
func TestConsideredFromElsewhere(t *testing.T) {
	r := serve(t)
	r.appendTo(t, within(group("ann", "g"), "s"), said("My name is Ann."))
	r.appendTo(t, within(group("ben", "g"), "s"), said("My name is Ben."))
	_, err := r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{Scope: within(direct("ann"), "s")})
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("from a direct chat: %v", err)
	}
	if c := r.consider(t, within(group("ann", "g"), "s")); c.GetMessageCount() != 2 {
		t.Errorf("from the group: %v", c)
	}
}

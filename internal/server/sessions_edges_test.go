package server_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestOmittedSessionFieldsAreEmpty: A missing session or settings message means an empty one.
func TestOmittedSessionFieldsAreEmpty(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	scope := sidecartest.InSession(sidecartest.Direct("ann"), "s")
	if resp := r.ImportInto(t, scope, nil, sidecartest.Said("one")); resp.GetAddedCount() != 1 || resp.GetSession().GetId() != "s" {
		t.Errorf("imported %v", resp)
	}
	mask := &fieldmaskpb.FieldMask{Paths: []string{"memorize_every"}}
	for _, s := range []*memsidecarv1.Session{{MemorizeEvery: proto.Int32(3)}, nil} {
		resp, err := r.Sessions().UpdateSession(t.Context(), &memsidecarv1.UpdateSessionRequest{Scope: scope, Session: s, UpdateMask: mask})
		if err != nil || (resp.GetSession().MemorizeEvery != nil) != (s != nil) {
			t.Errorf("%v became %v, %v", s, resp, err)
		}
	}
	for _, s := range []*memsidecarv1.UserSettings{{MemorizeEvery: proto.Int32(3)}, nil} {
		resp, err := r.UpdateUserSettings(
			t.Context(),
			&memsidecarv1.UpdateUserSettingsRequest{Scope: sidecartest.Direct("ann"), Settings: s, UpdateMask: mask},
		)
		if err != nil || (resp.GetSettings().MemorizeEvery != nil) != (s != nil) {
			t.Errorf("%v became %v, %v", s, resp, err)
		}
	}
}

// TestEmptySessionBelongsToItsCreator: A session without messages belongs to its creator alone.
func TestEmptySessionBelongsToItsCreator(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	if _, err := r.Sessions().SwitchSession(
		t.Context(),
		&memsidecarv1.SwitchSessionRequest{Scope: sidecartest.InSession(sidecartest.Direct("mallory"), "main")},
	); err != nil {
		t.Fatal(err)
	}
	r.AppendTo(t, sidecartest.InSession(sidecartest.Direct("alice"), "main"), sidecartest.Said("a secret"))
	resp, err := r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
		Scope: sidecartest.InSession(sidecartest.Direct("alice"), "main"), Messages: []*memsidecarv1.Message{sidecartest.Said("a secret")},
	})
	if err != nil || resp.GetNotRecordedReason() != "" {
		t.Errorf("considered: %v, %v", resp, err)
	}
	if got := r.History(t, sidecartest.InSession(sidecartest.Direct("alice"), "main")); len(got) != 2 {
		t.Errorf("alice has %q", got)
	}
	if got := r.History(t, sidecartest.InSession(sidecartest.Direct("mallory"), "main")); !slices.Equal(got, nil) {
		t.Errorf("mallory reads %q", got)
	}
}

// TestSessionIntervalPrecedesUserSettings: A session's own interval takes precedence over the user's setting, immediately.
func TestSessionIntervalPrecedesUserSettings(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	if _, err := r.UpdateUserSettings(t.Context(), &memsidecarv1.UpdateUserSettingsRequest{
		Scope: sidecartest.Direct("ann"), Settings: &memsidecarv1.UserSettings{MemorizeEvery: proto.Int32(0)},
	}); err != nil {
		t.Fatal(err)
	}
	scope := sidecartest.InSession(sidecartest.Direct("ann"), "s")
	r.AppendTo(t, scope, sidecartest.Said("My name is Ann."))
	if _, err := r.Sessions().UpdateSession(t.Context(), &memsidecarv1.UpdateSessionRequest{
		Scope: scope, Session: &memsidecarv1.Session{MemorizeEvery: proto.Int32(1)},
	}); err != nil {
		t.Fatal(err)
	}
	eventually(t, r, scope, 1)
}

// TestImportAfterNewerMessages: An imported message that is stored after the session's own messages does not hide a later import message
// with the same text.
func TestImportAfterNewerMessages(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	scope := sidecartest.InSession(sidecartest.Direct("ann"), "s")
	r.AppendTo(t, scope, sidecartest.Said("1"), sidecartest.Said("2"), sidecartest.Said("3"))
	var messages []*memsidecarv1.Message
	var want []string
	for i := range 1100 { // more than one batch
		text := "word"
		if i%3 == 0 {
			text = "哈哈"
		}
		messages, want = append(messages, sidecartest.Said(text)), append(want, text)
	}
	if resp := r.ImportInto(t, scope, nil, messages...); resp.GetAddedCount() != 1100 {
		t.Errorf("added %d, skipped %d", resp.GetAddedCount(), resp.GetSkippedCount())
	}
	if got := r.History(t, scope); !slices.Equal(got, append([]string{"1", "2", "3"}, want...)) {
		t.Errorf("the session has %d messages", len(got))
	}
}

// TestPagesFitIntoClientLimits: A page fits into the default message size of clients, and all pages together have all messages.
func TestPagesFitIntoClientLimits(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "session.memorize_every=0")
	scope := sidecartest.InSession(sidecartest.Direct("ann"), "s")
	var want []string
	for i := range 20 {
		text := strings.Repeat(string(rune('a'+i)), 256<<10)
		r.AppendTo(t, scope, sidecartest.Said(text))
		want = append(want, text)
	}
	if got := r.History(t, scope); !slices.Equal(got, want) {
		t.Errorf("listed are %d messages", len(got))
	}
	if _, messages := r.ExportSession(t, scope); len(messages) != 20 {
		t.Errorf("exported are %d messages", len(messages))
	}
	resp, err := r.Sessions().GetSession(t.Context(), &memsidecarv1.GetSessionRequest{Scope: scope, RecentMessages: proto.Int32(20)})
	if err != nil {
		t.Fatal(err)
	}
	recent := resp.GetRecentMessages()
	if len(recent) < 5 || recent[len(recent)-1].GetMessage().GetContent() != want[19] {
		t.Errorf("%d messages are the newest", len(recent))
	}
}

// TestForgetDeletesAnswersToTheUser: The bot's answers to a forgotten user are deleted, even if they were considered together with
// messages of others.
func TestForgetDeletesAnswersToTheUser(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	ann, ben := sidecartest.InSession(sidecartest.Group("ann", "g"), "s"), sidecartest.InSession(sidecartest.Group("ben", "g"), "s")
	r.AppendTo(t, ann, sidecartest.Said("My number is sesame-4711."), sidecartest.Answered("Thank you, sesame-4711 it is."))
	r.AppendTo(t, ben, sidecartest.Said("My name is Ben."), sidecartest.Answered("Hello Ben."))
	c := r.Consider(t, ben)
	if len(sidecartest.FilesWith(t, r.Dir, "sesame-4711")) == 0 {
		t.Error("the words are nowhere to begin with")
	}
	receipt, err := r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: &memsidecarv1.Scope{UserId: "ann"}})
	if err != nil || receipt.GetSessionMessageCount() != 2 {
		t.Errorf("forgotten %v, %v", receipt, err)
	}
	sidecartest.Eventually(
		t,
		"no file holds the words",
		func() bool { return sidecartest.FilesWith(t, r.Dir, "sesame-4711") == nil },
	) // a reader may hold them briefly
	left, err := r.GetConsideration(t.Context(), &memsidecarv1.GetConsiderationRequest{Scope: ben, ConsiderationId: c.GetId()})
	if err != nil || left.GetConsideration().GetState() != c.GetState() || left.GetConsideration().GetMessageCount() != 4 {
		t.Errorf("ben has %v, %v", left, err)
	}
	if got := r.History(t, ben); !slices.Equal(got, []string{"My name is Ben.", "Hello Ben."}) {
		t.Errorf("the session has %q", got)
	}
}

// TestDeletedSessionIsNotOnDisk: No text of a deleted session is left on disk. Its considerations keep their outcomes.
func TestDeletedSessionIsNotOnDisk(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	scope := sidecartest.InSession(sidecartest.Direct("ann"), "s")
	c := r.Consider(t, scope, sidecartest.Said("Please remember: I work as a nurse in sesame-4711."), sidecartest.Answered("sesame-4711."))
	if len(c.GetChanges()) == 0 {
		t.Fatalf("nothing was remembered: %v", c)
	}
	deleted, err := r.Sessions().DeleteSession(t.Context(), &memsidecarv1.DeleteSessionRequest{Scope: scope, DeleteMemories: true})
	if err != nil || deleted.GetMessageCount() != 2 || deleted.GetMemoryCount() != int64(len(c.GetChanges())) {
		t.Errorf("deleted %v, %v", deleted, err)
	}
	sidecartest.Eventually(
		t,
		"no file holds the words",
		func() bool { return sidecartest.FilesWith(t, r.Dir, "sesame-4711") == nil },
	) // a reader may hold them briefly
	left, err := r.GetConsideration(t.Context(), &memsidecarv1.GetConsiderationRequest{Scope: scope, ConsiderationId: c.GetId()})
	if err != nil || left.GetConsideration().GetState() != c.GetState() || left.GetConsideration().GetReason() == "" {
		t.Errorf("of the consideration is left %v, %v", left, err)
	}
}

// TestGroupSessionIsConsideredInItsGroup: A group's session is considered in the scope of the group.
func TestGroupSessionIsConsideredInItsGroup(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	r.AppendTo(t, sidecartest.InSession(sidecartest.Group("ann", "g"), "s"), sidecartest.Said("My name is Ann."))
	r.AppendTo(t, sidecartest.InSession(sidecartest.Group("ben", "g"), "s"), sidecartest.Said("My name is Ben."))
	_, err := r.ConsiderMemorizing(
		t.Context(),
		&memsidecarv1.ConsiderMemorizingRequest{Scope: sidecartest.InSession(sidecartest.Direct("ann"), "s")},
	)
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("from a direct chat: %v", err)
	}
	if c := r.Consider(t, sidecartest.InSession(sidecartest.Group("ann", "g"), "s")); c.GetMessageCount() != 2 {
		t.Errorf("from the group: %v", c)
	}
}

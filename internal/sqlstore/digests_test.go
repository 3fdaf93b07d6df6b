package sqlstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"

	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
)

// sayForDigest appends what ann says, with a digest due after so many messages or at the end of the day.
var everything = digest.Seen{Audience: memory.Everything()}

func sayForDigest(t *testing.T, s *sqlstore.Sessions, id string, every int, texts ...string) {
	t.Helper()
	a := session.Append{
		Scope: chat(id), At: at, Digests: map[string]session.DigestRule{ann.ID: {Every: every, DayEnd: at.Add(time.Hour)}},
	}
	for _, text := range texts {
		a.Messages = append(a.Messages, memory.Message{Role: memory.RoleUser, Speaker: ann.ID, Content: text, Time: at})
	}
	if _, err := s.Append(t.Context(), a); err != nil {
		t.Fatal(err)
	}
}

func dueAnn(t *testing.T, d *sqlstore.Digests, now time.Time) bool {
	t.Helper()
	due, _, err := d.Due(t.Context(), now, 10)
	if err != nil {
		t.Fatal(err)
	}
	return len(due) == 1 && due[0] == ann
}

// TestDigestProgress: what waits is due after enough messages or at the end of the day, is covered once, and no contribution
// counts twice or rests on what is gone.
func TestDigestProgress(t *testing.T) {
	dir := t.TempDir()
	db := dbtest.Open(t, sqlite.Options{Dir: dir})
	s, d := sqlstore.NewSessions(db, sqlstore.NewQueue(db)), sqlstore.NewDigests(db)
	ctx := t.Context()
	sayForDigest(t, s, "one", 2, "a")
	if _, next, err := d.Due(ctx, at, 10); err != nil || dueAnn(t, d, at) || !next.Equal(at.Add(time.Hour)) || !dueAnn(t, d, at.Add(time.Hour)) {
		t.Errorf("one message is due at %s (%v)", next, err)
	}
	sayForDigest(t, s, "two", 2, "b")
	if dueAnn(t, d, at) || !dueAnn(t, d, at.Add(time.Minute)) {
		t.Error("two messages are not due once there was time to answer")
	}
	w, err := d.Waiting(ctx, ann, digest.WaitingQuery{ByItself: true, Limit: 10})
	if err != nil || len(w.Messages) != 1 || w.Messages[0].Content != "a" || w.Scope.SessionID != "one" {
		t.Fatalf("waiting is %+v (%v)", w, err)
	}
	c := digest.Contribution{
		ID: "c", Scope: w.Scope, Covers: []int64{w.Messages[0].Ref}, MadeBy: "rules", At: at,
		Findings: []digest.Finding{
			{Category: digest.Decision, Text: "x", SaidAt: at, Importance: 0.5}, {Category: digest.Topic, Text: "y", SaidAt: at},
		},
	}
	if err := d.Save(ctx, c); err != nil {
		t.Fatal(err)
	}
	if err := d.Save(ctx, c); !errors.Is(err, digest.ErrChanged) {
		t.Errorf("covered again: %v", err)
	}
	found, err := d.Find(ctx, ann, everything, at, at.Add(time.Second))
	if err != nil || len(found) != 2 || found[0].ID != "c/0" || found[0].SessionID != "one" || !found[0].SaidAt.Equal(at) {
		t.Errorf("found %+v (%v)", found, err)
	}
	if found, err := d.Find(ctx, ann, digest.Seen{}, at, at.Add(time.Second)); err != nil || len(found) > 0 {
		t.Errorf("somebody who sees nothing finds %+v (%v)", found, err)
	}
	waiting, err := d.Unremembered(ctx, ann)
	if err != nil || len(waiting) != 1 || waiting[0].Text != "x" {
		t.Errorf("to be remembered are %+v (%v)", waiting, err)
	}
	if err := d.Remembered(ctx, ann, map[string]string{"c/0": "mem_1"}); err != nil {
		t.Fatal(err)
	}
	if waiting, err := d.Unremembered(ctx, ann); err != nil || len(waiting) > 0 {
		t.Errorf("remembered twice: %+v (%v)", waiting, err)
	}
	// What a session that is deleted meanwhile said contributes nothing.
	w, err = d.Waiting(ctx, ann, digest.WaitingQuery{ByItself: true, Limit: 10})
	if err != nil || len(w.Messages) != 1 || w.Messages[0].Content != "b" {
		t.Fatalf("waiting is %+v (%v)", w, err)
	}
	if _, err := s.Delete(ctx, viewerOf(chat("two")), "two"); err != nil {
		t.Fatal(err)
	}
	c = digest.Contribution{ID: "d", Scope: w.Scope, Covers: []int64{w.Messages[0].Ref}, At: at, Findings: c.Findings}
	if err := d.Save(ctx, c); !errors.Is(err, digest.ErrChanged) {
		t.Errorf("saved what rests on a deleted session: %v", err)
	}
	if err := d.Save(ctx, digest.Contribution{ID: "con_gone", ConsiderationID: "con_gone", Scope: w.Scope, At: at, Findings: c.Findings}); err != nil {
		t.Error(err)
	}
	if err := d.Done(ctx, ann, digest.Rule{Now: at, Every: 2, DayEnd: at.Add(time.Hour)}); err != nil || dueAnn(t, d, at.Add(2*time.Hour)) {
		t.Errorf("with nothing left it is due (%v)", err)
	}
	if newest, err := d.Newest(ctx, ann, everything, time.Time{}); err != nil || !newest.Equal(at) {
		t.Errorf("the newest is of %s (%v)", newest, err)
	}
	if n, err := d.Forget(ctx, ann); err != nil || n != 2 {
		t.Errorf("forgot %d (%v)", n, err)
	}
}

// TestDigestWhenAsked: what was appended while digests are off waits for somebody who asks, and what is paused never does.
func TestDigestWhenAsked(t *testing.T) {
	db := dbtest.Open(t, sqlite.Options{Dir: t.TempDir()})
	s, d := sqlstore.NewSessions(db, sqlstore.NewQueue(db)), sqlstore.NewDigests(db)
	appendTexts(t, s, chat("one"), "asked")
	a := session.Append{Scope: chat("one"), At: at, Paused: map[string]bool{ann.ID: true}, Messages: []memory.Message{
		{Role: memory.RoleUser, Speaker: ann.ID, Content: "paused", Time: at}, {Role: memory.RoleAssistant, Content: "answer to it", Time: at},
	}}
	if _, err := s.Append(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if w, err := d.Waiting(t.Context(), ann, digest.WaitingQuery{ByItself: true, Limit: 10}); err != nil || len(w.Messages) > 0 {
		t.Errorf("by itself there waits %+v (%v)", w, err)
	}
	w, err := d.Waiting(t.Context(), ann, digest.WaitingQuery{From: at, Before: at.Add(time.Second), Limit: 10})
	if err != nil || len(w.Messages) != 1 || w.Messages[0].Content != "asked" {
		t.Errorf("when asked there waits %+v (%v)", w, err)
	}
	if n, err := d.CountWaiting(t.Context(), ann, everything, at, at.Add(time.Second)); err != nil || n != 1 {
		t.Errorf("%d wait (%v)", n, err)
	}
}

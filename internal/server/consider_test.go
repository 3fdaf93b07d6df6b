package server_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestAcknowledgedDialogueSurvivesARestart: Without a wait the answer comes before the outcome, and another process finishes
// the work.
func TestAcknowledgedDialogueSurvivesARestart(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	request := &memsidecarv1.ConsiderMemorizingRequest{
		Scope: sidecartest.Direct(
			"u",
		), Messages: []*memsidecarv1.Message{sidecartest.Said("I am allergic to peanuts."), sidecartest.Answered("Noted.")}, RequestId: "once",
	}
	c := sidecartest.Must(r.ConsiderMemorizing(t.Context(), request))(t).GetConsideration()
	if c.GetState() != sidecartest.Pending || c.GetMessageCount() != 2 || c.GetCreateTime() == nil || c.GetScope().GetNamespace() != "default" {
		t.Errorf("acknowledged as %s", c)
	}
	r.Stop()
	r = sidecartest.ServeIn(t, r.Dir)
	request.Wait = sidecartest.LongWait()
	again := sidecartest.Must(r.ConsiderMemorizing(t.Context(), request))(t).GetConsideration()
	if again.GetId() != c.GetId() || again.GetState() != sidecartest.Remembered {
		t.Errorf("%s became %s", c, again)
	}
	if got := sidecartest.Texts(r.Memories(t, sidecartest.Direct("u"))); len(got) != 1 {
		t.Errorf("stored %q", got)
	}
}

// TestWaitIsCappedByTheServer: A caller never waits longer than queue.max_wait.
func TestWaitIsCappedByTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sidecartest.SeedConsideration(t, dir, sidecartest.Direct("u"), "stuck", sidecartest.Stuck)
	r := sidecartest.ServeIn(t, dir, "queue.max_wait=100ms")
	started := time.Now()
	c := sidecartest.Must(r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
		Scope: sidecartest.Direct("u"), Messages: []*memsidecarv1.Message{sidecartest.Said("hello")}, Wait: durationpb.New(time.Hour),
	}))(t).GetConsideration()
	if took := time.Since(started); took < 100*time.Millisecond || took > 30*time.Minute {
		t.Errorf("waited %s, want 100ms", took)
	}
	if c.GetState() != sidecartest.Pending {
		t.Errorf("is %s", c)
	}
	postponed := r.Consideration(t, sidecartest.Direct("u"), "con_seeded_u")
	if postponed.GetState() != sidecartest.Pending || postponed.GetError() != "the model is away" || postponed.GetAttemptCount() != 1 {
		t.Errorf("the postponed consideration is %s", postponed)
	}
}

func TestRepeatedRequestIDIsOneConsideration(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	request := func(text string, scope *memsidecarv1.Scope) *memsidecarv1.ConsiderMemorizingRequest {
		return &memsidecarv1.ConsiderMemorizingRequest{
			Scope: scope, Messages: []*memsidecarv1.Message{sidecartest.Said(text)}, RequestId: "id", Wait: sidecartest.LongWait(),
		}
	}
	first := sidecartest.Must(r.ConsiderMemorizing(t.Context(), request("我喜欢吃辣，不喜欢吃甜的", sidecartest.Direct("u"))))(t).GetConsideration()
	again := sidecartest.Must(r.ConsiderMemorizing(t.Context(), request("我喜欢吃辣，不喜欢吃甜的", sidecartest.Direct("u"))))(t).GetConsideration()
	if again.GetId() != first.GetId() || again.GetState() != sidecartest.Remembered {
		t.Errorf("%s, and again %s", first, again)
	}
	if m := r.Memories(t, sidecartest.Direct("u")); len(m) != 1 || m[0].GetMentionCount() != 1 {
		t.Errorf("the same request twice stored %s", m)
	}
	_, err := r.ConsiderMemorizing(t.Context(), request("我喜欢吃甜", sidecartest.Direct("u")))
	sidecartest.WantInvalid(t, err, "request_id")
	_, err = r.ConsiderMemorizing(t.Context(), request("我喜欢吃辣，不喜欢吃甜的", sidecartest.Group("u", "g")))
	sidecartest.WantInvalid(t, err, "request_id")
	withTime := request("我喜欢吃辣，不喜欢吃甜的", sidecartest.Direct("u"))
	withTime.Messages[0].MetadataJson = "{}"
	_, err = r.ConsiderMemorizing(t.Context(), withTime)
	sidecartest.WantInvalid(t, err, "request_id")
	for _, other := range []*memsidecarv1.Scope{sidecartest.Direct("v"), sidecartest.InNamespace("elsewhere", sidecartest.Direct("u"))} {
		if c := sidecartest.Must(r.ConsiderMemorizing(t.Context(), request("我喜欢吃甜", other)))(t); c.GetConsideration().GetId() == first.GetId() {
			t.Errorf("%s has the consideration of another", other)
		}
	}
}

func TestDialogueIsRememberedOrSkipped(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	for text, want := range map[string]memsidecarv1.ConsiderationState{
		"请记住：我的暗号是海棠":               sidecartest.Remembered,
		"我喜欢吃辣，不喜欢吃甜的":              sidecartest.Remembered,
		"I am allergic to peanuts.": sidecartest.Remembered,
		"I work as a nurse.":        sidecartest.Remembered,
		"哈哈，谢谢！":                    sidecartest.Skipped,
		"ok":                        sidecartest.Skipped,
		"":                          sidecartest.Skipped,
	} {
		user := "of " + text
		c := r.Consider(t, sidecartest.Direct(user), sidecartest.Said(text))
		if c.GetState() != want || c.GetReason() == "" || c.GetError() != "" || c.GetAttemptCount() != 1 {
			t.Errorf("%q: %s, want %s and a reason", text, c, want)
			continue
		}
		stored := r.Memories(t, sidecartest.Direct(user))
		if want == sidecartest.Skipped {
			if len(stored) != 0 || len(c.GetChanges()) != 0 {
				t.Errorf("%q was skipped and stored as %s", text, stored)
			}
			continue
		}
		if len(stored) != 1 || len(c.GetChanges()) != 1 || c.GetChanges()[0].GetAction() != sidecartest.Added || c.GetDecidedBy() != "rules" {
			t.Errorf("%q: %s stored %s", text, c, stored)
			continue
		}
		m := stored[0]
		p := m.GetProvenance()
		if m.GetId() != c.GetChanges()[0].GetMemoryId() || m.GetExplicit() != strings.HasPrefix(text, "请记住") ||
			p.GetConsiderationId() != c.GetId() || p.GetSpeakerId() != user || !slices.Equal(p.GetMessageIds(), []string{"#0"}) ||
			!strings.Contains(text, p.GetQuote()) || p.GetQuote() == "" || p.GetReason() == "" || p.GetDecidedBy() != "rules" ||
			p.GetSource() != memsidecarv1.MemorySource_MEMORY_SOURCE_DIALOGUE {
			t.Errorf("%q is stored as %s", text, m)
		}
	}
}

// TestFailedConsiderationCanBeRetried: A failed consideration has a reason. RetryConsideration resumes it.
func TestFailedConsiderationCanBeRetried(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	id := sidecartest.SeedConsideration(t, dir, sidecartest.Direct("u"), "I am allergic to peanuts.", sidecartest.Failed)
	r := sidecartest.ServeIn(t, dir)
	if c := r.Consideration(t, sidecartest.Direct("u"), id); c.GetState() != sidecartest.GivenUp || c.GetError() != "the model refused" {
		t.Errorf("is %s", c)
	}
	if s := sidecartest.Must(r.GetStatus(t.Context(), &memsidecarv1.GetStatusRequest{}))(t).GetQueue(); s.GetFailedCount() != 1 || s.GetPendingCount() != 0 {
		t.Errorf("the queue is %s", s)
	}
	c := sidecartest.Must(r.RetryConsideration(t.Context(), &memsidecarv1.RetryConsiderationRequest{Scope: sidecartest.Direct("u"), ConsiderationId: id}))(t)
	if c.GetConsideration().GetState() != sidecartest.Pending {
		t.Errorf("retried, it is %s", c)
	}
	r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("ok")) // queued after it
	if c := r.Consideration(t, sidecartest.Direct("u"), id); c.GetState() != sidecartest.Remembered || c.GetError() != "" {
		t.Errorf("after the retry it is %s", c)
	}
}

// by returns a message of a person in a group.
func by(speaker, text string) *memsidecarv1.Message {
	m := sidecartest.Said(text)
	m.SpeakerId = speaker
	return m
}

// TestGroupDialogueHasAnOutcomeForEachSpeaker: Each speaker of a group has an outcome and sees only their own.
func TestGroupDialogueHasAnOutcomeForEachSpeaker(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	scope := sidecartest.Group("alice", "g")
	c := r.Consider(
		t, scope, by("alice", "I am allergic to peanuts."), by("bob", "My son's name is Bob."), sidecartest.Answered("Hello, both!"), by("carol", "ok"),
	)
	id := c.GetId()
	r.Consider(t, sidecartest.Group("bob", "g"), sidecartest.Said("ok")) // queued after bob's and carol's parts
	r.Consider(t, sidecartest.Group("carol", "g"), sidecartest.Said("ok"))
	want := map[string]string{"alice": "peanuts", "bob": "Bob", "carol": ""}
	for user, word := range want {
		theirs := r.Consideration(t, sidecartest.Group(user, "g"), id)
		if theirs.GetScope().GetUserId() != user || theirs.GetScope().GetChannelId() != "g" || theirs.GetMessageCount() != 4 {
			t.Errorf("%s sees %s", user, theirs)
		}
		stored := r.Memories(t, sidecartest.Group(user, "g"))
		if word == "" {
			if theirs.GetState() != sidecartest.Skipped || len(stored) != 0 {
				t.Errorf("%s: %s stored %s", user, theirs, stored)
			}
			continue
		}
		if theirs.GetState() != sidecartest.Remembered || len(stored) != 1 || !strings.Contains(stored[0].GetText(), word) ||
			stored[0].GetProvenance().GetSpeakerId() != user {
			t.Errorf("%s: %s stored %s", user, theirs, stored)
		}
		e := r.Export(t, sidecartest.WithoutChannel(user))
		for other, quoted := range want {
			if other != user && quoted != "" && e.Holds(quoted) {
				t.Errorf("%s's export holds %q of %s", user, quoted, other)
			}
		}
		if !e.Holds("Hello, both!") || !e.Holds(word) {
			t.Errorf("%s's export lacks their own words or the bot's: %v", user, e.Considerations)
		}
	}
}

// TestOnlyUserMessagesAreRemembered: Messages of the bot, the system and tools are only context.
func TestOnlyUserMessagesAreRemembered(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	others := []*memsidecarv1.Message{
		{Role: memsidecarv1.Role_ROLE_SYSTEM, Content: "请记住：用户喜欢猫。My name is Anna."},
		{Role: memsidecarv1.Role_ROLE_TOOL, Content: "I am allergic to peanuts."},
		sidecartest.Answered("请记住：我喜欢吃辣。I am allergic to shellfish."),
	}
	if c := r.Consider(t, sidecartest.Direct("u"), append(others, sidecartest.Said("哈哈"))...); c.GetState() != sidecartest.Skipped {
		t.Errorf("others' words: %s", c)
	}
	if c := r.Consider(t, sidecartest.Direct("u"), others...); c.GetState() != sidecartest.Skipped {
		t.Errorf("without any word of the user: %s", c)
	}
	c := r.Consider(t, sidecartest.Direct("u"), append(others, sidecartest.Said("My name is Otto."))...)
	if c.GetState() != sidecartest.Remembered || len(c.GetChanges()) != 1 || !strings.Contains(c.GetChanges()[0].GetText(), "Otto") {
		t.Errorf("the user's own words: %s", c)
	}
}

// TestPausedUserIsNotRecorded: Nothing of a paused user is remembered or stored, and no export has it.
func TestPausedUserIsNotRecorded(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	pause := func(paused bool) {
		sidecartest.Must(r.UpdateUserSettings(t.Context(), &memsidecarv1.UpdateUserSettingsRequest{
			Scope: sidecartest.Direct("alice"), Settings: &memsidecarv1.UserSettings{Paused: paused}, UpdateMask: sidecartest.Mask("paused"),
		}))(t)
	}
	pause(true)
	resp := sidecartest.Must(r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
		Scope: sidecartest.Direct(
			"alice",
		), Messages: []*memsidecarv1.Message{sidecartest.Said("My name is Xanthippe."), sidecartest.Answered("Hello Xanthippe!")},
	}))(t)
	if c := resp.GetConsideration(); c.GetState() != sidecartest.Skipped || !strings.Contains(c.GetReason(), "paused") {
		t.Errorf("at once: %s", c)
	}
	r.Consider(t, sidecartest.Group("alice", "g"), by("alice", "My name is Xanthippe."), by("bob", "My son's name is Bob."))
	r.Consider(
		t,
		sidecartest.Group("bob", "g"),
		by("alice", "My name is Xanthippe."),
		by("bob", "I am allergic to peanuts."),
		sidecartest.Answered("Both noted."),
	)
	for user, count := range map[string]int{"alice": 3, "bob": 2} {
		e := r.Export(t, sidecartest.Direct(user))
		if e.Holds("Xanthippe") {
			t.Errorf("%s's export holds the words: %s", user, e.Records)
		}
		if len(e.Considerations) != count {
			t.Errorf("%s has %d considerations, want %d", user, len(e.Considerations), count)
		}
	}
	if stored := r.Memories(t, sidecartest.Direct("alice")); len(stored) != 0 {
		t.Errorf("stored %s", stored)
	}
	if stored := r.Memories(t, sidecartest.Direct("bob")); len(stored) != 2 {
		t.Errorf("bob, who is not paused, has %q", sidecartest.Texts(stored))
	}
	sidecartest.WantNoFileWith(t, r.Dir, "Xanthippe")
	pause(false)
	if c := r.Consider(t, sidecartest.Direct("alice"), sidecartest.Said("I work as a nurse.")); c.GetState() != sidecartest.Remembered {
		t.Errorf("when no longer paused: %s", c)
	}
}

// TestDeletedMemoryStaysDeleted: A consideration that runs again, as after a crash, does not restore a deleted memory.
func TestDeletedMemoryStaysDeleted(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	request := &memsidecarv1.ConsiderMemorizingRequest{
		Scope: sidecartest.Direct("u"), Messages: []*memsidecarv1.Message{sidecartest.Said("I am allergic to peanuts. I work as a nurse.")},
		RequestId: "id", Wait: sidecartest.LongWait(),
	}
	c := sidecartest.Must(r.ConsiderMemorizing(t.Context(), request))(t).GetConsideration()
	if len(c.GetChanges()) != 2 {
		t.Fatalf("stored %s", c.GetChanges())
	}
	deleted, kept := c.GetChanges()[0].GetMemoryId(), c.GetChanges()[1].GetMemoryId()
	sidecartest.Must(r.DeleteMemory(t.Context(), &memsidecarv1.DeleteMemoryRequest{Scope: sidecartest.Direct("u"), MemoryId: deleted}))(t)
	r.Stop()
	sidecartest.WithStorage(t, r.Dir, func(storage *sqlite.Storage) {
		err := storage.Write(t.Context(), func(tx sqldb.Tx) error {
			_, err := tx.Exec(t.Context(), `UPDATE considerations SET state = 'running'`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	r = sidecartest.ServeIn(t, r.Dir)
	again := sidecartest.Must(r.ConsiderMemorizing(t.Context(), request))(t).GetConsideration()
	if again.GetState() != sidecartest.Remembered || again.GetAttemptCount() != 2 || len(again.GetChanges()) != 2 ||
		again.GetChanges()[0].GetAction() != sidecartest.LeftDeleted || again.GetChanges()[1].GetAction() != sidecartest.Added {
		t.Errorf("the second run is %s", again)
	}
	if m := r.Memories(t, sidecartest.Direct("u")); len(m) != 1 || m[0].GetId() != kept || m[0].GetMentionCount() != 1 {
		t.Errorf("after the second run there is %s", m)
	}
}

// TestRepeatedStatementIsCountedOnce: A statement that is stored already is counted, not stored again.
func TestRepeatedStatementIsCountedOnce(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	first := r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("I am allergic to peanuts."))
	before := r.Memories(t, sidecartest.Direct("u"))[0]
	second := r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("I am allergic to peanuts!"), sidecartest.Said("I work as a nurse."))
	if len(second.GetChanges()) != 2 || second.GetChanges()[0].GetAction() != sidecartest.Reinforced || second.GetChanges()[1].GetAction() != sidecartest.Added ||
		second.GetChanges()[0].GetMemoryId() != first.GetChanges()[0].GetMemoryId() ||
		second.GetState() != sidecartest.Remembered {
		t.Errorf("said again: %s", second)
	}
	m := r.Memory(t, sidecartest.Direct("u"), before.GetId())
	if m.GetMentionCount() != 2 || !m.GetLastMentionTime().AsTime().After(before.GetLastMentionTime().AsTime()) ||
		!m.GetCreateTime().AsTime().Equal(before.GetCreateTime().AsTime()) || m.GetText() != before.GetText() {
		t.Errorf("%s became %s", before, m)
	}
	if n := len(r.Memories(t, sidecartest.Direct("u"))); n != 2 {
		t.Errorf("there are %d memories", n)
	}
	newest := r.Considerations(t, sidecartest.Direct("u"))
	if len(newest) != 2 || newest[0].GetId() != second.GetId() {
		t.Errorf("considerations are not listed newest first: %s", newest)
	}
}

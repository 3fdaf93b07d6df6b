package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

const (
	pending    = memsidecarv1.ConsiderationState_CONSIDERATION_STATE_PENDING
	remembered = memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED
	skipped    = memsidecarv1.ConsiderationState_CONSIDERATION_STATE_SKIPPED
	givenUp    = memsidecarv1.ConsiderationState_CONSIDERATION_STATE_FAILED

	added       = memsidecarv1.MemoryAction_MEMORY_ACTION_ADDED
	reinforced  = memsidecarv1.MemoryAction_MEMORY_ACTION_REINFORCED
	leftDeleted = memsidecarv1.MemoryAction_MEMORY_ACTION_LEFT_DELETED
)

func (r *running) consideration(t *testing.T, scope *memsidecarv1.Scope, id string) *memsidecarv1.Consideration {
	t.Helper()
	return must(r.GetConsideration(t.Context(), &memsidecarv1.GetConsiderationRequest{Scope: scope, ConsiderationId: id}))(t).GetConsideration()
}

// TestAcknowledgedIsDurable: without a wait the answer comes before the outcome, and another process finishes the work.
func TestAcknowledgedIsDurable(t *testing.T) {
	r := serve(t)
	request := &memsidecarv1.ConsiderMemorizingRequest{
		Scope: direct("u"), Messages: []*memsidecarv1.Message{said("I am allergic to peanuts."), answered("Noted.")}, RequestId: "once",
	}
	c := must(r.ConsiderMemorizing(t.Context(), request))(t).GetConsideration()
	if c.GetState() != pending || c.GetMessageCount() != 2 || c.GetCreateTime() == nil || c.GetScope().GetNamespace() != "default" {
		t.Errorf("acknowledged as %s", c)
	}
	r.stop()
	r = serveIn(t, r.dir)
	request.Wait = patiently()
	again := must(r.ConsiderMemorizing(t.Context(), request))(t).GetConsideration()
	if again.GetId() != c.GetId() || again.GetState() != remembered {
		t.Errorf("%s became %s", c, again)
	}
	if got := texts(r.list(t, direct("u"))); len(got) != 1 {
		t.Errorf("stored %q", got)
	}
}

// TestWaitIsCapped: a line that does not move is waited for no longer than the server allows.
func TestWaitIsCapped(t *testing.T) {
	dir := t.TempDir()
	seedConsideration(t, dir, direct("u"), "stuck", stuck)
	r := serveIn(t, dir, "queue.max_wait=100ms")
	started := time.Now()
	c := must(r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
		Scope: direct("u"), Messages: []*memsidecarv1.Message{said("hello")}, Wait: durationpb.New(time.Hour),
	}))(t).GetConsideration()
	if took := time.Since(started); took < 100*time.Millisecond || took > 30*time.Minute {
		t.Errorf("waited %s, want 100ms", took)
	}
	if c.GetState() != pending {
		t.Errorf("is %s", c)
	}
	waits := r.consideration(t, direct("u"), "con_seeded_u")
	if waits.GetState() != pending || waits.GetError() != "the model is away" || waits.GetAttemptCount() != 1 {
		t.Errorf("what waits for another attempt is %s", waits)
	}
}

func TestRequestID(t *testing.T) {
	r := serve(t)
	request := func(text string, scope *memsidecarv1.Scope) *memsidecarv1.ConsiderMemorizingRequest {
		return &memsidecarv1.ConsiderMemorizingRequest{
			Scope: scope, Messages: []*memsidecarv1.Message{said(text)}, RequestId: "id", Wait: patiently(),
		}
	}
	first := must(r.ConsiderMemorizing(t.Context(), request("我喜欢吃辣", direct("u"))))(t).GetConsideration()
	again := must(r.ConsiderMemorizing(t.Context(), request("我喜欢吃辣", direct("u"))))(t).GetConsideration()
	if again.GetId() != first.GetId() || again.GetState() != remembered {
		t.Errorf("%s, and again %s", first, again)
	}
	if m := r.list(t, direct("u")); len(m) != 1 || m[0].GetMentionCount() != 1 {
		t.Errorf("the same request twice stored %s", m)
	}
	_, err := r.ConsiderMemorizing(t.Context(), request("我喜欢吃甜", direct("u")))
	wantInvalid(t, err, "request_id")
	_, err = r.ConsiderMemorizing(t.Context(), request("我喜欢吃辣", group("u", "g")))
	wantInvalid(t, err, "request_id")
	withTime := request("我喜欢吃辣", direct("u"))
	withTime.Messages[0].MetadataJson = "{}"
	_, err = r.ConsiderMemorizing(t.Context(), withTime)
	wantInvalid(t, err, "request_id")
	for _, other := range []*memsidecarv1.Scope{direct("v"), in("elsewhere", direct("u"))} {
		if c := must(r.ConsiderMemorizing(t.Context(), request("我喜欢吃甜", other)))(t); c.GetConsideration().GetId() == first.GetId() {
			t.Errorf("%s has the consideration of another", other)
		}
	}
}

func TestOutcomes(t *testing.T) {
	r := serve(t)
	for text, want := range map[string]memsidecarv1.ConsiderationState{
		"请记住：我的暗号是海棠":               remembered,
		"我喜欢吃辣":                     remembered,
		"I am allergic to peanuts.": remembered,
		"My name is Anna.":          remembered,
		"哈哈，谢谢！":                    skipped,
		"ok":                        skipped,
		"":                          skipped,
	} {
		user := "of " + text
		c := r.consider(t, direct(user), said(text))
		if c.GetState() != want || c.GetReason() == "" || c.GetError() != "" || c.GetAttemptCount() != 1 {
			t.Errorf("%q: %s, want %s and a reason", text, c, want)
			continue
		}
		stored := r.list(t, direct(user))
		if want == skipped {
			if len(stored) != 0 || len(c.GetChanges()) != 0 {
				t.Errorf("%q was skipped and stored as %s", text, stored)
			}
			continue
		}
		if len(stored) != 1 || len(c.GetChanges()) != 1 || c.GetChanges()[0].GetAction() != added || c.GetDecidedBy() != "rules" {
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

// TestFailedCanBeRetried: what was given up says why, and goes on when it is asked for.
func TestFailedCanBeRetried(t *testing.T) {
	dir := t.TempDir()
	id := seedConsideration(t, dir, direct("u"), "I am allergic to peanuts.", failed)
	r := serveIn(t, dir)
	if c := r.consideration(t, direct("u"), id); c.GetState() != givenUp || c.GetError() != "the model refused" {
		t.Errorf("is %s", c)
	}
	if s := must(r.GetStatus(t.Context(), &memsidecarv1.GetStatusRequest{}))(t).GetQueue(); s.GetFailedCount() != 1 || s.GetPendingCount() != 0 {
		t.Errorf("the queue is %s", s)
	}
	c := must(r.RetryConsideration(t.Context(), &memsidecarv1.RetryConsiderationRequest{Scope: direct("u"), ConsiderationId: id}))(t)
	if c.GetConsideration().GetState() != pending {
		t.Errorf("retried, it is %s", c)
	}
	r.consider(t, direct("u"), said("ok")) // behind it in the same line
	if c := r.consideration(t, direct("u"), id); c.GetState() != remembered || c.GetError() != "" {
		t.Errorf("after the retry it is %s", c)
	}
}

// by is a message of a person in a group.
func by(speaker, text string) *memsidecarv1.Message {
	m := said(text)
	m.SpeakerId = speaker
	return m
}

// TestGroupDialogue: one outcome for each person who spoke, and each sees their own.
func TestGroupDialogue(t *testing.T) {
	r := serve(t)
	scope := group("alice", "g")
	c := r.consider(t, scope, by("alice", "I am allergic to peanuts."), by("bob", "My name is Bob."), answered("Hello, both!"), by("carol", "ok"))
	id := c.GetId()
	r.consider(t, group("bob", "g"), said("ok")) // bob's and carol's lines are done when what stands behind is
	r.consider(t, group("carol", "g"), said("ok"))
	want := map[string]string{"alice": "peanuts", "bob": "Bob", "carol": ""}
	for user, word := range want {
		theirs := r.consideration(t, group(user, "g"), id)
		if theirs.GetScope().GetUserId() != user || theirs.GetScope().GetChannelId() != "g" || theirs.GetMessageCount() != 4 {
			t.Errorf("%s sees %s", user, theirs)
		}
		stored := r.list(t, group(user, "g"))
		if word == "" {
			if theirs.GetState() != skipped || len(stored) != 0 {
				t.Errorf("%s: %s stored %s", user, theirs, stored)
			}
			continue
		}
		if theirs.GetState() != remembered || len(stored) != 1 || !strings.Contains(stored[0].GetText(), word) || stored[0].GetProvenance().GetSpeakerId() != user {
			t.Errorf("%s: %s stored %s", user, theirs, stored)
		}
		e := r.export(t, anywhere(user))
		for other, theirWord := range want {
			if other != user && theirWord != "" && e.holds(theirWord) {
				t.Errorf("%s's export holds %q of %s", user, theirWord, other)
			}
		}
		if !e.holds("Hello, both!") || !e.holds(word) {
			t.Errorf("%s's export lacks their own words or the bot's: %v", user, e.considerations)
		}
	}
}

// TestOnlyPeoplesWords: what the bot, the system prompt or a tool says is context.
func TestOnlyPeoplesWords(t *testing.T) {
	r := serve(t)
	others := []*memsidecarv1.Message{
		{Role: memsidecarv1.Role_ROLE_SYSTEM, Content: "请记住：用户喜欢猫。My name is Anna."},
		{Role: memsidecarv1.Role_ROLE_TOOL, Content: "I am allergic to peanuts."},
		answered("请记住：我喜欢吃辣。I am allergic to shellfish."),
	}
	if c := r.consider(t, direct("u"), append(others, said("哈哈"))...); c.GetState() != skipped {
		t.Errorf("others' words: %s", c)
	}
	if c := r.consider(t, direct("u"), others...); c.GetState() != skipped {
		t.Errorf("without any word of the user: %s", c)
	}
	c := r.consider(t, direct("u"), append(others, said("My name is Otto."))...)
	if c.GetState() != remembered || len(c.GetChanges()) != 1 || !strings.Contains(c.GetChanges()[0].GetText(), "Otto") {
		t.Errorf("the user's own words: %s", c)
	}
}

// TestPaused: nothing is remembered and the words are not kept, in nobody's export.
func TestPaused(t *testing.T) {
	r := serve(t)
	pause := func(paused bool) {
		must(r.UpdateUserSettings(t.Context(), &memsidecarv1.UpdateUserSettingsRequest{
			Scope: direct("alice"), Settings: &memsidecarv1.UserSettings{Paused: paused}, UpdateMask: mask("paused"),
		}))(t)
	}
	pause(true)
	resp := must(r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
		Scope: direct("alice"), Messages: []*memsidecarv1.Message{said("My name is Xanthippe."), answered("Hello Xanthippe!")},
	}))(t)
	if c := resp.GetConsideration(); c.GetState() != skipped || !strings.Contains(c.GetReason(), "paused") {
		t.Errorf("at once: %s", c)
	}
	r.consider(t, group("alice", "g"), by("alice", "My name is Xanthippe."), by("bob", "My name is Bob."))
	r.consider(t, group("bob", "g"), by("alice", "My name is Xanthippe."), by("bob", "I am allergic to peanuts."), answered("Both noted."))
	for user, count := range map[string]int{"alice": 3, "bob": 2} {
		e := r.export(t, direct(user))
		if e.holds("Xanthippe") {
			t.Errorf("%s's export holds the words: %s", user, e.records)
		}
		if len(e.considerations) != count {
			t.Errorf("%s has %d considerations, want %d", user, len(e.considerations), count)
		}
	}
	if stored := r.list(t, direct("alice")); len(stored) != 0 {
		t.Errorf("stored %s", stored)
	}
	if stored := r.list(t, direct("bob")); len(stored) != 2 {
		t.Errorf("bob, who is not paused, has %q", texts(stored))
	}
	wantNoBytes(t, r.dir, "Xanthippe")
	pause(false)
	if c := r.consider(t, direct("alice"), said("My name is Anna.")); c.GetState() != remembered {
		t.Errorf("when no longer paused: %s", c)
	}
}

// TestDeletedStaysDeleted: a consideration that runs again, as after a crash, does not bring back what was deleted.
func TestDeletedStaysDeleted(t *testing.T) {
	r := serve(t)
	request := &memsidecarv1.ConsiderMemorizingRequest{
		Scope: direct("u"), Messages: []*memsidecarv1.Message{said("I am allergic to peanuts. My name is Anna.")},
		RequestId: "id", Wait: patiently(),
	}
	c := must(r.ConsiderMemorizing(t.Context(), request))(t).GetConsideration()
	if len(c.GetChanges()) != 2 {
		t.Fatalf("stored %s", c.GetChanges())
	}
	deleted, kept := c.GetChanges()[0].GetMemoryId(), c.GetChanges()[1].GetMemoryId()
	must(r.DeleteMemory(t.Context(), &memsidecarv1.DeleteMemoryRequest{Scope: direct("u"), MemoryId: deleted}))(t)
	r.stop()
	withStorage(t, r.dir, func(storage *sqlite.Storage) {
		err := storage.Write(t.Context(), func(tx sqldb.Tx) error {
			_, err := tx.Exec(t.Context(), `UPDATE considerations SET state = 'running'`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	r = serveIn(t, r.dir)
	again := must(r.ConsiderMemorizing(t.Context(), request))(t).GetConsideration()
	if again.GetState() != remembered || again.GetAttemptCount() != 2 || len(again.GetChanges()) != 2 ||
		again.GetChanges()[0].GetAction() != leftDeleted || again.GetChanges()[1].GetAction() != added {
		t.Errorf("the second run is %s", again)
	}
	if m := r.list(t, direct("u")); len(m) != 1 || m[0].GetId() != kept || m[0].GetMentionCount() != 1 {
		t.Errorf("after the second run there is %s", m)
	}
}

// TestSaidAgain: what is known is counted and not stored twice.
func TestSaidAgain(t *testing.T) {
	r := serve(t)
	first := r.consider(t, direct("u"), said("I am allergic to peanuts."))
	before := r.list(t, direct("u"))[0]
	second := r.consider(t, direct("u"), said("I am allergic to peanuts!"), said("My name is Anna."))
	if len(second.GetChanges()) != 2 || second.GetChanges()[0].GetAction() != reinforced || second.GetChanges()[1].GetAction() != added ||
		second.GetChanges()[0].GetMemoryId() != first.GetChanges()[0].GetMemoryId() || second.GetState() != remembered {
		t.Errorf("said again: %s", second)
	}
	m := r.get(t, direct("u"), before.GetId())
	if m.GetMentionCount() != 2 || !m.GetLastMentionTime().AsTime().After(before.GetLastMentionTime().AsTime()) ||
		!m.GetCreateTime().AsTime().Equal(before.GetCreateTime().AsTime()) || m.GetText() != before.GetText() {
		t.Errorf("%s became %s", before, m)
	}
	if n := len(r.list(t, direct("u"))); n != 2 {
		t.Errorf("there are %d memories", n)
	}
	newest := r.considerations(t, direct("u"))
	if len(newest) != 2 || newest[0].GetId() != second.GetId() {
		t.Errorf("considerations are not listed newest first: %s", newest)
	}
}

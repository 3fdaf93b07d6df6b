// Package digesttest is the conformance suite of digest.Store.
package digesttest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/session"
)

// Stores are the store under test and the stores whose messages and considerations it reads. They share one storage.
type Stores struct {
	Digests  digest.Store
	Sessions session.Store
	Queue    queue.Store
	Close    func() // makes the storage unavailable
}

// Run runs the suite. Each call of open returns stores that are empty and last until the end of the test.
func Run(t *testing.T, open func(t *testing.T) Stores) {
	for _, c := range []struct {
		name string
		run  func(*suite)
	}{
		{"SaveKeepsEverything", testSaveKeepsEverything},
		{"SaveTwice", testSaveTwice},
		{"SaveCoversOnce", testSaveCoversOnce},
		{"SaveConcurrently", testSaveConcurrently},
		{"SaveAfterDeletion", testSaveAfterDeletion},
		{"SaveOfConsideration", testSaveOfConsideration},
		{"DeletedSession", testDeletedSession},
		{"Pending", testPending},
		{"PendingByOwner", testPendingByOwner},
		{"PendingWhenAsked", testPendingWhenAsked},
		{"PendingPeriod", testPendingPeriod},
		{"CountPending", testCountPending},
		{"Find", testFind},
		{"List", testList},
		{"Remembered", testRemembered},
		{"DueByNumber", testDueByNumber},
		{"DueInOrder", testDueInOrder},
		{"Done", testDone},
		{"Postpone", testPostpone},
		{"MakeDue", testMakeDue},
		{"Forget", testForget},
		{"UnknownUser", testUnknownUser},
		{"Unavailable", testUnavailable},
		{"Cancelled", testCancelled},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(&suite{T: t, Stores: open(t)}) })
	}
}

var t0 = time.Date(2026, 11, 20, 8, 30, 0, 123_456_000, time.UTC)

var (
	ann       = memory.User{Namespace: "tenant/site", ID: "ann"}
	ben       = memory.User{Namespace: "tenant/site", ID: "ben"}
	elsewhere = memory.User{Namespace: "tenant/other", ID: "ann"}
)

var (
	direct = memory.Channel{Kind: memory.ChannelDirect, ID: "dm"}
	lobby  = memory.Channel{Kind: memory.ChannelGroup, ID: "lobby"}
	attic  = memory.Channel{Kind: memory.ChannelGroup, ID: "attic"}
)

// everything is seen by a caller that is not restricted.
var everything = digest.Seen{Audience: memory.Everything()}

// seenIn is what a caller in the channel sees.
func seenIn(c memory.Channel) digest.Seen {
	return digest.Seen{Audience: memory.VisibilityChannel.AudienceOf(c)}
}

type suite struct {
	*testing.T
	Stores

	count int
}

func scope(user memory.User, c memory.Channel, sessionID string) memory.Scope {
	return memory.Scope{Namespace: user.Namespace, UserID: user.ID, Channel: c, SessionID: sessionID}
}

// chat is a session of the user in a direct chat.
func chat(user memory.User, sessionID string) memory.Scope { return scope(user, direct, sessionID) }

func said(user memory.User, text string) memory.Message {
	return memory.Message{Role: memory.RoleUser, Speaker: user.ID, Content: text, Time: t0}
}

func answered(text string) memory.Message {
	return memory.Message{Role: memory.RoleAssistant, AgentID: "nora", Content: text, Time: t0}
}

// rule makes a digest due after so many messages, or an hour after t0.
func rule(every int) session.DigestRule {
	return session.DigestRule{Every: every, DayEnd: t0.Add(time.Hour)}
}

// request appends messages at t0. A digest of the scope's user is due after so many of them; none for 0.
func request(scope memory.Scope, every int, messages ...memory.Message) session.Append {
	a := session.Append{Scope: scope, Audience: memory.Everything(), At: t0, Messages: messages}
	if every > 0 {
		a.Digests = map[string]session.DigestRule{scope.UserID: rule(every)}
	}
	return a
}

func (s *suite) append(a session.Append) {
	s.Helper()
	if _, err := s.Sessions.Append(s.Context(), a); err != nil {
		s.Fatal(err)
	}
}

// say appends what the scope's user says.
func (s *suite) say(scope memory.Scope, every int, texts ...string) {
	s.Helper()
	a := request(scope, every)
	for _, text := range texts {
		a.Messages = append(a.Messages, said(scope.User(), text))
	}
	s.append(a)
}

// finding is one that was said so many minutes after t0.
func finding(text string, minutes int) digest.Finding {
	return digest.Finding{Category: digest.Decision, Text: text, SaidAt: t0.Add(time.Duration(minutes) * time.Minute)}
}

// contribution is a new one that covers no messages.
func (s *suite) contribution(scope memory.Scope, findings ...digest.Finding) digest.Contribution {
	s.count++
	return digest.Contribution{ID: fmt.Sprint("c", s.count), Scope: scope, MadeBy: "rules", At: t0, Findings: findings}
}

func (s *suite) save(c digest.Contribution) {
	s.Helper()
	if err := s.Digests.Save(s.Context(), c); err != nil {
		s.Fatal(err)
	}
}

// waiting reads messages that are digested without being asked for.
func (s *suite) waiting(user memory.User) digest.Pending {
	s.Helper()
	return s.query(user, digest.PendingQuery{ByItself: true, Limit: 100})
}

func (s *suite) query(user memory.User, q digest.PendingQuery) digest.Pending {
	s.Helper()
	w, err := s.Digests.Pending(s.Context(), user, q)
	if err != nil {
		s.Fatal(err)
	}
	return w
}

// contents are the texts of messages, in order.
func contents(w digest.Pending) string {
	texts := make([]string, len(w.Messages))
	for i, m := range w.Messages {
		texts[i] = m.Content
	}
	return strings.Join(texts, " ")
}

func refs(w digest.Pending) (refs []int64) {
	for _, m := range w.Messages {
		refs = append(refs, m.Ref)
	}
	return refs
}

// found reads all findings of a user.
func (s *suite) found(user memory.User) []digest.Entry {
	s.Helper()
	return s.find(user, everything, time.Time{}, time.Time{})
}

func (s *suite) find(user memory.User, seen digest.Seen, from, before time.Time) []digest.Entry {
	s.Helper()
	entries, err := s.Digests.Find(s.Context(), user, seen, from, before)
	if err != nil {
		s.Fatal(err)
	}
	return entries
}

func texts(entries []digest.Entry) string {
	all := make([]string, len(entries))
	for i, e := range entries {
		all[i] = e.Text
	}
	return strings.Join(all, " ")
}

// due lists the ids of users whose digest is due at the time, and how long after t0 the next one is; 0 is never.
func (s *suite) due(at time.Time) (users string, next time.Duration) {
	s.Helper()
	due, then, err := s.Digests.Due(s.Context(), at, 100)
	if err != nil {
		s.Fatal(err)
	}
	var list []string
	for _, user := range due {
		list = append(list, user.ID)
	}
	if !then.IsZero() {
		next = then.Sub(t0)
	}
	return strings.Join(list, " "), next
}

func (s *suite) want(what, got, want string) {
	s.Helper()
	if got != want {
		s.Errorf("%s: %q, want %q", what, got, want)
	}
}

// wantDue checks which digests are due so long after t0.
func (s *suite) wantDue(after time.Duration, want string) {
	s.Helper()
	if got, _ := s.due(t0.Add(after)); got != want {
		s.Errorf("due after %s: %q, want %q", after, got, want)
	}
}

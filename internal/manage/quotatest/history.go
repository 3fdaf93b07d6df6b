package quotatest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/session"
)

func message(user memory.User, text string) memory.Message {
	return memory.Message{Role: memory.RoleUser, Speaker: user.ID, Content: text, Time: t0}
}

// appending appends messages to a session of the user.
func appending(user memory.User, sessionID string, messages ...memory.Message) session.Append {
	scope := memory.Scope{Namespace: user.Namespace, UserID: user.ID, SessionID: sessionID}
	return session.Append{Scope: scope, Audience: memory.Everything(), At: t0, Messages: messages}
}

func (s *suite) append(a session.Append) error {
	_, err := s.Sessions.Append(s.Context(), a)
	return err
}

// say appends a message of the user.
func (s *suite) say(user memory.User, sessionID, text string) error {
	return s.append(appending(user, sessionID, message(user, text)))
}

func viewer(user memory.User) session.Viewer {
	return session.Viewer{Namespace: user.Namespace, UserID: user.ID, Audience: memory.Everything()}
}

func (s *suite) deleteSession(user memory.User, sessionID string) {
	s.Helper()
	_, err := s.Sessions.Delete(s.Context(), viewer(user), sessionID)
	s.must(err)
}

// stored returns the number of messages of a session, 0 for an unknown one.
func (s *suite) stored(user memory.User, sessionID string) int64 {
	s.Helper()
	page, err := s.Sessions.Messages(s.Context(), viewer(user), sessionID, session.MessageQuery{Limit: 1})
	if err != nil && !errors.Is(err, memory.ErrNotFound) {
		s.Fatal(err)
	}
	return page.Total
}

// size returns how many bytes such a message uses of the quota.
func (s *suite) size(user memory.User, m memory.Message) int64 {
	s.Helper()
	before := s.used(memory.QuotaUserHistory, user)
	s.must(s.append(appending(user, "measure", m)))
	size := s.used(memory.QuotaUserHistory, user) - before
	s.deleteSession(user, "measure")
	if size < int64(len(m.Content)) || size > int64(len(m.Content)+1000) {
		s.Fatalf("a message of %d bytes uses %d", len(m.Content), size)
	}
	return size
}

// testUserHistory: The user's messages and their answers count for the user, in all sessions.
func testUserHistory(s *suite) {
	const quota = memory.QuotaUserHistory
	text := strings.Repeat("茶", 100)
	size := s.size(ann, message(ann, text))
	s.wantUsed(quota, ann, 0)
	s.allow(quota, 3*size)
	full := memory.Standing{Quota: quota, UserID: "ann", Limit: 3 * size, Used: 3 * size}
	for _, sessionID := range []string{"one", "one", "two"} {
		s.must(s.say(ann, sessionID, text))
	}
	s.wantUsed(quota, ann, 3*size)
	s.wantUsed(memory.QuotaNamespaceHistory, ann, 3*size)
	s.wantRefused(s.say(ann, "one", text), full, size)
	s.wantRefused(s.say(ann, "new", text), full, size)
	if s.stored(ann, "one") != 2 || s.stored(ann, "new") != 0 {
		s.Error("part of a refused request is stored")
	}
	answer := memory.Message{Role: memory.RoleAssistant, Content: text, Time: t0}
	s.must(s.append(appending(ben, "b", answer))) // ben has room
	answered := s.used(quota, ben)
	s.wantRefused(s.append(appending(ann, "one", answer)), full, answered)
	s.must(s.say(elsewhere, "one", text))
	s.wantUsed(quota, elsewhere, size)

	s.deleteSession(ann, "one")
	s.wantUsed(quota, ann, size)
	s.must(s.say(ann, "one", text))
	_, err := s.Sessions.Expire(s.Context(), session.Expiry{Namespace: site, Before: t0.Add(1e9), Limit: 10})
	s.must(err)
	s.wantUsed(quota, ann, 0)
	s.wantUsed(quota, ben, 0)
	s.wantUsed(memory.QuotaNamespaceHistory, ann, 0)
	s.wantUsed(quota, elsewhere, size)
	s.must(s.say(ann, "two", text))
	_, err = s.Sessions.Forget(s.Context(), ann)
	s.must(err)
	s.wantUsed(quota, ann, 0)
	s.wantUsed(memory.QuotaNamespaceHistory, ann, 0)
}

// testNamespaceHistory: All messages of a namespace count, also those without a user.
func testNamespaceHistory(s *suite) {
	const quota = memory.QuotaNamespaceHistory
	size := s.size(ann, message(ann, "text"))
	if other := s.size(ben, message(ben, "text")); other != size {
		s.Fatalf("messages use %d and %d", size, other)
	}
	system := memory.Message{Role: memory.RoleUser, Content: "nobody's", Time: t0}
	s.must(s.append(appending(memory.User{Namespace: site}, "unsigned", system)))
	unsigned := s.used(quota, ann)
	if unsigned == 0 {
		s.Error("a message without a user does not count")
	}
	s.wantUsed(memory.QuotaUserHistory, ann, 0)
	limit := unsigned + 2*size
	s.allow(quota, limit)
	s.must(s.say(ann, "a", "text"))
	s.must(s.say(ben, "b", "text"))
	s.wantRefused(s.say(ann, "a", "text"), memory.Standing{Quota: quota, Limit: limit, Used: limit}, size)
	both := appending(ann, "a", message(ann, "text"), message(ann, "text"))
	s.deleteSession(ben, "b")
	s.wantRefused(s.append(both), memory.Standing{Quota: quota, Limit: limit, Used: limit - size}, 2*size)
	if n := s.stored(ann, "a"); n != 1 {
		s.Errorf("%d messages are stored", n)
	}
	s.must(s.say(ann, "a", "text"))

	// A message that is stored already adds nothing.
	s.allow(quota, 0)
	known := message(ann, "text")
	known.ID = "m1"
	a := appending(ann, "known", known)
	a.Hashes = [][]byte{{1}}
	s.must(s.append(a))
	s.allow(quota, 1)
	s.must(s.append(a))
}

// testHistoryOfMany: Many small messages are counted exactly.
func testHistoryOfMany(s *suite) {
	size := s.size(ann, message(ann, "m000"))
	for i := range 100 {
		s.must(s.append(appending(ann, fmt.Sprint("s", i%3), message(ann, fmt.Sprintf("m%03d", i)), message(ann, "m999"))))
		s.must(s.say(ben, "b", "m000"))
		s.wantUsed(memory.QuotaUserHistory, ann, 2*size*int64(i+1))
	}
	s.wantUsed(memory.QuotaUserHistory, ben, 100*size)
	s.wantUsed(memory.QuotaNamespaceHistory, ann, 300*size)
	s.deleteSession(ann, "s1")
	s.wantUsed(memory.QuotaUserHistory, ann, 134*size)
	s.wantUsed(memory.QuotaNamespaceHistory, ann, 234*size)
}

func testHistoryConcurrently(s *suite) {
	size := s.size(ann, message(ann, "text"))
	s.allow(memory.QuotaUserHistory, 10*size)
	stored := s.concurrently(memory.QuotaUserHistory, 16, func(i int) error { return s.say(ann, fmt.Sprint("s", i%2), "text") })
	if n := s.stored(ann, "s0") + s.stored(ann, "s1"); stored != 10 || n != 10 {
		s.Errorf("%d writes were stored, and there are %d messages, want 10", stored, n)
	}
	s.wantUsed(memory.QuotaUserHistory, ann, 10*size)
}

// testRecord: A dialogue that cannot be recorded is not accepted for consideration either.
func testRecord(s *suite) {
	record := func(id string) error {
		a := appending(ann, "s", message(ann, "text"))
		_, _, err := s.Sessions.Record(s.Context(), session.Record{Append: a, Acceptance: queue.Acceptance{
			ID: id, Dialogue: memory.Dialogue{Scope: a.Scope, Messages: a.Messages}, Speakers: []string{"ann"}, At: t0, MaxPending: 100,
		}})
		return err
	}
	size := s.size(ann, message(ann, "text"))
	s.allow(memory.QuotaUserHistory, size)
	s.must(record("con_1"))
	full := memory.Standing{Quota: memory.QuotaUserHistory, UserID: "ann", Limit: size, Used: size}
	s.wantRefused(record("con_2"), full, size)
	if n := s.stored(ann, "s"); n != 1 {
		s.Errorf("%d messages are stored", n)
	}
	s.allow(memory.QuotaUserHistory, 2*size)
	s.must(record("con_2")) // its id is free
}

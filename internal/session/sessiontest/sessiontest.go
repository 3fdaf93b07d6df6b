// Package sessiontest is the conformance suite of session.Store.
package sessiontest

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/session"
)

// Stores are the store under test and the queue that receives its dialogues.
type Stores struct {
	Sessions session.Store
	Queue    queue.Store
}

// Run runs the suite. Each call of factory returns empty stores that last until the end of the test.
func Run(t *testing.T, factory func(t *testing.T) Stores) {
	for _, c := range []struct {
		name string
		run  func(*suite)
	}{
		{"Append", testAppend},
		{"AppendKeepsEveryByte", testAppendKeepsEveryByte},
		{"AppendSkipsStoredIDs", testAppendSkipsStoredIDs},
		{"AppendConcurrently", testAppendConcurrently},
		{"AppendToCurrent", testAppendToCurrent},
		{"AppendAccess", testAppendAccess},
		{"Participants", testParticipants},
		{"Import", testImport},
		{"WindowExpires", testWindowExpires},
		{"DueByNumber", testDueByNumber},
		{"DueByPause", testDueByPause},
		{"NotDue", testNotDue},
		{"Postpone", testPostpone},
		{"MakeDue", testMakeDue},
		{"ResetClock", testResetClock},
		{"Take", testTake},
		{"TakeInSteps", testTakeInSteps},
		{"TakeOnce", testTakeOnce},
		{"TakeSkips", testTakeSkips},
		{"TakeRefused", testTakeRefused},
		{"TakeWithLeadingContext", testTakeWithLeadingContext},
		{"Record", testRecord},
		{"RecordAgain", testRecordAgain},
		{"RecordRequestID", testRecordRequestID},
		{"RecordRefused", testRecordRefused},
		{"RecordSkips", testRecordSkips},
		{"Messages", testMessages},
		{"MessagesWithGaps", testMessagesWithGaps},
		{"Window", testWindow},
		{"Summaries", testSummaries},
		{"SummaryDue", testSummaryDue},
		{"MarkRead", testMarkRead},
		{"Exclude", testExclude},
		{"List", testList},
		{"ListPages", testListPages},
		{"Update", testUpdate},
		{"Switch", testSwitch},
		{"Delete", testDelete},
		{"DeleteWithConsiderations", testDeleteWithConsiderations},
		{"ForgetInDirectChat", testForgetInDirectChat},
		{"ForgetInGroups", testForgetInGroups},
		{"Export", testExport},
		{"Expire", testExpire},
		{"Unknown", testUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			stores := factory(t)
			c.run(&suite{T: t, store: stores.Sessions, queue: stores.Queue, now: t0, rules: session.Rules{
				TTL: 24 * time.Hour, MemorizeEvery: 10, Idle: time.Hour, SummarizeAfter: 10,
			}})
		})
	}
}

var t0 = time.Date(2026, 11, 20, 8, 30, 0, 123_456_000, time.UTC)

// suite is one test with its stores, its clock and its policy.
type suite struct {
	*testing.T
	store session.Store
	queue queue.Store
	now   time.Time
	rules session.Rules
	count int
}

// later advances the clock.
func (s *suite) later(d time.Duration) { s.now = s.now.Add(d) }

const namespace = "tenant/site"

func user(id string) memory.User { return memory.User{Namespace: namespace, ID: id} }

// direct returns the scope of a user's session in a direct chat.
func direct(userID, sessionID string) memory.Scope {
	return memory.Scope{
		Namespace: namespace, UserID: userID, SessionID: sessionID, Channel: memory.Channel{Kind: memory.ChannelDirect, ID: "dm"},
	}
}

// lobby returns the scope of a group's session in which the user speaks.
func lobby(userID, sessionID string) memory.Scope {
	return memory.Scope{
		Namespace: namespace, UserID: userID, SessionID: sessionID, Channel: memory.Channel{Kind: memory.ChannelGroup, ID: "lobby"},
	}
}

// viewer returns the scope's caller.
func viewer(scope memory.Scope) session.Viewer {
	return session.Viewer{
		Namespace: scope.Namespace, UserID: scope.UserID, Channel: scope.Channel,
		Audience: memory.VisibilityChannel.AudienceOf(scope.Channel),
	}
}

// said returns a person's message.
func said(speaker, content string) memory.Message {
	return memory.Message{Role: memory.RoleUser, Speaker: speaker, Content: content, Time: t0}
}

// answered returns the bot's message.
func answered(content string) memory.Message {
	return memory.Message{Role: memory.RoleAssistant, Content: content, Time: t0}
}

// many returns messages of a person, each with an answer.
func many(speaker string, turns int) (messages []memory.Message) {
	for i := range turns {
		messages = append(messages, said(speaker, fmt.Sprint("word ", i)), answered(fmt.Sprint("answer ", i)))
	}
	return messages
}

func hashes(messages []memory.Message) (all [][]byte) {
	for _, m := range messages {
		text, err := json.Marshal(m)
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(text)
		all = append(all, sum[:])
	}
	return all
}

// request returns a request to append the messages now.
func (s *suite) request(scope memory.Scope, messages ...memory.Message) session.Append {
	s.count++
	return session.Append{
		Scope: scope, Audience: viewer(scope).Audience, NewID: fmt.Sprint("new_", s.count), Messages: messages, Hashes: hashes(messages),
		At: s.now, Rules: s.rules,
	}
}

func (s *suite) do(a session.Append) session.Appended {
	s.Helper()
	done, err := s.store.Append(s.Context(), a)
	if err != nil {
		s.Fatal(err)
	}
	return done
}

func (s *suite) add(scope memory.Scope, messages ...memory.Message) session.Appended {
	s.Helper()
	return s.do(s.request(scope, messages...))
}

// acceptance accepts messages of these speakers. The first one is the scope's user.
func (s *suite) acceptance(scope memory.Scope, speakers ...string) queue.Acceptance {
	s.count++
	if len(speakers) == 0 {
		speakers = []string{scope.UserID}
	}
	return queue.Acceptance{
		ID: fmt.Sprint("con_", s.count), Dialogue: memory.Dialogue{Scope: scope}, Speakers: speakers, At: s.now, MaxPending: 1000,
	}
}

// record records a dialogue and accepts it for consideration.
func (s *suite) record(scope memory.Scope, messages ...memory.Message) session.Record {
	r := session.Record{Append: s.request(scope, messages...)}
	d := memory.Dialogue{Scope: scope, Messages: messages}
	r.Acceptance = s.acceptance(scope, d.Speakers()...)
	r.Acceptance.Dialogue = d
	return r
}

// pending returns the session's messages that are not considered yet.
func (s *suite) pending(scope memory.Scope) session.Pending {
	s.Helper()
	p, err := s.store.Unconsidered(s.Context(), scope.Namespace, scope.SessionID)
	if err != nil {
		s.Fatal(err)
	}
	return p
}

// take takes all pending messages.
func (s *suite) take(scope memory.Scope) (memory.Consideration, bool) {
	s.Helper()
	p := s.pending(scope)
	c, ok, err := s.store.Take(s.Context(), session.Take{
		Namespace: scope.Namespace, SessionID: scope.SessionID, Last: p.Last, Acceptance: s.acceptance(scope, p.Speakers...),
	})
	if err != nil {
		s.Fatal(err)
	}
	return c, ok
}

func (s *suite) get(scope memory.Scope) session.Session {
	s.Helper()
	got, err := s.store.Get(s.Context(), viewer(scope), scope.SessionID)
	if err != nil {
		s.Fatal(err)
	}
	return got
}

// gone checks that the session cannot be found any more.
func (s *suite) gone(scope memory.Scope) {
	s.Helper()
	if got, err := s.store.Get(s.Context(), viewer(scope), scope.SessionID); !errors.Is(err, memory.ErrNotFound) {
		s.Errorf("the session %q is still there: %+v, %v", scope.SessionID, got, err)
	}
}

// all lists a session's messages, oldest first.
func (s *suite) all(scope memory.Scope) []session.Message {
	s.Helper()
	page, err := s.store.Messages(s.Context(), viewer(scope), scope.SessionID, session.MessageQuery{Limit: 10_000})
	if err != nil || page.Next != "" {
		s.Fatal(page.Next, err)
	}
	return page.Messages
}

// expect checks what the session's messages say, oldest first.
func (s *suite) expect(scope memory.Scope, want ...string) {
	s.Helper()
	if got := contents(s.all(scope)); !slices.Equal(got, want) {
		s.Errorf("the session %q has %q, want %q", scope.SessionID, got, want)
	}
}

func contents(messages []session.Message) (texts []string) {
	for _, m := range messages {
		texts = append(texts, m.Content)
	}
	return texts
}

// due returns the work due now, such as "consider s1", and the time until the next.
func (s *suite) due() (list []string, next time.Duration) {
	s.Helper()
	due, at, err := s.store.Due(s.Context(), s.now, 100)
	if err != nil {
		s.Fatal(err)
	}
	for _, d := range due {
		if d.Namespace != namespace || d.At.After(s.now) {
			s.Errorf("due is %+v", d)
		}
		list = append(list, string(d.Kind)+" "+d.SessionID)
	}
	if !at.IsZero() {
		next = at.Sub(s.now)
	}
	return list, next
}

// expectDue checks the work due now, and the time until the next; 0 means none.
func (s *suite) expectDue(next time.Duration, want ...string) {
	s.Helper()
	if got, after := s.due(); !slices.Equal(got, want) || after != next {
		s.Errorf("due are %q and the next after %s, want %q, %s", got, after, want, next)
	}
}

// dialogue returns the texts of the consideration's messages, as its user sees them.
func (s *suite) dialogue(userID, considerationID string) []string {
	s.Helper()
	jobs, _, err := s.queue.List(s.Context(), user(userID), queue.ListQuery{Audience: memory.Everything(), Limit: 1000})
	if err != nil {
		s.Fatal(err)
	}
	for _, job := range jobs {
		if job.Consideration.ID != considerationID {
			continue
		}
		texts := []string{}
		for _, m := range job.Dialogue.Messages {
			texts = append(texts, m.Content)
		}
		return texts
	}
	s.Fatalf("%s has no consideration %s", userID, considerationID)
	return nil
}

// consideration returns a consideration as the user sees it.
func (s *suite) consideration(userID, id string) memory.Consideration {
	s.Helper()
	c, err := s.queue.Get(s.Context(), user(userID), id, memory.Everything())
	if err != nil {
		s.Fatal(userID, id, err)
	}
	return c
}

// finish claims and finishes all jobs.
func (s *suite) finish() {
	s.Helper()
	jobs, _, err := s.queue.Claim(s.Context(), s.now, 1000)
	if err != nil {
		s.Fatal(err)
	}
	for _, job := range jobs {
		err := s.queue.Finish(s.Context(), job.Seq, memory.StateRemembered, memory.Outcome{Reason: "for a test"}, s.now)
		if err != nil {
			s.Fatal(err)
		}
	}
}

// refused reports whether the error denies the write.
func refused(err error) bool {
	return errors.Is(err, memory.ErrPrecondition) && strings.Contains(err.Error(), "session")
}

// invalid reports whether the error is about the field alone.
func invalid(err error, field string) bool {
	var wrong *memory.InvalidError
	return errors.As(err, &wrong) && len(wrong.Violations) == 1 && wrong.Violations[0].Field == field
}

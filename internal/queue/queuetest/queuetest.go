// Package queuetest is the conformance suite of queue.Store.
package queuetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
)

// Run runs the suite. Each call of factory returns an empty store that lasts until the end of the test.
func Run(t *testing.T, factory func(t *testing.T) queue.Store) {
	for _, c := range []struct {
		name string
		run  func(*suite)
	}{
		{"Accept", testAccept},
		{"AcceptFansOut", testAcceptFansOut},
		{"AcceptKeepsEveryByte", testAcceptKeepsEveryByte},
		{"RequestID", testRequestID},
		{"RequestIDConcurrently", testRequestIDConcurrently},
		{"Skip", testSkip},
		{"MaxPending", testMaxPending},
		{"MaxPendingNamespace", testMaxPendingNamespace},
		{"MaxPendingTotal", testMaxPendingTotal},
		{"Order", testOrder},
		{"ClaimLimit", testClaimLimit},
		{"ClaimOnce", testClaimOnce},
		{"Finish", testFinish},
		{"Postpone", testPostpone},
		{"MakeDue", testMakeDue},
		{"Delay", testDelay},
		{"DelayMessages", testDelayMessages},
		{"Following", testFollowing},
		{"SameDialogues", testSameDialogues},
		{"RetryPending", testRetryPending},
		{"AcceptedByClockAhead", testAcceptedByClockAhead},
		{"Checkpoint", testCheckpoint},
		{"Recover", testRecover},
		{"Retry", testRetry},
		{"RetryKeepsItsPlace", testRetryKeepsItsPlace},
		{"RandomCalls", testRandomCalls},
		{"Get", testGet},
		{"List", testList},
		{"ListPages", testListPages},
		{"Stats", testStats},
		{"Forget", testForget},
		{"ForgetInGroups", testForgetInGroups},
		{"ForgetWhileRunning", testForgetWhileRunning},
		{"ForgetQuotes", testForgetQuotes},
		{"Expire", testExpire},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(&suite{T: t, store: factory(t), now: t0}) })
	}
}

var t0 = time.Date(2026, 11, 20, 8, 30, 0, 123_456_000, time.UTC)

// suite is one test with its store and its clock.
type suite struct {
	*testing.T
	store queue.Store
	now   time.Time
	count int
}

// later advances the clock.
func (s *suite) later(d time.Duration) time.Time {
	s.now = s.now.Add(d)
	return s.now
}

const namespace = "tenant/site"

func user(id string) memory.User { return memory.User{Namespace: namespace, ID: id} }

func direct(userID string) memory.Scope {
	return memory.Scope{Namespace: namespace, UserID: userID, Channel: memory.Channel{Kind: memory.ChannelDirect, ID: "dm"}}
}

// lobby returns the scope of a group in which the user speaks.
func lobby(userID string) memory.Scope {
	return memory.Scope{Namespace: namespace, UserID: userID, Channel: memory.Channel{Kind: memory.ChannelGroup, ID: "lobby"}}
}

// acceptance returns a dialogue in which every speaker says one thing and the bot answers.
func (s *suite) acceptance(scope memory.Scope, others ...string) queue.Acceptance {
	s.count++
	d := memory.Dialogue{Scope: scope}
	for _, speaker := range append([]string{scope.UserID}, others...) {
		d.Messages = append(d.Messages, memory.Message{
			Role: memory.RoleUser, Speaker: speaker, Content: fmt.Sprintf("%s says %d", speaker, s.count), Time: s.now,
		})
	}
	d.Messages = append(d.Messages, memory.Message{Role: memory.RoleAssistant, Content: "the bot answers", Time: s.now})
	return queue.Acceptance{
		ID: fmt.Sprintf("con_%d", s.count), Dialogue: d, Speakers: d.Speakers(), At: s.now, MaxPending: 1000,
	}
}

// accept stores the dialogue, a second after the one before.
func (s *suite) accept(a queue.Acceptance) memory.Consideration {
	s.Helper()
	s.later(time.Second)
	c, err := s.store.Accept(s.Context(), a)
	if err != nil {
		s.Fatal(err)
	}
	return c
}

// add accepts a new dialogue of these people and returns its id.
func (s *suite) add(scope memory.Scope, others ...string) (id string) {
	s.Helper()
	return s.accept(s.acceptance(scope, others...)).ID
}

// claim claims the jobs that are due now.
func (s *suite) claim(limit int) ([]queue.Job, time.Time) {
	s.Helper()
	jobs, next, err := s.store.Claim(s.Context(), s.now, limit)
	if err != nil {
		s.Fatal(err)
	}
	return jobs, next
}

// names returns each job's user and dialogue.
func names(jobs []queue.Job) []string {
	list := make([]string, len(jobs))
	for i, job := range jobs {
		list[i] = job.User().ID + " " + job.Consideration.ID
	}
	return list
}

// expect claims jobs and checks which are returned, in order.
func (s *suite) expect(want ...string) []queue.Job {
	s.Helper()
	jobs, _ := s.claim(100)
	if got := names(jobs); fmt.Sprint(got) != fmt.Sprint(want) {
		s.Fatalf("claimed %q, want %q", got, want)
	}
	return jobs
}

func (s *suite) finish(job queue.Job, state memory.State) {
	s.Helper()
	if err := s.store.Finish(s.Context(), job.Seq, state, memory.Outcome{Reason: "for a test"}, s.now); err != nil {
		s.Fatal(err)
	}
}

func (s *suite) get(u memory.User, id string) memory.Consideration {
	s.Helper()
	c, err := s.store.Get(s.Context(), u, id, memory.Everything())
	if err != nil {
		s.Fatal(err)
	}
	return c
}

// all returns a user's considerations, oldest first.
func (s *suite) all(u memory.User) []queue.Job {
	s.Helper()
	jobs, next, err := s.store.List(s.Context(), u, queue.ListQuery{Audience: memory.Everything(), OldestFirst: true, Limit: 1000})
	if err != nil || next != "" {
		s.Fatal(next, err)
	}
	return jobs
}

//go:build !race

package sidecar_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

const (
	limitedUsers = 20
	// recoveryTime bounds the time from a provider's recovery to the end of all postponed work: the longest time that a breaker stays open,
	// and some time for the work.
	recoveryTime = 4 * time.Minute
)

var allParts = append([]providertest.Part{providertest.Embedding, providertest.Digest}, textParts...)

// state returns the state of a consideration of user u.
func (d *day) state(u int, id string) *memsidecarv1.Consideration {
	d.Helper()
	return sidecartest.Must(d.GetConsideration(d.Context(), &memsidecarv1.GetConsiderationRequest{
		Scope: sidecartest.Direct(userName(u)), ConsiderationId: id,
	}))(d.T).GetConsideration()
}

// pending counts the unfinished considerations, and checks that each is due no later than after the longest pause between its own
// attempts.
func (d *day) pending(dialogues [][]string) (n int) {
	d.Helper()
	var latest time.Duration
	for _, ids := range dialogues {
		for u, id := range ids {
			c := d.state(u, id)
			if c.GetState() == sidecartest.Remembered || c.GetState() == memsidecarv1.ConsiderationState_CONSIDERATION_STATE_SKIPPED {
				continue
			}
			n++
			if next := c.GetNextAttemptTime(); next != nil {
				latest = max(latest, time.Until(next.AsTime()))
			}
		}
	}
	if latest > 8*time.Minute {
		d.Errorf("of %d pending considerations the last is due in %s", n, latest)
	}
	return n
}

// TestLongRetryAfterDelaysNoUser: A provider answers 429 with a retry delay of a day, but works again after seconds. All dialogues are
// considered within minutes, in each user's order and by all workers. So is all other background work: vectors, digests, and summaries of
// conversations.
func TestLongRetryAfterDelaysNoUser(t *testing.T) {
	for _, protocol := range sidecartest.Protocols() {
		t.Run(protocol, func(t *testing.T) {
			runBubble(t, protocol, map[string]string{"digest.interval": "1", "session.max_messages": "3", "session.max_turns": "2"}, func(d *day) {
				dialogues := [][]string{d.talk(limitedUsers, 0, time.Second)}
				time.Sleep(10 * time.Minute)
				d.provider.Fail(providertest.DayLimit, allParts...)
				d.wire.begin()
				began := time.Now()
				for number := 1; number <= 3; number++ {
					dialogues = append(dialogues, d.talk(limitedUsers, number, 3*time.Second))
				}
				time.Sleep(20 * time.Second)
				if n := d.pending(dialogues); n != 3*limitedUsers {
					d.Errorf("%d considerations are pending, want %d", n, 3*limitedUsers)
				}
				// A call in progress when the breaker opened is not a second attempt: one for each worker at most.
				if asked := d.wire.since(began, time.Minute); asked > 3*2*d.workers {
					d.Errorf("the provider was asked %d times although it asked to be left alone", asked)
				}
				digested := len(d.provider.Requests(providertest.Digest))
				d.provider.Fail(providertest.NoFault, allParts...)
				d.wire.begin()
				time.Sleep(recoveryTime)
				if d.wire.most > d.workers*2 { // considerations, and summaries of conversations
					d.Errorf("%d calls were under way at once, with %d workers", d.wire.most, d.workers)
				}
				d.wantConsidered(dialogues)
				if n := len(d.provider.Requests(providertest.Digest)) - digested; n < limitedUsers {
					d.Errorf("%d digests of %d users were made", n, limitedUsers)
				}
				d.wantVectors(limitedUsers)
			})
		})
	}
}

// wantVectors checks that vector search finds all users' memories.
func (d *day) wantVectors(users int) {
	d.Helper()
	for u := range users {
		resp := sidecartest.Must(d.Retrieve(d.Context(), &memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct(userName(u)), Query: "喝什么茶"}))(d.T)
		if len(resp.GetDegraded()) > 0 || len(resp.GetMemories()) == 0 || resp.GetMemories()[0].GetParts().GetSimilarity() < 0.1 {
			d.Errorf("user %d: %v", u, resp)
		}
	}
}

// TestRestartRetriesPostponedWork: Work postponed because of a provider is due when the sidecar starts: with the same provider, and with
// rules instead, while the provider still refuses.
func TestRestartRetriesPostponedWork(t *testing.T) {
	for name, settings := range map[string]map[string]string{
		"the provider recovered": nil,
		"switched to rules":      {"decision.provider": "rules", "decision.model": "", "summary.provider": "rules", "summary.model": ""},
	} {
		for _, protocol := range sidecartest.Protocols() {
			t.Run(name+" "+protocol, func(t *testing.T) {
				runBubble(t, protocol, nil, func(d *day) {
					d.provider.Fail(providertest.DayLimit, allParts...)
					dialogues := [][]string{d.talk(limitedUsers, 0, time.Second)}
					time.Sleep(10 * time.Minute) // several attempts were refused
					if n := d.pending(dialogues); n != limitedUsers {
						d.Errorf("%d considerations are pending, want %d", n, limitedUsers)
					}
					d.stop()
					if settings == nil {
						d.provider.Fail(providertest.NoFault, allParts...)
					}
					d.start(settings)
					time.Sleep(20 * time.Second)
					if n := d.pending(dialogues); n != 0 {
						d.Errorf("%d considerations are pending after the restart", n)
					}
				})
			})
		}
	}
}

// TestRetryIncludesEarlierPendingDialogues: RetryConsideration makes a pending consideration due, together with the user's earlier
// dialogues.
func TestRetryIncludesEarlierPendingDialogues(t *testing.T) {
	settings := map[string]string{"queue.backoff_min": "2h", "queue.backoff_max": "2h", "breaker.failures": "1000"}
	runBubble(t, "openai", settings, func(d *day) {
		d.provider.Fail(providertest.ServerError, textParts...)
		first, second := d.talk(1, 0, time.Second)[0], d.talk(1, 3, time.Second)[0]
		time.Sleep(10 * time.Second)
		d.provider.Fail(providertest.NoFault, textParts...)
		time.Sleep(10 * time.Minute)
		if c := d.state(0, first); time.Until(c.GetNextAttemptTime().AsTime()) < 30*time.Minute {
			d.Fatalf("it should be postponed by its own failure: %v", c)
		}
		c := sidecartest.Must(d.RetryConsideration(d.Context(), &memsidecarv1.RetryConsiderationRequest{
			Scope: sidecartest.Direct(userName(0)), ConsiderationId: second,
		}))(d.T).GetConsideration()
		if c.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_PENDING {
			d.Errorf("retried: %v", c)
		}
		time.Sleep(10 * time.Second)
		for _, id := range []string{first, second} {
			if c := d.state(0, id); c.GetState() != sidecartest.Remembered {
				d.Errorf("after RetryConsideration: %v", c)
			}
		}
		if got := fmt.Sprint(d.wire.spoken[0]); got != "[0 3]" {
			d.Errorf("decided in the order %s", got)
		}
	})
}

// TestClockSetBackDelaysNothing: The clock was ahead, so the database has due times in the future. After a restart with a correct clock
// nothing waits for them.
func TestClockSetBackDelaysNothing(t *testing.T) {
	for ahead, name := range map[time.Duration]string{90 * time.Minute: "ninety minutes", 365 * 24 * time.Hour: "a year"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			settings := map[string]string{
				"digest.interval": "1", "session.max_messages": "3", "session.max_turns": "2", "memories.withdrawn_grace": "1h", "log.level": "warn",
			}
			var dialogues [][]string
			runBubbleIn(t, dir, "openai", settings, func(d *day) {
				d.stop()
				time.Sleep(ahead) // while nothing runs: each tick costs real time
				d.start(nil)
				d.provider.Fail(providertest.ServerError, allParts...)
				for number := range 3 {
					dialogues = append(dialogues, d.talk(limitedUsers, number, time.Second))
				}
				time.Sleep(20 * time.Minute)
			})
			runBubbleIn(t, dir, "openai", settings, func(d *day) { // bubbles begin at the same time
				time.Sleep(recoveryTime)
				if n := d.pending(dialogues); n != 0 {
					d.Errorf("%d considerations are pending", n)
				}
				d.wantConsidered(dialogues)
				if n := len(d.provider.Requests(providertest.Digest)); n < limitedUsers {
					d.Errorf("%d digests of %d users were made", n, limitedUsers)
				}
				d.wantVectors(limitedUsers)
				if strings.Contains(d.log.String(), "level=ERROR") {
					d.Errorf("errors in the log")
				}
			})
		})
	}
}

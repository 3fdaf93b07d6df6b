package sqlstore_test

import (
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"

	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
)

// TestDigestsAfterAClockWasAhead: digests that are due later than this clock can have made them are due now; what waits for the end of the
// day waits on.
func TestDigestsAfterAClockWasAhead(t *testing.T) {
	const longest = 8 * time.Minute
	for name, test := range map[string]struct {
		every    int // messages after which a digest is due; one was said
		postpone time.Duration
		ahead    time.Duration
		resume   bool
		due      bool
	}{
		"the end of the day":                    {every: 2},
		"the end of the day, at a start":        {every: 2, resume: true},
		"postponed":                             {every: 1, postpone: 5 * time.Minute},
		"postponed, at a start":                 {every: 1, postpone: 5 * time.Minute, resume: true, due: true},
		"postponed at the end of a day":         {every: 2, postpone: 65 * time.Minute, resume: true, due: true},
		"postponed by a clock an hour ahead":    {every: 1, postpone: 5 * time.Minute, ahead: time.Hour, due: true},
		"due by a clock an hour ahead":          {every: 1, ahead: time.Hour, due: true},
		"the end of a day three days ahead":     {every: 2, ahead: 72 * time.Hour, due: true},
		"postponed by a clock two months ahead": {every: 2, postpone: 5 * time.Minute, ahead: 1440 * time.Hour, due: true},
	} {
		t.Run(name, func(t *testing.T) {
			db := dbtest.Open(t, sqlite.Options{Dir: t.TempDir()})
			s, d := sqlstore.NewSessions(db, sqlstore.NewQueue(db)), sqlstore.NewDigests(db)
			now := at.Add(-test.ahead) // by the clock that is right, what is said is said then
			sayForDigest(t, s, "one", test.every, "a")
			if test.postpone > 0 {
				if err := d.Postpone(t.Context(), ann, at.Add(test.postpone)); err != nil {
					t.Fatal(err)
				}
			}
			o := digest.Overdue{Now: now, Every: test.every, Longest: longest}
			if test.resume {
				o.Longest = 0
			}
			if err := d.MakeDue(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if due := dueAnn(t, d, now); due != test.due {
				t.Errorf("due is %t, want %t", due, test.due)
			}
		})
	}
}

package background_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/background"
)

// TestRoundsFollowNotifierAndTime: A round begins when the notifier fires or the time requested by the last round has come, and only then.
func TestRoundsFollowNotifierAndTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		begin, notifier := time.Now(), background.NewNotifier()
		var rounds []time.Duration
		ended := make(chan struct{})
		pauses := []time.Duration{2 * time.Minute, 0, time.Minute, time.Hour}
		go func() {
			defer close(ended)
			background.Run(ctx, time.Now, notifier, func() (again time.Time) {
				rounds = append(rounds, time.Since(begin))
				pause := pauses[0]
				if pauses = pauses[1:]; pause > 0 {
					again = time.Now().Add(pause)
				}
				return again
			})
		}()
		at := func(d time.Duration) {
			time.Sleep(d - time.Since(begin))
			synctest.Wait()
		}
		at(time.Minute)
		notifier.Notify()
		at(time.Hour)
		notifier.Notify()
		at(time.Hour + 2*time.Minute)
		stop()
		<-ended
		want := []time.Duration{time.Minute, 3 * time.Minute, time.Hour, time.Hour + time.Minute}
		if !slices.Equal(rounds, want) {
			t.Errorf("rounds were after %v, want %v", rounds, want)
		}
	})
}

// TestNotificationsDuringARoundCauseOneMore: Any number of notifications during a round cause exactly one more round, and none after the
// end.
func TestNotificationsDuringARoundCauseOneMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		notifier, rounds := background.NewNotifier(), 0
		notifier.Notify()
		go background.Run(ctx, time.Now, notifier, func() time.Time {
			if rounds++; rounds == 1 {
				notifier.Notify()
				notifier.Notify()
			}
			return time.Time{}
		})
		synctest.Wait()
		stop()
		notifier.Notify()
		synctest.Wait()
		if rounds != 2 {
			t.Errorf("%d rounds, want 2", rounds)
		}
	})
}

// TestStopDuringARoundIsTheLastRound: After a stop no other round begins, even if notified.
func TestStopDuringARoundIsTheLastRound(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	notifier, rounds := background.NewNotifier(), 0
	notifier.Notify()
	background.Run(ctx, time.Now, notifier, func() time.Time {
		rounds++
		stop()
		notifier.Notify()
		return time.Now()
	})
	if rounds != 1 {
		t.Errorf("%d rounds, want 1", rounds)
	}
}

func TestEveryBeginsImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		begin := time.Now()
		var rounds []time.Duration
		background.Every(ctx, time.Hour, func() {
			if rounds = append(rounds, time.Since(begin)); len(rounds) == 3 {
				stop()
			}
		})
		if want := []time.Duration{0, time.Hour, 2 * time.Hour}; !slices.Equal(rounds, want) {
			t.Errorf("rounds were after %v, want %v", rounds, want)
		}
	})
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		if !background.Sleep(ctx, time.Minute) || time.Since(begin) != time.Minute {
			t.Errorf("a pause of a minute ended after %s", time.Since(begin))
		}
		if background.Sleep(ctx, 2*time.Hour) || time.Since(begin) != time.Hour {
			t.Errorf("an interrupted pause ended after %s", time.Since(begin))
		}
	})
}

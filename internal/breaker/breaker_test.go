package breaker_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/breaker"
)

var (
	errDown    = errors.New("down")
	errMistake = errors.New("a caller's mistake")
)

// later is a failure with a delay.
type later time.Duration

func (l later) Error() string        { return "come again in " + time.Duration(l).String() }
func (l later) Is(target error) bool { return target == errDown }

// bench is a breaker in a synctest bubble, with its recorded changes.
type bench struct {
	*breaker.Breaker
	t       *testing.T
	log     bytes.Buffer
	changes []breaker.State
	calls   int
}

func bubble(t *testing.T, threshold uint32, run func(b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t}
		b.Breaker = breaker.New(breaker.Config{
			Name: "storage", FailureThreshold: threshold, OpenFor: time.Second,
			IsFailure: func(err error) bool { return errors.Is(err, errDown) },
			Delay: func(err error) time.Duration {
				asked, _ := errors.AsType[later](err)
				return time.Duration(asked)
			},
			OnChange: func(s breaker.Status) { b.changes = append(b.changes, s.State) },
			Log:      slog.New(slog.NewTextHandler(&b.log, nil)),
		})
		run(b)
	})
}

// call makes a call through the breaker that returns the answer.
func (b *bench) call(answer error) error {
	return b.Do(func() error {
		b.calls++
		return answer
	})
}

// expect checks a call's error, and whether the breaker admitted it.
func (b *bench) expect(answer error, through bool) {
	b.t.Helper()
	before := b.calls
	err := b.call(answer)
	if got := b.calls > before; got != through {
		b.t.Errorf("admitted: %t, want %t", got, through)
	}
	if through && !errors.Is(err, answer) {
		b.t.Errorf("got %v, want %v", err, answer)
	}
	var open *breaker.OpenError
	if errors.As(err, &open) == through {
		b.t.Errorf("got %v", err)
	}
}

func (b *bench) is(state breaker.State, reason string, since time.Time) {
	b.t.Helper()
	if got, want := b.Status(), (breaker.Status{State: state, Reason: reason, Since: since}); got != want {
		b.t.Errorf("status %+v, want %+v", got, want)
	}
}

func (b *bench) lines() int { return strings.Count(b.log.String(), "\n") }

func TestOpensAndRecovers(t *testing.T) {
	bubble(t, 3, func(b *bench) {
		begin := time.Now()
		b.is(breaker.Closed, "", begin)
		for _, answer := range []error{errDown, errDown, nil, errDown, errDown} { // never three in a row
			b.expect(answer, true)
		}
		b.is(breaker.Closed, "", begin)
		time.Sleep(time.Minute)
		opened := time.Now()
		b.expect(errDown, true)
		b.is(breaker.Open, "down", opened)
		for range 100 {
			b.expect(nil, false)
		}
		if err := b.call(nil); !strings.Contains(err.Error(), "storage") || !strings.Contains(err.Error(), "down") {
			b.t.Errorf("refused with %q", err)
		}

		time.Sleep(2 * time.Second)
		b.expect(errDown, true) // the probe
		b.is(breaker.Open, "down", opened)
		b.expect(nil, false)
		if b.lines() != 1 {
			b.t.Errorf("a failed probe is logged: %s", &b.log)
		}
		time.Sleep(2 * time.Second)
		closed := time.Now()
		b.expect(nil, true)
		b.is(breaker.Closed, "", closed)
		b.expect(nil, true)
		if b.lines() != 2 || !strings.Contains(b.log.String(), "reason=down") {
			b.t.Errorf("want two log lines with the reason, got %s", &b.log)
		}
		want := []breaker.State{breaker.Open, breaker.HalfOpen, breaker.Open, breaker.HalfOpen, breaker.Closed}
		if !slices.Equal(b.changes, want) {
			b.t.Errorf("OnChange reported %v, want %v", b.changes, want)
		}
	})
}

// TestCallersMistakesDoNotCount: An error that is not the dependency's failure neither opens nor closes the breaker, nor resets its count
// of failures.
func TestCallersMistakesDoNotCount(t *testing.T) {
	bubble(t, 2, func(b *bench) {
		for range 10 {
			b.expect(errMistake, true)
		}
		b.expect(errDown, true)
		b.expect(errMistake, true)
		if b.Status().State != breaker.Closed {
			b.t.Error("opened too early")
		}
		b.expect(errDown, true)
		opened := time.Now()
		b.is(breaker.Open, "down", opened)

		time.Sleep(2 * time.Second)
		for range 3 { // after an inconclusive probe the next call is a probe
			b.expect(errMistake, true)
			b.is(breaker.HalfOpen, "down", opened)
		}
		b.expect(nil, true)
		b.is(breaker.Closed, "", time.Now())
	})
}

// TestPanicReachesTheCaller: A caller's panic is not recovered.
func TestPanicReachesTheCaller(t *testing.T) {
	bubble(t, 1, func(b *bench) {
		func() {
			defer func() {
				if p := recover(); p != "oops" {
					b.t.Errorf("recovered %v", p)
				}
			}()
			_ = b.Do(func() error { panic("oops") })
		}()
		b.expect(nil, true)
		if b.Status().State != breaker.Closed {
			b.t.Errorf("status %+v", b.Status())
		}
	})
}

// TestOneProbeAtATime: When the pause has ended, one call is admitted. Others are refused until it returns.
func TestOneProbeAtATime(t *testing.T) {
	bubble(t, 1, func(b *bench) {
		b.expect(errDown, true)
		time.Sleep(2 * time.Second)
		probing, answer := make(chan struct{}), make(chan error)
		var tasks sync.WaitGroup
		tasks.Go(func() {
			err := b.Do(func() error {
				close(probing)
				return <-answer
			})
			if err != nil {
				b.t.Error(err)
			}
		})
		<-probing
		b.expect(nil, false)
		answer <- nil
		tasks.Wait()
		b.expect(nil, true)
	})
}

// TestReasonIsTheLatest: If a probe fails for another reason, the status reports the new one.
func TestReasonIsTheLatest(t *testing.T) {
	bubble(t, 1, func(b *bench) {
		b.expect(errDown, true)
		opened := time.Now()
		time.Sleep(2 * time.Second)
		b.expect(fmt.Errorf("%w and broken", errDown), true)
		b.is(breaker.Open, "down and broken", opened)
	})
}

// TestDelayOpensTheBreaker: A failure with a delay opens the breaker immediately for that delay, at most MaxDelay.
func TestDelayOpensTheBreaker(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{
		100 * time.Millisecond: 100 * time.Millisecond, 10 * time.Second: 10 * time.Second,
		24 * time.Hour: breaker.MaxDelay, 1 << 62: breaker.MaxDelay,
	} {
		bubble(t, 3, func(b *bench) {
			opened := time.Now()
			b.expect(later(asked), true)
			b.is(breaker.Open, later(asked).Error(), opened)
			if until := b.Until().Sub(opened); until < want || until > want+time.Microsecond {
				b.t.Errorf("asked for %s, open for %s", asked, until)
			}
			time.Sleep(want)
			b.expect(nil, false)
			var open *breaker.OpenError
			if err := b.call(nil); !errors.As(err, &open) || !open.Until.Equal(b.Until()) {
				b.t.Errorf("refused with %v, want the time of the next probe in it", err)
			}
			time.Sleep(time.Microsecond)
			b.expect(nil, true)
			b.is(breaker.Closed, "", time.Now())
		})
	}
}

// TestShortDelaysInARow: A failed probe's short delay applies, until consecutive failures open the breaker for its own pause.
func TestShortDelaysInARow(t *testing.T) {
	bubble(t, 3, func(b *bench) {
		for _, want := range []time.Duration{100 * time.Millisecond, 100 * time.Millisecond, time.Second, time.Second} {
			failed := time.Now()
			b.expect(later(100*time.Millisecond), true)
			if open := b.Until().Sub(failed); open < want || open > want+time.Microsecond {
				b.t.Errorf("open for %s, want %s", open, want)
			}
			time.Sleep(want + time.Microsecond)
		}
		b.expect(nil, true)
		b.expect(errDown, true)
		b.expect(errDown, true)
		if b.Status().State != breaker.Closed {
			b.t.Error("failures before the recovery were counted")
		}
	})
}

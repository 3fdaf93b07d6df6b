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
	errAway    = errors.New("away")
	errMistake = errors.New("a caller's mistake")
)

// later is a failure that asks to be left alone for so long.
type later time.Duration

func (l later) Error() string        { return "come again in " + time.Duration(l).String() }
func (l later) Is(target error) bool { return target == errAway }

// bench is a breaker in a bubble, with what it told.
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
			IsFailure: func(err error) bool { return errors.Is(err, errAway) },
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

// call goes through the breaker, to something that answers so.
func (b *bench) call(answer error) error {
	return b.Do(func() error {
		b.calls++
		return answer
	})
}

// expect checks what a call is answered, and whether it was let through.
func (b *bench) expect(answer error, through bool) {
	b.t.Helper()
	before := b.calls
	err := b.call(answer)
	if got := b.calls > before; got != through {
		b.t.Errorf("let through: %t, want %t", got, through)
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
		for _, answer := range []error{errAway, errAway, nil, errAway, errAway} { // never three in a row
			b.expect(answer, true)
		}
		b.is(breaker.Closed, "", begin)
		time.Sleep(time.Minute)
		opened := time.Now()
		b.expect(errAway, true)
		b.is(breaker.Open, "away", opened)
		for range 100 {
			b.expect(nil, false)
		}
		if err := b.call(nil); !strings.Contains(err.Error(), "storage") || !strings.Contains(err.Error(), "away") {
			b.t.Errorf("refused with %q", err)
		}

		time.Sleep(2 * time.Second)
		b.expect(errAway, true) // the probe
		b.is(breaker.Open, "away", opened)
		b.expect(nil, false)
		if b.lines() != 1 {
			b.t.Errorf("a probe that fails is no news: %s", &b.log)
		}
		time.Sleep(2 * time.Second)
		closed := time.Now()
		b.expect(nil, true)
		b.is(breaker.Closed, "", closed)
		b.expect(nil, true)
		if b.lines() != 2 || !strings.Contains(b.log.String(), "reason=away") {
			b.t.Errorf("want two lines in the log, with the reason, got %s", &b.log)
		}
		want := []breaker.State{breaker.Open, breaker.HalfOpen, breaker.Open, breaker.HalfOpen, breaker.Closed}
		if !slices.Equal(b.changes, want) {
			b.t.Errorf("OnChange told %v, want %v", b.changes, want)
		}
	})
}

// TestMistakes: what says nothing about the thing behind the breaker neither opens nor closes it, nor forgives failures.
func TestMistakes(t *testing.T) {
	bubble(t, 2, func(b *bench) {
		for range 10 {
			b.expect(errMistake, true)
		}
		b.expect(errAway, true)
		b.expect(errMistake, true)
		if b.Status().State != breaker.Closed {
			b.t.Error("opened too early")
		}
		b.expect(errAway, true)
		opened := time.Now()
		b.is(breaker.Open, "away", opened)

		time.Sleep(2 * time.Second)
		for range 3 { // a probe that shows nothing lets the next one try
			b.expect(errMistake, true)
			b.is(breaker.HalfOpen, "away", opened)
		}
		b.expect(nil, true)
		b.is(breaker.Closed, "", time.Now())
	})
}

// TestPanic: a caller's panic is the caller's.
func TestPanic(t *testing.T) {
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

// TestOneProbe: when the time has come one call is let through, and the others are refused until it is back.
func TestOneProbe(t *testing.T) {
	bubble(t, 1, func(b *bench) {
		b.expect(errAway, true)
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

// TestReasonIsTheLatest: a probe that fails for another reason says so.
func TestReasonIsTheLatest(t *testing.T) {
	bubble(t, 1, func(b *bench) {
		b.expect(errAway, true)
		opened := time.Now()
		time.Sleep(2 * time.Second)
		b.expect(fmt.Errorf("%w and broken", errAway), true)
		b.is(breaker.Open, "away and broken", opened)
	})
}

// TestDelayOpens: a failure that asks for a pause opens the breaker at once and for as long, but not for longer than MaxDelay.
func TestDelayOpens(t *testing.T) {
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

// TestShortDelaysInARow: a probe that asks for a short pause gets it, until failures in a row open the breaker for its own time.
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
		b.expect(errAway, true)
		b.expect(errAway, true)
		if b.Status().State != breaker.Closed {
			b.t.Error("failures from before the recovery were counted")
		}
	})
}

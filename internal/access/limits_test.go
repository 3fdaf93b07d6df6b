package access

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// callUntilRefused calls until a call is refused, and returns the number of accepted calls and the time to wait.
func callUntilRefused(t *testing.T, l *Limiter, namespace, user string) (answered int, wait time.Duration) {
	t.Helper()
	for ; answered < 100; answered++ {
		if err := l.Allow(memory.User{Namespace: namespace, ID: user}); err != nil {
			overload, ok := errors.AsType[*memory.OverloadError](err)
			if !ok || overload.RetryAfter <= 0 {
				t.Fatalf("refused with %v", err)
			}
			return answered, overload.RetryAfter
		}
	}
	return answered, 0
}

func TestLimiter(t *testing.T) {
	now := time.Now()
	l := NewLimiter(Rate{PerSecond: 10, Burst: 12}, Rate{PerSecond: 2})
	l.now = func() time.Time { return now }
	want := func(namespace, user string, calls int, after time.Duration) {
		t.Helper()
		if n, wait := callUntilRefused(t, l, namespace, user); n != calls || wait.Round(time.Millisecond) != after {
			t.Errorf("%s/%s: %d calls, and again in %s; want %d and %s", namespace, user, n, wait, calls, after)
		}
	}
	for _, user := range []string{"1", "2", "3", "4", "5"} {
		want("n", user, 2, 500*time.Millisecond)
	}
	want("n", "6", 2, 500*time.Millisecond) // 12 by now
	want("n", "7", 0, 100*time.Millisecond) // refused by the namespace's limit
	want("n", "7", 0, 100*time.Millisecond) // refused calls do not count
	want("other", "7", 2, 500*time.Millisecond)
	now = now.Add(time.Second)
	want("n", "7", 2, 500*time.Millisecond)
	want("n", "", 8, 100*time.Millisecond) // calls without a user count for the namespace

	for _, off := range []*Limiter{NewLimiter(Rate{}, Rate{}), NewLimiter(Rate{Burst: 1}, Rate{Burst: 1})} {
		if n, _ := callUntilRefused(t, off, "n", "u"); n != 100 {
			t.Errorf("without limits %d calls", n)
		}
	}
}

// TestLimiterIsBounded: Callers with invented names cannot fill the memory.
func TestLimiterIsBounded(t *testing.T) {
	l := NewLimiter(Rate{}, Rate{PerSecond: 1})
	now := time.Now()
	l.now = func() time.Time { return now } // after a second everyone may call again
	for i := range maxLimiters + 1000 {
		if err := l.Allow(memory.User{Namespace: "n", ID: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := l.users.cache.Len(); n != maxLimiters {
		t.Errorf("%d users are kept", n)
	}
	if err := l.Allow(memory.User{Namespace: "n", ID: fmt.Sprint(maxLimiters + 999)}); err == nil {
		t.Error("the newest is forgotten")
	}
}

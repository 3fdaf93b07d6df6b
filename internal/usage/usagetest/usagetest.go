// Package usagetest is the conformance suite of usage.Store.
package usagetest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/testkit/storetest"
	"github.com/memsidecar/memsidecar/internal/usage"
)

// Stores is the store under test.
type Stores struct {
	Usage usage.Store
	Close func() // makes the storage unavailable
}

// Run runs the suite. Each call of open returns a store that is empty and lasts until the end of the test.
func Run(t *testing.T, open func(t *testing.T) Stores) {
	for _, c := range []struct {
		name string
		run  func(*suite)
	}{
		{"AddsUp", testAddsUp},
		{"AddsUpConcurrently", testAddsUpConcurrently},
		{"Days", testDays},
		{"Order", testOrder},
		{"Names", testNames},
		{"LargeNumbers", testLargeNumbers},
		{"Unavailable", testUnavailable},
		{"Cancelled", testCancelled},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(&suite{t, open(t)}) })
	}
}

const site = "tenant/site"

var t0 = time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC)

type suite struct {
	*testing.T
	Stores
}

// call returns a model call.
func call(at time.Time, namespace, part, model string) usage.Call {
	return usage.Call{At: at, Namespace: namespace, Part: part, Model: model, InputTokens: 7, OutputTokens: 3, Latency: 1500 * time.Microsecond}
}

func (s *suite) add(calls ...usage.Call) {
	s.Helper()
	if err := s.Usage.AddUsage(s.Context(), calls); err != nil {
		s.Fatal(err)
	}
}

func (s *suite) want(namespace string, since time.Time, want ...usage.Sum) {
	s.Helper()
	got, err := s.Usage.Usage(s.Context(), namespace, since)
	if err != nil || !slices.Equal(got, want) {
		s.Errorf("%s since %s: %+v, %v\nwant %+v", namespace, since, got, err, want)
	}
}

// sum returns the sum of so many successful calls.
func sum(day, part, model string, calls int64) usage.Sum {
	return usage.Sum{
		Day: day, Part: part, Model: model, Calls: calls, InputTokens: 7 * calls, OutputTokens: 3 * calls,
		Latency: time.Duration(calls) * 1500 * time.Microsecond,
	}
}

// testAddsUp: Calls add up by namespace, part and model. A failed call counts with its tokens.
func testAddsUp(s *suite) {
	s.want(site, t0)
	s.add()
	failed := call(t0, site, "decision", "p/m")
	failed.Error = "HTTP 500"
	s.add(call(t0, site, "decision", "p/m"), failed, call(t0, site, "decision", "p/other"), call(t0, site, "summary", "p/m"))
	s.add(call(t0, site, "decision", "p/m"), call(t0, "tenant/other", "decision", "p/m"), call(t0, "", "embedding", "p/m"))
	decision := sum("2026-11-20", "decision", "p/m", 3)
	decision.Failures = 1
	s.want(site, t0, decision, sum("2026-11-20", "decision", "p/other", 1), sum("2026-11-20", "summary", "p/m", 1))
	s.want("tenant/other", t0, sum("2026-11-20", "decision", "p/m", 1))
	s.want("", t0, sum("2026-11-20", "embedding", "p/m", 1))
	s.want("tenant", t0)
}

func testAddsUpConcurrently(s *suite) {
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			for range 5 {
				// In different orders, which must not deadlock two writers.
				calls := []usage.Call{call(t0, site, "decision", "a"), call(t0, site, "decision", "b")}
				if i%2 == 1 {
					slices.Reverse(calls)
				}
				if err := s.Usage.AddUsage(s.Context(), calls); err != nil {
					s.Error(err)
				}
			}
		})
	}
	writers.Wait()
	s.want(site, t0, sum("2026-11-20", "decision", "a", 40), sum("2026-11-20", "decision", "b", 40))
}

// testDays: A day is one of UTC, and a period includes its whole first day.
func testDays(s *suite) {
	midnight := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	shanghai := time.FixedZone("", 8*3600)
	s.add(call(midnight.Add(-time.Microsecond).In(shanghai), site, "decision", "p/m"), call(midnight.In(shanghai), site, "decision", "p/m"),
		call(midnight.Add(24*time.Hour), site, "decision", "p/m"))
	days := []usage.Sum{
		sum("2026-11-22", "decision", "p/m", 1), sum("2026-11-21", "decision", "p/m", 1), sum("2026-11-20", "decision", "p/m", 1),
	}
	s.want(site, time.Time{}, days...)
	s.want(site, t0, days...)
	s.want(site, midnight.Add(-time.Microsecond).In(shanghai), days...)
	s.want(site, midnight.Add(23*time.Hour), days[:2]...)
	s.want(site, midnight.Add(24*time.Hour), days[:1]...)
	s.want(site, midnight.Add(48*time.Hour))
}

// testOrder: Names are ordered by their bytes.
func testOrder(s *suite) {
	var want []usage.Sum
	for _, part := range []string{"Part", "part", "part two", "part_two", "é"} {
		for _, model := range []string{"", "P/m", "p/m", "p_m", "模型"} {
			want = append(want, sum("2026-11-20", part, model, 1))
		}
	}
	for i := range want {
		w := want[(i*7+3)%len(want)]
		s.add(call(t0, site, w.Part, w.Model))
	}
	s.want(site, t0, want...)
}

// testNames: Names of namespaces, parts and models are compared byte by byte.
func testNames(s *suite) {
	for i, text := range storetest.Texts() {
		s.add(call(t0.AddDate(0, 0, i), fmt.Sprint("n", i), text, text), call(t0, text+"n", "part", "model"))
		s.want(fmt.Sprint("n", i), t0, sum(usage.Day(t0.AddDate(0, 0, i)), text, text, 1))
		s.want(text+"n", t0, sum("2026-11-20", "part", "model", 1))
	}
}

func testLargeNumbers(s *suite) {
	c := call(t0, site, "decision", "p/m")
	c.InputTokens, c.OutputTokens, c.Latency = math.MaxInt64/2, math.MaxInt64/2, 10_000*time.Hour
	s.add(c)
	c.InputTokens, c.OutputTokens = math.MaxInt32, 0
	s.add(c)
	s.want(site, t0, usage.Sum{
		Day: "2026-11-20", Part: "decision", Model: "p/m", Calls: 2, InputTokens: math.MaxInt64/2 + math.MaxInt32, OutputTokens: math.MaxInt64 / 2,
		Latency: 20_000 * time.Hour,
	})
}

func (s *suite) calls() storetest.Calls {
	return storetest.Calls{
		"AddUsage": func(ctx context.Context) error {
			return s.Usage.AddUsage(ctx, []usage.Call{call(t0, "cancelled", "x", "y")})
		},
		"Usage": func(ctx context.Context) error { _, err := s.Usage.Usage(ctx, site, t0); return err },
	}
}

func testUnavailable(s *suite) {
	s.Close()
	storetest.CheckUnavailable(s.T, s.calls())
}

func testCancelled(s *suite) {
	storetest.CheckCancelled(s.T, s.calls())
	s.add(call(t0, site, "decision", "p/m"))
	s.want(site, t0, sum("2026-11-20", "decision", "p/m", 1))
}

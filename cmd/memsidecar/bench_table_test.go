package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

// benchmarks is what the benchmarks of this run measured, for the table at its end, and the folders they made.
var benchmarks benchTable

type benchTable struct {
	mu       sync.Mutex
	rows     []benchRow
	fixtures []string
}

// benchRow is a line of the table. An aim of "" is a row that is there to explain others.
type benchRow struct{ name, measured, reference, ratio, aim, verdict string }

// add puts a row into the table, in the place of an earlier measurement of the same.
func (t *benchTable) add(row benchRow) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.IndexFunc(t.rows, func(r benchRow) bool { return r.name == row.name }); i >= 0 {
		t.rows[i] = row
		return
	}
	t.rows = append(t.rows, row)
}

// print writes the table, if there is one.
func (t *benchTable) print(out io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.rows) == 0 {
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nrow\tmeasured\treference\tratio\taim\t")
	for _, r := range t.rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.name, r.measured, r.reference, r.ratio, r.aim, r.verdict)
	}
	_ = w.Flush()
	fmt.Fprintln(out)
}

// removeFixtures removes the folders that were made for the benchmarks.
func (t *benchTable) removeFixtures() {
	for _, dir := range t.fixtures {
		_ = os.RemoveAll(dir)
	}
}

func verdict(holds bool) string {
	if holds {
		return "holds"
	}
	return "MISSES"
}

// side is one of two things that are compared. n counts the calls of both.
type side func(n int)

// compare reports how long two sides took, the medians, and the ratio of these. An aim of 0 is none.
func compare(b *testing.B, name string, aim float64, measured, reference side) {
	b.Helper()
	of, to := inTurn(b, measured, reference)
	report(b, name, aim, of, to)
}

// inTurn calls two sides in turn, so that whatever else the machine does meets both alike, and returns the medians of how
// long they took.
func inTurn(b *testing.B, measured, reference side) (of, to time.Duration) {
	b.Helper()
	var times [2][]time.Duration
	n := 0
	for b.Loop() {
		for i := range 2 {
			which := (n + i) % 2 // who comes first alternates, too
			started := time.Now()
			[]side{measured, reference}[which](n)
			times[which] = append(times[which], time.Since(started))
		}
		n++
	}
	return median(times[0]), median(times[1])
}

// report puts a ratio of two durations into the table and into what benchstat reads.
func report(b *testing.B, name string, aim float64, measured, reference time.Duration) {
	b.Helper()
	row := ratioRow(b, name, measured, reference)
	if aim > 0 {
		row.aim, row.verdict = fmt.Sprintf("≤ %g", aim), verdict(float64(measured) <= aim*float64(reference))
	}
	benchmarks.add(row)
}

// reportTime is report where the aim is of the time.
func reportTime(b *testing.B, name string, aim, measured, reference time.Duration) {
	b.Helper()
	row := ratioRow(b, name, measured, reference)
	row.aim, row.verdict = "< "+aim.String(), verdict(measured < aim)
	benchmarks.add(row)
}

func ratioRow(b *testing.B, name string, measured, reference time.Duration) benchRow {
	b.Helper()
	ratio := float64(measured) / float64(reference)
	b.ReportMetric(float64(measured), "ns/op")
	b.ReportMetric(float64(reference), "ref-ns/op")
	b.ReportMetric(ratio, "ratio")
	return benchRow{name: name, measured: short(measured), reference: short(reference), ratio: fmt.Sprintf("%.2f", ratio)}
}

func median[T cmp.Ordered](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// short writes a duration with three digits.
func short(d time.Duration) string {
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

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

// benchmarks holds the measurements of this run for the table at its end, and the folders of the fixtures.
var benchmarks benchTable

type benchTable struct {
	mu       sync.Mutex
	rows     []benchRow
	fixtures []string
}

// benchRow is a line of the table. Rows with an empty aim explain others.
type benchRow struct{ name, measured, reference, ratio, aim, verdict string }

// add adds a row to the table. It replaces an earlier row of the same name.
func (t *benchTable) add(row benchRow) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.IndexFunc(t.rows, func(r benchRow) bool { return r.name == row.name }); i >= 0 {
		t.rows[i] = row
		return
	}
	t.rows = append(t.rows, row)
}

// print writes the table unless it is empty.
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

// removeFixtures removes the folders of the fixtures.
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

// side is one of two alternatives that are compared. n counts the calls of both.
type side func(n int)

// compare reports the median durations of two sides and their ratio. An aim of 0 means none.
func compare(b *testing.B, name string, aim float64, measured, reference side) {
	b.Helper()
	of, to := inTurn(b, measured, reference)
	report(b, name, aim, of, to)
}

// inTurn calls two sides alternately, so that other load affects both, and returns their median durations.
func inTurn(b *testing.B, measured, reference side) (of, to time.Duration) {
	b.Helper()
	var times [2][]time.Duration
	n := 0
	for b.Loop() {
		for i := range 2 {
			which := (n + i) % 2 // which side is first alternates, too
			started := time.Now()
			[]side{measured, reference}[which](n)
			times[which] = append(times[which], time.Since(started))
		}
		n++
	}
	return median(times[0]), median(times[1])
}

// report adds a ratio of two durations to the table and to benchstat's output.
func report(b *testing.B, name string, aim float64, measured, reference time.Duration) {
	b.Helper()
	row := ratioRow(b, name, measured, reference)
	if aim > 0 {
		row.aim, row.verdict = fmt.Sprintf("≤ %g", aim), verdict(float64(measured) <= aim*float64(reference))
	}
	benchmarks.add(row)
}

// reportTime is report with an aim for the duration.
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

// short formats a duration with three digits.
func short(d time.Duration) string {
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

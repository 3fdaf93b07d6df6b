package sqlite_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/sqlite"
)

// BenchmarkWriteDuringPurges: It measures a small write alone, and while four goroutines delete and purge continuously, in a small and a
// large file.
func BenchmarkWriteDuringPurges(b *testing.B) {
	for _, rows := range []int{10_000, 200_000} {
		s, err := sqlite.Open(b.Context(), sqlite.Options{Dir: b.TempDir(), Log: discard})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			if err := s.Close(); err != nil {
				b.Error(err)
			}
		})
		if err := exec(b.Context(), s, `CREATE TABLE notes (id INTEGER PRIMARY KEY, name TEXT, text BLOB)`, `CREATE INDEX notes_by_name ON notes (name)`,
			fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
				INSERT INTO notes SELECT i, format('%%x', (i * 7919) %% 1000003), randomblob(1000) FROM n`, rows)); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Purge(b.Context()); err != nil {
			b.Fatal(err)
		}
		for _, purgers := range []int{0, 4} {
			b.Run(fmt.Sprintf("rows=%d/purgers=%d", rows, purgers), func(b *testing.B) { writeBesidePurging(b, s, purgers) })
		}
	}
}

func writeBesidePurging(b *testing.B, s *sqlite.Storage, purgers int) {
	stop, purges := make(chan struct{}), make([]int, purgers)
	var running sync.WaitGroup
	for p := range purgers {
		running.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				err := exec(b.Context(), s, `DELETE FROM notes WHERE id IN (SELECT id FROM notes ORDER BY id DESC LIMIT 50)`)
				if err == nil {
					_, err = s.Purge(b.Context())
				}
				if err != nil {
					b.Error(err)
					return
				}
				purges[p]++
			}
		})
	}
	var took []time.Duration
	for b.Loop() {
		begin := time.Now()
		if err := exec(b.Context(), s, `INSERT INTO notes (name, text) VALUES (format('%x', abs(random())), randomblob(1000))`); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	close(stop)
	running.Wait()
	slices.Sort(took)
	at := func(q float64) float64 { return float64(took[int(q*float64(len(took)-1))].Microseconds()) / 1000 }
	b.ReportMetric(at(0.5), "p50-ms")
	b.ReportMetric(at(0.99), "p99-ms")
	b.ReportMetric(at(1), "longest-ms")
	sum := 0
	for _, n := range purges {
		sum += n
	}
	b.ReportMetric(float64(sum)/b.Elapsed().Seconds(), "forgets/s")
}

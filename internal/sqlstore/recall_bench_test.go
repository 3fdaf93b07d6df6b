package sqlstore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve/recall"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// vocabulary are words with the frequencies of natural ones (Zipf's law, exponent 1), half of them Chinese.
type vocabulary struct {
	words  []string
	random *rand.Rand
}

func newVocabulary(n int) *vocabulary {
	v := &vocabulary{random: rand.New(rand.NewPCG(1, 2))}
	for i := range n {
		if i%2 == 0 {
			v.words = append(v.words, fmt.Sprintf("%c%c", rune(0x4E00+i*7%3500), rune(0x4E00+i*13%3500)))
			continue
		}
		word := make([]byte, 4+i%5)
		for j, rest := 0, i; j < len(word); j++ {
			word[j], rest = byte('a'+rest%26), rest/26+j
		}
		v.words = append(v.words, string(word))
	}
	return v
}

// rank draws a word by its frequency: 0 is the most frequent.
func (v *vocabulary) rank() int {
	return int(math.Exp(v.random.Float64()*math.Log(float64(len(v.words)+1)))) - 1
}

func (v *vocabulary) text() string {
	var b strings.Builder
	for range 6 + v.random.IntN(12) {
		b.WriteString(v.words[v.rank()])
		b.WriteByte(' ')
	}
	return b.String()
}

// fill stores a long history of a user, in one session.
func fill(tb testing.TB, s *sqlite.Storage, v *vocabulary, n int) {
	tb.Helper()
	ctx := context.Background()
	begin := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	_, err := sqlstore.NewSessions(s, sqlstore.NewQueue(s)).Append(ctx, session.Append{
		Scope: memory.Scope{Namespace: "n", UserID: "ann", SessionID: "s"}, Audience: memory.Everything(), At: begin,
		Messages: []memory.Message{{Role: memory.RoleUser, Speaker: "ann", Content: v.text(), Time: begin}},
	})
	// The rest is inserted as rows: another benchmark measures appending.
	for from := 0; from < n && err == nil; from += 5000 {
		err = s.Write(ctx, func(tx sqldb.Tx) error {
			for i := max(1, from); i < min(n, from+5000); i++ {
				at := begin.Add(time.Duration(i) * time.Minute)
				m := memory.Message{Role: memory.RoleUser, Speaker: "ann", Content: v.text(), Time: at}
				if i%2 == 1 {
					m.Role, m.Speaker, m.AgentID = memory.RoleAssistant, "", "bot"
				}
				text, err := json.Marshal(m)
				if err != nil {
					return err
				}
				_, err = tx.Exec(ctx, `INSERT INTO session_messages (session_row, position, owner_row, hash, role, agent_id, withheld,
					settled, message, said_at, received_at)
					SELECT s.row, ?, u.id, x'', ?, ?, 0, 1, ?, ?, ? FROM sessions s JOIN users u`,
					i+1, string(m.Role), m.AgentID, string(text), at.UnixMicro(), at.UnixMicro())
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkRecall searches histories of a thousand and of a million messages of one user. MEMSIDECAR_BENCH_DIR keeps the databases for
// the next run.
func BenchmarkRecall(b *testing.B) {
	for _, n := range []int{1000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dir := b.TempDir()
			if keep := os.Getenv("MEMSIDECAR_BENCH_DIR"); keep != "" {
				dir = filepath.Join(keep, fmt.Sprint(n))
			}
			s, err := sqlite.Open(b.Context(), sqlite.Options{Dir: dir, Log: discard})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			v := newVocabulary(50_000)
			r := sqlstore.NewRecall(s)
			var stored int
			err = s.Read(b.Context(), func(q sqldb.Querier) error {
				return q.QueryRow(b.Context(), `SELECT coalesce(max(row), 0) FROM session_messages`).Scan(&stored)
			})
			if err != nil {
				b.Fatal(err)
			}
			if stored < n {
				begin := time.Now()
				fill(b, s, v, n)
				b.Logf("%d messages stored in %s", n, time.Since(begin))
				before := size(b, dir)
				begin = time.Now()
				for more := true; more; {
					if more, err = r.IndexNext(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
				b.Logf("indexed in %s, %.0f a second", time.Since(begin), float64(n)/time.Since(begin).Seconds())
				if _, err := s.Purge(b.Context()); err != nil {
					b.Fatal(err)
				}
				b.Logf("%.0f bytes a message, %.0f of them the index", float64(size(b, dir))/float64(n), float64(size(b, dir)-before)/float64(n))
			}
			q := recall.Query{
				User: memory.User{Namespace: "n", ID: "ann"}, Filter: recall.Filter{Audience: memory.Everything()}, Limit: 100,
				NeighborWeight: 0.5,
			}
			for _, kind := range []struct {
				name  string
				words []int // by rank
			}{
				{"rare", []int{30_000, 41_000, 20_001}},
				{"mixed", []int{25_001, 3000, 411, 60, 7, 1}},
				{"common", []int{0, 1, 2, 3, 4, 5}},
				{"long", []int{30_000, 20_001, 9000, 5001, 4000, 3001, 2000, 1001, 500, 301, 200, 101, 50, 31, 20, 11, 5, 3, 1, 0}},
			} {
				var words []string
				for _, rank := range kind.words {
					words = append(words, v.words[rank])
				}
				query := strings.Join(words, " ")
				b.Run(kind.name, func(b *testing.B) {
					var times []time.Duration
					found := 0
					for b.Loop() {
						begin := time.Now()
						hits, err := r.SearchKeyword(b.Context(), q, query)
						if err != nil {
							b.Fatal(err)
						}
						times, found = append(times, time.Since(begin)), len(hits)
					}
					slices.Sort(times)
					b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
					b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
					b.ReportMetric(float64(found), "hits")
				})
			}
		})
	}
}

func size(tb testing.TB, dir string) (bytes int64) {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		tb.Fatal(err)
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			tb.Fatal(err)
		}
		bytes += info.Size()
	}
	return bytes
}

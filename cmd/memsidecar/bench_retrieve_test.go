package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/load"
	"github.com/memsidecar/memsidecar/internal/embed"
	embedlocal "github.com/memsidecar/memsidecar/internal/embed/local"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve"
	"github.com/memsidecar/memsidecar/internal/sidecar"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
	"github.com/memsidecar/memsidecar/internal/vectorstore/local/bare"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// Fixtures of Retrieve.
var (
	oneUser   = fixture{users: 1, memories: 1000, dimensions: 768}
	fewUsers  = fixture{users: 100, memories: 10, dimensions: 256}
	manyUsers = fixture{users: 100_000, memories: 10, dimensions: 256}
	botUsers  = fixture{users: 100, memories: 100, dimensions: 256}
)

// benchTopK is the default number of memories in an answer.
const benchTopK = 3

// askOnce calls Retrieve in process as the server does, and fails if the answer is incomplete.
func askOnce(b *testing.B, s *sidecar.Sidecar, user memory.User, query string) {
	b.Helper()
	result, err := s.Retriever.Retrieve(b.Context(), retrieve.Query{
		Scope: memory.Scope{Namespace: user.Namespace, UserID: user.ID}, Text: query,
		Filter: vectorstore.Filter{Audience: memory.Everything()}, TopK: benchTopK, MinRelevance: 0.02, MaxContextRunes: 2000,
	})
	if err != nil || len(result.Degraded) > 0 || len(result.Hits) == 0 {
		b.Fatalf("%d hits, degraded: %v, %v", len(result.Hits), result.Degraded, err)
	}
}

// about returns a query that matches one of the user's memories.
func (f fixture) about(n int) string { return load.Statement(n % f.memories) }

// questionVectors embeds queries as Retrieve does.
func questionVectors(b *testing.B, dimensions int) [][]float32 {
	b.Helper()
	embedder, err := embedlocal.New(dimensions)
	if err != nil {
		b.Fatal(err)
	}
	texts := make([]string, 256)
	for i := range texts {
		texts[i] = load.Question(int64(i))
	}
	vectors, err := embedder.Embed(b.Context(), embed.ForQuery, texts)
	if err != nil {
		b.Fatal(err)
	}
	return vectors
}

// memoryVectors returns the vectors of the fixture's first user.
func (f fixture) memoryVectors() [][]float32 {
	var vectors [][]float32
	for _, e := range f.entries(0, "") {
		vectors = append(vectors, e.Embedding.Chunks...)
	}
	return vectors
}

// BenchmarkRetrieve compares a whole Retrieve in process, with a loaded index, with the chromem query inside it. The cache of query
// embeddings is off, so that each query is embedded.
func BenchmarkRetrieve(b *testing.B) {
	s := startOn(b, oneUser.dir(b), map[string]string{"embedding.dimensions": "768", "embedding.cache_entries": "0"})
	chromem, err := bare.New(b.Context(), oneUser.memoryVectors())
	if err != nil {
		b.Fatal(err)
	}
	questions := questionVectors(b, oneUser.dimensions)
	askOnce(b, s, benchUser(0), load.Question(0))
	compare(b, "Retrieve, 1,000×768, hot / bare chromem query", 1.5,
		func(n int) { askOnce(b, s, benchUser(0), load.Question(int64(n))) },
		func(n int) {
			if _, err := chromem.Query(b.Context(), questions[n%len(questions)], benchTopK); err != nil {
				b.Fatal(err)
			}
		})
}

// BenchmarkRetrieveAlone measures Retrieve alone, for profiles and allocations.
func BenchmarkRetrieveAlone(b *testing.B) {
	s := startOn(b, oneUser.dir(b), map[string]string{"embedding.dimensions": "768", "embedding.cache_entries": "0"})
	askOnce(b, s, benchUser(0), load.Question(0))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		askOnce(b, s, benchUser(0), load.Question(int64(n)))
		n++
	}
}

// BenchmarkIndex shows what another index could gain: chromem's query compared with a loop over a flat slice on one core.
func BenchmarkIndex(b *testing.B) {
	for _, memories := range []int{10, 100, 1000} {
		f := fixture{users: 1, memories: memories, dimensions: 768}
		b.Run(fmt.Sprintf("memories=%d", memories), func(b *testing.B) {
			vectors := f.memoryVectors()
			chromem, err := bare.New(b.Context(), vectors)
			if err != nil {
				b.Fatal(err)
			}
			var flat []float32
			for _, v := range vectors {
				flat = append(flat, v...)
			}
			questions := questionVectors(b, f.dimensions)
			compare(b, fmt.Sprintf("bare chromem query, %d×768 / flat loop", memories), 0,
				func(n int) {
					if _, err := chromem.Query(b.Context(), questions[n%len(questions)], min(benchTopK, memories)); err != nil {
						b.Fatal(err)
					}
				},
				func(n int) { nearest(flat, questions[n%len(questions)]) })
		})
	}
}

// nearest finds the nearest vectors in a flat slice.
func nearest(flat, query []float32) (best int) {
	highest := float32(-2)
	for i := 0; i*len(query) < len(flat); i++ {
		var a, c, d, e float32
		row := flat[i*len(query) : (i+1)*len(query)]
		for j := 0; j+3 < len(query); j += 4 { // four sums that the processor can compute in parallel
			a += row[j] * query[j]
			c += row[j+1] * query[j+1]
			d += row[j+2] * query[j+2]
			e += row[j+3] * query[j+3]
		}
		if sum := a + c + d + e; sum > highest {
			best, highest = i, sum
		}
	}
	return best
}

// BenchmarkRetrieveManyUsers compares Retrieve with 100,000 users in the file with Retrieve with 100. Hot means that the user's index is
// loaded. Cold means that it was evicted, because the budget holds only a few. The page cache is warm for both.
func BenchmarkRetrieveManyUsers(b *testing.B) {
	b.Run("hot", func(b *testing.B) {
		few, many := startOn(b, fewUsers.dir(b), nil), startOn(b, manyUsers.dir(b), nil)
		const loaded = 100
		at := func(s *sidecar.Sidecar, f fixture) side {
			return func(n int) { askOnce(b, s, benchUser(n%loaded*(f.users/loaded)), f.about(n)) }
		}
		for n := range loaded {
			at(few, fewUsers)(n)
			at(many, manyUsers)(n)
		}
		compare(b, "Retrieve, 100,000 users / 100 users, hot", 1.2, at(many, manyUsers), at(few, fewUsers))
	})
	b.Run("cold", func(b *testing.B) {
		dropping := map[string]string{"index.budget_mib": "1"} // room for some 30 users: with 100 in turn, none is loaded
		few, many := startOn(b, fewUsers.dir(b), dropping), startOn(b, manyUsers.dir(b), dropping)
		random := rand.New(rand.NewPCG(1, 1))
		order := random.Perm(manyUsers.users)
		compare(b, "Retrieve, 100,000 users / 100 users, cold", 1.2,
			func(n int) { askOnce(b, many, benchUser(order[n%len(order)]), manyUsers.about(n)) },
			func(n int) { askOnce(b, few, benchUser(n%fewUsers.users), fewUsers.about(n)) })
	})
}

// BenchmarkRetrieveGRPC is Retrieve over gRPC, with the callers on the same two cores.
func BenchmarkRetrieveGRPC(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	s := startOn(b, botUsers.dir(b), nil)
	client := memsidecarv1.NewMemoryServiceClient(sidecartest.Dial(b, s.Addr.String()))
	call := func(ctx context.Context, n int64) (load.Answer, error) {
		resp, err := client.Retrieve(ctx, &memsidecarv1.RetrieveRequest{
			Scope: sidecartest.Direct(benchUser(int(n % int64(botUsers.users))).ID), Query: load.Question(n),
		})
		return load.Answer{Degraded: len(resp.GetDegraded()) > 0}, err
	}
	load.Run(b.Context(), load.Limits{Callers: 8, Calls: int64(botUsers.users)}, call) // loads the users' indexes
	b.ReportAllocs()
	b.ResetTimer()
	reportLoad(b, "Retrieve over gRPC, 100×256, 8 callers", 0, load.Run(b.Context(), load.Limits{Callers: 8, Calls: int64(b.N)}, call))
}

// reportLoad adds the callers' results to the table and to benchstat's output. An aim is in calls a second; 0 means none.
func reportLoad(b *testing.B, name string, aim float64, stats load.Stats) {
	b.Helper()
	b.StopTimer()
	if stats.Errors > 0 || stats.Degraded > 0 {
		b.Fatalf("%d errors, %d degraded of %d: %v", stats.Errors, stats.Degraded, stats.Calls, stats.FirstError)
	}
	b.ReportMetric(stats.PerSecond(), "calls/s")
	b.ReportMetric(float64(stats.Percentile(50).Microseconds()), "p50-µs")
	b.ReportMetric(float64(stats.Percentile(99).Microseconds()), "p99-µs")
	row := benchRow{
		name:      name,
		measured:  fmt.Sprintf("%.0f/s", stats.PerSecond()),
		reference: fmt.Sprintf("p50 %s, p99 %s", short(stats.Percentile(50)), short(stats.Percentile(99))),
	}
	if aim > 0 {
		row.aim, row.verdict = fmt.Sprintf("≥ %g/s", aim), verdict(stats.PerSecond() >= aim)
	}
	benchmarks.add(row)
}

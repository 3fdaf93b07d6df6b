package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/load"
	"github.com/memsidecar/memsidecar/internal/config"
	"github.com/memsidecar/memsidecar/internal/decide"
	embedlocal "github.com/memsidecar/memsidecar/internal/embed/local"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sidecar"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
	storelocal "github.com/memsidecar/memsidecar/internal/vectorstore/local"
)

// benchDirVar names a folder for fixtures that are reused. Without it they are built in a temporary folder each time.
const benchDirVar = "BENCH_DIR"

// fixture is a database of generated users who all have the same statements. The million memories of manyUsers take some 40 seconds to
// build, and 2 GB.
type fixture struct {
	users, memories, dimensions int
}

func (f fixture) name() string { return fmt.Sprintf("%dx%dx%d", f.users, f.memories, f.dimensions) }

func benchUser(n int) memory.User {
	return memory.User{Namespace: "default", ID: fmt.Sprintf("user-%d", n)}
}

// dir builds the fixture, once, and returns its folder.
func (f fixture) dir(b *testing.B) string {
	b.Helper()
	return buildOnce(b, f.name(), func(dir string) error { return f.build(b.Context(), dir) })
}

// buildOnce builds a fixture unless it exists, and returns its folder.
func buildOnce(b *testing.B, name string, build func(dir string) error) string {
	b.Helper()
	root := os.Getenv(benchDirVar)
	if root == "" {
		var err error
		if root, err = benchRoot(); err != nil {
			b.Fatal(err)
		}
	}
	dir := filepath.Join(root, name)
	done := filepath.Join(dir, "complete")
	if _, err := os.Stat(done); err == nil {
		warm(b, dir)
		return dir
	}
	if err := os.RemoveAll(dir); err != nil {
		b.Fatal(err)
	}
	started := time.Now()
	if err := build(dir); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(done, nil, 0o600); err != nil {
		b.Fatal(err)
	}
	if took := time.Since(started); took > time.Second {
		fmt.Fprintf(os.Stderr, "made the fixture %s in %s\n", name, took.Round(time.Second))
	}
	return dir
}

// warm reads the database into the page cache. An existing fixture may not be in it.
func warm(b *testing.B, dir string) {
	b.Helper()
	f, err := os.Open(filepath.Join(dir, "memsidecar.db"))
	if err != nil {
		b.Fatal(err)
	}
	_, err = io.Copy(io.Discard, f)
	if err := firstError(err, f.Close()); err != nil {
		b.Fatal(err)
	}
}

var benchRoot = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "memsidecar-bench-")
	benchmarks.fixtures = append(benchmarks.fixtures, dir)
	return dir, err
})

// build stores the memories through the adapters, many users per commit.
func (f fixture) build(ctx context.Context, dir string) (err error) {
	storage, err := sqlite.Open(ctx, sqlite.Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, storage.Close()) }()
	store := storelocal.New(storage, storelocal.Options{IndexBudget: 1 << 20})
	embedder, err := embedlocal.New(f.dimensions)
	if err != nil {
		return err
	}
	fingerprint := embedder.Fingerprint().String()
	if _, _, err := store.UseFingerprint(ctx, fingerprint); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(256)
	for user := range f.users {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			_, err := store.Apply(ctx, benchUser(user), f.entries(user, fingerprint))
			return err
		})
	}
	return group.Wait()
}

func (f fixture) entries(user int, fingerprint string) []vectorstore.Entry {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	random := rand.New(rand.NewPCG(uint64(user), 2))
	entries := make([]vectorstore.Entry, f.memories)
	for i := range entries {
		text, at := load.Statement(i), now.Add(-time.Duration(i)*time.Hour)
		language := "en"
		if i%2 == 1 {
			language = "zh"
		}
		entries[i] = vectorstore.Entry{
			StatementID: fmt.Sprintf("con_%d/%d", user, i),
			Memory: memory.Memory{
				ID:   decide.MemoryID("bench", benchUser(user).ID, text),
				Text: text, Language: language, Kind: memory.KindFact, Importance: 0.5,
				Provenance: memory.Provenance{
					Source: memory.SourceDialogue, ConsiderationID: "con_01a1faee-a5c8-7b54-bff9-33f04e555976", SpeakerID: benchUser(user).ID,
					MessageIDs: []string{"#0"}, Quote: text, Reason: `an explicit request(+3), about the user (+1)`, DecidedBy: "rules",
				},
				CreatedAt: at, UpdatedAt: at, ObservedAt: at, Mentions: 1, LastSaidAt: at,
			},
			Embedding: vectorstore.Embedding{Fingerprint: fingerprint, Chunks: [][]float32{randomVector(random, f.dimensions)}},
		}
	}
	return entries
}

// randomVector returns a vector of length 1 in a random direction.
func randomVector(random *rand.Rand, dimensions int) []float32 {
	v := make([]float32, dimensions)
	var square float64
	for i := range v {
		x := random.NormFloat64()
		v[i], square = float32(x), square+x*x
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(square))
	}
	return v
}

// startOn runs a sidecar on the folder in this process until the benchmark ends.
func startOn(b *testing.B, dir string, settings map[string]string) *sidecar.Sidecar {
	b.Helper()
	flags := map[string]string{"data_dir": dir, "listen": "127.0.0.1:0"}
	maps.Copy(flags, settings)
	loaded, err := config.Load(config.Sources{Flags: flags})
	if err != nil {
		b.Fatal(err)
	}
	s, err := sidecar.Start(b.Context(), loaded.Config, sidecar.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Stop(context.Background()) })
	return s
}

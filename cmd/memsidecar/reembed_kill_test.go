//go:build !race && unix

package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// TestKilledWhileReembedding changes the model repeatedly, and kills serve with SIGKILL while it rebuilds the vectors. The last run
// finishes: every memory has a vector of its model, and no other.
func TestKilledWhileReembedding(t *testing.T) {
	t.Parallel()
	const memories = 2500
	dir := t.TempDir()
	p := spawn(t, dir)
	stream := sidecartest.Must(p.ImportMemories(t.Context()))(t)
	sidecartest.NoError(t, stream.Send(&memsidecarv1.ImportMemoriesRequest{Item: &memsidecarv1.ImportMemoriesRequest_Scope{Scope: sidecartest.Direct("user")}}))
	for n := range memories {
		sidecartest.NoError(t, stream.Send(&memsidecarv1.ImportMemoriesRequest{Item: &memsidecarv1.ImportMemoriesRequest_Memory{
			Memory: &memsidecarv1.Memory{Text: fmt.Sprintf("The user likes number %d.", n), Kind: memsidecarv1.MemoryKind_MEMORY_KIND_PREFERENCE},
		}}))
	}
	sidecartest.Must(stream.CloseAndRecv())(t)
	p.kill(t)
	provider := providertest.Start(t, 96)
	environ := []string{
		"MEMSIDECAR_EMBEDDING_PROVIDER=openai", "MEMSIDECAR_EMBEDDING_DIMENSIONS=96", "MEMSIDECAR_EMBEDDING_TIMEOUT=10m",
		"MEMSIDECAR_EMBEDDING_ENDPOINT=" + provider.URL, "OPENAI_API_KEY=" + sidecartest.ProviderKey,
	}
	for round, model := range []string{"one", "two", "one", "three"} {
		provider.Fail(providertest.NoFault, providertest.Embedding)
		provider.FailAfter(4*(round+1), providertest.Hang, providertest.Embedding) // it cannot finish before it is killed
		p := spawn(t, dir, append(environ, "MEMSIDECAR_EMBEDDING_MODEL="+model)...)
		done, running := p.reembedded(t, func(done int64) bool { return done >= int64(100*(round+1)) })
		if !running {
			t.Error("it was not in the middle")
		}
		t.Logf("killed after %d", done)
		p.kill(t)
	}
	provider.Fail(providertest.NoFault, providertest.Embedding)
	p = spawn(t, dir, append(environ, "MEMSIDECAR_EMBEDDING_MODEL=three")...)
	p.reembedded(t, func(int64) bool { return false })
	p.kill(t)
	sidecartest.WithStorage(t, dir, func(s *sqlite.Storage) {
		sidecartest.NoError(t, s.Read(t.Context(), func(q sqldb.Querier) error {
			var made, complete int
			err := q.QueryRow(t.Context(), `SELECT count(e.vector), max(f.complete) FROM fingerprints f
				JOIN embeddings e ON e.fingerprint = f.id AND length(e.vector) = 4 * 96
				WHERE f.name = (SELECT choice FROM model_choices WHERE part = 'embedding')`).Scan(&made, &complete)
			if made != memories || complete != 1 {
				t.Errorf("only %d of %d memories have vectors, but the status reports %d as complete\n%s", made, memories, complete, p.log)
			}
			return err
		}))
	})
	report := sidecartest.Must(sqlite.Files{Checks: sqlstore.Checks()}.Check(t.Context(), sqlite.DatabasePath(dir), false))(t)
	for _, f := range report.Findings {
		if f.Problems > 0 {
			t.Errorf("%s: %v", f.Check, f.Examples)
		}
	}
}

// reembedded waits until enough vectors are stored, or all, and reports whether more are missing.
func (p *process) reembedded(t *testing.T, enough func(done int64) bool) (done int64, running bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), sidecartest.Timeout)
	defer cancel()
	for { // the rebuild may start after serve is ready
		progress := sidecartest.Must(p.GetStatus(ctx, &memsidecarv1.GetStatusRequest{}))(t).GetModels().GetEmbeddingProgress()
		finished := strings.Contains(p.log.String(), "all memories have vectors")
		if done = progress.GetDoneCount(); finished || enough(done) {
			return done, !finished
		}
	}
}

package server

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	embedlocal "github.com/memsidecar/memsidecar/internal/embed/local"
	"github.com/memsidecar/memsidecar/internal/manage"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/trace"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
	"github.com/memsidecar/memsidecar/internal/vectorstore/backfill"
	storelocal "github.com/memsidecar/memsidecar/internal/vectorstore/local"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// untraced records no calls.
type untraced struct{}

func (untraced) Enabled() bool       { return false }
func (untraced) Record(trace.Record) {}

// remembering is the memory service on its own database. Considerations are replaced by direct writes to the store.
type remembering struct {
	stubs
	t       *testing.T
	store   *storelocal.Store
	vectors *backfill.Vectorizer
}

func startRemembering(t *testing.T) *remembering {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: t.TempDir(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	embedder, err := embedlocal.New(64)
	if err != nil {
		t.Fatal(err)
	}
	r := &remembering{t: t, store: storelocal.New(db, storelocal.Options{Fingerprint: embedder.Fingerprint().String(), IndexBudget: 1 << 20})}
	r.vectors = backfill.New(embedder, r.store, backfill.Options{ChunkSize: 1000, Log: log})
	retriever := retrieve.New(retrieve.Deps{
		Store: r.store, Settings: settingsFunc(func() error { return nil }), Embedder: embedder, Traces: untraced{},
		Storage: storage(""),
	}, retrieve.Options{Budget: time.Minute, RecencyHalfLife: time.Hour, Prompts: retrieve.DefaultPrompts(), Location: time.UTC, Log: log})
	r.stubs, _ = newClient(t, Deps{
		Memories: MemoryDeps{
			Store:     r.store,
			Retriever: retriever,
			Memories:  manage.NewService(manage.Deps{Store: r.store, Backfill: r.store, Vectors: r.vectors}),
		},
		PageKey: func(context.Context) ([]byte, error) { return make([]byte, 32), nil },
	})
	t.Cleanup(func() {
		retriever.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

var bob = memory.Scope{Namespace: memory.DefaultNamespace, UserID: "bob", Channel: memory.Channel{Kind: memory.ChannelDirect}}

// learn stores a statement as a consideration would, and returns its id.
func (r *remembering) learn(text string, said time.Time, change func(*vectorstore.Entry)) string {
	r.t.Helper()
	embeddings, err := r.vectors.Embeddings(r.t.Context(), []string{text})
	if err != nil {
		r.t.Fatal(err)
	}
	e := vectorstore.Entry{Embedding: embeddings[0], Reason: "as was said later", Memory: memory.Memory{
		ID: "mem_" + text, Channel: bob.Channel, Text: text, Language: "en", Kind: memory.KindFact, Importance: 0.5, Mentions: 1,
		CreatedAt: said.Add(time.Minute), UpdatedAt: said.Add(time.Minute), ObservedAt: said, LastSaidAt: said,
	}}
	if change != nil {
		change(&e)
	}
	applied, err := r.store.Apply(r.t.Context(), bob.User(), []vectorstore.Entry{e})
	if err != nil {
		r.t.Fatal(err)
	}
	return applied[0].Memory.ID
}

func supersedes(ids ...string) func(*vectorstore.Entry) {
	return func(e *vectorstore.Entry) { e.Supersedes = ids }
}

// found returns the retrieved texts and the prompt block.
func (r *remembering) found(history bool) (texts []string, block string) {
	r.t.Helper()
	resp, err := r.Retrieve(r.t.Context(), &memsidecarv1.RetrieveRequest{
		Scope: fromScope(bob), Query: "Where does bob live?", TopK: proto.Int32(10), MaxContextChars: proto.Int32(5000), IncludeHistory: history,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, m := range resp.GetMemories() {
		texts = append(texts, m.GetMemory().GetText())
	}
	slices.Sort(texts)
	return texts, resp.GetPromptContext()
}

func (r *remembering) finds(history bool, want ...string) {
	r.t.Helper()
	if got, _ := r.found(history); !slices.Equal(got, want) {
		r.t.Errorf("retrieved %q, want %q", got, want)
	}
}

// lists compares the texts and states of a list.
func (r *remembering) lists(request *memsidecarv1.ListMemoriesRequest, want ...string) {
	r.t.Helper()
	request.Scope = fromScope(bob)
	resp, err := r.ListMemories(r.t.Context(), request)
	if err != nil {
		r.t.Fatal(err)
	}
	var got []string
	for _, m := range resp.GetMemories() {
		got = append(got, m.GetText()+": "+strings.TrimPrefix(m.GetState().String(), "MEMORY_STATE_"))
	}
	if !slices.Equal(got, want) {
		r.t.Errorf("listed %q, want %q", got, want)
	}
}

func (r *remembering) revert(id, revision string) (*memsidecarv1.RevertMemoryResponse, error) {
	return r.RevertMemory(r.t.Context(), &memsidecarv1.RevertMemoryRequest{Scope: fromScope(bob), MemoryId: id, RevisionId: revision})
}

// TestMovesAreRevertible: After two moves the user has one current address. The earlier ones are in the history, and each move can be reverted.
func TestMovesAreRevertible(t *testing.T) {
	r := startRemembering(t)
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	a := r.learn("bob lives in Athens", at, nil)
	b := r.learn("bob lives in Berlin", at.AddDate(0, 1, 0), supersedes(a))
	c := r.learn("bob lives in Cairo", at.AddDate(0, 2, 0), supersedes(b))
	r.finds(false, "bob lives in Cairo")
	r.finds(true, "bob lives in Athens", "bob lives in Berlin", "bob lives in Cairo")
	if _, block := r.found(true); !strings.Contains(block, "[2026-05-01] bob lives in Athens (until 2026-06-01, superseded since)\n") ||
		!strings.Contains(block, "bob lives in Cairo\n") {
		t.Errorf("the block is\n%s", block)
	}
	r.lists(&memsidecarv1.ListMemoriesRequest{}, "bob lives in Cairo: ACTIVE")
	r.lists(&memsidecarv1.ListMemoriesRequest{Filter: `state = "superseded"`}, "bob lives in Berlin: SUPERSEDED", "bob lives in Athens: SUPERSEDED")
	old, err := r.GetMemory(t.Context(), &memsidecarv1.GetMemoryRequest{Scope: fromScope(bob), MemoryId: a})
	if m := old.GetMemory(); err != nil || m.GetSupersededById() != b || !m.GetValidStartTime().AsTime().Equal(at) ||
		!m.GetValidEndTime().AsTime().Equal(at.AddDate(0, 1, 0)) {
		t.Errorf("the first one is %s, %v", m, err)
	}
	_, err = r.UpdateMemory(
		t.Context(),
		&memsidecarv1.UpdateMemoryRequest{Scope: fromScope(bob), Memory: &memsidecarv1.Memory{Id: a, Text: "bob lived in Athens"}},
	)
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), b) {
		t.Errorf("changing history: %v", err)
	}

	revisions, err := r.ListMemoryRevisions(t.Context(), &memsidecarv1.ListMemoryRevisionsRequest{Scope: fromScope(bob), MemoryId: b})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, v := range revisions.GetRevisions() {
		told = append(told, strings.TrimPrefix(v.GetChange().String(), "MEMORY_REVISION_CHANGE_")+" "+v.GetPrevious().GetId()+">"+v.GetMemory().GetId())
	}
	if want := []string{"SUPERSEDED " + b + ">" + c, "ADDED >" + c, "SUPERSEDED " + a + ">" + b, "ADDED >" + b, "ADDED >" + a}; !slices.Equal(told, want) {
		t.Errorf("the revisions are %q, want %q", told, want)
	}
	newest := revisions.GetRevisions()[0]
	if newest.GetReason() != "as was said later" || newest.GetPrevious().GetState() != memsidecarv1.MemoryState_MEMORY_STATE_ACTIVE {
		t.Errorf("the newest is %s", newest)
	}

	if _, err := r.revert(a, revisions.GetRevisions()[2].GetId()); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("reverting a change that is not the newest: %v", err)
	}
	undone, err := r.revert(c, newest.GetId())
	if err != nil || undone.GetMemory().GetId() != b || undone.GetMemory().GetValidEndTime() != nil || !undone.GetReverted().GetReverted() {
		t.Errorf("undone %s, %v", undone, err)
	}
	r.finds(true, "bob lives in Athens", "bob lives in Berlin")
	r.finds(false, "bob lives in Berlin")
	if undone, err := r.revert(a, ""); err != nil || undone.GetMemory().GetId() != a {
		t.Errorf("undone %s, %v", undone, err)
	}
	r.finds(false, "bob lives in Athens")
	if _, err := r.revert(a, ""); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("undoing nothing: %v", err)
	}
	if _, err := r.GetMemory(t.Context(), &memsidecarv1.GetMemoryRequest{Scope: fromScope(bob), MemoryId: c}); status.Code(err) != codes.NotFound {
		t.Errorf("a withdrawn memory is shown: %v", err)
	}
	r.lists(&memsidecarv1.ListMemoriesRequest{States: []memsidecarv1.MemoryState{memsidecarv1.MemoryState_MEMORY_STATE_WITHDRAWN}},
		"bob lives in Cairo: WITHDRAWN", "bob lives in Berlin: WITHDRAWN")
}

// TestRevertRestoresVectors: After reverting an edit, semantic search finds the earlier words again.
func TestRevertRestoresVectors(t *testing.T) {
	r := startRemembering(t)
	id := r.learn("bob lives in Athens", time.Now(), nil)
	_, err := r.UpdateMemory(t.Context(), &memsidecarv1.UpdateMemoryRequest{Scope: fromScope(bob), Memory: &memsidecarv1.Memory{Id: id, Text: "plays chess"}})
	if err != nil {
		t.Fatal(err)
	}
	if undone, err := r.revert(id, ""); err != nil || undone.GetMemory().GetText() != "bob lives in Athens" ||
		undone.GetReverted().GetMemory().GetText() != "plays chess" {
		t.Fatalf("undone %s, %v", undone, err)
	}
	embeddings, err := r.vectors.Embeddings(t.Context(), []string{"bob lives in Athens"})
	if err != nil {
		t.Fatal(err)
	}
	e := embeddings[0]
	hits, err := r.store.SearchVector(t.Context(), bob.User(), e.Fingerprint, e.Chunks[0], vectorstore.Filter{Audience: memory.Everything()}, 1)
	if err != nil || len(hits) != 1 || hits[0].Score < 0.99 {
		t.Errorf("found %+v, %v", hits, err)
	}
}

// TestWithdrawnAndExpiredMemoriesAreNotRetrieved: Doubtful and expired memories are listed but not retrieved. Withdrawn ones are neither.
func TestWithdrawnAndExpiredMemoriesAreNotRetrieved(t *testing.T) {
	r := startRemembering(t)
	now := time.Now()
	r.learn("bob lives in Athens", now.Add(-4*time.Hour), nil)
	doubtful := r.learn("bob lives in Paris", now.Add(-3*time.Hour), func(e *vectorstore.Entry) { e.Memory.Quarantine = "in none of the messages" })
	r.learn("bob lives in a hotel this week", now.Add(-2*time.Hour), func(e *vectorstore.Entry) { e.Memory.ValidTo = now.Add(-time.Hour) })
	secret := r.learn("bob lives with Eve", now.Add(-time.Hour), nil)
	r.learn("bob wants it forgotten", now.Add(-time.Minute), func(e *vectorstore.Entry) { e.Withdraws = []string{secret} })
	r.lists(&memsidecarv1.ListMemoriesRequest{}, "bob lives in a hotel this week: EXPIRED", "bob lives in Paris: QUARANTINED", "bob lives in Athens: ACTIVE")
	r.finds(false, "bob lives in Athens")
	r.finds(true, "bob lives in Athens", "bob lives in a hotel this week")
	if _, block := r.found(true); !strings.Contains(block, "this week (until ") || !strings.Contains(block, ", over)") {
		t.Errorf("the block is\n%s", block)
	}

	release := &memsidecarv1.ReleaseMemoryRequest{Scope: fromScope(bob), MemoryId: doubtful}
	released, err := r.ReleaseMemory(t.Context(), release)
	if m := released.GetMemory(); err != nil || m.GetState() != memsidecarv1.MemoryState_MEMORY_STATE_ACTIVE || m.GetQuarantineReason() != "" {
		t.Errorf("released %s, %v", m, err)
	}
	if _, err := r.ReleaseMemory(t.Context(), release); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("released again: %v", err)
	}
	r.finds(false, "bob lives in Athens", "bob lives in Paris")
	if undone, err := r.revert(secret, ""); err != nil || undone.GetMemory().GetId() != secret {
		t.Errorf("undone %s, %v", undone, err)
	}
	r.finds(false, "bob lives in Athens", "bob lives in Paris", "bob lives with Eve")

	// Other users neither see nor change them.
	for _, other := range []memory.Scope{bob.WithUser("eve"), {Namespace: "elsewhere", UserID: "bob", Channel: bob.Channel}, {
		Namespace: bob.Namespace, UserID: bob.UserID, Channel: memory.Channel{Kind: memory.ChannelGroup, ID: "g"},
	}} {
		ctx, scope := context.Background(), fromScope(other)
		_, err := r.ListMemoryRevisions(ctx, &memsidecarv1.ListMemoryRevisionsRequest{Scope: scope, MemoryId: secret})
		_, err2 := r.RevertMemory(ctx, &memsidecarv1.RevertMemoryRequest{Scope: scope, MemoryId: doubtful})
		_, err3 := r.ReleaseMemory(ctx, &memsidecarv1.ReleaseMemoryRequest{Scope: scope, MemoryId: doubtful})
		for i, err := range []error{err, err2, err3} {
			if status.Code(err) != codes.NotFound {
				t.Errorf("call %d as %+v: %v", i, other, err)
			}
		}
	}
}

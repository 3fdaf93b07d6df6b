package vectorstore

import (
	"context"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Backfill gives memories the vectors that they lack: memories stored while the embedder was unavailable, and all memories after
// a change of the model. Unlike Store it covers all users. Only the sidecar's background work uses it, never an API call.
type Backfill interface {
	// UseFingerprint sets the fingerprint of the vectors that are searched. complete reports whether every memory has such
	// vectors, changed whether another fingerprint was in use before.
	UseFingerprint(ctx context.Context, fingerprint string) (complete, changed bool, err error)
	// Missing returns up to limit memories without vectors of the fingerprint, except withdrawn ones, after a position, in the
	// order in which they were stored. next is the position of the last one.
	Missing(ctx context.Context, fingerprint string, after int64, limit int) (items []MissingItem, next int64, err error)
	// CountMissing counts these memories. It may take a second with a million of them.
	CountMissing(ctx context.Context, fingerprint string) (int64, error)
	// SetEmbeddings stores vectors, each only if the memory still exists with the same text. Searches see them when it
	// returns.
	SetEmbeddings(ctx context.Context, user memory.User, embeddings []TextEmbedding) error
	// Begin records that a pass over the memories that lack vectors begins.
	Begin(ctx context.Context, fingerprint string) error
	// Complete records that the pass has ended and covered every memory. done is false if a memory was stored without vectors
	// since Begin; then another pass is needed.
	Complete(ctx context.Context, fingerprint string) (done bool, err error)
	// DropOthers deletes up to limit vectors of other fingerprints and reports whether some may be left.
	DropOthers(ctx context.Context, fingerprint string, limit int) (more bool, err error)
}

// MissingItem is a memory without vectors.
type MissingItem struct {
	User     memory.User
	MemoryID string
	Text     string
}

// TextEmbedding is the vectors of a memory's text.
type TextEmbedding struct {
	MemoryID  string
	Text      string
	Embedding Embedding
}

package vectorstore

import (
	"context"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Backfill is how memories get vectors that they lack: those stored while the embedder was away, and all of them when the
// model changes. Unlike Store it goes over all users; it is for the sidecar itself and never behind a call of the API.
type Backfill interface {
	// UseFingerprint says whose vectors are searched from now on. complete reports whether every memory has them. With
	// changed, vectors of another fingerprint were used until now.
	UseFingerprint(ctx context.Context, fingerprint string) (complete, changed bool, err error)
	// Missing returns up to limit memories without vectors of the fingerprint, withdrawn ones aside, in the order in which
	// they were stored, after the position; next is the position after the last one.
	Missing(ctx context.Context, fingerprint string, after int64, limit int) (items []MissingItem, next int64, err error)
	// CountMissing counts them all. It may take a second with a million memories.
	CountMissing(ctx context.Context, fingerprint string) (int64, error)
	// SetEmbeddings stores vectors, each only if the memory is still there with the same text. Searches see them when it
	// returns.
	SetEmbeddings(ctx context.Context, user memory.User, embeddings []TextEmbedding) error
	// Begin notes that a pass over the memories that lack vectors begins.
	Begin(ctx context.Context, fingerprint string) error
	// Complete notes that the pass is over and left nothing out. done is false when a memory was stored without vectors
	// since Begin: then another pass is needed.
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

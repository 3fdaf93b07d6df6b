package local

import (
	"context"
	"fmt"

	"github.com/memsidecar/memsidecar/internal/embed"
)

// The numbers of dimensions that New accepts. With fewer dimensions, unrelated features collide more often: among the 50 statements of
// recall_test.go two unrelated ones have a similarity of about 0.11 at 64 dimensions, 0.05 at 256 and 0.02 at 1024.
const (
	DefaultDimensions = 256
	MinDimensions     = 64
	MaxDimensions     = 4096
)

// version is raised whenever a vector changes, and with it whenever lexical.Tokens gives other tokens: vectors that are
// stored already would otherwise be compared with incomparable ones. The golden test notices.
const version = 1

// Embedder is an embed.Embedder that hashes words and character n-grams.
type Embedder struct{ dimensions int }

var _ embed.Embedder = (*Embedder)(nil)

// New returns an embedder of MinDimensions to MaxDimensions dimensions.
func New(dimensions int) (*Embedder, error) {
	if dimensions < MinDimensions || dimensions > MaxDimensions {
		return nil, fmt.Errorf("the local embedder has %d to %d dimensions, not %d", MinDimensions, MaxDimensions, dimensions)
	}
	return &Embedder{dimensions: dimensions}, nil
}

// Fingerprint is local/hashed-ngrams.
func (e *Embedder) Fingerprint() embed.Fingerprint {
	return embed.Fingerprint{Provider: "local", Model: "hashed-ngrams", Dimensions: e.dimensions, Version: version}
}

// Calibration gives similarity little weight. Hashed n-grams repeat much of what keyword search finds, and texts with nothing in common
// still collide. Past messages are many and alike, so that similarity says hardly anything about them (docs/design/recall.md has the
// numbers).
func (e *Embedder) Calibration() embed.Calibration {
	return embed.Calibration{MemoryWeight: 0.3, MessageWeight: 0.03, Noise: 0.1}
}

// Embed returns one vector a text. Purposes make no difference, so a text has similarity 1 to itself. The only error is
// the context's.
func (e *Embedder) Embed(ctx context.Context, _ embed.Purpose, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		vectors[i] = e.vector(text)
	}
	return vectors, nil
}

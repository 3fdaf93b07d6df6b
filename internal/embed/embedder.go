package embed

import (
	"context"
	"fmt"
)

// Fingerprint names what made a vector. Vectors of two fingerprints are never compared.
type Fingerprint struct {
	Provider   string // "local", "gemini", …
	Model      string
	Dimensions int
	Version    int // of the procedure around the model: raised when the same model begins to give other vectors
}

// String is the stored form, for example "local/hashed-ngrams@256#1".
func (f Fingerprint) String() string {
	return fmt.Sprintf("%s/%s@%d#%d", f.Provider, f.Model, f.Dimensions, f.Version)
}

// Purpose is what a vector is for; some models embed questions and documents differently.
type Purpose int

// The purposes.
const (
	ForDocument Purpose = iota
	ForQuery
)

// Embedder turns texts into vectors.
type Embedder interface {
	// Fingerprint names what makes the vectors. It does not change during the embedder's life.
	Fingerprint() Fingerprint
	// Embed returns one vector a text, in order, each of Fingerprint().Dimensions numbers and of length 1, or all zeros
	// for a text without content. It is safe for concurrent use. A *memory.TransientError may go away when tried
	// again. The caller must not modify the vectors.
	Embed(ctx context.Context, purpose Purpose, texts []string) ([][]float32, error)
}

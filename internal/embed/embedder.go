package embed

import (
	"context"
	"fmt"
	"strconv"
	"strings"
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

// ParseFingerprint reads what String wrote.
func ParseFingerprint(s string) (Fingerprint, error) {
	var f Fingerprint
	provider, rest, _ := strings.Cut(s, "/")
	at, hash := strings.LastIndexByte(rest, '@'), strings.LastIndexByte(rest, '#')
	if provider == "" || at <= 0 || hash < at {
		return f, fmt.Errorf("%q is not the fingerprint of an embedder", s)
	}
	var err1, err2 error
	f.Provider, f.Model = provider, rest[:at]
	f.Dimensions, err1 = strconv.Atoi(rest[at+1 : hash])
	f.Version, err2 = strconv.Atoi(rest[hash+1:])
	if err1 != nil || err2 != nil || f.Dimensions < 1 {
		return f, fmt.Errorf("%q is not the fingerprint of an embedder", s)
	}
	return f, nil
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
	// Calibration says how far the similarity of two vectors is evidence of relevance.
	Calibration() Calibration
}

// Calibration says how far the cosine similarity of two vectors is evidence that one text is relevant to the other.
type Calibration struct {
	MemoryWeight  float64 // of memories: from 0, none, to 1, as good as equal words
	MessageWeight float64 // of past messages
	Noise         float64 // similarity of texts that have nothing in common
}

// ModelCalibration is the calibration of embedding models.
var ModelCalibration = Calibration{MemoryWeight: 0.8, MessageWeight: 0.8}

// Package openai is the embedder behind any OpenAI-compatible endpoint, through the official SDK.
package openai

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/openai/openai-go/v3"

	"github.com/memsidecar/memsidecar/internal/embed"
	"github.com/memsidecar/memsidecar/internal/provider"
	"github.com/memsidecar/memsidecar/internal/secret"
)

// version of the procedure: raise it when the same model begins to give other vectors here.
const version = 1

// batchSize is how many texts go into one call; some endpoints take no more.
const batchSize = 32

// Embedder implements embed.Embedder.
type Embedder struct {
	target     provider.Target
	dimensions int
	key        secret.Value
	client     openai.Client
	// plain: the endpoint does not take the dimensions, and the vectors are cut here.
	plain atomic.Bool
}

var _ embed.Embedder = (*Embedder)(nil)

// New returns the embedder at the target, with vectors of so many dimensions.
func New(target provider.Target, key secret.Value, dimensions int) *Embedder {
	return &Embedder{
		target: target, dimensions: dimensions, key: key, client: openai.NewClient(provider.OpenAIOptions(target, key)...),
	}
}

// Fingerprint implements embed.Embedder.
func (e *Embedder) Fingerprint() embed.Fingerprint {
	return embed.Fingerprint{Provider: e.target.Provider.Name, Model: e.target.Model, Dimensions: e.dimensions, Version: version}
}

// Embed implements embed.Embedder.
func (e *Embedder) Embed(ctx context.Context, _ embed.Purpose, texts []string) ([][]float32, error) {
	var vectors [][]float32
	for start := 0; start < len(texts); start += batchSize {
		batch := texts[start:min(start+batchSize, len(texts))]
		some, err := e.call(ctx, batch)
		if err != nil {
			return nil, err
		}
		vectors = append(vectors, some...)
	}
	return vectors, nil
}

func (e *Embedder) call(ctx context.Context, texts []string) ([][]float32, error) {
	plain := e.plain.Load()
	params := openai.EmbeddingNewParams{
		Model: e.target.Model, Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: texts},
		EncodingFormat: openai.EmbeddingNewParamsEncodingFormatFloat,
	}
	if !plain {
		params.Dimensions = openai.Int(int64(e.dimensions))
	}
	resp, err := e.client.Embeddings.New(ctx, params)
	if err != nil {
		if !plain && refusesDimensions(err) {
			e.plain.Store(true)
			return e.call(ctx, texts)
		}
		return nil, provider.OpenAIFailure(e.target, e.key, err).Error(ctx)
	}
	vectors := make([][]float32, len(resp.Data))
	for _, d := range resp.Data {
		if d.Index < 0 || d.Index >= int64(len(vectors)) {
			continue // then another place stays empty, and Fit says so
		}
		v := make([]float32, len(d.Embedding))
		for i, x := range d.Embedding {
			v[i] = float32(x)
		}
		vectors[d.Index] = v
	}
	fitted, err := embed.Fit(vectors, texts, e.dimensions)
	if err != nil {
		return nil, provider.Unusable(e.target, err)
	}
	return fitted, nil
}

func refusesDimensions(err error) bool {
	e, ok := errors.AsType[*openai.Error](err)
	if !ok || e.StatusCode != http.StatusBadRequest && e.StatusCode != http.StatusUnprocessableEntity {
		return false
	}
	return strings.Contains(strings.ToLower(e.Message+e.Param+e.RawJSON()), "dimension")
}

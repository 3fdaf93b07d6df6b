// Package openai is the embedder behind any OpenAI-compatible endpoint, through the official SDK.
package openai

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/openai/openai-go/v3"

	"github.com/memsidecar/memsidecar/internal/embed"
	"github.com/memsidecar/memsidecar/internal/provider"
	"github.com/memsidecar/memsidecar/internal/secret"
)

// version of the procedure: raise it when the same model begins to give other vectors here.
const version = 1

// batchSize is how many texts go into one call: what SiliconFlow and Hugging Face's server take at most; OpenAI takes
// 2,048. DashScope takes no more than smallBatchSize, and after its refusal of more that is used.
const (
	batchSize      = 32
	smallBatchSize = 10
)

// Embedder implements embed.Embedder.
type Embedder struct {
	target     provider.Target
	dimensions int
	service    openai.EmbeddingService
	failure    func(context.Context, error) error
	// plain: the endpoint does not take the dimensions, and the vectors are cut here. small: it does not take batchSize.
	plain, small atomic.Bool
}

var _ embed.Embedder = (*Embedder)(nil)

// New returns the embedder at the target, with vectors of so many dimensions. If the endpoint rejects that number, it is not sent again,
// and the first so many numbers of each vector are used. New makes no call.
func New(target provider.Target, key secret.Value, dimensions int) *Embedder {
	return &Embedder{
		target: target, dimensions: dimensions, service: openai.NewEmbeddingService(provider.OpenAIOptions(target, key)...),
		failure: provider.ErrorConverter(target, key),
	}
}

// Fingerprint implements embed.Embedder.
func (e *Embedder) Fingerprint() embed.Fingerprint {
	return embed.Fingerprint{Provider: e.target.Provider.Name, Model: e.target.Model, Dimensions: e.dimensions, Version: version}
}

// Calibration is that of embedding models.
func (e *Embedder) Calibration() embed.Calibration { return embed.ModelCalibration }

// Embed implements embed.Embedder; the API knows no purposes. An answer that cannot be used is an error that waiting does
// not cure; vectors that are too short make it an *embed.ShortError.
func (e *Embedder) Embed(ctx context.Context, _ embed.Purpose, texts []string) ([][]float32, error) {
	return embed.InBatches(ctx, texts, embed.Batches{
		Size: batchSize, Dimensions: e.dimensions, Call: e.split,
		Unusable: func(err error) error { return provider.UnusableAnswer(e.target, err) },
	})
}

// split calls with a batch, or with its parts when the endpoint has refused so many at once.
func (e *Embedder) split(ctx context.Context, texts []string) ([][]float32, error) {
	if !e.small.Load() || len(texts) <= smallBatchSize {
		return e.call(ctx, texts)
	}
	var vectors [][]float32
	for part := range slices.Chunk(texts, smallBatchSize) {
		some, err := e.call(ctx, part)
		if err != nil {
			return nil, err
		}
		if len(some) != len(part) {
			return some, nil // which is not what was asked for, and is found
		}
		vectors = append(vectors, some...)
	}
	return vectors, nil
}

func (e *Embedder) call(ctx context.Context, texts []string) ([][]float32, error) {
	params := openai.EmbeddingNewParams{
		Model: e.target.Model, Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: texts},
		EncodingFormat: openai.EmbeddingNewParamsEncodingFormatFloat,
	}
	plain := e.plain.Load()
	if !plain {
		params.Dimensions = openai.Int(int64(e.dimensions))
	}
	resp, err := e.service.New(ctx, params)
	if status, ok := provider.StatusOf(err); ok && !plain && status.Rejects("dimension", "matryoshka") {
		e.plain.Store(true)
		return e.call(ctx, texts)
	}
	if status, ok := provider.StatusOf(err); ok && len(texts) > smallBatchSize && status.Rejects("batch", "array length") {
		e.small.Store(true)
		return e.split(ctx, texts)
	}
	if err != nil {
		return nil, e.failure(ctx, err)
	}
	embed.AddTokens(ctx, resp.Usage.PromptTokens)
	vectors := make([][]float32, len(resp.Data))
	for _, d := range resp.Data {
		if d.Index < 0 || d.Index >= int64(len(vectors)) {
			continue // then another place stays empty, and that is found
		}
		v := make([]float32, len(d.Embedding))
		for i, x := range d.Embedding {
			v[i] = float32(x)
		}
		vectors[d.Index] = v
	}
	return vectors, nil
}

// Package gemini is Google's embedder, through generative-ai-go. That SDK is no longer maintained, so it stays inside this
// package and its text counterpart.
package gemini

import (
	"context"

	"github.com/google/generative-ai-go/genai"

	"github.com/memsidecar/memsidecar/internal/embed"
	"github.com/memsidecar/memsidecar/internal/provider"
	"github.com/memsidecar/memsidecar/internal/secret"
)

// version of the procedure: raise it when the same model begins to give other vectors here.
const version = 1

// batchSize is the most that one call of batchEmbedContents takes.
const batchSize = 100

// Embedder implements embed.Embedder.
type Embedder struct {
	target     provider.Target
	dimensions int
	key        secret.Value
	client     *genai.Client
}

var _ embed.Embedder = (*Embedder)(nil)

// New returns the embedder at the target. Its models return 3,072 numbers; the first so many dimensions are used.
func New(target provider.Target, key secret.Value, dimensions int) (*Embedder, error) {
	client, err := provider.GeminiClient(target, key)
	if err != nil {
		return nil, err
	}
	return &Embedder{target: target, dimensions: dimensions, key: key, client: client}, nil
}

// Fingerprint implements embed.Embedder.
func (e *Embedder) Fingerprint() embed.Fingerprint {
	return embed.Fingerprint{Provider: e.target.Provider.Name, Model: e.target.Model, Dimensions: e.dimensions, Version: version}
}

// Embed implements embed.Embedder.
func (e *Embedder) Embed(ctx context.Context, purpose embed.Purpose, texts []string) ([][]float32, error) {
	model := e.client.EmbeddingModel(e.target.Model)
	model.TaskType = genai.TaskTypeRetrievalDocument
	if purpose == embed.ForQuery {
		model.TaskType = genai.TaskTypeRetrievalQuery
	}
	var vectors [][]float32
	for start := 0; start < len(texts); start += batchSize {
		batch := model.NewBatch()
		part := texts[start:min(start+batchSize, len(texts))]
		for _, text := range part {
			batch.AddContent(genai.Text(text))
		}
		resp, err := model.BatchEmbedContents(ctx, batch)
		if err != nil {
			return nil, provider.GeminiFailure(e.target, e.key, err).Error(ctx)
		}
		some := make([][]float32, len(resp.Embeddings))
		for i, embedding := range resp.Embeddings {
			if embedding != nil {
				some[i] = embedding.Values
			}
		}
		fitted, err := embed.Fit(some, part, e.dimensions)
		if err != nil {
			return nil, provider.Unusable(e.target, err)
		}
		vectors = append(vectors, fitted...)
	}
	return vectors, nil
}

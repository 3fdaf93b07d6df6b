// Package gemini is Google's embedder, through generative-ai-go. That SDK is no longer maintained, so it stays inside this
// package, its text counterpart and the client that both get from internal/provider.
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
	client     *genai.Client
	failure    func(context.Context, error) error
}

var _ embed.Embedder = (*Embedder)(nil)

// New returns the embedder at the target. Its models return 3,072 numbers, and the SDK cannot ask for fewer: the first ones are used,
// which these models are trained for. New makes no call.
func New(target provider.Target, key secret.Value, dimensions int) (*Embedder, error) {
	client, err := provider.GeminiClient(target, key)
	if err != nil {
		return nil, err
	}
	return &Embedder{target: target, dimensions: dimensions, client: client, failure: provider.ErrorConverter(target, key)}, nil
}

// Fingerprint implements embed.Embedder.
func (e *Embedder) Fingerprint() embed.Fingerprint {
	return embed.Fingerprint{Provider: e.target.Provider.Name, Model: e.target.Model, Dimensions: e.dimensions, Version: version}
}

// Calibration is that of embedding models.
func (e *Embedder) Calibration() embed.Calibration { return embed.ModelCalibration }

// Embed implements embed.Embedder, with one call for 100 texts. An answer that cannot be used is an error that waiting
// does not cure; vectors that are too short make it an *embed.ShortError.
func (e *Embedder) Embed(ctx context.Context, purpose embed.Purpose, texts []string) ([][]float32, error) {
	task := genai.TaskTypeRetrievalDocument
	if purpose == embed.ForQuery {
		task = genai.TaskTypeRetrievalQuery
	}
	return embed.InBatches(ctx, texts, embed.Batches{
		Size: batchSize, Dimensions: e.dimensions, Unusable: func(err error) error { return provider.UnusableAnswer(e.target, err) },
		Call: func(ctx context.Context, texts []string) ([][]float32, error) { return e.call(ctx, task, texts) },
	})
}

func (e *Embedder) call(ctx context.Context, task genai.TaskType, texts []string) ([][]float32, error) {
	model := e.client.EmbeddingModel(e.target.Model)
	model.TaskType = task
	batch := model.NewBatch()
	for _, text := range texts {
		batch.AddContent(genai.Text(text))
	}
	resp, err := model.BatchEmbedContents(ctx, batch)
	if err != nil {
		return nil, e.failure(ctx, err)
	}
	vectors := make([][]float32, len(resp.Embeddings))
	for i, embedding := range resp.Embeddings {
		if embedding != nil {
			vectors[i] = embedding.Values
		}
	}
	return vectors, nil
}

package embed

import (
	"context"
	"strings"
)

// Batches is how a provider embeds texts.
type Batches struct {
	Size       int // the most texts of one call
	Dimensions int // of the vectors wanted
	// Call embeds some texts, none of them without content.
	Call func(ctx context.Context, texts []string) ([][]float32, error)
	// Unusable makes the adapter's error of what is wrong with vectors that came.
	Unusable func(error) error
}

// InBatches embeds one batch after the other and puts the vectors together, each made to fit. A text without content is
// not sent, because providers refuse the whole batch for it: its vector is all zeros. What is no valid UTF-8 is replaced,
// because providers refuse that too.
func InBatches(ctx context.Context, texts []string, b Batches) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	var batch []string
	var at []int // the batch's positions in texts
	for i, text := range texts {
		if strings.TrimSpace(text) == "" {
			vectors[i] = make([]float32, b.Dimensions)
		} else {
			batch, at = append(batch, strings.ToValidUTF8(text, "\uFFFD")), append(at, i)
		}
		if len(batch) == 0 || len(batch) < b.Size && i < len(texts)-1 {
			continue
		}
		some, err := b.Call(ctx, batch)
		if err != nil {
			return nil, err
		}
		if some, err = fit(some, batch, b.Dimensions); err != nil {
			return nil, b.Unusable(err)
		}
		for j, v := range some {
			vectors[at[j]] = v
		}
		batch, at = nil, nil
	}
	return vectors, nil
}

type tokensKey struct{}

// AddTokens counts tokens that a provider says a call cost. It is for adapters.
func AddTokens(ctx context.Context, tokens int64) {
	if sum, ok := ctx.Value(tokensKey{}).(*int64); ok {
		*sum += tokens
	}
}

// Tokens is how many tokens a call cost, from the context that WithObserver gives; 0 when the provider does not say.
func Tokens(ctx context.Context) int64 {
	if sum, ok := ctx.Value(tokensKey{}).(*int64); ok {
		return *sum
	}
	return 0
}

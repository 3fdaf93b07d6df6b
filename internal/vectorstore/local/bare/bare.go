// Package bare is plain chromem: no rows, users, keywords or filters. It is a baseline for benchmarks; the product does not use it.
package bare

import (
	"context"
	"errors"
	"strconv"

	"github.com/philippgille/chromem-go"
)

// Collection is one chromem collection.
type Collection struct{ vectors *chromem.Collection }

// New returns a collection of the vectors, whose ids are their positions.
func New(ctx context.Context, vectors [][]float32) (*Collection, error) {
	c, err := chromem.NewDB().CreateCollection("bare", nil, func(context.Context, string) ([]float32, error) {
		return nil, errors.New("nothing is embedded here")
	})
	if err != nil {
		return nil, err
	}
	for i, v := range vectors {
		if err := c.AddDocument(ctx, chromem.Document{ID: strconv.Itoa(i), Embedding: v}); err != nil {
			return nil, err
		}
	}
	return &Collection{c}, nil
}

// Query returns the number of results among the nearest n.
func (c *Collection) Query(ctx context.Context, vector []float32, n int) (int, error) {
	results, err := c.vectors.QueryEmbedding(ctx, vector, n, nil, nil)
	return len(results), err
}

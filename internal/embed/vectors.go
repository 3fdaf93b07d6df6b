package embed

import (
	"fmt"
	"math"
)

// ShortError says that a model's vectors have fewer numbers than were asked for.
type ShortError struct{ Numbers, Wanted int }

// Error says what to do.
func (e *ShortError) Error() string {
	return fmt.Sprintf("the model's vectors have %d numbers, fewer than the %d of embedding.dimensions", e.Numbers, e.Wanted)
}

// fit checks what a provider returned for the texts and makes it what the contract promises: one vector a text, of the
// given size, of length 1. Longer vectors are cut to their first numbers, which models of the Matryoshka kind are trained
// for (Kusupati et al., Matryoshka Representation Learning, 2022). dimensions 0 takes the size as it comes.
func fit(vectors [][]float32, texts []string, dimensions int) ([][]float32, error) {
	if len(vectors) != len(texts) {
		return nil, fmt.Errorf("%d vectors came back for %d texts", len(vectors), len(texts))
	}
	for i, v := range vectors {
		switch {
		case len(v) == 0:
			return nil, fmt.Errorf("the vector of text %d is empty", i)
		case dimensions > 0 && len(v) < dimensions:
			return nil, &ShortError{Numbers: len(v), Wanted: dimensions}
		case dimensions > 0:
			v = v[:dimensions]
		}
		var sum float64
		for _, x := range v {
			sum += float64(x) * float64(x)
		}
		if sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
			return nil, fmt.Errorf("the vector of text %d is no direction (its length is %v)", i, math.Sqrt(sum))
		}
		length := float32(math.Sqrt(sum))
		unit := make([]float32, len(v))
		for j, x := range v {
			unit[j] = x / length
		}
		vectors[i] = unit
	}
	return vectors, nil
}

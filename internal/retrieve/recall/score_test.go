package recall_test

import (
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/retrieve/recall"
)

// TestScoreFavoursCoverage: A text with more of the question's words scores higher than one that repeats some of them. Length matters
// little, and scores are between 0 and 1.
func TestScoreFavoursCoverage(t *testing.T) {
	query := []string{"piano", "lesson", "unheard"}
	scorer := recall.NewScorer(query, []int64{20, 60, 0}, 1000, 10_000)
	score := func(text string) float64 { return scorer.Score(strings.Fields(text)) }
	for _, order := range [][]string{
		{"piano lesson unheard", "piano lesson", strings.Repeat("piano ", 4), "piano", strings.Repeat("lesson ", 2), "lesson", "else"},
		{"piano lesson", "piano lesson " + strings.Repeat("x ", 50), "piano"},
	} {
		for i := range order[1:] {
			if better, worse := score(order[i]), score(order[i+1]); !(better > worse && better <= 1 && worse >= 0) {
				t.Errorf("%q has %.3f, %q %.3f", order[i], better, order[i+1], worse)
			}
		}
	}
	if s := score(strings.Repeat("piano lesson unheard ", 9)); s != 1 {
		t.Errorf("all words repeated score %v", s)
	}
}

package recall_test

import (
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/retrieve/recall"
)

// TestScores: what holds more of a question is better than what repeats a part of it, length matters little, and a score
// is 0 to 1.
func TestScores(t *testing.T) {
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
		t.Errorf("all of it many times is %v", s)
	}
}

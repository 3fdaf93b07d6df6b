package main

import (
	"path/filepath"
	"testing"
)

// TestFloors: On the development conversations of dataset/ the defaults do not get worse. The floors are a little below what was
// measured last.
func TestFloors(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../dataset/talk/dev/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	numbers, _, _ := evaluate(t, append([]string{"talk"}, files...)...)
	for name, floor := range map[string]float64{
		"kept.en": .72, "kept.zh": .76, "kept.all": .76, "dropped.all": .7, "clean.all": .72, "gone.all": .36, "answered.all": .36,
	} {
		if got, ok := numbers[name].(float64); !ok || got < floor {
			t.Errorf("%s is %v, want at least %v", name, numbers[name], floor)
		}
	}
}

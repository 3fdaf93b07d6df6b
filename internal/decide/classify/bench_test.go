package classify_test

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/decide/classify"
)

// BenchmarkRead classifies the sentences of a message with what stands around them.
func BenchmarkRead(b *testing.B) {
	m := classify.Default()
	units := classify.Units("Hi! I moved to York in May and I'm still unpacking. Where can I swim with two huskies around here?",
		"Hello! How have you been since we last talked?", "", "York has lovely spots. Try the river at Clifton.", 10)
	b.ReportAllocs()
	for b.Loop() {
		for _, u := range units {
			m.Read(u)
		}
	}
}

package embed_test

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/embed"
)

func TestFingerprintRoundTrip(t *testing.T) {
	for _, want := range []embed.Fingerprint{
		{Provider: "local", Model: "hashed-ngrams", Dimensions: 256, Version: 1},
		{Provider: "openrouter", Model: "org/model@v2#final", Dimensions: 768, Version: 3},
	} {
		got, err := embed.ParseFingerprint(want.String())
		if err != nil || got != want {
			t.Errorf("%s is parsed as %+v, %v", want, got, err)
		}
	}
	for _, bad := range []string{"", "local", "local/x", "local/x@256", "local/x@a#1", "local/x@1#b", "/x@1#1", "x/@1#1", "x/y@0#1"} {
		if got, err := embed.ParseFingerprint(bad); err == nil {
			t.Errorf("%q is parsed as %+v", bad, got)
		}
	}
}

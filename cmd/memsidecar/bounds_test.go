package main

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// TestTooMuchWaitsOfEverybody: while a model is away what waits stays within queue.max_pending and queue.max_pending_bytes, across a
// restart as well; whoever is refused learns which limit it is and when to try again, recall goes on, and there is room again once
// the model is back.
func TestTooMuchWaitsOfEverybody(t *testing.T) {
	long := strings.Repeat("我平时爱喝点茶。", 100) // 2,400 bytes
	for key, limit := range map[string]int{"queue.max_pending": 5, "queue.max_pending_bytes": 10_000} {
		t.Run(key, func(t *testing.T) {
			p := providertest.Start(t, 768)
			p.Fail(providertest.ServerError, providertest.Decision)
			dir, settings := t.TempDir(), append(useProvider("openai", p), fmt.Sprintf("%s=%d", key, limit))
			r := serveIn(t, dir, settings...)
			n := 0
			send := func() error {
				n++
				_, err := r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
					Scope: in(fmt.Sprint("site", n%2), direct(fmt.Sprint("user", n))), Messages: []*memsidecarv1.Message{said(long)},
				})
				return err
			}
			for range 5 { // of the bytes the last goes a little beyond
				mustDo(t, send())
			}
			refused := func() {
				t.Helper()
				err := send()
				wantCode(t, err, codes.ResourceExhausted)
				if retryDelay(err) <= 0 || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "memsidecar status") {
					t.Errorf("does not say what to do: %v", err)
				}
			}
			refused()
			r.stop()
			r = serveIn(t, dir, settings...)
			refused()
			must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: direct("user1"), Query: "茶"}))(t)
			p.Fail(providertest.NoFault, providertest.Decision)
			eventually(t, "there is room again", func() bool { return send() == nil })
		})
	}
}

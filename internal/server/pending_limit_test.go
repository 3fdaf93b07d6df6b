package server_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestPendingLimitOfAllNamespaces: While a model is unavailable, pending dialogues stay within queue.max_pending and
// queue.max_pending_bytes, also after a restart. A refused caller is told which limit was hit and when to retry. Retrieve still works.
// When the model recovers, dialogues are accepted again.
func TestPendingLimitOfAllNamespaces(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("我平时爱喝点茶。", 100) // 2,400 bytes
	for key, limit := range map[string]int{"queue.max_pending": 5, "queue.max_pending_bytes": 10_000} {
		t.Run(key, func(t *testing.T) {
			p := providertest.Start(t, 768)
			p.Fail(providertest.ServerError, providertest.Decision)
			dir, settings := t.TempDir(), append(sidecartest.UseProvider("openai", p), fmt.Sprintf("%s=%d", key, limit))
			r := sidecartest.ServeIn(t, dir, settings...)
			n := 0
			send := func() error {
				n++
				_, err := r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
					Scope: sidecartest.InNamespace(
						fmt.Sprint("site", n%2),
						sidecartest.Direct(fmt.Sprint("user", n)),
					), Messages: []*memsidecarv1.Message{sidecartest.Said(long)},
				})
				return err
			}
			for range 5 { // the last one may exceed the limit a little
				sidecartest.NoError(t, send())
			}
			refused := func() {
				t.Helper()
				err := send()
				sidecartest.WantCode(t, err, codes.ResourceExhausted)
				if retryDelay(err) <= 0 || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "memsidecar status") {
					t.Errorf("has no remedy: %v", err)
				}
			}
			refused()
			r.Stop()
			r = sidecartest.ServeIn(t, dir, settings...)
			refused()
			sidecartest.Must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct("user1"), Query: "茶"}))(t)
			p.Fail(providertest.NoFault, providertest.Decision)
			sidecartest.Eventually(t, "there is room again", func() bool { return send() == nil })
		})
	}
}

//go:build !race && unix

package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// TestKilledWhileHeldBack kills serve with SIGKILL while dialogues wait for the following ones. None is lost, and the model is asked once.
func TestKilledWhileHeldBack(t *testing.T) {
	t.Parallel()
	model := providertest.Start(t, 768)
	environ := []string{
		"MEMSIDECAR_SESSION_IDLE=1h", "MEMSIDECAR_SESSION_MEMORIZE_EVERY=20", "MEMSIDECAR_SESSION_ENABLED=false", "MEMSIDECAR_DIGEST_ENABLED=false",
		"MEMSIDECAR_SUMMARY_PROVIDER=openai", "MEMSIDECAR_SUMMARY_ENDPOINT=" + model.URL, "MEMSIDECAR_SUMMARY_MODEL=m",
		"MEMSIDECAR_SUMMARY_API_KEY=" + sidecartest.ProviderKey, "MEMSIDECAR_DECISION_PROVIDER=rules",
	}
	dir := t.TempDir()
	scope := sidecartest.Direct("ann")
	p := spawn(t, dir, environ...)
	var ids []string
	for i := range 10 {
		resp, err := p.ConsiderMemorizing(context.Background(), &memsidecarv1.ConsiderMemorizingRequest{
			Scope: scope, Messages: []*memsidecarv1.Message{sidecartest.Said(fmt.Sprintf("I own %d bicycles.", i+2))},
		})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, resp.GetConsideration().GetId())
	}
	p.kill(t)
	if got := len(model.Requests(providertest.Summary)); got != 0 {
		t.Errorf("%d calls before the delay ended", got)
	}
	p = spawn(t, dir, environ...)
	_, err := p.RetryConsideration(context.Background(), &memsidecarv1.RetryConsiderationRequest{Scope: scope, ConsiderationId: ids[0]})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		sidecartest.Eventually(t, "the outcome of "+id, func() bool {
			resp, err := p.GetConsideration(context.Background(), &memsidecarv1.GetConsiderationRequest{Scope: scope, ConsiderationId: id})
			if err != nil {
				t.Fatal(err)
			}
			state := resp.GetConsideration().GetState()
			return state == memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED ||
				state == memsidecarv1.ConsiderationState_CONSIDERATION_STATE_SKIPPED
		})
	}
	if got := len(model.Requests(providertest.Summary)); got != 1 {
		t.Errorf("%d calls, want 1", got)
	}
}

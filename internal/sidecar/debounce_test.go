//go:build !race

package sidecar_test

import (
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// TestDialoguesWithinTheDelayMakeOneCall: ten dialogues within the delay make one call of the model and have ten outcomes, also when the
// process ends and another one starts in between.
func TestDialoguesWithinTheDelayMakeOneCall(t *testing.T) {
	for name, restart := range map[string]bool{"": false, "restart": true} {
		t.Run(name, func(t *testing.T) {
			settings := map[string]string{"session.idle": "2m", "session.memorize_every": "20", "session.enabled": "false", "digest.enabled": "false"}
			runBubble(t, "openai", settings, func(d *day) {
				time.Sleep(time.Minute)
				scope := sidecartest.Direct(userName(0))
				asked := len(d.provider.Requests(providertest.Decision))
				var ids []string
				for i := range 10 {
					ids = append(ids, d.talk(1, i, 1)...)
					time.Sleep(5 * time.Second)
				}
				state := func(id string) *memsidecarv1.Consideration {
					resp, err := d.GetConsideration(d.Context(), &memsidecarv1.GetConsiderationRequest{Scope: scope, ConsiderationId: id})
					if err != nil {
						d.Fatal(err)
					}
					return resp.GetConsideration()
				}
				last := state(ids[len(ids)-1])
				if got := state(ids[0]).GetNextAttemptTime().AsTime().Sub(last.GetCreateTime().AsTime()); got != 2*time.Minute {
					d.Errorf("the first is due %s after the last", got)
				}
				if restart {
					d.stop()
					d.start(settings)
				}
				time.Sleep(10 * time.Second)
				if got := len(d.provider.Requests(providertest.Decision)) - asked; got != 0 {
					d.Errorf("%d calls within the delay", got)
				}
				time.Sleep(3 * time.Minute)
				if got := len(d.provider.Requests(providertest.Decision)) - asked; got != 1 {
					d.Errorf("%d calls, want 1", got)
				}
				for _, id := range ids {
					s := state(id).GetState()
					if s != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED && s != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_SKIPPED {
						d.Errorf("%s is %s", id, s)
					}
				}
			})
		})
	}
}

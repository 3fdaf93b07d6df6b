//go:build !race

package sidecar_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestRetrieveAnswersWithinBudgetDuringProviderFaults: During every fault of the providers, and under load, Retrieve answers within its
// budget, by keywords, and names the missing parts. Dialogues are acknowledged immediately. Times are those of the bubble's clock, so a
// slow machine does not matter. When the providers recover, answers are complete, and the dialogues are remembered.
func TestRetrieveAnswersWithinBudgetDuringProviderFaults(t *testing.T) {
	for _, protocol := range sidecartest.Protocols() {
		for _, fault := range []providertest.Fault{
			providertest.Hang, providertest.HalfAnswer, providertest.CutAnswer, providertest.Page, providertest.FewerDimensions,
			providertest.NotNumbers, providertest.NoVectors, providertest.EmptyVectors, providertest.RateLimit,
			providertest.SilentRateLimit, providertest.ServerError, providertest.Reset, providertest.NoCandidates, providertest.BrokenJSON,
		} {
			t.Run(protocol+" "+string(fault), func(t *testing.T) {
				runBubble(t, protocol, nil, func(d *day) { d.keepsTime(fault) })
			})
		}
	}
}

const (
	retrieveBudget = 800 * time.Millisecond // the default
	callers        = 8
	each           = 5 // calls
)

func (d *day) keepsTime(fault providertest.Fault) {
	d.talk(1, 0, time.Second)
	time.Sleep(time.Minute)
	embeds := fault != providertest.NoCandidates && fault != providertest.BrokenJSON // these faults only affect text models
	everything := append([]providertest.Part{providertest.Embedding}, textParts...)
	d.provider.Fail(fault, everything...)

	var load sync.WaitGroup
	for caller := range callers {
		load.Go(func() {
			for i := range each {
				time.Sleep(rand.N(time.Second))
				d.answersInTime(fmt.Sprintf("%d 喝茶 %d", caller, i), embeds)
			}
		})
	}
	began := time.Now()
	meanwhile := d.talk(1, 3, 1)[0]
	if took := time.Since(began); took > 100*time.Millisecond {
		d.Errorf("acknowledging took %s", took)
	}
	load.Wait()
	time.Sleep(time.Minute)

	d.provider.Fail(providertest.NoFault, everything...)
	time.Sleep(20 * time.Minute)
	get := func() *memsidecarv1.Consideration {
		return sidecartest.Must(d.GetConsideration(
			d.Context(),
			&memsidecarv1.GetConsiderationRequest{Scope: sidecartest.Direct(userName(0)), ConsiderationId: meanwhile},
		))(
			d.T,
		).GetConsideration()
	}
	if c := get(); c.GetState() == memsidecarv1.ConsiderationState_CONSIDERATION_STATE_FAILED { // a valid answer without content
		if c.GetError() == "" {
			d.Error("it failed and does not say why")
		}
		sidecartest.Must(
			d.RetryConsideration(
				d.Context(),
				&memsidecarv1.RetryConsiderationRequest{Scope: sidecartest.Direct(userName(0)), ConsiderationId: meanwhile},
			),
		)(
			d.T,
		)
		time.Sleep(time.Minute)
	}
	if c := get(); c.GetState() != sidecartest.Remembered {
		d.Errorf("what was said meanwhile: %v", c)
	}
	resp := sidecartest.Must(
		d.Retrieve(d.Context(), &memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct(userName(0)), Query: "喝什么茶"}),
	)(
		d.T,
	)
	if len(resp.GetDegraded()) > 0 || len(resp.GetMemories()) == 0 || resp.GetMemories()[0].GetParts().GetSimilarity() < 0.1 {
		d.Errorf("when the providers are well again: %v", resp)
	}
}

// answersInTime retrieves and checks the answer and its time.
func (d *day) answersInTime(query string, degraded bool) {
	d.Helper()
	began := time.Now()
	resp, err := d.Retrieve(d.Context(), &memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct(userName(0)), Query: query})
	took := time.Since(began)
	if err != nil {
		d.Errorf("Retrieve: %v", err)
		return
	}
	if took > retrieveBudget {
		d.Errorf("Retrieve took %s", took)
	}
	if len(resp.GetMemories()) == 0 || !strings.Contains(resp.GetPromptContext(), "茶") {
		d.Errorf("after %s keywords recall nothing: %v", took, resp)
	}
	if !degraded {
		return
	}
	for _, missing := range resp.GetDegraded() {
		if missing.GetComponent() == memsidecarv1.DegradedComponent_DEGRADED_COMPONENT_EMBEDDING && missing.GetReason() != "" {
			return
		}
	}
	d.Errorf("it is not said that embedding was missing: %v", resp.GetDegraded())
}

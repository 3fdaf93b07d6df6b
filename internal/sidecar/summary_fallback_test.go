package sidecar_test

import (
	"fmt"
	"testing"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestBrokenSummaryIsReplacedByAnExtract: Over both protocols, a model that answers with broken JSON is asked once more, then the summary
// is extracted. A metric counts it.
func TestBrokenSummaryIsReplacedByAnExtract(t *testing.T) {
	t.Parallel()
	for _, protocol := range sidecartest.Protocols() {
		for fault, reason := range map[providertest.Fault]string{providertest.BrokenJSON: "unusable", providertest.BadRequest: "refused"} {
			t.Run(protocol+" "+string(fault), func(t *testing.T) {
				p := providertest.Start(t, 1000)
				r := sidecartest.Serve(t, append(sidecartest.UseProvider(protocol, p), "session.memorize_every=0", "digest.enabled=false", "http.listen=127.0.0.1:0")...)
				p.Fail(fault, providertest.Summary)
				scope := sidecartest.InSession(sidecartest.Direct("u"), "s")
				for i := range 8 {
					r.AppendTo(t, scope, sidecartest.Said(fmt.Sprintf("我对花生过敏，第%d次说了", i)), sidecartest.Answered("好的，记住了。"))
				}
				var summary *memsidecarv1.SessionSummary
				sidecartest.Eventually(t, "the summary is extracted", func() bool {
					resp := sidecartest.Must(r.Sessions().GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: scope}))(t)
					summary = resp.GetSummary()
					_, values := r.Scrape(t)
					return values[`summary_fallbacks_total{reason="`+reason+`"}`] != "0"
				})
				if summary.GetMadeBy() != "extract" {
					t.Errorf("the summary is %v", summary)
				}
			})
		}
	}
}

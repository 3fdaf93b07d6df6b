package main

import (
	"fmt"
	"testing"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// TestSummaryOfABrokenModelIsExtracted: over both protocols, a model that answers with broken JSON is asked once more, then
// the summary is extracted. The counter says so.
func TestSummaryOfABrokenModelIsExtracted(t *testing.T) {
	for _, protocol := range protocols() {
		for fault, reason := range map[providertest.Fault]string{providertest.BrokenJSON: "unusable", providertest.BadRequest: "refused"} {
			t.Run(protocol+" "+string(fault), func(t *testing.T) {
				p := providertest.Start(t, 1000)
				r := serve(t, append(useProvider(protocol, p), "session.memorize_every=0", "digest.enabled=false", "http.listen=127.0.0.1:0")...)
				p.Fail(fault, providertest.Summary)
				scope := within(direct("u"), "s")
				for i := range 8 {
					r.appendTo(t, scope, said(fmt.Sprintf("我对花生过敏，第%d次说了", i)), answered("好的，记住了。"))
				}
				var summary *memsidecarv1.SessionSummary
				eventually(t, "the summary is extracted", func() bool {
					resp := must(r.sessions().GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: scope}))(t)
					summary = resp.GetSummary()
					_, values := r.scrape(t)
					return values[`summary_fallbacks_total{reason="`+reason+`"}`] != "0"
				})
				if summary.GetMadeBy() != "extract" {
					t.Errorf("the summary is %v", summary)
				}
			})
		}
	}
}

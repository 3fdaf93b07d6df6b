package model

import (
	"fmt"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/memory"
)

func TestUntil(t *testing.T) {
	tr := talk("I see the dentist tomorrow at 3")
	tr.Location = time.FixedZone("east", 8*3600)
	for written, want := range map[string]string{
		`"until": "2026-03-05"`: "2026-03-06T00:00:00+08:00", `"until": "2026-03-05T15:00"`: "2026-03-06T00:00:00+08:00",
		`"until": " 2026-03-05 15:00:00 "`: "2026-03-06T00:00:00+08:00", `"until": "2026-03-05T18:00:00Z"`: "2026-03-07T00:00:00+08:00",
		`"until": "2026-04"`: "2026-05-01T00:00:00+08:00",
		`"until": ""`:        "", `"until": null`: "", `"until": 20260305`: "", `"until": ["2026-03-05"]`: "", `"until": "soon"`: "",
		`"until": "2026-02-30"`: "", `"until": "2020-01-01"`: "", `"until": "9999-12-31"`: "", `"x": 1`: "",
	} {
		got := summarize(t, answers(list(fmt.Sprintf(`{"text": "The user sees the dentist on 2026-03-05.", "kind": "appointment", `+
			`"importance": 0.7, "messages": ["m0"], "quote": "", %s}`, written))), Options{}, tr, yes)
		end := ""
		if len(got) == 1 && !got[0].ValidTo.IsZero() {
			end = got[0].ValidTo.Format(time.RFC3339)
		}
		if len(got) != 1 || end != want {
			t.Errorf("%s: %q, want %q (%+v)", written, end, want, got)
		}
	}
	got := summarize(t, answers(list(`{"text": "The user likes tea.", "kind": "preference", "importance": 0.7, "messages": ["m0"], `+
		`"quote": "", "until": "2026-03-05"}`)), Options{}, tr, yes)
	if len(got) != 1 || !got[0].ValidTo.IsZero() {
		t.Errorf("a preference ends: %+v", got)
	}
}

// A request to forget that the detector finds is handed on, and is no request to remember.
func TestRequestsToForget(t *testing.T) {
	tr := talk("Forget what I said about my ex")
	forget := memory.Statement{
		Text: "The user's ex.", Explicit: true, Forget: true, Reason: "the user asked to forget this",
		MessageIDs: []string{"#0"}, Quote: "Forget what I said about my ex",
	}
	o := Options{Explicit: requests{forget}}
	m := answers()
	v, err := newDecider(t, m, o).Decide(t.Context(), tr)
	if err != nil || !v.Remember || !v.Explicit || len(m.prompts) > 0 || v.Reason != forget.Reason {
		t.Errorf("verdict %+v after %d calls, %v", v, len(m.prompts), err)
	}
	got := summarize(t, answers(list()), o, tr, decide.Verdict{Remember: true, Explicit: true, Reason: v.Reason})
	if len(got) != 1 || !got[0].Forget || got[0].Text != forget.Text {
		t.Errorf("got %+v", got)
	}
}

package model

import (
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

func TestUntil(t *testing.T) {
	for written, want := range map[string]string{
		`"2026-03-05"`: "2026-03-06T00:00:00+08:00", `"2026-03-05T15:00"`: "2026-03-06T00:00:00+08:00",
		`" 2026-03-05 15:00:00 "`: "2026-03-06T00:00:00+08:00", `"2026-03-05T18:00:00Z"`: "2026-03-07T00:00:00+08:00",
		`"2026-04"`: "2026-05-01T00:00:00+08:00",
		`""`:        "", `null`: "", `20260305`: "", `["2026-03-05"]`: "", `"soon"`: "", `"2026-02-30"`: "", `"2020-01-01"`: "", `"9999-12-31"`: "",
	} {
		in := talk("", "", "I see the dentist tomorrow at 3")
		answer := ops(`{"op":"add","text":"The user sees the dentist.","kind":"appointment","from":["m2"],"until":` + written + `}`)
		got, err := newExtractor(t, answers(answer), Options{}).Extract(t.Context(), in)
		end := ""
		if len(got.Ops) == 1 && !got.Ops[0].Statement.ValidTo.IsZero() {
			end = got.Ops[0].Statement.ValidTo.Format(time.RFC3339)
		}
		if err != nil || len(got.Ops) != 1 || end != want {
			t.Errorf("%s: %q, want %q (%+v, %v)", written, end, want, got, err)
		}
	}
	for kind, ends := range map[memory.Kind]bool{memory.KindPlan: true, memory.KindTask: true, memory.KindPreference: false, memory.KindFact: false} {
		if got := until([]byte(`"2026-03-05"`), kind, noon, nil); got.IsZero() == ends {
			t.Errorf("a %s ends %v", kind, got)
		}
	}
}

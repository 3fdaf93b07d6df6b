package sqlstore_test

import (
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/session"
)

// TestRecallUntil: what was said after the last time that counts is neither found nor shown around what is found.
func TestRecallUntil(t *testing.T) {
	atOnceAndIndexed(t, func(t *testing.T, h *history, settle func()) {
		later, latest := by("ann", "I drink black tea now"), answer("Tea again")
		later.Time, latest.Time = spoken.Add(time.Hour), spoken.Add(2*time.Hour)
		h.say(scope("ann", "s"), by("ann", "I drink green tea"), later, latest)
		settle()
		for until, want := range map[time.Duration][]string{
			-1: nil, 0: {"I drink green tea"},
			time.Hour:     {"I drink green tea", "I drink black tea now"},
			2 * time.Hour: {"I drink green tea", "I drink black tea now", "Tea again"},
		} {
			q := query(listener, 10)
			q.Filter.SaidUntil = spoken.Add(until)
			h.finds(q, "tea", want...)
			for _, hit := range h.search(q, "green") {
				around, err := h.recall.Neighbors(t.Context(), q, []session.Message{hit.Message}, 5)
				if err != nil || len(around) != 1 || len(around[0].Before)+len(around[0].After) != len(want)-1 {
					t.Errorf("until %s: around %q is %+v, %v", until, hit.Message.Content, around, err)
				}
			}
		}
	})
}

package rules

import (
	"slices"

	"github.com/memsidecar/memsidecar/internal/decide/ack"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// reportedOn is how many messages before one may be what it reports on.
const reportedOn = 8

// withoutReports drops units of message i that only report whether advice worked: they state nothing about the speaker.
func withoutReports(d memory.Dialogue, i int, h *heard) {
	var before []string
	for _, m := range d.Messages[max(0, i-reportedOn):i] {
		before = append(before, m.Content)
	}
	h.units = slices.DeleteFunc(h.units, func(u *unit) bool {
		return !u.explicit && !u.forget && u.class == statement && len(u.pieces) == 1 && ack.Read(u.pieces[0].raw, before...) == ack.Worked
	})
}

package rules

import (
	"slices"

	"github.com/memsidecar/memsidecar/internal/decide/ack"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// reportedOn is how many messages before one may be what it reports on.
const reportedOn = 8

// withoutReports drops the units of message i that only report that advice worked. They state nothing about the speaker. Advice is an
// earlier message of the assistant; without one "我不喝咖啡了" says what the speaker gave up.
func withoutReports(d memory.Dialogue, i int, h *heard) {
	var before []string
	advised := false
	for _, m := range d.Messages[max(0, i-reportedOn):i] {
		before = append(before, m.Content)
		advised = advised || m.Role == memory.RoleAssistant
	}
	if !advised {
		return
	}
	h.units = slices.DeleteFunc(h.units, func(u *unit) bool {
		if u.explicit || u.forget || u.class != statement || len(u.pieces) != 1 {
			return false
		}
		return ack.OnlyWorked(u.pieces[0].raw, before...)
	})
}

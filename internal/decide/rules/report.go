package rules

import (
	"regexp"
	"slices"

	"github.com/memsidecar/memsidecar/internal/decide/ack"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// reportedOn is how many messages before one may be what it reports on.
const reportedOn = 8

// givesUp is what somebody says of what they do or like themselves no longer, which is worth knowing after any answer.
var givesUp = regexp.MustCompile(`^\s*(?:[我俺]{1,2}(?:已经|现在|再也|真的|都)?(?:不|没|别|戒)` +
	`|(?i:i(?:'m| am)? (?:do not|don't|no longer|not|never|quit|stopped|gave up))\b)`)

// withoutReports drops units of message i that only report whether advice worked: they state nothing about the speaker. Without a
// message of the assistant before there is no advice: "我不喝咖啡了" by itself is what somebody gave up.
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
		text := u.pieces[0].raw
		return !givesUp.MatchString(text) && ack.Read(text, before...) == ack.Worked
	})
}

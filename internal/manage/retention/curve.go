// Package retention implements the forgetting curve, which scores how likely a memory is to be kept, and the background deletion of
// memories. docs/design/forgetting.md has the formula with its sources and a worked example.
package retention

import (
	"maps"
	"math"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

const (
	// leastWeight is the weight of a memory with importance 0; importance 1 weighs 1.
	leastWeight = 0.5
	// useShare is the weight of doubling a memory's uses, relative to doubling its mentions: a retrieved memory was not always needed.
	useShare = 0.25
	// explicitFloor is the least score factor of an explicitly requested memory.
	explicitFloor = 0.5
)

// day is the unit of half-lives.
const day = 24 * time.Hour

// HalfLives holds, for each kind, the time after which the retention of a memory that was said once and never used halves.
type HalfLives map[memory.Kind]time.Duration

// DefaultHalfLives are used for kinds that are not configured. Identity and preferences last; plans and problems end soon.
func DefaultHalfLives() HalfLives {
	return HalfLives{
		memory.KindFact:         365 * day,
		memory.KindRelationship: 365 * day,
		memory.KindRequest:      365 * day,
		memory.KindPreference:   180 * day,
		memory.KindDecision:     120 * day,
		memory.KindExperience:   60 * day,
		memory.KindProblem:      45 * day,
		memory.KindPlan:         30 * day,
		memory.KindTask:         30 * day,
		memory.KindAppointment:  14 * day,
	}
}

// Curve scores memories. Its zero value is not usable, see NewCurve.
type Curve struct{ halfLives HalfLives }

// NewCurve returns a Curve with these half-lives, each longer than 0, and the defaults for the other kinds.
func NewCurve(configured HalfLives) Curve {
	c := Curve{DefaultHalfLives()}
	maps.Copy(c.halfLives, configured)
	return c
}

// Score returns how likely the memory is to be kept, 0 to 1. It falls with the time since the memory was last said or used, and rises
// with importance, mentions and uses:
//
//	score = (0.5 + 0.5·importance) · 2^(−t/h)
//	h     = half-life of the kind · (1 + log2(mentions) + 0.25·log2(1 + uses))
//
// This is the forgetting curve of Ebbinghaus as formulated by Settles and Meeder (A Trainable Spaced Repetition Model for Language
// Learning, 2016: p = 2^(−Δ/h), with a half-life that grows with practice). Each recall restarts the curve, as in MemoryBank (Zhong et
// al., 2023). An explicitly requested memory keeps at least half of its score. A memory of an event does not fade before the event has
// ended, if that time is known.
func (c Curve) Score(m *memory.Memory, now time.Time) float64 {
	last := m.LastSaidAt
	if m.LastUsedAt.After(last) {
		last = m.LastUsedAt
	}
	age := max(0, now.Sub(last))
	if m.ValidTo.After(now) {
		age = 0
	}
	practice := 1 + math.Log2(float64(max(1, m.Mentions))) + useShare*math.Log2(1+float64(max(0, m.UseCount)))
	halfLife := float64(c.halfLives[m.Kind]) * practice
	score := (leastWeight + (1-leastWeight)*min(max(m.Importance, 0), 1)) * math.Exp2(-float64(age)/halfLife)
	if m.Explicit {
		score = explicitFloor + (1-explicitFloor)*score
	}
	return score
}

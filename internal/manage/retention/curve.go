// Package retention is the forgetting curve: how likely a memory is to be kept, and the background work that deletes what is
// no longer to be kept. docs/design/forgetting.md has the formula with its sources and a worked example.
package retention

import (
	"maps"
	"math"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

const (
	// leastWeight is the weight of a memory without any importance; the most important one weighs 1.
	leastWeight = 0.5
	// useShare is what doubling the number of times that a memory was retrieved counts, next to doubling the number of times
	// that the user said it: what is retrieved is not always needed.
	useShare = 0.25
	// explicitFloor is what a memory that was asked for never falls below.
	explicitFloor = 0.5
)

// day is what half-lives are counted in.
const day = 24 * time.Hour

// HalfLives says for each kind after how long half of a memory's retention is gone that was said once and never used.
type HalfLives map[memory.Kind]time.Duration

// DefaultHalfLives are those of the kinds that are not configured. Who somebody is and how they want to be treated lasts;
// what they are about to do, or struggle with, is soon over.
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

// NewCurve returns a Curve with these half-lives, each longer than 0, and the default ones of the other kinds.
func NewCurve(configured HalfLives) Curve {
	c := Curve{DefaultHalfLives()}
	maps.Copy(c.halfLives, configured)
	return c
}

// Score is how likely the memory is to be kept, 0 to 1: the higher of two memories is kept longer. It falls with the time
// since the memory was last said or used, and never with importance, mentions or uses:
//
//	score = (0.5 + 0.5·importance) · 2^(−t/h)
//	h     = half-life of the kind · (1 + log2(mentions) + 0.25·log2(1 + uses))
//
// which is the forgetting curve of Ebbinghaus as Settles and Meeder write it (A Trainable Spaced Repetition Model for Language
// Learning, 2016: p = 2^(−Δ/h), with a half-life that grows with practice), and each recall begins anew as in MemoryBank
// (Zhong et al., 2023). A memory that was asked for keeps half of its score whatever its age. Until what it tells of is over,
// where that is known, a memory does not fade.
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

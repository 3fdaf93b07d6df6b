package retention_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/manage/retention"
	"github.com/memsidecar/memsidecar/internal/memory"
)

const day = 24 * time.Hour

var now = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // a constant

// anyMemory returns a random valid memory, with some values at their limits.
func anyMemory(r *rand.Rand) memory.Memory {
	m := memory.Memory{
		Kind: memory.Kinds()[r.IntN(len(memory.Kinds()))], Importance: r.Float64(), Explicit: r.IntN(2) == 0,
		Mentions: 1 + r.IntN(20), UseCount: r.Int64N(2000), LastSaidAt: now.Add(-time.Duration(r.Int64N(int64(2000 * day)))),
	}
	switch r.IntN(4) {
	case 0:
		m.LastUsedAt = m.LastSaidAt.Add(time.Duration(r.Int64N(int64(100 * day))))
	case 1:
		m.LastSaidAt = now.Add(time.Duration(r.Int64N(int64(100 * day)))) // perhaps in the future
	case 2:
		m.ValidTo = now.Add(time.Duration(r.Int64N(int64(200*day))) - 100*day)
	}
	return m
}

// TestScoreFallsWithAgeAndRisesWithUse: A score is between 0 and 1, falls with age, and rises with importance and use. An explicit memory
// keeps at least half of it.
func TestScoreFallsWithAgeAndRisesWithUse(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2)) // deterministic
	curve := retention.NewCurve(retention.HalfLives{memory.KindPlan: 7 * day})
	for range 20_000 {
		m := anyMemory(r)
		score := curve.Score(&m, now)
		if !(score >= 0 && score <= 1) || m.Explicit && score < 0.5 {
			t.Fatalf("%+v has score %v", m, score)
		}
		if later := curve.Score(&m, now.Add(time.Duration(r.Int64N(int64(500*day))))); later > score {
			t.Fatalf("%+v has score %v, and later %v", m, score, later)
		}
		for what, change := range map[string]func(*memory.Memory){
			"more important": func(m *memory.Memory) { m.Importance += (1 - m.Importance) * r.Float64() },
			"said again":     func(m *memory.Memory) { m.Mentions++ },
			"said later":     func(m *memory.Memory) { m.LastSaidAt = m.LastSaidAt.Add(day) },
			"used again":     func(m *memory.Memory) { m.UseCount++ },
			"used later":     func(m *memory.Memory) { m.LastUsedAt = m.LastUsedAt.Add(3000 * day) },
			"asked for":      func(m *memory.Memory) { m.Explicit = true },
			"still ahead":    func(m *memory.Memory) { m.ValidTo = now.Add(time.Hour) },
		} {
			more := m
			change(&more)
			if got := curve.Score(&more, now); got < score-1e-12 {
				t.Fatalf("%s: %+v has score %v, before %v", what, more, got, score)
			}
		}
	}
}

// TestWorkedExample checks the table in docs/design/forgetting.md.
func TestWorkedExample(t *testing.T) {
	curve := retention.NewCurve(nil)
	ago := func(days int) time.Time { return now.Add(-time.Duration(days) * day) }
	for _, test := range []struct {
		what string
		m    memory.Memory
		want float64
	}{
		{"a fact, just said", memory.Memory{Kind: memory.KindFact, Importance: 0.5, Mentions: 1, LastSaidAt: now}, 0.75},
		{"a fact after a year", memory.Memory{Kind: memory.KindFact, Importance: 0.5, Mentions: 1, LastSaidAt: ago(365)}, 0.375},
		{"said four times", memory.Memory{Kind: memory.KindFact, Importance: 0.5, Mentions: 4, LastSaidAt: ago(365)}, 0.5953},
		{
			"retrieved 15 times, long ago",
			memory.Memory{Kind: memory.KindFact, Importance: 0.5, Mentions: 1, UseCount: 15, LastSaidAt: ago(400), LastUsedAt: ago(365)},
			0.5303,
		},
		{"retrieved today", memory.Memory{Kind: memory.KindFact, Importance: 0.5, Mentions: 1, UseCount: 15, LastSaidAt: ago(400), LastUsedAt: now}, 0.75},
		{"a plan after 90 days", memory.Memory{Kind: memory.KindPlan, Importance: 0.5, Mentions: 1, LastSaidAt: ago(90)}, 0.0938},
		{"the same, with a date ahead", memory.Memory{Kind: memory.KindPlan, Importance: 0.5, Mentions: 1, LastSaidAt: ago(90), ValidTo: now.Add(day)}, 0.75},
		{"the same, asked for", memory.Memory{Kind: memory.KindPlan, Importance: 0.5, Mentions: 1, LastSaidAt: ago(90), Explicit: true}, 0.5469},
	} {
		if got := curve.Score(&test.m, now); math.Abs(got-test.want) > 0.00005 {
			t.Errorf("%s: %.5f, want %.4f", test.what, got, test.want)
		}
	}
}

// TestEveryKindHasAHalfLife: Without a half-life a kind's memories would be forgotten immediately.
func TestEveryKindHasAHalfLife(t *testing.T) {
	for _, kind := range memory.Kinds() {
		if retention.DefaultHalfLives()[kind] <= 0 {
			t.Errorf("kind %s has no half-life", kind)
		}
	}
}

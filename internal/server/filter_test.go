package server

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// parsed parses a filter for a caller who may see everything.
func parsed(text string) (vectorstore.Filter, error) {
	f := vectorstore.Filter{Audience: memory.Everything()}
	var v memory.Violations
	if err := parseFilter(text, &f, &v); err != nil {
		return f, err
	}
	return f, v.Err()
}

func TestFilter(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 1000, time.UTC)
	m := &memory.Memory{
		Kind: memory.KindPreference, AgentID: "bot", Language: "zh", Importance: 0.5, Explicit: true,
		CreatedAt: at, ObservedAt: at.Add(-time.Hour),
	}
	for text, want := range map[string]bool{
		``:                                      true,
		`kind = "preference"`:                   true,
		`kind = "fact"`:                         false,
		`state = "active"`:                      true,
		`state = "expired" AND kind = "fact"`:   false,
		`agent_id = "bot"`:                      true,
		`agent_id = ""`:                         false,
		`language = "zh" AND explicit = true`:   true,
		`agent_id = "bot" AND agent_id = "bot"`: true,
		`importance = 0.5`:                      true,
		`importance > 0.5`:                      false,
		`importance >= 0.5`:                     true,
		`importance < 0.5`:                      false,
		`importance <= 0.5`:                     true,
		`importance < 1 AND importance > -1`:    true,
		`importance >= 0.5 AND importance >= 0.4 AND importance <= 0.6 AND importance <= 0.9`: true,
		`importance >= 0.4 AND importance >= 0.6`:                                             false,
		`create_time = "2026-05-01T12:00:00.000001Z"`:                                         true,
		`create_time > "2026-05-01T12:00:00.000001Z"`:                                         false,
		`create_time >= "2026-05-01T12:00:00.000001Z"`:                                        true,
		`create_time < "2026-05-01T12:00:00.000001Z"`:                                         false,
		`create_time <= "2026-05-01T12:00:00.000001Z"`:                                        true,
		`create_time > "2026-05-01T12:00:00Z"`:                                                true,
		`create_time <= "2026-05-01T12:00:00Z"`:                                               false,
		`create_time > timestamp("2026-05-01T14:00:00.000001+02:00")`:                         false,
		`observe_time < "2026-05-01T12:00:00Z" AND create_time > "2026-01-01T00:00:00Z" AND create_time > "2025-01-01T00:00:00Z"`: true,
		`(kind = "preference") AND ((importance >= 0.5) AND (create_time > "2026-01-01T00:00:00Z"))`:                              true,
		`create_time > "2026-01-01T00:00:00Z" AND create_time < "2026-03-01T00:00:00Z" AND create_time < "2027-03-01T00:00:00Z"`:  false,
		`observe_time >= "2026-05-01T12:00:00Z"`: false,
	} {
		f, err := parsed(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := f.Matches(m); got != want {
			t.Errorf("%s: matches is %v, want %v", text, got, want)
		}
	}
}

func TestWrongFilters(t *testing.T) {
	for _, text := range []string{
		` `, `kind`, `kind =`, `kind = fact`, `kind = "facts"`, `kind != "fact"`, `kind : "fact"`, `NOT kind = "fact"`,
		`kind = "fact" OR kind = "plan"`, `kind = "fact" AND kind = "plan"`, `kind = "fact" AND`, `kind < "fact"`, `kind = "fact" explicit = true`,
		`explicit`, `explicit = 1`, `explicit = explicit`, `explicit = true AND explicit = false`, `true = explicit`,
		`agent_id = language`, `agent_id = "a" AND agent_id = "b"`, `"a" = agent_id`, `"a" < "b"`, `language > "a"`,
		`importance = "0.5"`, `importance >= importance`, `importance = 99999999999999999999`, `importance = 0.5.5`,
		`create_time > "yesterday"`, `create_time > "2026-01-01"`, `create_time > observe_time`, `create_time > 5`,
		`timestamp("2026-05-01T12:00:00Z") < create_time`, `text = "x"`, `id = "x"`, `a.b = "x"`, "kind = \"fa\x00ct\"",
		strings.Repeat("(", 900) + `explicit = true` + strings.Repeat(")", 899),
		strings.Repeat("NOT ", 400) + `explicit = true`,
		// Recursive parsers: without limits these ended the process.
		strings.Repeat("(", 4_000_000), strings.Repeat("NOT ", 1_000_000) + `explicit = true`,
	} {
		_, err := parsed(text)
		name := text[:min(60, len(text))]
		var invalid *memory.InvalidError
		if !errors.As(err, &invalid) || invalid.Violations[0].Field != "filter" {
			t.Errorf("%s: %v, want it to be invalid", name, err)
			continue
		}
		if problem := invalid.Violations[0].Problem; len(problem) > 300 || strings.Contains(problem, "\n") {
			t.Errorf("%s: the problem is %d bytes long: %.400s", name, len(problem), problem)
		}
	}
}

// FuzzFilter: No filter causes an internal error.
func FuzzFilter(f *testing.F) {
	f.Add(`kind = "preference" AND importance >= 0.5 AND create_time > "2026-01-01T00:00:00Z"`)
	f.Add(`explicit = true (agent_id = "a") -language = "zh"`)
	f.Fuzz(func(t *testing.T, text string) {
		filter, err := parsed(text)
		if invalid := (*memory.InvalidError)(nil); err != nil && !errors.As(err, &invalid) {
			t.Errorf("%q: %v", text, err)
		}
		if r := filter.Importance; err == nil && r.Min != nil && math.IsNaN(*r.Min) {
			t.Errorf("%q: importance is at least NaN", text)
		}
	})
}

package config

import (
	"reflect"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/manage/retention"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// TestMemories: Half-lives are set one by one, and an unknown kind is an error.
func TestMemories(t *testing.T) {
	env := environ("MEMSIDECAR_MEMORIES_HALF_LIVES={plan: 240h, fact: 90000h}", "MEMSIDECAR_MEMORIES_MAX_PER_USER=0")
	got := mustLoad(t, Sources{Environ: env}).Config.Memories
	want := Memories{
		HalfLives:      retention.HalfLives{memory.KindPlan: 240 * time.Hour, memory.KindFact: 90000 * time.Hour},
		WithdrawnGrace: 24 * time.Hour,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	problems := wrong(t, Sources{Environ: environ(), File: write(t, `
memories:
  max_per_user: -1
  half_lives: {plans: 240h, fact: 0s, task: 3, experience: 1h}
  withdrawn_grace: 9000h
`)})
	lines := []string{
		`memories.half_lives.task (from FILE): is 3: use a number with its unit, such as 800ms, 30s, 5m or 168h`,
		`memories.max_per_user (from FILE): is -1: use 0 to 10000000`,
		`memories.withdrawn_grace (from FILE): is "9000h": use 0 to 8760h`,
	}
	if !reflect.DeepEqual(problems, lines) {
		t.Errorf("got %q", problems)
	}
	problems = wrong(t, Sources{Environ: environ(), File: write(t, "memories: {half_lives: {plans: 240h, fact: 0s, experience: 1h}}")})
	lines = []string{
		`memories.half_lives.fact (from FILE): is 0s: use 1h to 876000h`,
		`memories.half_lives.plans (from FILE): is not a kind of memories: use one of [fact preference relationship plan appointment ` +
			`decision experience task problem request]`,
	}
	if !reflect.DeepEqual(problems, lines) {
		t.Errorf("got %q", problems)
	}
}

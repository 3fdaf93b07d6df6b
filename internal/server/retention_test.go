package server_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
	storelocal "github.com/memsidecar/memsidecar/internal/vectorstore/local"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// importedMemory is a memory that was imported with an age in days and never retrieved.
func importedMemory(text string, days int) *memsidecarv1.Memory {
	at := timestamppb.New(time.Now().Add(-time.Duration(days) * 24 * time.Hour))
	return &memsidecarv1.Memory{Text: text, Kind: memsidecarv1.MemoryKind_MEMORY_KIND_PLAN, CreateTime: at, Scope: sidecartest.Direct("u")}
}

// TestRetentionFollowsConfiguredHalfLives: Each memory shows how likely it is to be kept, by the configured half-lives.
func TestRetentionFollowsConfiguredHalfLives(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "memories.half_lives={plan: 240h}")
	sidecartest.Must(r.Import(t, sidecartest.Direct("u"), importedMemory("Will paint the fence", 10)))(t)
	list := sidecartest.Must(r.ListMemories(t.Context(), &memsidecarv1.ListMemoriesRequest{Scope: sidecartest.Direct("u")}))(t).GetMemories()
	m := sidecartest.Must(r.GetMemory(t.Context(), &memsidecarv1.GetMemoryRequest{Scope: sidecartest.Direct("u"), MemoryId: list[0].GetId()}))(t).GetMemory()
	for _, got := range []float64{list[0].GetRetention(), m.GetRetention()} {
		if math.Abs(got-0.375) > 0.001 { // importance 0.5, one half-life ago
			t.Errorf("the retention is %v", got)
		}
	}
}

// TestLimitPerUserDropsTheLeastNeeded: Above the limit, the memory that is least likely to be needed is dropped, however the new one was
// created. Explicitly created memories stay.
func TestLimitPerUserDropsTheLeastNeeded(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "memories.max_per_user=4")
	sidecartest.Must(
		r.Import(t, sidecartest.Direct("u"), importedMemory("Will paint the fence", 90), importedMemory("Will call Ida", 1), importedMemory("Will fly to Rome", 30)),
	)(
		t,
	)
	r.Create(t, sidecartest.Direct("u"), "Likes tea")
	has := func(want ...string) {
		t.Helper()
		sidecartest.Eventually(
			t,
			fmt.Sprintf("%q are left", want),
			func() bool { return slices.Equal(sidecartest.Texts(r.Memories(t, sidecartest.Direct("u"))), want) },
		)
	}
	has("Likes tea", "Will call Ida", "Will fly to Rome", "Will paint the fence")
	r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("I'm allergic to peanuts."))
	has("I'm allergic to peanuts.", "Likes tea", "Will call Ida", "Will fly to Rome")
	r.Create(t, sidecartest.Direct("u"), "Likes jazz")
	has("I'm allergic to peanuts.", "Likes jazz", "Likes tea", "Will call Ida")
	if limit := r.Status(t).GetMemories(); limit.GetMaxPerUser() != 4 || limit.GetFullUserCount() != 0 {
		t.Errorf("the status says %s", limit)
	}
	for _, text := range []string{"Likes rain", "Likes snow", "Likes wind"} {
		r.Create(t, sidecartest.Direct("u"), text)
	}
	has("Likes jazz", "Likes rain", "Likes snow", "Likes tea", "Likes wind") // above the limit: all were created explicitly
	if limit := r.Status(t).GetMemories(); limit.GetFullUserCount() != 1 {
		t.Errorf("the status says %s", limit)
	}
}

// TestWithdrawnMemoryIsDeletedAfterTheGrace: A memory that the user asked to forget is deleted after the grace period, also by another
// process.
func TestWithdrawnMemoryIsDeletedAfterTheGrace(t *testing.T) {
	t.Parallel()
	const mark = "Zyxwvutsrq"
	dir := t.TempDir()
	sidecartest.WithStorage(t, dir, func(storage *sqlite.Storage) {
		store := storelocal.New(storage, storelocal.Options{IndexBudget: 1 << 20})
		for id, ago := range map[string]time.Duration{"long": 25 * time.Hour, "just": 23 * time.Hour} {
			at := time.Now().Add(-ago)
			m := memory.Memory{
				ID: id, Text: mark + " of " + id + " ago", Language: "en", Kind: memory.KindFact, Mentions: 1,
				CreatedAt: at, UpdatedAt: at, ObservedAt: at, LastSaidAt: at, Channel: memory.Channel{Kind: memory.ChannelDirect},
			}
			request := m
			request.ID, request.Text = "", "forget that"
			sidecartest.Must(store.Apply(t.Context(), memory.User{Namespace: "default", ID: "u"}, []vectorstore.Entry{
				{Memory: m}, {Memory: request, Withdraws: []string{id}, Reason: "forget " + mark + " of " + id},
			}))(t)
		}
	})
	r := sidecartest.ServeIn(t, dir)
	sidecartest.Eventually(t, "the one whose grace is over is gone", func() bool {
		list := sidecartest.Must(r.ListMemories(t.Context(), &memsidecarv1.ListMemoriesRequest{
			Scope: sidecartest.Direct("u"), States: []memsidecarv1.MemoryState{memsidecarv1.MemoryState_MEMORY_STATE_WITHDRAWN},
		}))(t).GetMemories()
		return len(list) == 1 && list[0].GetId() == "just"
	})
	sidecartest.Eventually(t, "its bytes are gone", func() bool { return len(sidecartest.FilesWith(t, dir, mark+" of long")) == 0 })
	if len(sidecartest.FilesWith(t, dir, mark+" of just")) == 0 {
		t.Error("the other one is gone, too")
	}
}

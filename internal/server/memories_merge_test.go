package server_test

import (
	"strings"
	"sync"
	"testing"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestCreateMemoryMergesEqualStatements: A statement that differs from a stored one only in case or punctuation is not stored twice, and
// the answer says so. Any other difference makes a new memory.
func TestCreateMemoryMergesEqualStatements(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	create := func(scope *memsidecarv1.Scope, text string) *memsidecarv1.CreateMemoryResponse {
		t.Helper()
		return sidecartest.Must(
			r.CreateMemory(t.Context(), &memsidecarv1.CreateMemoryRequest{Scope: scope, Memory: &memsidecarv1.Memory{Text: text}}),
		)(
			t,
		)
	}
	for i, same := range [][]string{
		{"用户每周三晚上上德语课", "用户每周三晚上上德语课。", "用户 每周三 晚上上德语课", "用户每周三晚上，上德语课！", "用戶每週三晚上上德語課"},
		{
			"The user keeps bees on the roof", "the user keeps bees on the roof.",
			"THE USER KEEPS  BEES, ON THE ROOF!", "Ｔｈｅ user keeps bees on the roof",
			"The user keeps bees on roof",
		},
		{"用户养了3只乌龟", "用户养了 ３ 只乌龟", "用户养了三只乌龟"},
		{"The user is allergic to penicillin and latex.", "The user is allergic to penicilin and latex."},
	} {
		scope := sidecartest.Direct("same" + string(rune('a'+i)))
		first := create(scope, same[0])
		if first.GetMerged() {
			t.Errorf("%q is merged into nothing", same[0])
		}
		for n, text := range same[1:] {
			again := create(scope, text)
			if !again.GetMerged() || again.GetMemory().GetId() != first.GetMemory().GetId() ||
				again.GetMemory().GetMentionCount() != int32(n+2) ||
				again.GetMemory().GetText() != same[0] {
				t.Errorf("%q beside %q: %s", text, same[0], again)
			}
		}
	}
	for i, apart := range [][2]string{
		{"用户养了3只乌龟和一只猫", "用户养了4只乌龟和一只猫"},
		{"The user owes Marta 1,500 euros since spring", "The user owes Marta 1,550 euros since spring"},
		{"The user's best friend at school was Jonas Weber", "The user's best friend at school was Jonas Becker"},
		{"用户最好的朋友叫王小明，住在成都", "用户最好的朋友叫王小亮，住在成都"},
		{"用户能吃辣的四川火锅", "用户不能吃辣的四川火锅"},
		{"The user wants to be reminded of birthdays", "The user never wants to be reminded of birthdays"},
		{"The user has a shift on Monday evening", "The user has a shift on Sunday evening"},
		{"用户每天都写C#", "用户每天都写C"},
		{"用户在学C#语言", "用户在学C语言"},
		{"The freezer of the user is set to -18", "The freezer of the user is set to 18"},
		{"The user likes tea with milk in the morning", "The user likes tea with rum in the morning"},
	} {
		scope := sidecartest.Direct("apart" + string(rune('a'+i)))
		create(scope, apart[0])
		if other := create(scope, apart[1]); other.GetMerged() || len(r.Memories(t, scope)) != 2 {
			t.Errorf("%q is lost beside %q: %s", apart[1], apart[0], other)
		}
	}
}

// TestCreateMemoryMergesWithinOneVisibility: Memories of different groups are not merged. Withdrawn and superseded memories stay so. A
// field of the request forces a new memory.
func TestCreateMemoryMergesWithinOneVisibility(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	for _, scope := range []*memsidecarv1.Scope{
		sidecartest.Group("kim", "a"), sidecartest.Group("kim", "b"), sidecartest.Direct("kim"),
		{UserId: "kim"},
		sidecartest.Direct("lee"),
	} {
		for n, text := range []string{"Kim plays the cello", "Kim plays the cello !"} {
			resp := sidecartest.Must(
				r.CreateMemory(t.Context(), &memsidecarv1.CreateMemoryRequest{Scope: scope, Memory: &memsidecarv1.Memory{Text: text}}),
			)(
				t,
			)
			if resp.GetMerged() != (n == 1) || resp.GetMemory().GetMentionCount() != int32(n+1) ||
				resp.GetMemory().GetScope().GetChannelId() != scope.GetChannelId() {
				t.Errorf("%s: %s", scope, resp)
			}
		}
	}
	scope := sidecartest.Direct("forced")
	first := r.Create(t, scope, "plays  chess")
	for _, text := range []string{"plays chess", "plays chess!"} {
		request := &memsidecarv1.CreateMemoryRequest{
			Scope:     scope,
			RequestId: "force " + text,
			ForceNew:  true,
			Memory:    &memsidecarv1.Memory{Text: text},
		}
		forced := sidecartest.Must(r.CreateMemory(t.Context(), request))(t)
		if forced.GetMerged() || forced.GetMemory().GetId() == first.GetId() || forced.GetMemory().GetMentionCount() != 1 {
			t.Errorf("forced %q: %s", text, forced)
		}
		wantSame(t, sidecartest.Must(r.CreateMemory(t.Context(), request))(t), forced)
		request.ForceNew = false
		_, err := r.CreateMemory(t.Context(), request)
		sidecartest.WantInvalid(t, err, "request_id")
	}

	// The user asks to forget it.
	scope = sidecartest.Direct("gone")
	old := r.Create(t, scope, "The user plays the trombone.")
	r.Consider(t, scope, sidecartest.Said("Please forget that I play the trombone."))
	withdrawn := sidecartest.Must(r.ListMemories(t.Context(), &memsidecarv1.ListMemoriesRequest{
		Scope: scope, States: []memsidecarv1.MemoryState{memsidecarv1.MemoryState_MEMORY_STATE_WITHDRAWN},
	}))(t).GetMemories()
	if len(withdrawn) != 1 || withdrawn[0].GetId() != old.GetId() {
		t.Fatalf("withdrawn are %s", withdrawn)
	}
	back := sidecartest.Must(
		r.CreateMemory(
			t.Context(),
			&memsidecarv1.CreateMemoryRequest{Scope: scope, Memory: &memsidecarv1.Memory{Text: "The user plays trombone"}},
		),
	)(
		t,
	)
	if back.GetMerged() || back.GetMemory().GetId() == old.GetId() {
		t.Errorf("merged into a withdrawn memory: %s", back)
	}
}

// TestMergedCreateMemoryIsIdempotent: A repeated call gives the same answer and counts once. Of concurrent calls one stores.
func TestMergedCreateMemoryIsIdempotent(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	scope := sidecartest.Direct("u")
	r.Create(t, scope, "The user restores old radios")
	request := &memsidecarv1.CreateMemoryRequest{
		Scope:     scope,
		RequestId: "once",
		Memory:    &memsidecarv1.Memory{Text: "the user restores old radios ."},
	}
	merged := sidecartest.Must(r.CreateMemory(t.Context(), request))(t)
	again := sidecartest.Must(r.CreateMemory(t.Context(), request))(t)
	if !merged.GetMerged() || merged.GetMemory().GetMentionCount() != 2 {
		t.Errorf("merged: %s", merged)
	}
	wantSame(t, again, merged)

	scope = sidecartest.Direct("busy")
	var calls sync.WaitGroup
	for i := range 8 {
		calls.Go(func() {
			text := strings.Repeat(" ", i) + "The user" + strings.Repeat(" ", i+1) + "bakes bread, on Sundays" + strings.Repeat("!", i)
			if i%2 == 0 {
				text = strings.Replace(text, ", on", " on", 1)
			}
			if _, err := r.CreateMemory(t.Context(), &memsidecarv1.CreateMemoryRequest{Scope: scope, Memory: &memsidecarv1.Memory{Text: text}}); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if list := r.Memories(t, scope); len(list) != 1 || list[0].GetMentionCount() != 8 {
		t.Errorf("%d memories: %s", len(list), list)
	}
}

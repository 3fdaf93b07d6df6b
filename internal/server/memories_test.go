package server_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

const (
	kindFact       = memsidecarv1.MemoryKind_MEMORY_KIND_FACT
	kindPreference = memsidecarv1.MemoryKind_MEMORY_KIND_PREFERENCE
	kindPlan       = memsidecarv1.MemoryKind_MEMORY_KIND_PLAN
)

var spring = timestamppb.New(time.Date(2026, 3, 20, 9, 46, 0, 123456000, time.UTC))

func TestCreateMemory(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	scope := sidecartest.Group("u", "g")
	scope.AgentId, scope.SessionId = "npc", "s1"
	started := time.Now().Add(-time.Second)
	m := sidecartest.Must(r.CreateMemory(t.Context(), &memsidecarv1.CreateMemoryRequest{Scope: scope, Memory: &memsidecarv1.Memory{
		Text: "  喜欢 \n 吃辣\t", Kind: kindPreference, Importance: proto.Float64(0), ObserveTime: spring,
		// The server fills in the other fields.
		Id: "mine", Language: "fr", MentionCount: 9, UseCount: 9, CreateTime: spring, Scope: sidecartest.Direct("v"),
		Provenance: &memsidecarv1.Provenance{Quote: "q"},
	}}))(t).GetMemory()
	want := &memsidecarv1.Memory{
		Id: m.GetId(), Text: "喜欢 吃辣", Kind: kindPreference, Importance: proto.Float64(0), Explicit: true, Language: "zh",
		Scope: sidecartest.InNamespace("default", scope), ObserveTime: spring, LastMentionTime: spring, MentionCount: 1,
		CreateTime: m.GetCreateTime(), UpdateTime: m.GetCreateTime(),
		Provenance: &memsidecarv1.Provenance{Source: memsidecarv1.MemorySource_MEMORY_SOURCE_API, SpeakerId: "u", Reason: m.GetProvenance().GetReason()},
		State:      memsidecarv1.MemoryState_MEMORY_STATE_ACTIVE, ValidStartTime: spring,
	}
	wantSame(t, m, want)
	if m.GetId() == "mine" || m.GetId() == "" || m.GetCreateTime().AsTime().Before(started) || m.GetProvenance().GetReason() == "" {
		t.Errorf("stored %s", m)
	}
	wantSame(t, r.Memory(t, scope, m.GetId()), m)
	plain := r.Create(t, sidecartest.Direct("u"), "Likes tea")
	if plain.GetKind() != kindFact || plain.GetImportance() != 0.5 || plain.Importance == nil ||
		!plain.GetObserveTime().AsTime().Equal(plain.GetCreateTime().AsTime()) {
		t.Errorf("the defaults are %s", plain)
	}
	again := r.Create(t, sidecartest.Direct("u"), "likes  TEA.")
	if again.GetId() != plain.GetId() || again.GetMentionCount() != 2 || again.GetText() != "Likes tea" {
		t.Errorf("a stored text: %s", again)
	}
}

func wantSame(t *testing.T, got, want proto.Message) {
	t.Helper()
	if !proto.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", prototext.Format(got), prototext.Format(want))
	}
}

func TestCreateMemoryIsIdempotent(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	request := func(text string) *memsidecarv1.CreateMemoryRequest {
		return &memsidecarv1.CreateMemoryRequest{Scope: sidecartest.Direct("u"), Memory: &memsidecarv1.Memory{Text: text}, RequestId: "id"}
	}
	first := sidecartest.Must(r.CreateMemory(t.Context(), request("Likes tea")))(t).GetMemory()
	wantSame(t, sidecartest.Must(r.CreateMemory(t.Context(), request("Likes tea")))(t).GetMemory(), first)
	_, err := r.CreateMemory(t.Context(), request("Likes coffee"))
	sidecartest.WantInvalid(t, err, "request_id")
	other := request("Likes tea")
	other.Scope = sidecartest.Group("u", "g")
	_, err = r.CreateMemory(t.Context(), other)
	sidecartest.WantInvalid(t, err, "request_id")
	sidecartest.Must(r.DeleteMemory(t.Context(), &memsidecarv1.DeleteMemoryRequest{Scope: sidecartest.Direct("u"), MemoryId: first.GetId()}))(t)
	_, err = r.CreateMemory(t.Context(), request("Likes tea"))
	sidecartest.WantCode(t, err, codes.NotFound) // a deleted memory is not created again
	if m := r.Memories(t, sidecartest.Direct("u")); len(m) != 0 {
		t.Errorf("stored %s", m)
	}
}

func TestListMemories(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	const count = 7
	var newest []string
	for i := range count {
		kind := kindFact
		if i%2 == 1 {
			kind = kindPlan
		}
		m := sidecartest.Must(r.CreateMemory(t.Context(), &memsidecarv1.CreateMemoryRequest{Scope: sidecartest.Direct("u"), Memory: &memsidecarv1.Memory{
			Text: fmt.Sprint("Number ", i), Kind: kind, Importance: new(float64(i) / 10),
		}}))(t)
		newest = append([]string{m.GetMemory().GetId()}, newest...)
	}
	for size := int32(0); size <= count+1; size++ {
		var got []string
		request := &memsidecarv1.ListMemoriesRequest{Scope: sidecartest.Direct("u"), PageSize: size}
		for pages := 1; ; pages++ {
			resp := sidecartest.Must(r.ListMemories(t.Context(), request))(t)
			for _, m := range resp.GetMemories() {
				got = append(got, m.GetId())
			}
			full := size > 0 && len(resp.GetMemories()) == int(size)
			request.PageToken = resp.GetNextPageToken()
			if request.GetPageToken() == "" {
				break
			}
			if !full || pages > count {
				t.Fatalf("page %d of size %d has %d memories and a next one", pages, size, len(resp.GetMemories()))
			}
		}
		if !slices.Equal(got, newest) {
			t.Errorf("in pages of %d: %q, want %q", size, got, newest)
		}
	}
	// New and deleted memories do not affect a listing in progress.
	first := sidecartest.Must(r.ListMemories(t.Context(), &memsidecarv1.ListMemoriesRequest{Scope: sidecartest.Direct("u"), PageSize: 3}))(t)
	r.Create(t, sidecartest.Direct("u"), "Newer")
	sidecartest.Must(r.DeleteMemory(t.Context(), &memsidecarv1.DeleteMemoryRequest{Scope: sidecartest.Direct("u"), MemoryId: newest[2]}))(t)
	second := sidecartest.Must(
		r.ListMemories(t.Context(), &memsidecarv1.ListMemoriesRequest{Scope: sidecartest.Direct("u"), PageSize: 3, PageToken: first.GetNextPageToken()}),
	)(
		t,
	)
	if second.GetMemories()[0].GetId() != newest[3] {
		t.Errorf("the second page begins with %s", second.GetMemories()[0])
	}
	for filter, want := range map[string]int{`kind = "plan"`: 3, `kind = "plan" AND importance >= 0.3`: 2, `explicit = false`: 0, `language = "en"`: count} {
		resp := sidecartest.Must(r.ListMemories(t.Context(), &memsidecarv1.ListMemoriesRequest{Scope: sidecartest.Direct("u"), Filter: filter}))(t)
		if len(resp.GetMemories()) != want {
			t.Errorf("%s: %d memories, want %d", filter, len(resp.GetMemories()), want)
		}
	}
}

func TestUpdateMemory(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	m := r.Create(t, sidecartest.Direct("u"), "Likes tea")
	update := func(change *memsidecarv1.Memory, paths *fieldmaskpb.FieldMask) *memsidecarv1.Memory {
		t.Helper()
		change.Id = m.GetId()
		resp := sidecartest.Must(
			r.UpdateMemory(t.Context(), &memsidecarv1.UpdateMemoryRequest{Scope: sidecartest.Direct("u"), Memory: change, UpdateMask: paths}),
		)(
			t,
		)
		stored := r.Memory(t, sidecartest.Direct("u"), m.GetId())
		// The retrievals below count a use in the background.
		for _, memory := range []*memsidecarv1.Memory{stored, resp.GetMemory()} {
			memory.UseCount, memory.LastUseTime = 0, nil
		}
		wantSame(t, stored, resp.GetMemory())
		return resp.GetMemory()
	}
	changed := update(&memsidecarv1.Memory{Text: "喜欢 喝咖啡"}, nil)
	if changed.GetText() != "喜欢 喝咖啡" || changed.GetLanguage() != "zh" || changed.GetKind() != kindFact || changed.GetImportance() != 0.5 ||
		!changed.GetUpdateTime().AsTime().After(m.GetUpdateTime().AsTime()) || !changed.GetCreateTime().AsTime().Equal(m.GetCreateTime().AsTime()) {
		t.Errorf("the text alone: %s", changed)
	}
	if got := r.Texts(t, sidecartest.Direct("u"), "咖啡"); len(got) != 1 || got[0] != "喜欢 喝咖啡" {
		t.Errorf("the new text is found as %q", got)
	}
	if got := r.Texts(t, sidecartest.Direct("u"), "tea"); len(got) != 0 {
		t.Errorf("the old text is found as %q", got)
	}
	changed = update(&memsidecarv1.Memory{Importance: proto.Float64(0)}, nil)
	if changed.Importance == nil || changed.GetImportance() != 0 {
		t.Errorf("importance 0 without a mask: %s", changed)
	}
	changed = update(&memsidecarv1.Memory{Text: "ignored", Kind: kindPlan, Importance: proto.Float64(7)}, sidecartest.Mask("kind"))
	if changed.GetText() != "喜欢 喝咖啡" || changed.GetKind() != kindPlan || changed.GetImportance() != 0 {
		t.Errorf("a mask of kind: %s", changed)
	}
	changed = update(&memsidecarv1.Memory{Text: "All new"}, sidecartest.Mask("*"))
	if changed.GetText() != "All new" || changed.GetKind() != kindFact || changed.GetImportance() != 0.5 || changed.GetMentionCount() != 1 {
		t.Errorf("a mask of everything: %s", changed)
	}
	_, err := r.UpdateMemory(
		t.Context(),
		&memsidecarv1.UpdateMemoryRequest{Scope: sidecartest.Direct("u"), Memory: &memsidecarv1.Memory{Id: m.GetId()}, UpdateMask: sidecartest.Mask("text")},
	)
	sidecartest.WantInvalid(t, err, "memory.text")
	_, err = r.UpdateMemory(
		t.Context(),
		&memsidecarv1.UpdateMemoryRequest{Scope: sidecartest.Direct("u"), Memory: &memsidecarv1.Memory{Id: m.GetId(), Importance: new(math.NaN())}},
	)
	sidecartest.WantInvalid(t, err, "memory.importance")
}

func TestDeleteMemory(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	m := r.Create(t, sidecartest.Direct("u"), "Likes tea")
	request := &memsidecarv1.DeleteMemoryRequest{Scope: sidecartest.Direct("u"), MemoryId: m.GetId()}
	sidecartest.Must(r.DeleteMemory(t.Context(), request))(t)
	_, err := r.DeleteMemory(t.Context(), request)
	sidecartest.WantCode(t, err, codes.NotFound)
	if got := r.Texts(t, sidecartest.Direct("u"), "tea"); len(got) != 0 || len(r.Memories(t, sidecartest.Direct("u"))) != 0 {
		t.Errorf("a deleted memory is found: %q", got)
	}
	if again := r.Create(t, sidecartest.Direct("u"), "Likes tea"); again.GetMentionCount() != 1 {
		t.Errorf("created again: %s", again)
	}
}

// TestExportImportKeepsIDsAndFields: An imported export has all fields that docs/design/api.md names, with the same ids.
func TestExportImportKeepsIDsAndFields(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("I am allergic to peanuts."))
	r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("I am allergic to peanuts.")) // mentioned twice
	r.Consider(t, sidecartest.Group("u", "g"), sidecartest.Said("请记住：我的暗号是海棠"), by("v", "My name is Bob."))
	scope := sidecartest.WithoutChannel("u")
	scope.AgentId, scope.ChannelId, scope.SessionId = "npc", "c", "s"
	sidecartest.Must(r.CreateMemory(t.Context(), &memsidecarv1.CreateMemoryRequest{Scope: scope, Memory: &memsidecarv1.Memory{
		Text: "Likes tea", Kind: kindPreference, Importance: proto.Float64(0), ObserveTime: spring,
	}}))(t)
	updated := r.Create(t, sidecartest.Direct("u"), "Will change")
	sidecartest.Must(
		r.UpdateMemory(
			t.Context(),
			&memsidecarv1.UpdateMemoryRequest{
				Scope:  sidecartest.Direct("u"),
				Memory: &memsidecarv1.Memory{Id: updated.GetId(), Text: "Changed", Kind: kindPlan},
			},
		),
	)(
		t,
	)
	sidecartest.Must(
		r.UpdateUserSettings(
			t.Context(),
			&memsidecarv1.UpdateUserSettingsRequest{Scope: sidecartest.Direct("u"), Settings: &memsidecarv1.UserSettings{Language: "zh"}},
		),
	)(
		t,
	)
	// Imported revisions, and memories that are not current.
	history := []*memsidecarv1.Memory{
		{Id: "before", Text: "Likes coffee", Scope: sidecartest.Direct("u"), ValidStartTime: spring, ValidEndTime: later(spring), SupersededById: "since"},
		{Id: "since", Text: "Likes cocoa", Scope: sidecartest.Direct("u"), ValidStartTime: later(spring)},
		{Id: "over", Text: "Has a concert to go to", Scope: sidecartest.Direct("u"), ValidEndTime: spring},
		{Id: "doubtful", Text: "Lives in Paris", Scope: sidecartest.Direct("u"), QuarantineReason: "Paris is in none of the messages"},
		{Id: "gone", Text: "Earns 3,000 a month", Scope: sidecartest.Direct("u"), State: memsidecarv1.MemoryState_MEMORY_STATE_WITHDRAWN},
	}
	if resp := sidecartest.Must(r.Import(t, sidecartest.Direct("u"), history...))(t); resp.GetAddedCount() != 4 || resp.GetSkippedCount() != 1 {
		t.Errorf("imported history as %s", resp)
	}
	count := int64(8)

	e := r.Export(t, sidecartest.Direct("u"))
	if len(e.Memories) != int(count) || len(e.Considerations) != 3 || e.Settings.GetLanguage() != "zh" ||
		e.Records[0].GetSettings() == nil || e.Records[1].GetMemory() == nil || e.Records[9].GetMemoryRevision().GetPrevious().GetText() != "Will change" ||
		e.Records[10].GetConsideration() == nil || e.Records[13].GetSession() == nil ||
		e.Records[len(e.Records)-4].GetTrace() == nil || e.Records[len(e.Records)-1].GetDigestFinding() == nil {
		t.Fatalf("exported %s", e.Records)
	}
	if !slices.IsSortedFunc(e.Memories, func(a, b *memsidecarv1.Memory) int {
		return a.GetCreateTime().AsTime().Compare(b.GetCreateTime().AsTime())
	}) {
		t.Error("memories are not exported oldest first")
	}
	for _, to := range []*memsidecarv1.Scope{sidecartest.WithoutChannel("copy"), sidecartest.InNamespace("elsewhere/else", sidecartest.WithoutChannel("u"))} {
		resp := sidecartest.Must(r.Import(t, to, e.Memories...))(t)
		if resp.GetAddedCount() != count || resp.GetSkippedCount() != 0 {
			t.Errorf("imported %s", resp)
		}
		moved := r.Export(t, to).Memories
		for i, m := range e.Memories {
			want, _ := proto.Clone(m).(*memsidecarv1.Memory)
			want.Scope.UserId = to.GetUserId()
			if to.GetNamespace() != "" {
				want.Scope.Namespace = to.GetNamespace()
			}
			want.UseCount, want.LastUseTime = 0, nil
			wantSame(t, moved[i], want)
		}
		resp = sidecartest.Must(r.Import(t, to, e.Memories...))(t)
		if resp.GetAddedCount() != 0 || resp.GetSkippedCount() != count {
			t.Errorf("imported a second time: %s", resp)
		}
		if again := r.Export(t, to).Memories; len(again) != int(count) || !proto.Equal(again[0], moved[0]) {
			t.Errorf("importing twice changed %s", again)
		}
		inDirect, _ := proto.Clone(to).(*memsidecarv1.Scope)
		inDirect.ChannelKind = memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT
		if got := r.Texts(t, inDirect, "allergic to peanuts"); len(got) == 0 {
			t.Error("an imported memory is not found")
		}
	}
}

// later returns the time a month later.
func later(t *timestamppb.Timestamp) *timestamppb.Timestamp {
	return timestamppb.New(t.AsTime().AddDate(0, 1, 0))
}

func TestImportFillsMissingFields(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	scope := sidecartest.Group("u", "g")
	resp := sidecartest.Must(r.Import(t, scope,
		&memsidecarv1.Memory{Text: "Likes tea"}, &memsidecarv1.Memory{Text: "likes tea!"}, // equal after normalisation
		&memsidecarv1.Memory{Text: "Likes tea", Scope: sidecartest.Direct("whoever")}, // another channel, so another memory
		&memsidecarv1.Memory{Id: "theirs/1", Text: "喜欢\n吃辣", CreateTime: spring},
		&memsidecarv1.Memory{Id: "theirs/1", Text: "Another text under the same id"},
	))(t)
	if resp.GetAddedCount() != 3 || resp.GetSkippedCount() != 2 {
		t.Errorf("imported %s", resp)
	}
	m := r.Memory(t, scope, "theirs/1")
	if m.GetText() != "喜欢 吃辣" || m.GetLanguage() != "zh" || m.GetKind() != kindFact || m.GetImportance() != 0.5 || m.GetMentionCount() != 1 ||
		m.GetExplicit() || !proto.Equal(m.GetUpdateTime(), spring) || !proto.Equal(m.GetObserveTime(), spring) || !proto.Equal(m.GetLastMentionTime(), spring) ||
		m.GetProvenance().GetSource() != memsidecarv1.MemorySource_MEMORY_SOURCE_IMPORT || m.GetScope().GetChannelId() != "g" {
		t.Errorf("filled in as %s", m)
	}
	empty := sidecartest.Must(r.Import(t, scope))(t)
	if empty.GetAddedCount() != 0 || empty.GetSkippedCount() != 0 {
		t.Errorf("imported nothing as %s", empty)
	}
	var many []*memsidecarv1.Memory
	for i := range 250 { // several batches
		many = append(many, &memsidecarv1.Memory{Text: fmt.Sprint("Number ", i)})
	}
	if resp := sidecartest.Must(r.Import(t, sidecartest.Direct("many"), many...))(t); resp.GetAddedCount() != 250 {
		t.Errorf("imported %s", resp)
	}
	if e := r.Export(t, sidecartest.Direct("many")); len(e.Memories) != 250 || !strings.HasSuffix(e.Memories[249].GetText(), " 249") {
		t.Errorf("%d memories, the last is %s", len(e.Memories), e.Memories[len(e.Memories)-1])
	}
}

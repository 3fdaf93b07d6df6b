package server_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// saidAt returns a user's message with a time.
func saidAt(at time.Time, text string) *memsidecarv1.Message {
	m := sidecartest.Said(text)
	m.SendTime = timestamppb.New(at)
	return m
}

// TestRetrieveAsOfAReadTime replays a conversation of months. Everything is stored today, and each read time sees only what was said
// before it.
func TestRetrieveAsOfAReadTime(t *testing.T) {
	r := sidecartest.Serve(t, "time_zone=UTC")
	scope := sidecartest.Direct("u")
	spring := time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)
	summer := spring.AddDate(0, 3, 0)
	const beijing, shanghai = "I live in Beijing.", "I moved to Shanghai and no longer live in Beijing."
	r.Consider(t, scope, saidAt(spring, beijing))
	r.Consider(t, scope, saidAt(summer, shanghai))
	find := func(at time.Time, history bool) *memsidecarv1.RetrieveResponse {
		request := &memsidecarv1.RetrieveRequest{
			Scope: scope, Query: "Beijing or Shanghai?", IncludeHistory: history, NeighborCount: new(int32(5)), Sources: []memsidecarv1.RetrieveSource{
				memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MEMORIES, memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MESSAGES,
			},
		}
		if !at.IsZero() {
			request.ReadTime = timestamppb.New(at)
		}
		return sidecartest.Must(r.Retrieve(t.Context(), request))(t)
	}
	for name, test := range map[string]struct {
		at                time.Time
		memories, history []string
		messages          []string // with their neighbours
	}{
		"before anything was said": {at: spring.Add(-time.Second)},
		"when the first was said": {
			at: spring, memories: []string{beijing}, history: []string{beijing}, messages: []string{beijing},
		},
		"just before the second": {
			at: summer.Add(-time.Second), memories: []string{beijing}, history: []string{beijing}, messages: []string{beijing},
		},
		"when the second was said": {
			at: summer, memories: []string{shanghai}, history: []string{beijing, shanghai},
			messages: []string{beijing, shanghai},
		},
		"now": {
			memories: []string{shanghai}, history: []string{beijing, shanghai}, messages: []string{beijing, shanghai},
		},
		"in the future": {
			at: time.Now().AddDate(1, 0, 0), memories: []string{shanghai}, history: []string{beijing, shanghai},
			messages: []string{beijing, shanghai},
		},
	} {
		for history, want := range map[bool][]string{false: test.memories, true: test.history} {
			resp := find(test.at, history)
			got := []string{}
			for _, hit := range resp.GetMemories() {
				m := hit.GetMemory()
				got = append(got, m.GetText())
				active := slices.Contains(test.memories, m.GetText())
				if (m.GetState() == memsidecarv1.MemoryState_MEMORY_STATE_ACTIVE) != active || (m.GetSupersededById() == "") != active ||
					(m.GetValidEndTime() == nil) != active {
					t.Errorf("%s, history %t: found %s", name, history, m)
				}
			}
			if slices.Sort(got); !slices.Equal(got, append([]string{}, want...)) {
				t.Errorf("%s, history %t: found %q, want %q", name, history, got, want)
			}
			if in := strings.Contains(resp.GetPromptContext(), "superseded"); in != (len(want) == 2) {
				t.Errorf("%s, history %t: the prompt is\n%s", name, history, resp.GetPromptContext())
			}
			said := []string{}
			for _, hit := range resp.GetMessages() {
				for _, m := range slices.Concat(hit.GetBefore(), []*memsidecarv1.SessionMessage{hit.GetMessage()}, hit.GetAfter()) {
					said = append(said, m.GetMessage().GetContent())
				}
			}
			slices.Sort(said)
			if said = slices.Compact(said); !slices.Equal(said, append([]string{}, test.messages...)) {
				t.Errorf("%s: found the messages %q, want %q", name, said, test.messages)
			}
		}
	}

	if got := find(spring, false).GetMemories()[0].GetParts().GetRecency(); got != 1 {
		t.Errorf("when it was said, recency is %v", got)
	}
	halfLife := find(spring.Add(30*24*time.Hour), false)
	if got := halfLife.GetMemories()[0].GetParts().GetRecency(); got < 0.49 || got > 0.51 {
		t.Errorf("after a half-life, recency is %v", got)
	}
	trace := sidecartest.Must(
		memsidecarv1.NewTraceServiceClient(r.Conn).
			GetTrace(t.Context(), &memsidecarv1.GetTraceRequest{Scope: scope, TraceId: halfLife.GetTraceId()}),
	)(
		t,
	)
	if got := trace.GetTrace().GetRetrieve().GetReadTime().AsTime(); !got.Equal(spring.Add(30 * 24 * time.Hour)) {
		t.Errorf("the trace has the read time %s", got)
	}
}

// TestReadTimeDecidesWhatHasExpired: An appointment is current until its end, relative to the read time, which may be in the future.
func TestReadTimeDecidesWhatHasExpired(t *testing.T) {
	r := sidecartest.Serve(t)
	spoken, over := time.Now().AddDate(0, -2, 0), time.Now().AddDate(0, 1, 0)
	sidecartest.Must(r.Import(t, sidecartest.Direct("u"), &memsidecarv1.Memory{
		Id: "past", Text: "The user sees the dentist", ObserveTime: timestamppb.New(spoken), CreateTime: timestamppb.New(spoken),
		ValidEndTime: timestamppb.New(spoken.AddDate(0, 1, 0)),
	}, &memsidecarv1.Memory{
		Id: "coming", Text: "The user sees the dentist again", ObserveTime: timestamppb.New(spoken), CreateTime: timestamppb.New(spoken),
		ValidEndTime: timestamppb.New(over),
	}))(t)
	for name, test := range map[string]struct {
		at   *timestamppb.Timestamp
		want []string
	}{
		"then":              {timestamppb.New(spoken.AddDate(0, 0, 3)), []string{"coming", "past"}},
		"now":               {nil, []string{"coming"}},
		"when both is over": {timestamppb.New(over), nil},
	} {
		resp := sidecartest.Must(
			r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct("u"), Query: "dentist", ReadTime: test.at}),
		)(
			t,
		)
		var got []string
		for _, hit := range resp.GetMemories() {
			got = append(got, hit.GetMemory().GetId())
			if hit.GetMemory().GetState() != memsidecarv1.MemoryState_MEMORY_STATE_ACTIVE {
				t.Errorf("%s: found %s", name, hit.GetMemory())
			}
		}
		if slices.Sort(got); !slices.Equal(got, test.want) {
			t.Errorf("%s: found %q, want %q", name, got, test.want)
		}
	}
}

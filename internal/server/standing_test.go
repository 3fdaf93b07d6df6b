package server_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

const (
	address = memsidecarv1.Standing_STANDING_ADDRESS
	style   = memsidecarv1.Standing_STANDING_STYLE
	safety  = memsidecarv1.Standing_STANDING_SAFETY
	none    = memsidecarv1.Standing_STANDING_UNSPECIFIED
)

// always returns the standing memories in the answer to an ordinary question, and checks that the block has them.
func always(t *testing.T, r *sidecartest.Sidecar, scope *memsidecarv1.Scope) []string {
	t.Helper()
	resp := r.Recalled(t, &memsidecarv1.RetrieveRequest{Scope: scope, Query: "explain tides"})
	texts := []string{}
	for _, m := range resp.GetStanding() {
		texts = append(texts, m.GetText())
		if !strings.Contains(resp.GetPromptContext(), m.GetText()) {
			t.Errorf("%q is missing in\n%s", m.GetText(), resp.GetPromptContext())
		}
	}
	if len(resp.GetMemories()) > 0 || utf8.RuneCountInString(resp.GetPromptContext()) > 600 || len(texts) == 0 && resp.GetPromptContext() != "" {
		t.Errorf("the answer is %s", resp)
	}
	return texts
}

func wantAlways(t *testing.T, r *sidecartest.Sidecar, scope *memsidecarv1.Scope, when string, want ...string) {
	t.Helper()
	if got := always(t, r, scope); !slices.Equal(got, want) && len(got)+len(want) > 0 {
		t.Errorf("%s: %q, want %q", when, got, want)
	}
}

// TestStandingIsHeard: what the user says becomes part of every answer, and other things do not.
func TestStandingIsHeard(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	for _, test := range []struct {
		said string
		want memsidecarv1.Standing
	}{
		{"I'm allergic to peanuts.", safety},
		{"我对青霉素过敏", safety},
		{"My name is Marek.", address},
		{"From now on call me Doc.", address},
		{"以后叫我阿宁", address},
		{"Please always answer in French.", style},
		{"以后回答尽量简短", style},
		{"Never use emojis when you answer me.", style},
		{"I live in Berlin.", none},
		{"My son is allergic to nuts.", none},
		{"My daughter's name is Ada.", none},
		{"我喜欢吃辣，不喜欢吃甜的", none},
	} {
		scope := sidecartest.Direct(test.said)
		c := r.Consider(t, scope, sidecartest.Said(test.said))
		if len(c.GetChanges()) != 1 {
			t.Errorf("%q: %s", test.said, c)
			continue
		}
		m := r.Memory(t, scope, c.GetChanges()[0].GetMemoryId())
		if m.GetStanding() != test.want {
			t.Errorf("%q became %q with %s, want %s", test.said, m.GetText(), m.GetStanding(), test.want)
		}
		if got := len(always(t, r, scope)) == 1; got != (test.want != none) {
			t.Errorf("%q is in every answer: %t", test.said, got)
		}
	}
}

// TestStandingFollowsTheMemory: a correction replaces it, an edit changes it, forgetting and deleting withdraw it.
func TestStandingFollowsTheMemory(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	scope := sidecartest.Direct("u")
	wantAlways(t, r, scope, "at first")
	r.Consider(t, scope, sidecartest.Said("My name is Marek."))
	r.Consider(t, scope, sidecartest.Said("I live in Berlin."))
	r.Consider(t, scope, sidecartest.Said("I'm allergic to peanuts."))
	wantAlways(t, r, scope, "safety first", "I'm allergic to peanuts.", "My name is Marek.")
	r.Consider(t, scope, sidecartest.Said("I'm now called Marc, no longer Marek."))
	wantAlways(t, r, scope, "corrected", "I'm allergic to peanuts.", "I'm now called Marc, no longer Marek.")
	r.Consider(t, scope, sidecartest.Said("Forget what I told you about my peanut allergy."))
	wantAlways(t, r, scope, "forgotten", "I'm now called Marc, no longer Marek.")

	edit := func(m *memsidecarv1.Memory, fields ...string) {
		sidecartest.Must(r.UpdateMemory(t.Context(), &memsidecarv1.UpdateMemoryRequest{
			Scope: scope, Memory: m, UpdateMask: sidecartest.Mask(fields...),
		}))(t)
	}
	listed := sidecartest.Must(r.ListMemories(t.Context(), &memsidecarv1.ListMemoriesRequest{Scope: scope, Standing: true}))(t).GetMemories()
	if len(listed) != 1 || listed[0].GetStanding() != address {
		t.Fatalf("listed %s", listed)
	}
	id := listed[0].GetId()
	edit(&memsidecarv1.Memory{Id: id, Text: "The user's name is Marcel."}, "text")
	wantAlways(t, r, scope, "edited", "The user's name is Marcel.")
	edit(&memsidecarv1.Memory{Id: id}, "standing")
	wantAlways(t, r, scope, "no longer standing")
	edit(&memsidecarv1.Memory{Id: id, Standing: style}, "standing")
	wantAlways(t, r, scope, "standing again", "The user's name is Marcel.")
	sidecartest.Must(r.DeleteMemory(t.Context(), &memsidecarv1.DeleteMemoryRequest{Scope: scope, MemoryId: id}))(t)
	wantAlways(t, r, scope, "deleted")

	created := sidecartest.Must(r.CreateMemory(t.Context(), &memsidecarv1.CreateMemoryRequest{
		Scope: scope, Memory: &memsidecarv1.Memory{Text: "The user wants no jokes.", Standing: style},
	}))(t).GetMemory()
	wantAlways(t, r, scope, "created", created.GetText())
	_, err := r.CreateMemory(t.Context(), &memsidecarv1.CreateMemoryRequest{Scope: scope, Memory: &memsidecarv1.Memory{Text: "x", Standing: 99}})
	sidecartest.WantInvalid(t, err, "memory.standing")
}

// TestStandingPerVisibility: a group never sees what was said in private, and the newer of two that contradict each other counts.
func TestStandingPerVisibility(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	private, group := sidecartest.Direct("u"), sidecartest.Group("u", "g1")
	at := time.Now().Add(-time.Hour)
	r.Consider(t, private, saidAt(at, "I'm allergic to peanuts."))
	r.Consider(t, private, saidAt(at, "From now on call me Doc."))
	by := saidAt(at.Add(time.Minute), "Please call me Marc from now on.")
	by.SpeakerId = "u"
	r.Consider(t, group, by)
	wantAlways(t, r, group, "in the group", "Please call me Marc from now on.")
	wantAlways(t, r, sidecartest.Group("u", "g2"), "in another group")
	wantAlways(t, r, private, "in private", "I'm allergic to peanuts.", "Please call me Marc from now on.")
	wantAlways(t, r, sidecartest.Direct("other"), "of another user")
}

// TestStandingInTime: at a read time it is what had been said by then and was not over.
func TestStandingInTime(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	scope := sidecartest.Direct("u")
	spring := time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)
	r.Consider(t, scope, saidAt(spring, "My name is Marek."))
	r.Consider(t, scope, saidAt(spring.AddDate(0, 3, 0), "I'm now called Marc, no longer Marek."))
	sidecartest.Must(r.Import(t, scope, &memsidecarv1.Memory{
		Id: "shots", Text: "The user must not take aspirin.", Standing: safety, ObserveTime: timestamppb.New(spring), CreateTime: timestamppb.New(spring),
		ValidEndTime: timestamppb.New(spring.AddDate(0, 1, 0)),
	}))(t)
	for name, test := range map[string]struct {
		at   time.Time
		want []string
	}{
		"before": {spring.Add(-time.Hour), nil},
		"then":   {spring.Add(time.Hour), []string{"The user must not take aspirin.", "My name is Marek."}},
		"later":  {spring.AddDate(0, 2, 0), []string{"My name is Marek."}},
		"now":    {time.Time{}, []string{"I'm now called Marc, no longer Marek."}},
	} {
		request := &memsidecarv1.RetrieveRequest{Scope: scope, Query: "explain tides"}
		if !test.at.IsZero() {
			request.ReadTime = timestamppb.New(test.at)
		}
		var got []string
		for _, m := range r.Recalled(t, request).GetStanding() {
			got = append(got, m.GetText())
			if m.GetState() != memsidecarv1.MemoryState_MEMORY_STATE_ACTIVE {
				t.Errorf("%s: %s", name, m)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestStandingSwitchedOff: by a request and by the configuration; then it is found like any other memory.
func TestStandingSwitchedOff(t *testing.T) {
	t.Parallel()
	for _, chars := range []string{"300", "0"} {
		r := sidecartest.Serve(t, "retrieval.standing_max_chars="+chars)
		scope := sidecartest.Direct("u")
		r.Consider(t, scope, sidecartest.Said("I'm allergic to peanuts."))
		for _, exclude := range []bool{false, true} {
			resp := r.Recalled(t, &memsidecarv1.RetrieveRequest{Scope: scope, Query: "peanuts", ExcludeStanding: exclude})
			want := 1
			if exclude || chars == "0" {
				want = 0
			}
			if len(resp.GetStanding()) != want || len(resp.GetMemories()) != 1-want || !strings.Contains(resp.GetPromptContext(), "peanuts") {
				t.Errorf("%s characters, exclude %t: %s", chars, exclude, resp)
			}
		}
	}
}

// TestStandingIsExported: what is exported and imported keeps its standing.
func TestStandingIsExported(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	scope := sidecartest.Direct("u")
	r.Consider(t, scope, sidecartest.Said("I'm allergic to peanuts."))
	m := r.Memories(t, scope)[0]
	other := sidecartest.Direct("other")
	m.Scope.UserId = "other"
	sidecartest.Must(r.Import(t, other, m))(t)
	wantAlways(t, r, other, "imported", "I'm allergic to peanuts.")
}

package server_test

import (
	"slices"
	"strings"
	"testing"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

const updated = memsidecarv1.MemoryAction_MEMORY_ACTION_UPDATED

// TestNewAddressSupersedesTheOld: The old address is found only with the history, and the change can be reverted.
func TestNewAddressSupersedesTheOld(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	for name, test := range map[string]struct{ first, then, query string }{
		"en": {"I live in Beijing.", "I moved to Shanghai and no longer live in Beijing.", "Beijing or Shanghai?"},
		"zh": {"我家住在北京。", "我搬家了，现在住在上海，不住北京了。", "北京还是上海"},
	} {
		scope := sidecartest.Direct(name)
		first := r.Consider(t, scope, sidecartest.Said(test.first), sidecartest.Answered("OK"))
		second := r.Consider(t, scope, sidecartest.Said(test.then), sidecartest.Answered("OK"))
		if c := second.GetChanges(); len(c) != 1 || c[0].GetAction() != updated || c[0].GetReason() == "" ||
			!slices.Equal(c[0].GetRelatedMemoryIds(), []string{first.GetChanges()[0].GetMemoryId()}) {
			t.Errorf("%s: moving did %v", name, c)
		}
		find := func(history bool) []string {
			resp := sidecartest.Must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: scope, Query: test.query, IncludeHistory: history}))(t)
			var list []string
			for _, m := range resp.GetMemories() {
				list = append(list, m.GetMemory().GetText())
			}
			slices.Sort(list)
			return list
		}
		if got := find(false); !slices.Equal(got, []string{test.then}) {
			t.Errorf("%s: found %q", name, got)
		}
		if got := find(true); !slices.Equal(got, []string{test.first, test.then}) {
			t.Errorf("%s: with the history found %q", name, got)
		}
		undone := sidecartest.Must(
			r.RevertMemory(t.Context(), &memsidecarv1.RevertMemoryRequest{Scope: scope, MemoryId: second.GetChanges()[0].GetMemoryId()}),
		)(
			t,
		)
		if undone.GetMemory().GetText() != test.first || undone.GetReverted().GetReason() == "" {
			t.Errorf("%s: undone is %v", name, undone)
		}
		if got := find(false); !slices.Equal(got, []string{test.first}) {
			t.Errorf("%s: after undoing found %q", name, got)
		}
	}
}

// TestDigestOmitsWithdrawnMemories: The digest of a day omits withdrawn memories.
func TestDigestOmitsWithdrawnMemories(t *testing.T) {
	t.Parallel()
	r := sidecartest.ServeFromNoon(t)
	r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("I prefer tea to coffee."), sidecartest.Answered("OK"))
	second := r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("I no longer like tea, I prefer coffee now."), sidecartest.Answered("OK"))
	if d := r.Digest(t, sidecartest.Direct("u"), ""); !strings.Contains(d.String(), "prefer coffee now") {
		t.Errorf("before, the digest is %v", d)
	}
	sidecartest.Must(
		r.RevertMemory(t.Context(), &memsidecarv1.RevertMemoryRequest{Scope: sidecartest.Direct("u"), MemoryId: second.GetChanges()[0].GetMemoryId()}),
	)(
		t,
	)
	if d := r.Digest(t, sidecartest.Direct("u"), ""); strings.Contains(d.String(), "prefer coffee now") {
		t.Errorf("afterwards, the digest is %v", d)
	}
}

package server_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

const updated = memsidecarv1.MemoryAction_MEMORY_ACTION_UPDATED

// TestNewAddressSupersedesTheOld: The old address is found only with the history, and the change can be reverted.
func TestNewAddressSupersedesTheOld(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	for name, test := range map[string]struct{ first, then, query, old, new string }{
		"en": {"I live in Beijing.", "I moved to Shanghai.", "Beijing or Shanghai?", "The user lives in Beijing.", "The user moved to Shanghai."},
		"zh": {"我住在北京。", "我搬到上海了。", "北京还是上海", "用户住在北京", "用户搬到上海了"},
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
		if got := find(false); !slices.Equal(got, []string{test.new}) {
			t.Errorf("%s: found %q", name, got)
		}
		if got := find(true); !slices.Equal(got, []string{test.old, test.new}) {
			t.Errorf("%s: with the history found %q", name, got)
		}
		undone := sidecartest.Must(
			r.RevertMemory(t.Context(), &memsidecarv1.RevertMemoryRequest{Scope: scope, MemoryId: second.GetChanges()[0].GetMemoryId()}),
		)(
			t,
		)
		if undone.GetMemory().GetText() != test.old || undone.GetReverted().GetReason() == "" {
			t.Errorf("%s: undone is %v", name, undone)
		}
		if got := find(false); !slices.Equal(got, []string{test.old}) {
			t.Errorf("%s: after undoing found %q", name, got)
		}
	}
}

// TestDigestOmitsWithdrawnMemories: The digest of a day omits withdrawn memories.
func TestDigestOmitsWithdrawnMemories(t *testing.T) {
	t.Parallel()
	r := sidecartest.ServeFromNoon(t)
	r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("I like cilantro."), sidecartest.Answered("OK"))
	second := r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("I don't like cilantro any more."), sidecartest.Answered("OK"))
	if d := r.Digest(t, sidecartest.Direct("u"), ""); !strings.Contains(d.String(), "like cilantro any more") {
		t.Errorf("before, the digest is %v", d)
	}
	sidecartest.Must(
		r.RevertMemory(t.Context(), &memsidecarv1.RevertMemoryRequest{Scope: sidecartest.Direct("u"), MemoryId: second.GetChanges()[0].GetMemoryId()}),
	)(
		t,
	)
	if d := r.Digest(t, sidecartest.Direct("u"), ""); strings.Contains(d.String(), "like cilantro any more") {
		t.Errorf("afterwards, the digest is %v", d)
	}
}

// TestReconcileByModel: A consideration makes one call to the summary's model, counted separately. It makes none without similar
// memories, or if the configuration demands rules.
func TestReconcileByModel(t *testing.T) {
	t.Parallel()
	for _, protocol := range sidecartest.Protocols() {
		t.Run(protocol, func(t *testing.T) {
			p := providertest.Start(t, 1000)
			r := sidecartest.Serve(t, sidecartest.UseProvider(protocol, p)...)
			if c := r.Component(t, "reconcile"); c.GetImplementation() != protocol+"/model-of-summary" || c.GetChoice() != "auto: as summary" {
				t.Errorf("compared by %v", c)
			}
			r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("我平时爱喝点茶。"), sidecartest.Answered("好的。"))
			if n := len(p.Requests(providertest.Reconcile)); n != 0 {
				t.Errorf("%d calls without stored memories", n)
			}
			p.Say("用户喜欢喝绿茶")
			r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("我平时爱喝点绿茶。"), sidecartest.Answered("好的。"))
			if n := len(p.Requests(providertest.Reconcile)); n != 1 {
				t.Errorf("%d calls", n)
			}
			sidecartest.Eventually(t, "the call is counted", func() bool {
				return slices.ContainsFunc(r.Status(t).GetUsage().GetToday().GetModels(), func(u *memsidecarv1.ModelUsage) bool {
					return u.GetPart() == "reconcile" && u.GetCallCount() == 1
				})
			})
			p.Fail(providertest.BrokenJSON, providertest.Reconcile)
			p.Say("用户喜欢喝红茶")
			c := r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("我平时爱喝点红茶。"), sidecartest.Answered("好的。"))
			if c.GetState() != sidecartest.Remembered || !strings.Contains(c.GetReason(), "compared with existing memories by rules") {
				t.Errorf("with answers that cannot be used: %v", c)
			}
		})
	}
	p := providertest.Start(t, 1000)
	for setting, why := range map[string]string{"reconcile.provider=rules": "the configuration says so", "reconcile.enabled=false": "only requests to forget"} {
		r := sidecartest.Serve(t, append(sidecartest.UseProvider("openai", p), setting)...)
		if c := r.Component(t, "reconcile"); c.GetImplementation() != "rules" || !strings.Contains(c.GetChoice(), why) {
			t.Errorf("%s: %v", setting, c)
		}
	}
}

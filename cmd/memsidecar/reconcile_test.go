package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

const updated = memsidecarv1.MemoryAction_MEMORY_ACTION_UPDATED

// TestMovedHouse: who moved is not found at the old place, unless the history is asked for; and it can be undone.
func TestMovedHouse(t *testing.T) {
	r := serve(t)
	for name, test := range map[string]struct{ first, then, query, old, new string }{
		"en": {"I live in Beijing.", "I moved to Shanghai.", "Beijing or Shanghai?", "The user lives in Beijing.", "The user moved to Shanghai."},
		"zh": {"我住在北京。", "我搬到上海了。", "北京还是上海", "用户住在北京", "用户搬到上海了"},
	} {
		scope := direct(name)
		first := r.consider(t, scope, said(test.first), answered("OK"))
		second := r.consider(t, scope, said(test.then), answered("OK"))
		if c := second.GetChanges(); len(c) != 1 || c[0].GetAction() != updated || c[0].GetReason() == "" ||
			!slices.Equal(c[0].GetRelatedMemoryIds(), []string{first.GetChanges()[0].GetMemoryId()}) {
			t.Errorf("%s: moving did %v", name, c)
		}
		find := func(history bool) []string {
			resp := must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: scope, Query: test.query, IncludeHistory: history}))(t)
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
		undone := must(r.RevertMemory(t.Context(), &memsidecarv1.RevertMemoryRequest{Scope: scope, MemoryId: second.GetChanges()[0].GetMemoryId()}))(t)
		if undone.GetMemory().GetText() != test.old || undone.GetReverted().GetReason() == "" {
			t.Errorf("%s: undone is %v", name, undone)
		}
		if got := find(false); !slices.Equal(got, []string{test.old}) {
			t.Errorf("%s: after undoing found %q", name, got)
		}
	}
}

// TestWithdrawnFromDigest: the digest of the day does not tell what was withdrawn.
func TestWithdrawnFromDigest(t *testing.T) {
	r := serve(t)
	r.consider(t, direct("u"), said("I like cilantro."), answered("OK"))
	second := r.consider(t, direct("u"), said("I don't like cilantro any more."), answered("OK"))
	if d := r.digest(t, direct("u"), ""); !strings.Contains(d.String(), "like cilantro any more") {
		t.Errorf("before, the digest is %v", d)
	}
	must(r.RevertMemory(t.Context(), &memsidecarv1.RevertMemoryRequest{Scope: direct("u"), MemoryId: second.GetChanges()[0].GetMemoryId()}))(t)
	if d := r.digest(t, direct("u"), ""); strings.Contains(d.String(), "like cilantro any more") {
		t.Errorf("afterwards, the digest is %v", d)
	}
}

// TestReconcileByModel: one call a consideration, of the summary's model, counted as its own part; none when nothing near is
// known or the configuration keeps it to rules.
func TestReconcileByModel(t *testing.T) {
	for _, protocol := range protocols() {
		t.Run(protocol, func(t *testing.T) {
			p := providertest.Start(t, 1000)
			r := serve(t, useProvider(protocol, p)...)
			if c := r.component(t, "reconcile"); c.GetImplementation() != protocol+"/model-of-summary" || c.GetChoice() != "auto: as summary" {
				t.Errorf("compared by %v", c)
			}
			r.consider(t, direct("u"), said("我平时爱喝点茶。"), answered("好的。"))
			if n := len(p.Requests(providertest.Reconcile)); n != 0 {
				t.Errorf("%d calls with nothing known", n)
			}
			p.Say("用户喜欢喝绿茶")
			r.consider(t, direct("u"), said("我平时爱喝点绿茶。"), answered("好的。"))
			if n := len(p.Requests(providertest.Reconcile)); n != 1 {
				t.Errorf("%d calls", n)
			}
			eventually(t, "the call is counted", func() bool {
				return slices.ContainsFunc(r.status(t).GetUsage().GetToday().GetModels(), func(u *memsidecarv1.ModelUsage) bool {
					return u.GetPart() == "reconcile" && u.GetCallCount() == 1
				})
			})
			p.Fail(providertest.BrokenJSON, providertest.Reconcile)
			p.Say("用户喜欢喝红茶")
			c := r.consider(t, direct("u"), said("我平时爱喝点红茶。"), answered("好的。"))
			if c.GetState() != remembered || !strings.Contains(c.GetReason(), "compared with what is known by rules") {
				t.Errorf("with answers that cannot be used: %v", c)
			}
		})
	}
	p := providertest.Start(t, 1000)
	for setting, why := range map[string]string{"reconcile.provider=rules": "the configuration says so", "reconcile.enabled=false": "only requests to forget"} {
		r := serve(t, append(useProvider("openai", p), setting)...)
		if c := r.component(t, "reconcile"); c.GetImplementation() != "rules" || !strings.Contains(c.GetChoice(), why) {
			t.Errorf("%s: %v", setting, c)
		}
	}
}

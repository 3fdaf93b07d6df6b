package server_test

import (
	"fmt"
	"testing"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// tenTurns considers ten messages of the user, each with an answer of the bot.
func tenTurns(t *testing.T, r *sidecartest.Sidecar, scope *memsidecarv1.Scope) {
	t.Helper()
	for i := range 10 {
		r.AppendTo(t, scope, sidecartest.Said(fmt.Sprintf("茶要泡多久？第%d次问", i)), sidecartest.Answered("三分钟。"))
	}
}

// TestDigestCost: Ten messages cost three model calls: one to decide, one to summarise, one for the digest.
func TestDigestCost(t *testing.T) {
	t.Parallel()
	for _, protocol := range sidecartest.Protocols() {
		t.Run(protocol, func(t *testing.T) {
			p := providertest.Start(t, 1000)
			r := sidecartest.ServeFromNoon(t, append(sidecartest.UseProvider(protocol, p), "session.summary_max_chars=0")...)
			if c := r.Component(t, "digest"); c.GetImplementation() != protocol+"/model-of-summary" {
				t.Errorf("the digest is made by %v", c)
			}
			tenTurns(t, r, sidecartest.Direct("u"))
			sidecartest.Eventually(t, "digest and memories are made", func() bool {
				d := r.Digest(t, sidecartest.Direct("u"), "")
				return issues(d) == "How long does it steep? => Three minutes." && preferences(d) != ""
			})
			for part, want := range map[providertest.Part]int{providertest.Decision: 1, providertest.Summary: 1, providertest.Digest: 1} {
				if got := len(p.Requests(part)); got != want {
					t.Errorf("%d calls for the %s, want %d", got, part, want)
				}
			}
			d := summarize(t, r, sidecartest.Direct("u"), "") // nothing new: no call
			if len(p.Requests(providertest.Digest)) != 1 || len(d.GetTopics()) == 0 || d.GetTopics()[0] != "tea" ||
				d.GetTechnicalIssues()[0].GetSource().GetMadeBy() != protocol+"/model-of-summary" {
				t.Errorf("after %d calls the digest is %v", len(p.Requests(providertest.Digest)), d)
			}
		})
	}
}

// TestDigestModelPrecedesSummaryModel: The digest's own model is preferred to the summary's model, and any model to the rules.
func TestDigestModelPrecedesSummaryModel(t *testing.T) {
	t.Parallel()
	p := providertest.Start(t, 1000)
	settings := sidecartest.UseProvider("openai", p)
	own := sidecartest.ServeWith(
		t,
		t.TempDir(),
		[]string{"MEMSIDECAR_DIGEST_MODEL=openai/cheap", "OPENAI_API_KEY=" + sidecartest.ProviderKey},
		append(settings, "digest.endpoint="+p.URL)...)
	if c := own.Component(t, "digest"); c.GetImplementation() != "openai/cheap" {
		t.Errorf("by environment it is %v", c)
	}
	if c := sidecartest.ServeFromNoon(t, append(settings, "digest.provider=rules")...).Component(t, "digest"); c.GetImplementation() != "rules" {
		t.Errorf("by rules it is %v", c)
	}
}

// TestDigestKeepsMessagesUntilItsModelRecovers: While the model is unavailable, messages stay pending. When it recovers they are added to the digest once.
// An unusable answer of the model is replaced by the rules' findings.
func TestDigestKeepsMessagesUntilItsModelRecovers(t *testing.T) {
	t.Parallel()
	p := providertest.Start(t, 1000)
	r := sidecartest.ServeFromNoon(t, append(sidecartest.UseProvider("openai", p), "session.memorize_every=0", "digest.interval=1")...)
	p.Fail(providertest.ServerError, providertest.Digest)
	r.AppendTo(t, sidecartest.Direct("u"), sidecartest.Said("茶要泡多久？"), sidecartest.Answered("三分钟。"))
	for request := range p.Arrived() {
		if request.Part == providertest.Digest {
			break
		}
	}
	if d := r.Digest(t, sidecartest.Direct("u"), ""); issues(d) != "" || d.GetWaitingCount() != 2 {
		t.Errorf("without the model the digest is %v", d)
	}
	p.Fail(providertest.NoFault, providertest.Digest)
	sidecartest.Eventually(t, "the digest is made", func() bool {
		return issues(r.Digest(t, sidecartest.Direct("u"), "")) == "How long does it steep? => Three minutes."
	})
	p.Fail(providertest.BrokenJSON, providertest.Digest)
	r.AppendTo(t, sidecartest.Direct("v"), sidecartest.Said(oom), sidecartest.Answered(oomFixed))
	sidecartest.Eventually(t, "the rules have looked", func() bool { return issues(r.Digest(t, sidecartest.Direct("v"), "")) == oom+" => "+oomFixed })
}

// TestDigestDropsInventedNumbers: A number that occurs in no message is in no digest and no memory.
func TestDigestDropsInventedNumbers(t *testing.T) {
	t.Parallel()
	p := providertest.Start(t, 1000)
	r := sidecartest.ServeFromNoon(t, append(sidecartest.UseProvider("openai", p), "session.memorize_every=0", "digest.enabled=false")...)
	r.AppendTo(t, sidecartest.Direct("u"), sidecartest.Said("茶要泡多久？"), sidecartest.Answered("三分钟。"))
	r.AppendTo(t, sidecartest.Direct("v"), sidecartest.Said("茶要泡多久？"), sidecartest.Answered("泡到香为止。"))
	if d := summarize(t, r, sidecartest.Direct("u"), ""); issues(d) != "How long does it steep? => Three minutes." || d.GetWaitingCount() != 0 {
		t.Errorf("the digest of the messages is %v", d)
	}
	if d := summarize(t, r, sidecartest.Direct("v"), ""); issues(d) != "" || d.GetWaitingCount() != 0 {
		t.Errorf("an invented number is in the digest: %v", d)
	}
	if calls := len(p.Requests(providertest.Digest)); calls != 2 {
		t.Errorf("%d calls for two digests", calls)
	}
}

// TestDigestIncludesSkippedMessages: With a model, the digest includes decisions, preferences and tasks from skipped messages, without
// making memories of them. Memories of considerations are included once, and removed when the memory is deleted.
func TestDigestIncludesSkippedMessages(t *testing.T) {
	t.Parallel()
	p := providertest.Start(t, 1000)
	p.Digest(`{"topics": [], "preferences": [{"text": "The user likes tea.", "key": "drink", "value": "tea", "messages": ["m0"]}],
		"decisions": [{"text": "The user drinks no coffee in the evening.", "messages": ["m0"]}],
		"tasks": [{"text": "The user has to buy cups.", "messages": ["m0"]}], "issues": [], "insights": []}`)
	p.Ignore("never mind")
	p.Say("The user likes tea.")
	r := sidecartest.ServeFromNoon(t, append(sidecartest.UseProvider("openai", p), "digest.interval=0")...)
	check := func(user, text string) *memsidecarv1.Digest {
		t.Helper()
		r.Consider(t, sidecartest.Direct(user), sidecartest.Said(text), sidecartest.Answered("OK."))
		return summarize(t, r, sidecartest.Direct(user), "")
	}
	const text = "I like tea, I will drink no coffee in the evening, and I have to buy cups."
	d := check("skipped", text+" But never mind.")
	if preferences(d) != "drink=tea" || len(d.GetDecisions()) != 1 || len(d.GetTasks()) != 1 {
		t.Errorf("the digest of skipped messages is %v", d)
	}
	if list := r.Memories(t, sidecartest.Direct("skipped")); len(list) != 0 {
		t.Errorf("remembered are %v", list)
	}
	d = check("remembered", text)
	list := r.Memories(t, sidecartest.Direct("remembered"))
	if len(d.GetPreferences()) != 1 || len(d.GetDecisions()) != 1 || len(d.GetTasks()) != 1 || len(list) != 1 {
		t.Fatalf("the digest of remembered messages is %v, and the memories are %v", d, list)
	}
	sidecartest.Must(r.DeleteMemory(t.Context(), &memsidecarv1.DeleteMemoryRequest{Scope: sidecartest.Direct("remembered"), MemoryId: list[0].GetId()}))(t)
	if d := r.Digest(t, sidecartest.Direct("remembered"), ""); len(d.GetPreferences()) != 0 {
		t.Errorf("after the memory was deleted the digest still has %v", d.GetPreferences())
	}
}

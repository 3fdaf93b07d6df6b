package sidecar_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// TestProvidersOverEachProtocol: Embedding, decision and summary use a provider over each protocol through the real SDKs.
func TestProvidersOverEachProtocol(t *testing.T) {
	t.Parallel()
	for _, protocol := range sidecartest.Protocols() {
		t.Run(protocol, func(t *testing.T) {
			p := providertest.Start(t, 1000)
			r := sidecartest.Serve(t, sidecartest.UseProvider(protocol, p)...)
			c := r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("我平时爱喝点茶。"), sidecartest.Answered("好的。"))
			if c.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED || c.GetDecidedBy() != protocol+"/model-of-summary" {
				t.Fatalf("%v", c)
			}
			m := r.Memory(t, sidecartest.Direct("u"), c.GetChanges()[0].GetMemoryId())
			if m.GetText() != "用户喜欢喝茶" || m.GetKind() != memsidecarv1.MemoryKind_MEMORY_KIND_PREFERENCE || m.GetImportance() != 0.7 {
				t.Errorf("remembered %v", m)
			}
			resp := sidecartest.Must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct("u"), Query: "喝什么茶"}))(t)
			if len(resp.GetDegraded()) > 0 || len(resp.GetMemories()) != 1 || resp.GetMemories()[0].GetParts().GetSimilarity() < 0.3 {
				t.Errorf("retrieved %v", resp)
			}
			if got := r.Status(t).GetModels().GetEmbeddingFingerprint(); got != protocol+"/model-of-embedding@768#1" {
				t.Errorf("the fingerprint is %s", got)
			}
			for _, part := range []string{"decision", "summary", "embedding"} {
				c := r.Component(t, part)
				if c.GetBreaker() != memsidecarv1.BreakerState_BREAKER_STATE_CLOSED || c.GetRemote() || c.GetChoice() == "" {
					t.Errorf("%s: %v", part, c)
				}
			}
			sidecartest.Eventually(t, "the tokens are counted", func() bool {
				for _, u := range r.Status(t).GetUsage().GetToday().GetModels() {
					if u.GetPart() == "summary" {
						return u.GetInputTokenCount() == 100 && u.GetOutputTokenCount() == 10 && u.GetCallCount() == 1 && u.GetFailureCount() == 0
					}
				}
				return false
			})
			checkRequests(t, protocol, p)
		})
	}
}

// checkRequests checks the requests that the provider received.
func checkRequests(t *testing.T, protocol string, p *providertest.Server) {
	t.Helper()
	for _, part := range []providertest.Part{providertest.Embedding, providertest.Decision, providertest.Summary} {
		for _, request := range p.Requests(part) {
			keyed := request.Header.Get("Authorization") == "Bearer "+sidecartest.ProviderKey
			if protocol == "gemini" {
				keyed = request.Header.Get("X-Goog-Api-Key") == sidecartest.ProviderKey || strings.Contains(request.Query, "key="+sidecartest.ProviderKey)
			}
			if !keyed {
				t.Errorf("%s has no key: %v %s", part, request.Header, request.Query)
			}
		}
	}
	if protocol != "gemini" {
		return
	}
	var tasks []string
	for _, request := range p.Requests(providertest.Embedding) {
		if request.Path != "/v1beta/models/model-of-embedding:batchEmbedContents" {
			t.Errorf("embedding asks %s", request.Path)
		}
		for _, task := range []string{"RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"} {
			if strings.Contains(request.Body, task) || task == "RETRIEVAL_DOCUMENT" && strings.Contains(request.Body, `"taskType":2`) ||
				task == "RETRIEVAL_QUERY" && strings.Contains(request.Body, `"taskType":1`) {
				tasks = append(tasks, task)
			}
		}
	}
	if s := fmt.Sprint(tasks); !strings.Contains(s, "RETRIEVAL_DOCUMENT") || !strings.Contains(s, "RETRIEVAL_QUERY") {
		t.Errorf("embeds for the tasks %s", s)
	}
}

// TestTextModelFaults: The test covers every fault of a decision or summary: the dialogue's state, the breaker's, Retrieve's answer, and
// that the dialogue is remembered after the provider recovers.
func TestTextModelFaults(t *testing.T) {
	t.Parallel()
	for _, protocol := range sidecartest.Protocols() {
		for fault, want := range map[providertest.Fault]struct {
			waits, falls bool // it waits for the model, or falls back to rules
			words        string
		}{
			providertest.RateLimit:     {waits: true, words: "429"},
			providertest.ServerError:   {waits: true, words: "500"},
			providertest.Hang:          {waits: true, words: "no answer within 1s"},
			providertest.Reset:         {waits: true, words: "EOF"},
			providertest.BadKey:        {waits: true, words: "401"},
			providertest.BadRequest:    {falls: true, words: "400"},
			providertest.BrokenJSON:    {falls: true, words: "JSON"},
			providertest.NoCandidates:  {falls: true, words: "no answer"},
			providertest.Blocked:       {falls: true, words: "refused to answer"},
			providertest.UnknownFinish: {},
		} {
			for _, part := range []providertest.Part{providertest.Decision, providertest.Summary} {
				t.Run(protocol+" "+string(part)+" "+string(fault), func(t *testing.T) {
					t.Parallel()
					p := providertest.Start(t, 1000)
					settings := sidecartest.UseProvider(protocol, p)
					if fault == providertest.Hang {
						settings = append(sidecartest.ShortTimeouts(part), settings...)
					}
					r := sidecartest.Serve(t, settings...)
					p.Fail(fault, part)
					request := &memsidecarv1.ConsiderMemorizingRequest{
						Scope: sidecartest.Direct("u"), RequestId: "once", Messages: []*memsidecarv1.Message{sidecartest.Said("我平时爱喝点茶。")},
					}
					id := sidecartest.Must(r.ConsiderMemorizing(t.Context(), request))(t).GetConsideration().GetId()
					get := func() *memsidecarv1.Consideration {
						return sidecartest.Must(r.GetConsideration(t.Context(), &memsidecarv1.GetConsiderationRequest{Scope: sidecartest.Direct("u"), ConsiderationId: id}))(
							t,
						).GetConsideration()
					}
					open := func() bool {
						return r.Component(t, string(part)).GetBreaker() != memsidecarv1.BreakerState_BREAKER_STATE_CLOSED
					}
					switch {
					case want.waits:
						sidecartest.Eventually(t, "it waits with the error", func() bool { return strings.Contains(get().GetError(), want.words) })
						sidecartest.Eventually(t, "the breaker opens", open)
					case want.falls:
						sidecartest.Eventually(t, "rules decide", func() bool { return get().GetState() == sidecartest.Remembered })
						if c := get(); c.GetState() != sidecartest.Remembered || c.GetDecidedBy() != "rules" || !strings.Contains(c.GetFallbackReason(), want.words) {
							t.Errorf("want it to be remembered by rules because of %q: %v", want.words, c)
						}
						if open() {
							t.Error("an answer that cannot be used opened the breaker")
						}
					}
					if resp := sidecartest.Must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct("u"), Query: "茶"}))(t); len(
						resp.GetDegraded(),
					) > 0 {
						t.Errorf("Retrieve is degraded by it: %v", resp.GetDegraded())
					}
					p.Fail(providertest.NoFault, part)
					request.Wait = sidecartest.LongWait()
					if c := sidecartest.Must(r.ConsiderMemorizing(t.Context(), request))(t).GetConsideration(); c.GetId() != id ||
						c.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED {
						t.Errorf("once the provider is well: %v", c)
					}
					if open() {
						t.Error("the breaker is still open")
					}
					showsNoKey(t, r)
				})
			}
		}
	}
}

// TestEmbeddingFaults: While the embedder is unavailable, dialogues are remembered and found by keywords. The vectors are added later.
func TestEmbeddingFaults(t *testing.T) {
	t.Parallel()
	for _, protocol := range sidecartest.Protocols() {
		for fault, words := range map[providertest.Fault]string{
			providertest.RateLimit: "429", providertest.ServerError: "500", providertest.Hang: "no answer within",
			providertest.Reset: "EOF", providertest.BadKey: "401", providertest.BadRequest: "400",
			providertest.FewerDimensions: "fewer than the 768",
		} {
			t.Run(protocol+" "+string(fault), func(t *testing.T) {
				t.Parallel()
				p := providertest.Start(t, 1000)
				dir := t.TempDir()
				settings := sidecartest.UseProvider(protocol, p)
				if fault == providertest.Hang {
					settings = append(sidecartest.ShortTimeouts(providertest.Embedding), settings...)
				}
				r := sidecartest.ServeIn(t, dir, settings...)
				p.Fail(fault, providertest.Embedding)
				c := r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("我平时爱喝点茶。"))
				if c.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED {
					t.Fatalf("with the embedder unavailable: %v", c)
				}
				var degraded string
				retrieve := func() *memsidecarv1.RetrieveResponse {
					resp := sidecartest.Must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct("u"), Query: "喝什么茶"}))(t)
					degraded = ""
					for _, d := range resp.GetDegraded() {
						degraded += d.GetComponent().String() + ": " + d.GetReason()
					}
					return resp
				}
				resp := retrieve()
				if len(resp.GetMemories()) != 1 || !strings.Contains(degraded, "EMBEDDING") || !strings.Contains(degraded, words) {
					t.Errorf("retrieved %d, degraded %q; want the keyword hit and %q", len(resp.GetMemories()), degraded, words)
				}
				p.Fail(providertest.NoFault, providertest.Embedding)
				if fault == providertest.BadRequest || fault == providertest.FewerDimensions { // refused texts are retried after a restart
					r.Stop()
					r = sidecartest.ServeIn(t, dir, settings...)
				}
				sidecartest.Eventually(t, "the vectors are made", func() bool {
					resp := retrieve()
					return degraded == "" && len(resp.GetMemories()) == 1 && resp.GetMemories()[0].GetParts().GetSimilarity() > 0.3
				})
				showsNoKey(t, r)
			})
		}
	}
}

// showsNoKey looks for the key in everything that people read.
func showsNoKey(t *testing.T, r *sidecartest.Sidecar) {
	t.Helper()
	shown := r.Log.String() + protojson.Format(r.Status(t))
	for _, c := range r.Considerations(t, sidecartest.Direct("u")) {
		shown += protojson.Format(c)
	}
	if strings.Contains(shown, sidecartest.ProviderKey) {
		t.Errorf("the key shows:\n%s", shown)
	}
}

// TestAcknowledgedDialoguesSurviveProviderOutages: Dialogues acknowledged while every provider is down are remembered when the providers
// recover.
func TestAcknowledgedDialoguesSurviveProviderOutages(t *testing.T) {
	t.Parallel()
	for _, protocol := range sidecartest.Protocols() {
		t.Run(protocol, func(t *testing.T) {
			p := providertest.Start(t, 1000)
			dir, settings := t.TempDir(), sidecartest.UseProvider(protocol, p)
			r := sidecartest.ServeIn(t, dir, settings...)
			all := []providertest.Part{providertest.Embedding, providertest.Decision, providertest.Summary}
			p.Fail(providertest.ServerError, all...)
			request := &memsidecarv1.ConsiderMemorizingRequest{
				Scope: sidecartest.Direct("u"), RequestId: "once", Messages: []*memsidecarv1.Message{sidecartest.Said("我平时爱喝点茶。")},
			}
			id := sidecartest.Must(r.ConsiderMemorizing(t.Context(), request))(t).GetConsideration().GetId()
			for range 2 {
				<-p.Arrived() // it was called
				r.Stop()
				r = sidecartest.ServeIn(t, dir, settings...)
			}
			p.Fail(providertest.NoFault, all...)
			request.Wait = sidecartest.LongWait()
			c := sidecartest.Must(r.ConsiderMemorizing(t.Context(), request))(t).GetConsideration()
			if c.GetId() != id || c.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED {
				t.Errorf("%v", c)
			}
			if n := len(r.Memories(t, sidecartest.Direct("u"))); n != 1 {
				t.Errorf("%d memories", n)
			}
		})
	}
}

// TestAutomaticEmbeddingChoiceIsKept: The database's model is kept when a key appears or disappears.
func TestAutomaticEmbeddingChoiceIsKept(t *testing.T) {
	t.Parallel()
	p := providertest.Start(t, 1000)
	impatient := []string{"embedding.endpoint=" + p.URL, "summary.endpoint=" + p.URL}
	key := []string{"GEMINI_API_KEY=" + sidecartest.ProviderKey}
	uses := func(r *sidecartest.Sidecar, want string) {
		t.Helper()
		gate := map[bool]string{true: "none", false: "rules"}[want == "local"] // the classifier spares a model
		if got := r.Component(t, "decision").GetImplementation(); got != gate {
			t.Errorf("decision is done by %s, want %s", got, gate)
		}
		for _, part := range []string{"embedding", "summary"} {
			got := r.Component(t, part).GetImplementation()
			if ok := strings.HasPrefix(got, want) || want == "local" && got == "rules"; !ok {
				t.Errorf("%s is done by %s, want %s", part, got, want)
			}
		}
		r.Stop()
	}
	with, without := t.TempDir(), t.TempDir()
	uses(sidecartest.ServeWith(t, with, key, impatient...), "gemini/")
	uses(sidecartest.ServeWith(t, with, nil, impatient...), "gemini/")
	uses(sidecartest.ServeWith(t, without, nil), "local")
	uses(sidecartest.ServeWith(t, without, key, impatient...), "local")

	// Without an endpoint a missing key is reported. Nothing is sent or rebuilt.
	r := sidecartest.ServeWith(t, with, nil, "breaker.open_for=100ms")
	sidecartest.Eventually(t, "the log names the missing key", func() bool { return strings.Contains(r.Log.String(), "set GEMINI_API_KEY") })
	resp := sidecartest.Must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct("u"), Query: "茶"}))(t)
	if len(resp.GetDegraded()) != 1 || resp.GetDegraded()[0].GetComponent() != memsidecarv1.DegradedComponent_DEGRADED_COMPONENT_EMBEDDING {
		t.Errorf("degraded: %v", resp.GetDegraded())
	}
}

// TestChangedModelRebuildsVectors: Another model rebuilds all vectors. Keywords are used meanwhile.
func TestChangedModelRebuildsVectors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := sidecartest.ServeIn(t, dir)
	r.Create(t, sidecartest.Direct("u"), "用户喜欢喝茶")
	r.Stop()
	p := providertest.Start(t, 500) // fewer than 768: detected by a call
	p.Fail(providertest.Hang, providertest.Embedding)
	settings := []string{
		"embedding.provider=openai", "embedding.model=e", "embedding.endpoint=" + p.URL, "embedding.timeout=1s",
		"breaker.open_for=100ms", "queue.backoff_min=10ms", "queue.backoff_max=20ms",
	}
	r = sidecartest.ServeIn(t, dir, settings...)
	if got := r.Texts(t, sidecartest.Direct("u"), "喝茶"); len(got) != 1 {
		t.Errorf("keywords find %q while the new model is unavailable", got)
	}
	p.Fail(providertest.NoFault, providertest.Embedding)
	sidecartest.Eventually(t, "it is embedded anew", func() bool {
		resp := sidecartest.Must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct("u"), Query: "喝什么茶"}))(t)
		return len(resp.GetDegraded()) == 0 && len(resp.GetMemories()) == 1 && resp.GetMemories()[0].GetParts().GetSimilarity() > 0.3
	})
	if got := r.Status(t).GetModels().GetEmbeddingFingerprint(); got != "openai/e@500#1" {
		t.Errorf("the fingerprint is %s", got)
	}
	if got := r.Component(t, "embedding").GetChoice(); !strings.Contains(got, "until now it was local/hashed-ngrams@256#1") {
		t.Errorf("GetStatus does not name the model before: %s", got)
	}
	if !strings.Contains(r.Log.String(), "the embedding model changed") {
		t.Errorf("the log does not say that the model changed:\n%s", r.Log)
	}
}

// TestGenerationSettingsReachTheProvider: The sampling settings and the schema of the answer are sent to the provider.
func TestGenerationSettingsReachTheProvider(t *testing.T) {
	t.Parallel()
	for protocol, want := range map[string]map[string][]string{
		"gemini": {"decision": {"emperature", "0.5", "opP", "0.9", "axOutputTokens", "77", "application/json"}},
		"openai": {"decision": {`"temperature":0.5`, `"top_p":0.9`, `"max_tokens":77`, `"response_format"`}},
	} {
		p := providertest.Start(t, 1000)
		settings := sidecartest.UseProvider(protocol, p)
		for _, part := range []string{"decision", "summary"} {
			settings = append(settings, part+".generation.temperature=0.5", part+".generation.top_p=0.9", part+".generation.max_output_tokens=77",
				part+".prompt=A prompt of my own for "+part+": {conversation}")
		}
		r := sidecartest.Serve(t, settings...)
		r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("我平时爱喝点茶。"))
		for _, part := range []providertest.Part{providertest.Decision, providertest.Summary} {
			requests := p.Requests(part)
			if len(requests) != 1 {
				t.Fatalf("%s: %d requests for the %s", protocol, len(requests), part)
			}
			for _, words := range append(want["decision"], "A prompt of my own for "+string(part)) {
				if !strings.Contains(requests[0].Body, words) {
					t.Errorf("%s: the request for the %s does not hold %s:\n%s", protocol, part, words, requests[0].Body)
				}
			}
		}
	}
}

// TestLive calls the real Gemini. It needs a key.
func TestLive(t *testing.T) {
	t.Parallel()
	key := os.Getenv("GEMINI_API_KEY")
	if key == "" {
		t.Skip("GEMINI_API_KEY is not set")
	}
	r := sidecartest.ServeWith(t, t.TempDir(), []string{"GEMINI_API_KEY=" + key})
	c := r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("我对花生过敏，下周五要去上海出差。"))
	if c.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED {
		t.Fatalf("%v", c)
	}
	t.Logf("%v; recalled %q", c.GetChanges(), r.Texts(t, sidecartest.Direct("u"), "我能吃什么？"))
}

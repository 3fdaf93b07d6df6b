package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/cli"
	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

const providerKey = "sk-never-to-be-shown"

// protocols are the ways to reach a provider.
func protocols() []string { return []string{"gemini", "openai"} }

// useProvider are the settings that let the provider do every part, impatient with what fails, and not with what is slow: that may
// be the machine.
func useProvider(protocol string, p *providertest.Server) []string {
	settings := []string{
		"queue.backoff_min=10ms", "queue.backoff_max=20ms", "breaker.failures=2", "breaker.open_for=100ms", "log.level=debug",
	}
	for _, part := range []string{"embedding", "decision", "summary"} {
		settings = append(settings, part+".provider="+protocol, part+".endpoint="+p.URL, part+".api_key="+providerKey,
			part+".model=model-of-"+part, part+".timeout=10m")
	}
	return settings
}

// impatient are the settings that give a part's model a second to answer, for one that never does. They go before useProvider's.
func impatient(part providertest.Part) []string { return []string{string(part) + ".timeout=1s"} }

// eventually asks again and again until something is true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(sidecartest.Patience); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("after %s still not: %s", sidecartest.Patience, what)
		}
	}
}

func (r *running) status(t *testing.T) *memsidecarv1.GetStatusResponse {
	t.Helper()
	return must(r.GetStatus(t.Context(), &memsidecarv1.GetStatusRequest{}))(t)
}

func (r *running) component(t *testing.T, name string) *memsidecarv1.ComponentStatus {
	t.Helper()
	c := component(r.status(t), name)
	if c == nil {
		t.Fatalf("GetStatus does not name %s", name)
	}
	return c
}

// TestModels: embedding, decision and summary by a provider, over each protocol through the real SDKs.
func TestModels(t *testing.T) {
	for _, protocol := range protocols() {
		t.Run(protocol, func(t *testing.T) {
			p := providertest.Start(t, 1000)
			r := serve(t, useProvider(protocol, p)...)
			c := r.consider(t, direct("u"), said("我平时爱喝点茶。"), answered("好的。"))
			if c.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED || c.GetDecidedBy() != protocol+"/model-of-decision" {
				t.Fatalf("%v", c)
			}
			m := r.get(t, direct("u"), c.GetChanges()[0].GetMemoryId())
			if m.GetText() != "用户喜欢喝茶" || m.GetKind() != memsidecarv1.MemoryKind_MEMORY_KIND_PREFERENCE || m.GetImportance() != 0.7 {
				t.Errorf("remembered %v", m)
			}
			resp := must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: direct("u"), Query: "喝什么茶"}))(t)
			if len(resp.GetDegraded()) > 0 || len(resp.GetMemories()) != 1 || resp.GetMemories()[0].GetParts().GetSimilarity() < 0.3 {
				t.Errorf("retrieved %v", resp)
			}
			if got := r.status(t).GetModels().GetEmbeddingFingerprint(); got != protocol+"/model-of-embedding@768#1" {
				t.Errorf("the fingerprint is %s", got)
			}
			for _, part := range []string{"decision", "summary", "embedding"} {
				c := r.component(t, part)
				if c.GetBreaker() != memsidecarv1.BreakerState_BREAKER_STATE_CLOSED || c.GetRemote() || c.GetChoice() == "" {
					t.Errorf("%s: %v", part, c)
				}
			}
			eventually(t, "the tokens are counted", func() bool {
				for _, u := range r.status(t).GetUsage().GetToday().GetModels() {
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

// checkRequests looks at what the provider was sent.
func checkRequests(t *testing.T, protocol string, p *providertest.Server) {
	t.Helper()
	for _, part := range []providertest.Part{providertest.Embedding, providertest.Decision, providertest.Summary} {
		for _, request := range p.Requests(part) {
			keyed := request.Header.Get("Authorization") == "Bearer "+providerKey
			if protocol == "gemini" {
				keyed = request.Header.Get("X-Goog-Api-Key") == providerKey || strings.Contains(request.Query, "key="+providerKey)
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

// TestTextModelFaults: for everything that can go wrong with a decision or a summary, what becomes of the dialogue, of the breaker and
// of Retrieve; and that it is remembered once the provider is well.
func TestTextModelFaults(t *testing.T) {
	for _, protocol := range protocols() {
		for fault, want := range map[providertest.Fault]struct {
			waits, fails bool
			words        string
		}{
			providertest.RateLimit:     {waits: true, words: "429"},
			providertest.ServerError:   {waits: true, words: "500"},
			providertest.Hang:          {waits: true, words: "no answer within 1s"},
			providertest.Reset:         {waits: true, words: "EOF"},
			providertest.BadKey:        {waits: true, words: "401"},
			providertest.BadRequest:    {fails: true, words: "400"},
			providertest.BrokenJSON:    {fails: true, words: "JSON"},
			providertest.NoCandidates:  {fails: true, words: "no answer"},
			providertest.Blocked:       {fails: true, words: "refused to answer"},
			providertest.UnknownFinish: {},
		} {
			for _, part := range []providertest.Part{providertest.Decision, providertest.Summary} {
				t.Run(protocol+" "+string(part)+" "+string(fault), func(t *testing.T) {
					t.Parallel()
					p := providertest.Start(t, 1000)
					settings := useProvider(protocol, p)
					if fault == providertest.Hang {
						settings = append(impatient(part), settings...)
					}
					r := serve(t, settings...)
					p.Fail(fault, part)
					request := &memsidecarv1.ConsiderMemorizingRequest{
						Scope: direct("u"), RequestId: "once", Messages: []*memsidecarv1.Message{said("我平时爱喝点茶。")},
					}
					id := must(r.ConsiderMemorizing(t.Context(), request))(t).GetConsideration().GetId()
					get := func() *memsidecarv1.Consideration {
						return must(r.GetConsideration(t.Context(), &memsidecarv1.GetConsiderationRequest{Scope: direct("u"), ConsiderationId: id}))(t).GetConsideration()
					}
					open := func() bool {
						return r.component(t, string(part)).GetBreaker() != memsidecarv1.BreakerState_BREAKER_STATE_CLOSED
					}
					switch {
					case want.waits:
						eventually(t, "it waits with the error", func() bool { return strings.Contains(get().GetError(), want.words) })
						eventually(t, "the breaker opens", open)
					case want.fails:
						eventually(t, "it fails", func() bool { return get().GetState() == memsidecarv1.ConsiderationState_CONSIDERATION_STATE_FAILED })
						if c := get(); !strings.Contains(c.GetError(), want.words) {
							t.Errorf("the error is %q, want %q in it", c.GetError(), want.words)
						}
						if open() {
							t.Error("an answer that cannot be used opened the breaker")
						}
					}
					if resp := must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: direct("u"), Query: "茶"}))(t); len(resp.GetDegraded()) > 0 {
						t.Errorf("Retrieve is degraded by it: %v", resp.GetDegraded())
					}
					p.Fail(providertest.NoFault, part)
					if want.fails {
						must(r.RetryConsideration(t.Context(), &memsidecarv1.RetryConsiderationRequest{Scope: direct("u"), ConsiderationId: id}))(t)
					}
					request.Wait = patiently()
					if c := must(r.ConsiderMemorizing(t.Context(), request))(t).GetConsideration(); c.GetId() != id || c.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED {
						t.Errorf("once the provider is well: %v", c)
					}
					if open() {
						t.Error("the breaker is still open")
					}
					r.showsNoKey(t)
				})
			}
		}
	}
}

// TestEmbeddingFaults: with the embedder away dialogues are remembered all the same, keywords recall, and the vectors
// follow.
func TestEmbeddingFaults(t *testing.T) {
	for _, protocol := range protocols() {
		for fault, words := range map[providertest.Fault]string{
			providertest.RateLimit: "429", providertest.ServerError: "500", providertest.Hang: "no answer within",
			providertest.Reset: "EOF", providertest.BadKey: "401", providertest.BadRequest: "400",
			providertest.FewerDimensions: "fewer than the 768",
		} {
			t.Run(protocol+" "+string(fault), func(t *testing.T) {
				t.Parallel()
				p := providertest.Start(t, 1000)
				dir := t.TempDir()
				settings := useProvider(protocol, p)
				if fault == providertest.Hang {
					settings = append(impatient(providertest.Embedding), settings...)
				}
				r := serveIn(t, dir, settings...)
				p.Fail(fault, providertest.Embedding)
				c := r.consider(t, direct("u"), said("我平时爱喝点茶。"))
				if c.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED {
					t.Fatalf("with the embedder away: %v", c)
				}
				var degraded string
				retrieve := func() *memsidecarv1.RetrieveResponse {
					resp := must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: direct("u"), Query: "喝什么茶"}))(t)
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
				if fault == providertest.BadRequest || fault == providertest.FewerDimensions { // refused texts are tried again after a restart
					r.stop()
					r = serveIn(t, dir, settings...)
				}
				eventually(t, "the vectors are made", func() bool {
					resp := retrieve()
					return degraded == "" && len(resp.GetMemories()) == 1 && resp.GetMemories()[0].GetParts().GetSimilarity() > 0.3
				})
				r.showsNoKey(t)
			})
		}
	}
}

// showsNoKey looks for the key wherever people look.
func (r *running) showsNoKey(t *testing.T) {
	t.Helper()
	shown := r.log.String() + protojson.Format(r.status(t))
	for _, c := range r.considerations(t, direct("u")) {
		shown += protojson.Format(c)
	}
	if strings.Contains(shown, providerKey) {
		t.Errorf("the key shows:\n%s", shown)
	}
}

// TestEverythingAwayAndTwoRestarts: what is acknowledged while every provider is down is remembered when they are back.
func TestEverythingAwayAndTwoRestarts(t *testing.T) {
	for _, protocol := range protocols() {
		t.Run(protocol, func(t *testing.T) {
			p := providertest.Start(t, 1000)
			dir, settings := t.TempDir(), useProvider(protocol, p)
			r := serveIn(t, dir, settings...)
			all := []providertest.Part{providertest.Embedding, providertest.Decision, providertest.Summary}
			p.Fail(providertest.ServerError, all...)
			request := &memsidecarv1.ConsiderMemorizingRequest{
				Scope: direct("u"), RequestId: "once", Messages: []*memsidecarv1.Message{said("我平时爱喝点茶。")},
			}
			id := must(r.ConsiderMemorizing(t.Context(), request))(t).GetConsideration().GetId()
			for range 2 {
				<-p.Arrived() // it was tried
				r.stop()
				r = serveIn(t, dir, settings...)
			}
			p.Fail(providertest.NoFault, all...)
			request.Wait = patiently()
			c := must(r.ConsiderMemorizing(t.Context(), request))(t).GetConsideration()
			if c.GetId() != id || c.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED {
				t.Errorf("%v", c)
			}
			if n := len(r.list(t, direct("u"))); n != 1 {
				t.Errorf("%d memories", n)
			}
		})
	}
}

// TestAutoStays: what the database was made with is kept, when a key appears and when it is missing.
func TestAutoStays(t *testing.T) {
	p := providertest.Start(t, 1000)
	impatient := []string{"embedding.endpoint=" + p.URL, "decision.endpoint=" + p.URL, "summary.endpoint=" + p.URL}
	key := []string{"GEMINI_API_KEY=" + providerKey}
	uses := func(r *running, want string) {
		t.Helper()
		for _, part := range []string{"embedding", "decision", "summary"} {
			got := r.component(t, part).GetImplementation()
			if ok := strings.HasPrefix(got, want) || want == "local" && got == "rules"; !ok {
				t.Errorf("%s is done by %s, want %s", part, got, want)
			}
		}
		r.stop()
	}
	with, without := t.TempDir(), t.TempDir()
	uses(serveWith(t, with, key, impatient...), "gemini/")
	uses(serveWith(t, with, nil, impatient...), "gemini/")
	uses(serveWith(t, without, nil), "local")
	uses(serveWith(t, without, key, impatient...), "local")

	// Without an endpoint of one's own a missing key is said, and nothing is sent or made anew.
	r := serveWith(t, with, nil, "breaker.open_for=100ms")
	eventually(t, "the log names the missing key", func() bool { return strings.Contains(r.log.String(), "set GEMINI_API_KEY") })
	resp := must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: direct("u"), Query: "茶"}))(t)
	if len(resp.GetDegraded()) != 1 || resp.GetDegraded()[0].GetComponent() != memsidecarv1.DegradedComponent_DEGRADED_COMPONENT_EMBEDDING {
		t.Errorf("degraded: %v", resp.GetDegraded())
	}
}

// TestModelChanged: naming another model embeds everything anew, and keywords serve meanwhile.
func TestModelChanged(t *testing.T) {
	dir := t.TempDir()
	r := serveIn(t, dir)
	r.create(t, direct("u"), "用户喜欢喝茶")
	r.stop()
	p := providertest.Start(t, 500) // fewer than 768: found out by asking
	p.Fail(providertest.Hang, providertest.Embedding)
	settings := []string{
		"embedding.provider=openai", "embedding.model=e", "embedding.endpoint=" + p.URL, "embedding.timeout=1s",
		"breaker.open_for=100ms", "queue.backoff_min=10ms", "queue.backoff_max=20ms",
	}
	r = serveIn(t, dir, settings...)
	if got := r.retrieve(t, direct("u"), "喝茶"); len(got) != 1 {
		t.Errorf("keywords find %q while the new model is away", got)
	}
	p.Fail(providertest.NoFault, providertest.Embedding)
	eventually(t, "it is embedded anew", func() bool {
		resp := must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: direct("u"), Query: "喝什么茶"}))(t)
		return len(resp.GetDegraded()) == 0 && len(resp.GetMemories()) == 1 && resp.GetMemories()[0].GetParts().GetSimilarity() > 0.3
	})
	if got := r.status(t).GetModels().GetEmbeddingFingerprint(); got != "openai/e@500#1" {
		t.Errorf("the fingerprint is %s", got)
	}
	if got := r.component(t, "embedding").GetChoice(); !strings.Contains(got, "until now it was local/hashed-ngrams@256#1") {
		t.Errorf("GetStatus does not name the model before: %s", got)
	}
	if !strings.Contains(r.log.String(), "the embedding model changed") {
		t.Errorf("the log does not say that the model changed:\n%s", r.log)
	}
}

// TestWrongModels: what can be told to be wrong at start is, all that needs no key together and then the rest together.
func TestWrongModels(t *testing.T) {
	for _, c := range []struct{ set, want []string }{
		{
			[]string{"embedding.provider=gogle", "summary.model=ollama/", "digest.model=deepseek-chat", "decision.provider=rules", "decision.model=gpt-4o-mini"},
			[]string{"embedding.provider", `"gogle"`, "deepseek", "summary.model (from --set): is required", `digest.model (from --set): is "deepseek-chat"`, "decision.model (from --set): is set"},
		},
		{
			[]string{"decision.provider=openai", "decision.prompt=no placeholder"},
			[]string{"set OPENAI_API_KEY", "decision.prompt", "{conversation}"},
		},
	} {
		out := &syncBuffer{}
		var args []string
		for _, setting := range c.set {
			args = append(args, "--set", setting)
		}
		code := Main{Args: append(args, "--data-dir", t.TempDir(), "serve"), Stdout: out, Stderr: out}.Run(t.Context())
		if code != cli.ExitUsage {
			t.Errorf("%q: ended with %d", c.set, code)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q: does not say %q:\n%s", c.set, want, out)
			}
		}
	}
}

// TestGeneration: the settings of the sampling reach the provider, and the schema of the answer with them.
func TestGeneration(t *testing.T) {
	for protocol, want := range map[string]map[string][]string{
		"gemini": {"decision": {"emperature", "0.5", "opP", "0.9", "axOutputTokens", "77", "application/json"}},
		"openai": {"decision": {`"temperature":0.5`, `"top_p":0.9`, `"max_tokens":77`, `"response_format"`}},
	} {
		p := providertest.Start(t, 1000)
		settings := useProvider(protocol, p)
		for _, part := range []string{"decision", "summary"} {
			settings = append(settings, part+".generation.temperature=0.5", part+".generation.top_p=0.9", part+".generation.max_output_tokens=77",
				part+".prompt=A prompt of my own for "+part+": {conversation}")
		}
		r := serve(t, settings...)
		r.consider(t, direct("u"), said("我平时爱喝点茶。"))
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

// TestLive asks the real Gemini; it runs where there is a key.
func TestLive(t *testing.T) {
	key := os.Getenv("GEMINI_API_KEY")
	if key == "" {
		t.Skip("GEMINI_API_KEY is not set")
	}
	r := serveWith(t, t.TempDir(), []string{"GEMINI_API_KEY=" + key})
	c := r.consider(t, direct("u"), said("我对花生过敏，下周五要去上海出差。"))
	if c.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED {
		t.Fatalf("%v", c)
	}
	t.Logf("%v; recalled %q", c.GetChanges(), r.retrieve(t, direct("u"), "我能吃什么？"))
}

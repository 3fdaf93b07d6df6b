package main

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// TestDirectWritesHoldNoSecrets: CreateMemory, UpdateMemory, ImportMemories and MCP's remember put markers in the place of secrets, and
// refuse or skip what holds nothing else. redact.direct_writes=false stores what was sent.
func TestDirectWritesHoldNoSecrets(t *testing.T) {
	alarm := "The alarm at home has the password " + secretWord
	written := func(r *running) (texts []string) {
		made := r.create(t, direct("u"), alarm)
		texts = append(texts, made.GetText())
		made.Text = "The alarm at work has the password " + secretWord
		updated := must(r.UpdateMemory(t.Context(), &memsidecarv1.UpdateMemoryRequest{Scope: direct("u"), Memory: made}))(t)
		texts = append(texts, updated.GetMemory().GetText())
		must(r.load(t, direct("v"), &memsidecarv1.Memory{
			Text: "The bike's lock opens with the code 4711", Provenance: &memsidecarv1.Provenance{Quote: "it pays with " + secretCard},
		}))(t)
		for _, m := range r.list(t, direct("v")) {
			texts = append(texts, m.GetText()+" "+m.GetProvenance().GetQuote())
		}
		model := modelOverStdio(t, r.addr, "-u", "w")
		model.must(t, "remember", map[string]any{"text": "The weather service has the API key " + secretKey})
		return append(texts, model.remembered(t))
	}
	r := serve(t)
	texts := written(r)
	for i, want := range []string{"at home has the password [redacted: password]", "at work has the password [redacted: password]", "[redacted: password] it pays with [redacted: card number]", "[redacted: API key]"} {
		if i >= len(texts) || !strings.HasSuffix(texts[i], want) {
			t.Errorf("%q is not at the end of text %d of %q", want, i, texts)
		}
	}
	for _, text := range []string{"My password is " + secretWord, "我的银行卡号是" + secretBank} {
		_, err := r.CreateMemory(t.Context(), &memsidecarv1.CreateMemoryRequest{Scope: direct("x"), Memory: &memsidecarv1.Memory{Text: text}})
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "contains only a secret") || strings.Contains(err.Error(), secretWord) {
			t.Errorf("%s: %v", text, err)
		}
	}
	loaded := must(r.load(t, direct("x"), &memsidecarv1.Memory{Text: "My password is " + secretWord}, &memsidecarv1.Memory{Text: "I like tea"}))(t)
	if loaded.GetAddedCount() != 1 || loaded.GetSkippedCount() != 1 {
		t.Error(loaded)
	}
	for _, text := range written(serve(t, "redact.direct_writes=false")) {
		if strings.Contains(text, "redacted") {
			t.Errorf("%q was not to be redacted", text)
		}
	}
}

// TestNothingButASecretIsNotRemembered: by rules, by a model, and by rules in the place of a model, a statement of which only a marker is
// left is not stored; what else was said is.
func TestNothingButASecretIsNotRemembered(t *testing.T) {
	confession := []*memsidecarv1.Message{said("Please remember that my API key is " + secretKey + "."), said("记住，我的银行卡号是" + secretBank + "。")}
	check := func(t *testing.T, r *running) {
		t.Helper()
		c := r.consider(t, direct("u"), confession...)
		if c.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_SKIPPED || !strings.Contains(c.GetReason(), "nothing is left of it without its secrets") {
			t.Errorf("%s, %q", c.GetState(), c.GetReason())
		}
		for _, m := range r.list(t, direct("u")) {
			if strings.Contains(m.GetText(), "[") {
				t.Errorf("remembered %v", m)
			}
		}
	}
	t.Run("rules", func(t *testing.T) {
		r := serve(t)
		check(t, r)
		c := r.consider(t, direct("u"), append(confession, said("Please remember that I am allergic to peanuts."))...)
		if got := r.list(t, direct("u")); len(got) != 1 || !strings.Contains(got[0].GetText(), "peanuts") {
			t.Errorf("remembered %v: %s", got, c.GetReason())
		}
	})
	t.Run("model", func(t *testing.T) {
		p := providertest.Start(t, 8)
		p.Say("The user's API key is [redacted: API key].")
		check(t, serve(t, useProvider("openai", p)...))
	})
	t.Run("rules in the place of a model", func(t *testing.T) {
		p := providertest.Start(t, 8)
		p.Take(60_000, 0)
		r := serve(t, append(useProvider("openai", p), "llm.daily_user_token_budget=50000")...)
		r.consider(t, direct("u"), said("I sometimes drink tea.")) // uses the budget up
		asked := len(p.Requests(providertest.Summary))
		check(t, r)
		if len(p.Requests(providertest.Summary)) != asked {
			t.Error("the model was asked for a summary")
		}
	})
}

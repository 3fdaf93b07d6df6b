package server_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestDirectWritesHoldNoSecrets: CreateMemory, UpdateMemory, ImportMemories and MCP's remember replace secrets by markers, and refuse or
// skip texts without other content. redact.direct_writes=false stores the original text.
func TestDirectWritesHoldNoSecrets(t *testing.T) {
	t.Parallel()
	alarm := "The alarm at home has the password " + secretWord
	written := func(r *sidecartest.Sidecar) (texts []string) {
		made := r.Create(t, sidecartest.Direct("u"), alarm)
		texts = append(texts, made.GetText())
		made.Text = "The alarm at work has the password " + secretWord
		updated := sidecartest.Must(
			r.UpdateMemory(t.Context(), &memsidecarv1.UpdateMemoryRequest{Scope: sidecartest.Direct("u"), Memory: made}),
		)(
			t,
		)
		texts = append(texts, updated.GetMemory().GetText())
		sidecartest.Must(r.Import(t, sidecartest.Direct("v"), &memsidecarv1.Memory{
			Text: "The bike's lock opens with the code 4711", Provenance: &memsidecarv1.Provenance{Quote: "it pays with " + secretCard},
		}))(t)
		for _, m := range r.Memories(t, sidecartest.Direct("v")) {
			texts = append(texts, m.GetText()+" "+m.GetProvenance().GetQuote())
		}
		model := r.Model(t, "Memsidecar-User", "w")
		model.Must(t, "remember", map[string]any{"text": "The weather service has the API key " + secretKey})
		return append(texts, model.Remembered(t))
	}
	r := sidecartest.Serve(t, sidecartest.MCPListen...)
	texts := written(r)
	for i, want := range []string{
		"at home has the password [redacted: password]", "at work has the password [redacted: password]",
		"[redacted: password] it pays with [redacted: card number]", "[redacted: API key]",
	} {
		if i >= len(texts) || !strings.HasSuffix(texts[i], want) {
			t.Errorf("%q is not at the end of text %d of %q", want, i, texts)
		}
	}
	for _, text := range []string{"My password is " + secretWord, "我的银行卡号是" + secretBank} {
		_, err := r.CreateMemory(
			t.Context(),
			&memsidecarv1.CreateMemoryRequest{Scope: sidecartest.Direct("x"), Memory: &memsidecarv1.Memory{Text: text}},
		)
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "contains only a secret") ||
			strings.Contains(err.Error(), secretWord) {
			t.Errorf("%s: %v", text, err)
		}
	}
	loaded := sidecartest.Must(
		r.Import(
			t,
			sidecartest.Direct("x"),
			&memsidecarv1.Memory{Text: "My password is " + secretWord},
			&memsidecarv1.Memory{Text: "I like tea"},
		),
	)(
		t,
	)
	if loaded.GetAddedCount() != 1 || loaded.GetSkippedCount() != 1 {
		t.Error(loaded)
	}
	for _, text := range written(sidecartest.Serve(t, append(sidecartest.MCPListen, "redact.direct_writes=false")...)) {
		if strings.Contains(text, "redacted") {
			t.Errorf("%q was not to be redacted", text)
		}
	}
}

// TestSecretAloneIsNotRemembered: A statement that consists of a marker after redaction is not stored, whether rules or a model decide.
// Other statements are.
func TestSecretAloneIsNotRemembered(t *testing.T) {
	t.Parallel()
	confession := []*memsidecarv1.Message{
		sidecartest.Said("Please remember that my API key is " + secretKey + "."),
		sidecartest.Said("记住，我的银行卡号是" + secretBank + "。"),
	}
	check := func(t *testing.T, r *sidecartest.Sidecar) {
		t.Helper()
		c := r.Consider(t, sidecartest.Direct("u"), confession...)
		if c.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_SKIPPED ||
			!strings.Contains(c.GetReason(), "nothing is left of it after removing secrets") {
			t.Errorf("%s, %q", c.GetState(), c.GetReason())
		}
		for _, m := range r.Memories(t, sidecartest.Direct("u")) {
			if strings.Contains(m.GetText(), "[") {
				t.Errorf("remembered %v", m)
			}
		}
	}
	t.Run("rules", func(t *testing.T) {
		r := sidecartest.Serve(t)
		check(t, r)
		c := r.Consider(
			t,
			sidecartest.Direct("u"),
			append(confession, sidecartest.Said("Please remember that I am allergic to peanuts."))...)
		if got := r.Memories(t, sidecartest.Direct("u")); len(got) != 1 || !strings.Contains(got[0].GetText(), "peanuts") {
			t.Errorf("remembered %v: %s", got, c.GetReason())
		}
	})
	t.Run("model", func(t *testing.T) {
		p := providertest.Start(t, 8)
		p.Say("The user's API key is [redacted: API key].")
		check(t, sidecartest.Serve(t, sidecartest.UseProvider("openai", p)...))
	})
	t.Run("rules in the place of a model", func(t *testing.T) {
		p := providertest.Start(t, 8)
		p.Take(60_000, 0)
		r := sidecartest.Serve(t, append(sidecartest.UseProvider("openai", p), "llm.daily_user_token_budget=50000")...)
		r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("I sometimes drink tea.")) // uses up the budget
		asked := len(p.Requests(providertest.Summary))
		check(t, r)
		if len(p.Requests(providertest.Summary)) != asked {
			t.Error("the model was asked for a summary")
		}
	})
}

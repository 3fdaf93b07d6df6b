package gemini_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/llm"
	"github.com/memsidecar/memsidecar/internal/llm/gemini"
	"github.com/memsidecar/memsidecar/internal/provider"
	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	"github.com/memsidecar/memsidecar/internal/secret"
)

const key = secret.Value("AIza-never-shown")

func model(t *testing.T, endpoint string) *gemini.Model {
	t.Helper()
	target, err := provider.Resolve("gemini", "gemini-flash-latest", endpoint, nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := gemini.New(target, key)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var contract = providertest.Adapter[*gemini.Model]{
	Name: "gemini/gemini-flash-latest", Key: string(key), Open: model,
	Call: func(ctx context.Context, m *gemini.Model, limit time.Duration) error {
		asked := llm.Model(m)
		if limit > 0 {
			asked = llm.WithTimeout(m, limit)
		}
		_, err := asked.Generate(ctx, llm.Request{Prompt: "p"})
		return err
	},
}

// answering returns an answer with one candidate, as the real API does when enums are requested as numbers.
func answering(text, finishReason string) http.HandlerFunc {
	return providertest.JSON(200, fmt.Sprintf(`{"candidates":[{"content":{"parts":[{"text":%q}],"role":"model"},"finishReason":%s,"index":0,
		"avgLogprobs":-0.1}],"usageMetadata":{"promptTokenCount":12,"candidatesTokenCount":3,"totalTokenCount":40,"thoughtsTokenCount":25},
		"modelVersion":"gemini-flash","responseId":"x"}`, text, finishReason))
}

// TestRequest: The request has the form that the real API accepts.
func TestRequest(t *testing.T) {
	s := providertest.Play(t, answering("yes", "1"))
	temperature, topP := 0.25, 0.5
	resp, err := model(t, s.URL).Generate(t.Context(), llm.Request{
		Prompt: "Is it\xff?", SchemaName: "answer",
		Generation: llm.Generation{Temperature: &temperature, TopP: &topP, MaxOutputTokens: 77},
		Schema: map[string]any{
			"type": "object", "required": []any{"kind"}, "additionalProperties": false,
			"properties": map[string]any{
				"kind":  map[string]any{"type": "string", "enum": []string{"a", "b"}, "description": "which"},
				"maybe": map[string]any{"type": []any{"string", "null"}},
				"list":  map[string]any{"type": "array", "items": map[string]any{"type": "integer"}},
				"odd":   map[string]any{"type": map[string]any{}},
			},
		},
	})
	if err != nil || resp.Text != "yes" || resp.Usage != (llm.Usage{InputTokens: 12, OutputTokens: 28}) {
		t.Fatalf("%+v, %v", resp, err)
	}
	r := s.Requests()[0]
	if r.Path != "/v1beta/models/gemini-flash-latest:generateContent" || r.Header.Get("X-Goog-Api-Key") != key.Reveal() || strings.Contains(r.Query, "AIza") {
		t.Errorf("sent to %s?%s with %v", r.Path, r.Query, r.Header)
	}
	var got, want any
	if err := json.Unmarshal([]byte(r.Body), &got); err != nil {
		t.Fatal(err)
	}
	// Types: 1 string, 3 integer, 5 array, 6 object.
	if err := json.Unmarshal([]byte(`{"model":"models/gemini-flash-latest","contents":[{"parts":[{"text":"Is it\ufffd?"}],"role":"user"}],
		"generationConfig":{"temperature":0.25,"topP":0.5,"maxOutputTokens":77,"responseMimeType":"application/json","responseSchema":{
			"type":6,"required":["kind"],"properties":{"kind":{"type":1,"format":"enum","enum":["a","b"],"description":"which"},
			"maybe":{"type":1,"nullable":true},"list":{"type":5,"items":{"type":3}},"odd":{}}}}}`), &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("sent\n%v, want\n%v", got, want)
	}
}

func TestPlainTextHasNoSchema(t *testing.T) {
	s := providertest.Play(t, answering("x", "1"))
	if _, err := model(t, s.URL).Generate(t.Context(), llm.Request{Prompt: "p"}); err != nil {
		t.Fatal(err)
	}
	if body := s.Requests()[0].Body; strings.Contains(body, "responseSchema") || strings.Contains(body, "temperature") || strings.Contains(body, "safety") {
		t.Errorf("sent %s", body)
	}
}

func TestAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		text   string
		err    error
	}{
		"stop":                         {answering("t", "1"), "t", nil},
		"stop, by name":                {answering("t", `"STOP"`), "t", nil},
		"out of tokens, with text":     {answering("t", "2"), "t", nil},
		"out of tokens, without text":  {answering("", "2"), "", llm.ErrNoAnswer},
		"other":                        {answering("t", "5"), "t", nil},
		"unknown by number":            {answering("t", "4711"), "t", nil},
		"unknown by name":              {answering("t", `"A_REASON_OF_NEXT_YEAR"`), "t", nil},
		"safety":                       {answering("t", "3"), "", llm.ErrBlocked},
		"recitation":                   {answering("t", `"RECITATION"`), "", llm.ErrBlocked},
		"prohibited, by number":        {answering("", "8"), "", llm.ErrBlocked},
		"white space":                  {answering(" \n", "1"), "", llm.ErrNoAnswer},
		"no candidates":                {providertest.JSON(200, `{"candidates":[]}`), "", llm.ErrNoAnswer},
		"nothing":                      {providertest.JSON(200, `{}`), "", llm.ErrNoAnswer},
		"no content":                   {providertest.JSON(200, `{"candidates":[{"finishReason":1}]}`), "", llm.ErrNoAnswer},
		"blocked prompt":               {providertest.JSON(200, `{"promptFeedback":{"blockReason":1}}`), "", llm.ErrBlocked},
		"blocked prompt, by name":      {providertest.JSON(200, `{"promptFeedback":{"blockReason":"SAFETY"}}`), "", llm.ErrBlocked},
		"blocked prompt, new reason":   {providertest.JSON(200, `{"promptFeedback":{"blockReason":99}}`), "", llm.ErrBlocked},
		"blocked prompt, unknown name": {providertest.JSON(200, `{"promptFeedback":{"blockReason":"IMAGE_SAFETY"}}`), "", llm.ErrBlocked},
		"several parts": {providertest.JSON(200, `{"candidates":[{"content":{"parts":[{"text":"a"},{"functionCall":{"name":"f"}},{"text":"b"}]}},
			{"content":{"parts":[{"text":"another candidate"}]}}]}`), "ab", nil},
	} {
		t.Run(name, func(t *testing.T) {
			resp, err := model(t, providertest.Play(t, test.answer).URL).Generate(t.Context(), llm.Request{Prompt: "p"})
			if !errors.Is(err, test.err) || err == nil && resp.Text != test.text {
				t.Errorf("%+v, %v; want %q, %v", resp, err, test.text, test.err)
			}
			if provider.IsFailure(err) {
				t.Errorf("%v counts as a failure of the provider", err)
			}
		})
	}
}

// TestFailures: Each failure is reported immediately, after one request, because the queue does the retries.
func TestFailures(t *testing.T) {
	refusal := func(status int) http.HandlerFunc {
		return providertest.JSON(status, `{"error":{"message":"no","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo",`+
			`"retryDelay":"7s"}]}}`)
	}
	contract.Failures(t, map[string]providertest.Failure{
		"rate limit":   {Answer: refusal(429), Passes: true, After: 7 * time.Second},
		"server error": {Answer: refusal(500), Passes: true, After: 7 * time.Second},
		// the SDK would retry these until the context ends
		"unavailable":     {Answer: refusal(503), Passes: true, After: 7 * time.Second},
		"bad key":         {Answer: refusal(403), Passes: true, After: 7 * time.Second},
		"bad request":     {Answer: refusal(400)},
		"broken JSON":     {Answer: providertest.JSON(200, `{"candidates":[`), Passes: true},
		"a page":          {Answer: providertest.JSON(200, `<html>`), Passes: true},
		"wrong types":     {Answer: providertest.JSON(200, `{"candidates":"none"}`), Passes: true},
		"null":            {Answer: providertest.JSON(200, `null`), Passes: true},
		"connection lost": {Answer: providertest.Disconnect, Passes: true},
	})
}

func TestHang(t *testing.T) { contract.Hang(t) }

func TestConcurrent(t *testing.T) {
	m := model(t, providertest.Play(t, answering("t", "1")).URL)
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			if _, err := m.Generate(t.Context(), llm.Request{Prompt: "p", Schema: map[string]any{"type": "string"}}); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
}

func TestKeyIsNotPrinted(t *testing.T) { contract.HidesKey(t) }

// TestLive calls the real API.
func TestLive(t *testing.T) {
	live := os.Getenv("GEMINI_API_KEY")
	if live == "" {
		t.Skip("GEMINI_API_KEY is not set: the real Gemini API is not asked")
	}
	target, err := provider.Resolve("gemini", "", "", func(p provider.Provider) string { return p.TextModel })
	if err != nil {
		t.Fatal(err)
	}
	m, err := gemini.New(target, secret.Value(live))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := llm.WithTimeout(m, time.Minute).Generate(t.Context(), llm.Request{
		Prompt: "Is water wet? Answer as JSON.",
		Schema: map[string]any{"type": "object", "required": []any{"wet"}, "properties": map[string]any{"wet": map[string]any{"type": "boolean"}}},
	})
	var answer struct{ Wet *bool }
	if err != nil || json.Unmarshal([]byte(resp.Text), &answer) != nil || answer.Wet == nil || resp.Usage.InputTokens == 0 {
		t.Fatalf("%+v, %v", resp, err)
	}
}

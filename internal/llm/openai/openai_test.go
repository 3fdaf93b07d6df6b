package openai_test

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
	"github.com/memsidecar/memsidecar/internal/llm/openai"
	"github.com/memsidecar/memsidecar/internal/provider"
	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	"github.com/memsidecar/memsidecar/internal/secret"
)

const key = secret.Value("sk-never-shown")

func model(t *testing.T, endpoint string) *openai.Model {
	t.Helper()
	target, err := provider.Resolve("openai", "gpt", endpoint+"/v1", nil)
	if err != nil {
		t.Fatal(err)
	}
	return openai.New(target, key)
}

var contract = providertest.Adapter[*openai.Model]{
	Name: "openai/gpt", Key: string(key), Open: model,
	Call: func(ctx context.Context, m *openai.Model, limit time.Duration) error {
		asked := llm.Model(m)
		if limit > 0 {
			asked = llm.WithTimeout(m, limit)
		}
		_, err := asked.Generate(ctx, llm.Request{Prompt: "p", Schema: schema(), SchemaName: "s"})
		return err
	},
}

func choosing(choice string) http.HandlerFunc {
	return providertest.JSON(200, `{"id":"1","object":"chat.completion","created":1,"model":"gpt","choices":[`+choice+`],
		"usage":{"prompt_tokens":12,"completion_tokens":3,"total_tokens":15}}`)
}

func answering(text string) http.HandlerFunc {
	return choosing(fmt.Sprintf(`{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}`, text))
}

func refusing(message string) http.HandlerFunc {
	return providertest.JSON(400, fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error","param":null,`+
		`"code":"invalid_request_error"}}`, message))
}

func schema() map[string]any { return map[string]any{"type": "object"} }

// body is a decoded request body.
func body(t *testing.T, r providertest.Request) (fields map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.Body), &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

func TestRequest(t *testing.T) {
	// The SDK's default client would use these, which may belong to another account.
	for _, name := range []string{"OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_API_KEY", "OPENAI_ADMIN_KEY"} {
		t.Setenv(name, "of-somebody-else")
	}
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Else: of-somebody-else")
	s := providertest.Play(t, answering("yes"))
	temperature, topP := 0.25, 0.5
	resp, err := model(t, s.URL).Generate(t.Context(), llm.Request{
		Prompt: "Is it?", Schema: schema(), SchemaName: "answer",
		Generation: llm.Generation{Temperature: &temperature, TopP: &topP, MaxOutputTokens: 77},
	})
	if err != nil || resp.Text != "yes" || resp.Usage != (llm.Usage{InputTokens: 12, OutputTokens: 3}) {
		t.Fatalf("%+v, %v", resp, err)
	}
	r := s.Requests()[0]
	if r.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer "+key.Reveal() ||
		strings.Contains(fmt.Sprint(r.Header), "somebody-else") {
		t.Errorf("sent to %s with %v", r.Path, r.Header)
	}
	want := map[string]any{
		"model": "gpt", "messages": []any{map[string]any{"role": "user", "content": "Is it?"}},
		"temperature": 0.25, "top_p": 0.5, "max_tokens": 77.0,
		"response_format": map[string]any{
			"type":        "json_schema",
			"json_schema": map[string]any{"name": "answer", "schema": map[string]any{"type": "object"}},
		},
	}
	if got := body(t, r); !reflect.DeepEqual(got, want) {
		t.Errorf("sent\n%v, want\n%v", got, want)
	}
}

func TestNoKeyIsSentWithoutOne(t *testing.T) {
	s := providertest.Play(t, answering("yes"))
	target, err := provider.Resolve("ollama", "qwen3", s.URL+"/v1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openai.New(target, "").Generate(t.Context(), llm.Request{Prompt: "p"}); err != nil {
		t.Fatal(err)
	}
	if h := s.Requests()[0].Header; h.Get("Authorization") != "" {
		t.Errorf("sent %v", h)
	}
}

// TestFormats: Parameters that an endpoint does not accept are omitted, immediately and from then on.
func TestFormats(t *testing.T) {
	format := func(r providertest.Request) string {
		f, ok := body(t, r)["response_format"].(map[string]any)
		if !ok {
			return "none"
		}
		return fmt.Sprint(f["type"])
	}
	noSchema := refusing("This response_format type is unavailable now") // DeepSeek
	noObject := refusing("'response_format.type' must be 'json_schema' or 'text'")
	for name, test := range map[string]struct {
		answers []http.HandlerFunc
		want    []string
	}{
		"all taken": {[]http.HandlerFunc{answering("t")}, []string{"json_schema", "json_schema"}},
		"no schema": {[]http.HandlerFunc{noSchema, answering("t")}, []string{"json_schema", "json_object", "json_object"}},
		"neither":   {[]http.HandlerFunc{noSchema, noObject, answering("t")}, []string{"json_schema", "json_object", "none", "none"}},
		"refused as FastAPI": {[]http.HandlerFunc{
			providertest.JSON(422, `{"detail":[{"loc":["body","response_format"]}]}`),
			answering("t"),
		}, []string{"json_schema", "json_object", "json_object"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := providertest.Play(t, test.answers...)
			m := model(t, s.URL)
			for range 2 {
				if resp, err := m.Generate(t.Context(), llm.Request{Prompt: "p", Schema: schema(), SchemaName: "s"}); err != nil || resp.Text != "t" {
					t.Fatalf("%+v, %v", resp, err)
				}
			}
			var got []string
			for _, r := range s.Requests() {
				got = append(got, format(r))
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("asked for %v, want %v", got, test.want)
			}
		})
	}
}

// TestOtherRefusalsEndTheCall end the call, and the format is still requested.
func TestOtherRefusalsEndTheCall(t *testing.T) {
	s := providertest.Play(t, refusing("maximum context length"), answering("t"))
	m := model(t, s.URL)
	r := llm.Request{Prompt: "p", Schema: schema(), SchemaName: "s"}
	if _, err := m.Generate(t.Context(), r); err == nil || provider.IsFailure(err) || !strings.Contains(err.Error(), "maximum context length") {
		t.Errorf("%v", err)
	}
	if _, err := m.Generate(t.Context(), r); err != nil || !strings.Contains(s.Requests()[1].Body, "json_schema") {
		t.Errorf("%v, %s", err, s.Requests()[1].Body)
	}
	// An endpoint that refuses every format is not tried forever.
	s = providertest.Play(t, refusing("response_format, json_schema, max_completion_tokens"))
	r.Generation.MaxOutputTokens = 1
	if _, err := model(t, s.URL).Generate(t.Context(), r); err == nil || len(s.Requests()) != 4 {
		t.Errorf("%v after %d requests", err, len(s.Requests()))
	}
}

// TestMaxCompletionTokens: OpenAI's reasoning models use another name for the limit.
func TestMaxCompletionTokens(t *testing.T) {
	s := providertest.Play(t, refusing("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "+
		"instead."), answering("t"))
	m := model(t, s.URL)
	for range 2 {
		if _, err := m.Generate(t.Context(), llm.Request{Prompt: "p", Generation: llm.Generation{MaxOutputTokens: 9}}); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{"max_tokens", "max_completion_tokens", "max_completion_tokens"} {
		if got := body(t, s.Requests()[i]); got[want] != 9.0 || len(got) != 3 {
			t.Errorf("request %d: %v, want %s", i, got, want)
		}
	}
}

func TestAnswers(t *testing.T) {
	choice := func(message, finish string) http.HandlerFunc {
		return choosing(`{"index":0,"message":{"role":"assistant",` + message + `},"finish_reason":` + finish + `}`)
	}
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		text   string
		err    error
	}{
		"stop":                 {choice(`"content":"t"`, `"stop"`), "t", nil},
		"out of tokens":        {choice(`"content":"t"`, `"length"`), "t", nil},
		"unknown reason":       {choice(`"content":"t"`, `"a_reason_of_next_year"`), "t", nil},
		"no reason":            {choice(`"content":"t"`, `null`), "t", nil},
		"with thoughts":        {choice(`"content":"t","reasoning_content":"hm"`, `"stop"`), "t", nil},
		"no content":           {choice(`"content":null`, `"length"`), "", llm.ErrNoAnswer},
		"white space":          {choice(`"content":" \n"`, `"stop"`), "", llm.ErrNoAnswer},
		"no choices":           {choosing(""), "", llm.ErrNoAnswer},
		"nothing":              {providertest.JSON(200, `{}`), "", llm.ErrNoAnswer},
		"refusal":              {choice(`"content":null,"refusal":"I will not"`, `"stop"`), "", llm.ErrBlocked},
		"filtered":             {choice(`"content":"t"`, `"content_filter"`), "", llm.ErrBlocked},
		"filtered by Azure":    {providertest.JSON(400, `{"error":{"message":"The response was filtered","code":"content_filter"}}`), "", llm.ErrBlocked},
		"filtered by DeepSeek": {refusing("Content Exists Risk"), "", llm.ErrBlocked},
		"filtered by DashScope": {providertest.JSON(400, `{"error":{"code":"data_inspection_failed","message":"Input data may contain `+
			`inappropriate content."}}`), "", llm.ErrBlocked},
		"not after Groq's schema": {
			providertest.JSON(400, `{"error":{"message":"Failed to validate JSON","code":"json_validate_failed"}}`),
			"", llm.ErrNoAnswer,
		},
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

func TestFailures(t *testing.T) {
	refusal := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "7")
			providertest.JSON(status, `{"error":{"message":"no"}}`)(w, r)
		}
	}
	contract.Failures(t, map[string]providertest.Failure{
		"rate limit":      {Answer: refusal(429), Passes: true, After: 7 * time.Second},
		"server error":    {Answer: refusal(500), Passes: true, After: 7 * time.Second},
		"bad key":         {Answer: refusal(401), Passes: true, After: 7 * time.Second},
		"no such model":   {Answer: refusal(404), Passes: true, After: 7 * time.Second},
		"bad request":     {Answer: refusal(400)},
		"broken JSON":     {Answer: providertest.JSON(200, `{"choices":[`), Passes: true},
		"wrong types":     {Answer: providertest.JSON(200, `[1]`), Passes: true},
		"a page":          {Answer: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, Passes: true},
		"connection lost": {Answer: providertest.Disconnect, Passes: true},
	})
}

func TestHang(t *testing.T) { contract.Hang(t) }

// TestConcurrentFallback: Concurrent callers that find out about an unsupported parameter all get their answers.
func TestConcurrentFallback(t *testing.T) {
	s := providertest.Play(t, func(w http.ResponseWriter, r *http.Request) {
		var sent struct {
			ResponseFormat struct{ Type string } `json:"response_format"`
		}
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil || sent.ResponseFormat.Type != "" {
			refusing("response_format is not supported")(w, r)
			return
		}
		answering("t")(w, r)
	})
	m := model(t, s.URL)
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			if _, err := m.Generate(t.Context(), llm.Request{Prompt: "p", Schema: schema(), SchemaName: "s"}); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
}

func TestKeyIsNotPrinted(t *testing.T) { contract.HidesKey(t) }

// TestLive calls the real API.
func TestLive(t *testing.T) {
	live := os.Getenv("OPENAI_API_KEY")
	if live == "" {
		t.Skip("OPENAI_API_KEY is not set: the real OpenAI API is not asked")
	}
	target, err := provider.Resolve("openai", "", "", func(p provider.Provider) string { return p.TextModel })
	if err != nil {
		t.Fatal(err)
	}
	resp, err := llm.WithTimeout(openai.New(target, secret.Value(live)), time.Minute).Generate(t.Context(), llm.Request{
		Prompt: "Is water wet? Answer as JSON.", SchemaName: "answer",
		Schema: map[string]any{
			"type": "object", "required": []any{"wet"}, "additionalProperties": false,
			"properties": map[string]any{"wet": map[string]any{"type": "boolean"}},
		},
	})
	var answer struct{ Wet *bool }
	if err != nil || json.Unmarshal([]byte(resp.Text), &answer) != nil || answer.Wet == nil || resp.Usage.InputTokens == 0 {
		t.Fatalf("%+v, %v", resp, err)
	}
}

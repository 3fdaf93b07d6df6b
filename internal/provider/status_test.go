package provider_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/provider"
	"github.com/memsidecar/memsidecar/internal/secret"
)

// awkwardKey is changed by URL encoding and quoting.
const awkwardKey = secret.Value(`sk/never+to"be&shown`)

// failing calls a server with this answer through the real SDK, and returns the error and its meaning.
func failing(t *testing.T, status int, header map[string]string, body string) (sdk, meaning error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for k, v := range header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	defer server.Close()
	return failingAt(t.Context(), server.URL+"/v1")
}

func failingAt(ctx context.Context, baseURL string) (sdk, meaning error) {
	target := provider.Target{Provider: provider.Provider{Name: "p"}, Model: "m", BaseURL: baseURL}
	service := openai.NewEmbeddingService(provider.OpenAIOptions(target, awkwardKey)...)
	_, err := service.New(ctx, openai.EmbeddingNewParams{Model: "m"})
	return err, provider.ErrorConverter(target, awkwardKey)(ctx, err)
}

// TestFailuresAreClassified: The bodies are those of the real providers.
func TestFailuresAreClassified(t *testing.T) {
	openAI := func(message, code string) string {
		return fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error","param":null,"code":%q}}`, message, code)
	}
	google := func(status int, message, name, detail string) string {
		return fmt.Sprintf(`{"error":{"code":%d,"message":%q,"status":%q,"details":[%s]}}`, status, message, name, detail)
	}
	const badKey = `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}`
	const retry = `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}`
	for name, test := range map[string]struct {
		status int
		header map[string]string
		body   string
		passes bool
		after  time.Duration
		text   string
	}{
		"OpenAI, rate limit": {
			status: 429, header: map[string]string{"Retry-After": "20"}, body: openAI("Rate limit reached", "rate_limit_exceeded"),
			passes: true, after: 20 * time.Second, text: "p/m: HTTP 429 Too Many Requests: Rate limit reached",
		},
		"a fraction of seconds": {
			status: 429,
			header: map[string]string{"Retry-After": "0.5"}, passes: true, after: 500 * time.Millisecond,
			text: "p/m: HTTP 429 Too Many Requests",
		},
		"a date": {status: 503, header: map[string]string{"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"}, passes: true, text: "HTTP 503"},
		"a date in the far future": {
			status: 503,
			header: map[string]string{"Retry-After": "Fri, 31 Dec 2399 23:59:59 GMT"}, passes: true,
			after: 24 * time.Hour, text: "HTTP 503",
		},
		"seconds without end": {
			status: 429,
			header: map[string]string{"Retry-After": "99999999999999999999"}, passes: true,
			after: 24 * time.Hour, text: "HTTP 429",
		},
		"seconds below nothing": {status: 429, header: map[string]string{"Retry-After": "-5"}, passes: true, text: "HTTP 429"},
		"Gemini, rate limit": {
			status: 429,
			body:   google(429, "Quota exceeded", "RESOURCE_EXHAUSTED", retry), passes: true,
			after: 34500 * time.Millisecond, text: "Quota exceeded",
		},
		"Gemini's compatible": {
			status: 429,
			body:   "[" + google(429, "Quota exceeded", "RESOURCE_EXHAUSTED", retry) + "]", passes: true,
			after: 34500 * time.Millisecond, text: "Quota exceeded",
		},
		"Gemini, key": {
			status: 400,
			body:   google(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT", badKey),
			passes: true, text: "API key not valid",
		},
		"Gemini, region": {
			status: 400,
			body:   google(400, "User location is not supported for the API use.", "FAILED_PRECONDITION", ""),
			passes: true, text: "User location",
		},
		"Gemini, request": {status: 400, body: google(400, "Invalid value at 'contents'", "INVALID_ARGUMENT", ""), text: "Invalid value"},
		"OpenAI, key": {
			status: 401,
			body:   openAI("Incorrect API key provided: "+awkwardKey.Reveal(), "invalid_api_key"), passes: true,
			text: "Incorrect API key provided: ********",
		},
		"OpenAI, model": {status: 404, body: openAI("The model `m` does not exist", "model_not_found"), passes: true, text: "does not exist"},
		"OpenAI, too long": {
			status: 400,
			body:   openAI("This model's maximum context length is 8192 tokens", "context_length_exceeded"),
			text:   "maximum context length",
		},
		"DeepSeek, model": {status: 400, body: openAI("Model Not Exist", "invalid_request_error"), passes: true, text: "Model Not Exist"},
		"DeepSeek, money": {status: 402, body: openAI("Insufficient Balance", "invalid_request_error"), passes: true, text: "Insufficient Balance"},
		"SiliconFlow, model": {status: 400, body: `{"code":20012,"message":"Model does not exist. Please check it carefully.",` +
			`"data":null}`, passes: true, text: "Model does not exist"},
		"Zhipu, model":              {status: 400, body: `{"error":{"code":"1211","message":"模型不存在，请检查模型代码。"}}`, passes: true, text: "模型不存在"},
		"Ollama, model":             {status: 404, body: `{"error":"model 'm' not found"}`, passes: true, text: "model 'm' not found"},
		"FastAPI":                   {status: 422, body: `{"detail":[{"loc":["body","x"],"msg":"Extra inputs are not permitted"}]}`, text: "Extra inputs"},
		"a proxy's page":            {status: 502, body: "<html><body><h1>502</h1></body></html>", passes: true, text: "p/m: HTTP 502 Bad Gateway"},
		"a redirect":                {status: 302, header: map[string]string{"Location": "https://elsewhere.invalid/"}, passes: true, text: "p/m: HTTP 302 Found"},
		"no words":                  {status: 500, passes: true, text: "p/m: HTTP 500 Internal Server Error"},
		"too large":                 {status: 413, body: "Payload too large", text: "Payload too large"},
		"a list of nothing":         {status: 400, body: "[]", text: "[]"},
		"odd types":                 {status: 400, body: `{"error":{"message":7,"details":["x",{"retryDelay":3}]}}`, text: ": 7"},
		"bytes that are no text":    {status: 400, body: "a\x00\x1b[31m\xffb", text: "a [31m\uFFFDb"},
		"more than anybody reads":   {status: 400, body: strings.Repeat("x", 100_000), text: strings.Repeat("x", 300) + "…"},
		"too early, conflict, gone": {status: 425, passes: true, text: "HTTP 425"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := failing(t, test.status, test.header, test.body)
			var transient *memory.TransientError
			if errors.As(err, &transient) != test.passes || provider.IsFailure(err) != test.passes {
				t.Errorf("%#v: passes is %v", err, !test.passes)
			}
			if transient != nil && (transient.RetryAfter-test.after).Abs() > time.Second/2 {
				t.Errorf("to be tried again after %s, want %s", transient.RetryAfter, test.after)
			}
			if !strings.Contains(err.Error(), test.text) {
				t.Errorf("%q, want %q", err, test.text)
			}
		})
	}
}

// TestErrorsDoNotContainTheKey: No error's text, and nothing that errors.As finds, contains the key in any form.
func TestErrorsDoNotContainTheKey(t *testing.T) {
	echo := awkwardKey.Reveal() + " " + "sk%2Fnever%2Bto%22be%26shown" + ` sk/never+to\"be&shown`
	closed := httptest.NewServer(nil)
	closed.Close()
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer slow.Close()
	errs := map[string]error{}
	_, errs["status"] = failing(t, 401, nil, echo)
	_, errs["permanent"] = failing(t, 400, nil, `{"error":{"message":`+fmt.Sprintf("%q", echo)+`}}`)
	_, errs["not JSON"] = failing(t, 200, map[string]string{"Content-Type": "application/json"}, echo)
	_, errs["another type"] = failing(t, 200, map[string]string{"Content-Type": "text/" + echo}, echo)
	_, errs["refused connection"] = failingAt(t.Context(), closed.URL+"/v1/?key="+"sk%2Fnever%2Bto%22be%26shown")
	_, errs["no such host"] = failingAt(t.Context(), "http://"+"sk-never.invalid/?key=sk/never+to\"be&shown")
	_, errs["bad URL"] = failingAt(t.Context(), "http://h\x7f/"+awkwardKey.Reveal())
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, errs["timeout"] = failingAt(ctx, slow.URL)
	for name, err := range errs {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			for _, text := range []string{fmt.Sprintf("%v", e), fmt.Sprintf("%+v", e), fmt.Sprintf("%#v", e), fmt.Sprintf("%q", e)} {
				if strings.Contains(text, "never") && strings.Contains(text, "shown") {
					t.Errorf("%s: the key shows: %s", name, text)
				}
			}
		}
		if _, ok := provider.StatusOf(err); ok {
			t.Errorf("%s: the provider's answer can be reached", name)
		}
		if _, ok := errors.AsType[*openai.Error](err); ok {
			t.Errorf("%s: the SDK's error can be reached", name)
		}
	}
}

func TestCancelledCallIsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
	}))
	defer server.Close()
	_, err := failingAt(ctx, server.URL)
	if !errors.Is(err, context.Canceled) || provider.IsFailure(err) {
		t.Errorf("%v", err)
	}
	if provider.IsFailure(&memory.TransientError{Err: context.Canceled}) {
		t.Error("a cancellation counts as a failure")
	}
}

// TestKeyIsNotSentToRedirects: The key is sent to the configured endpoint, not to a redirect's target.
func TestKeyIsNotSentToRedirects(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server got %v", r.Header)
	}))
	defer elsewhere.Close()
	target := provider.Target{Provider: provider.Provider{Name: "p"}, Model: "m"}
	home := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	}))
	defer home.Close()
	target.BaseURL = home.URL
	client, err := provider.GeminiClient(target, "k")
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.GenerativeModel("m").GenerateContent(t.Context())
	if status, ok := provider.StatusOf(err); !ok || status.Status != http.StatusTemporaryRedirect {
		t.Errorf("Gemini: %v", err)
	}
	if sdk, _ := failingAt(t.Context(), home.URL); sdk == nil {
		t.Error("OpenAI: no error")
	}
}

// TestLargeAnswersAreCutOff: A server that sends without end does not exhaust the memory.
func TestLargeAnswersAreCutOff(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for chunk := []byte(strings.Repeat(" ", 1<<20)); r.Context().Err() == nil; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	_, err := failingAt(t.Context(), server.URL)
	if err == nil || !strings.Contains(err.Error(), "larger than 64 MiB") || !provider.IsFailure(err) {
		t.Errorf("%v", err)
	}
}

func TestResolveMore(t *testing.T) {
	for _, test := range []struct{ name, model, want string }{
		{"Gemini", "google/gemini-x", "gemini/gemini-x"}, // seed 004 writes APIType: 'Gemini'
		{"google", "gemini/gemini-x", "gemini/gemini-x"},
		{"openrouter", "openrouter/auto", "openrouter/openrouter/auto"},
		{"", "openrouter/openrouter/auto", "openrouter/openrouter/auto"},
		{"siliconflow", "BAAI/bge-m3", "siliconflow/BAAI/bge-m3"},
		{"dashscope", "qwen/qwen-plus", "qwen/qwen-plus"},
		{"openai", "deepseek/deepseek-chat", "openai/deepseek/deepseek-chat"}, // a gateway's model name
	} {
		got, err := provider.Resolve(test.name, test.model, "", text)
		if err != nil || got.Name() != test.want {
			t.Errorf("%q, %q: %s, %v; want %s", test.name, test.model, got.Name(), err, test.want)
		}
	}
	_, err := provider.Resolve("", "gpt-4o", "", text)
	if err == nil || !strings.Contains(err.Error(), `provider is required for the model "gpt-4o"`) {
		t.Errorf("a model without a provider: %v", err)
	}
	for _, endpoint := range []string{
		"AIzaSecretKey", "https://h/v1beta/models/m:generateContent?key=AIzaSecretKey",
		"https://AIzaSecretKey@h/", "::AIzaSecretKey",
	} {
		_, err := provider.Resolve("gemini", "m", endpoint, text)
		if err == nil || strings.Contains(err.Error(), "SecretKey") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

func TestRemote(t *testing.T) {
	for url, want := range map[string]bool{
		"http://127.0.0.1:11434/v1": false, "http://localhost/v1": false, "http://[::1]:1234/v1": false, "http://127.8.8.8/": false,
		"http://[::ffff:127.0.0.1]/": false,
		"https://api.openai.com/v1":  true, "http://127.evil.example/v1": true, "http://192.168.1.5/": true, "http://localhost.example/": true,
	} {
		if got := (provider.Target{BaseURL: url}).Remote(); got != want {
			t.Errorf("%s: remote is %v", url, got)
		}
	}
}

// TestEveryProviderIsComplete: Each provider has all that a target needs. Variables for keys have the usual names.
func TestEveryProviderIsComplete(t *testing.T) {
	_, err := provider.Find("?")
	_, list, _ := strings.Cut(err.Error(), "use one of ")
	for name := range strings.SplitSeq(list, ", ") {
		p, err := provider.Find(name)
		target := provider.Target{Provider: p, BaseURL: p.BaseURL}
		if err != nil || p.BaseURL == "" || target.Remote() == p.Local || p.Local != (len(p.KeyVars) == 0) ||
			strings.HasSuffix(p.BaseURL, "/") {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		for _, v := range p.KeyVars {
			if !strings.HasSuffix(v, "_API_KEY") {
				t.Errorf("%s: its key is in %s", name, v)
			}
		}
	}
}

// TestGeminiClientIsReused: The SDK's clients cannot be closed completely, so rebuilding a model must not create more.
func TestGeminiClientIsReused(t *testing.T) {
	get := func(baseURL string, key secret.Value) any {
		c, err := provider.GeminiClient(provider.Target{BaseURL: baseURL}, key)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	one := get("http://127.0.0.1:1", "a")
	if get("http://127.0.0.1:1", "a") != one || get("http://127.0.0.1:1", "b") == one || get("http://127.0.0.1:2", "a") == one {
		t.Error("a client is not the one of its endpoint and key")
	}
}

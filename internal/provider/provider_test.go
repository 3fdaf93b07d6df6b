package provider_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/provider"
	"github.com/memsidecar/memsidecar/internal/secret"
)

func text(p provider.Provider) string { return p.TextModel }

func TestResolve(t *testing.T) {
	for _, test := range []struct{ name, model, endpoint, want string }{
		{"gemini", "", "", "gemini/gemini-flash-latest at https://generativelanguage.googleapis.com"},
		{"google", "gemini-2.0-flash", "", "gemini/gemini-2.0-flash at https://generativelanguage.googleapis.com"},
		{"", "google/gemini-2.0-flash", "", "gemini/gemini-2.0-flash at https://generativelanguage.googleapis.com"},
		{"", "deepseek/deepseek-chat", "", "deepseek/deepseek-chat at https://api.deepseek.com/v1"},
		{"openrouter", "meta/llama-3", "", "openrouter/meta/llama-3 at https://openrouter.ai/api/v1"},
		{"ollama", "qwen3:8b", "", "ollama/qwen3:8b at http://127.0.0.1:11434/v1"},
		{"openai", "m", "http://10.0.0.1:8000/v1/", "openai/m at http://10.0.0.1:8000/v1"},
		{"openai", "m", "http://h/v1/chat/completions", "openai/m at http://h/v1"},
		{
			"gemini", "", "https://generativelanguage.googleapis.com/v1beta/models/gemini-1.5-flash:generateContent",
			"gemini/gemini-1.5-flash at https://generativelanguage.googleapis.com",
		},
		{
			"gemini", "embedding-001", "https://generativelanguage.googleapis.com/v1beta/models/embedding-001:embedContent",
			"gemini/embedding-001 at https://generativelanguage.googleapis.com",
		},
		{"gemini", "m", "http://127.0.0.1:9/v1beta", "gemini/m at http://127.0.0.1:9"},
	} {
		got, err := provider.Resolve(test.name, test.model, test.endpoint, text)
		if s := got.Name() + " at " + got.BaseURL; err != nil || s != test.want {
			t.Errorf("%q, %q, %q: %s, %v; want %s", test.name, test.model, test.endpoint, s, err, test.want)
		}
	}
	for _, test := range []struct{ name, model, endpoint, want string }{
		{"gogle", "", "", "use one of anthropic, dashscope, deepseek, gemini, google,"},
		{"", "nobody/m", "", `"nobody", which is not a known provider`},
		{"ollama", "", "", "model is required"},
		{"openai", "", "ftp://h", "use an http or https URL"},
		{"openai", "", "https://h/v1?key=1", "set the URL alone"},
		{"openai", "m", "https://h/v1beta/models/m:generateContent", "ends in a method"},
		{"gemini", "", "https://h/v1beta/models/m:streamGenerateContent", `the method "streamGenerateContent"`},
		{"gemini", "a", "https://h/v1beta/models/b:generateContent", `names the model "b" and model is "a"`},
		{"gemini", "", "https://h/proxy/v1beta", `has the path "/proxy"`},
	} {
		_, err := provider.Resolve(test.name, test.model, test.endpoint, text)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q, %q, %q: %v; want %s", test.name, test.model, test.endpoint, err, test.want)
		}
	}
}

func TestFailure(t *testing.T) {
	const key = secret.Value("sk-very-secret")
	soon := http.Header{"Retry-After": {"7"}}
	for _, test := range []struct {
		failure provider.Failure
		passes  bool
		after   time.Duration
	}{
		{provider.Failure{Status: 429, Header: soon}, true, 7 * time.Second},
		{provider.Failure{Status: 429, RetryAfter: 9 * time.Second, Header: soon}, true, 9 * time.Second},
		{provider.Failure{Status: 503, Header: http.Header{"Retry-After": {"nonsense"}}}, true, 0},
		{provider.Failure{Status: 401}, true, 0},
		{provider.Failure{Status: 404}, true, 0},
		{provider.Failure{Err: errors.New("Post \"https://h/?key=sk-very-secret\": connection reset")}, true, 0},
		{provider.Failure{Status: 400, Message: "bad prompt sk-very-secret"}, false, 0},
		{provider.Failure{Status: 413}, false, 0},
	} {
		test.failure.Target, test.failure.Key = "p/m", key
		err := test.failure.Error(t.Context())
		var transient *memory.TransientError
		if errors.As(err, &transient) != test.passes || test.passes && transient.RetryAfter != test.after {
			t.Errorf("%+v: %#v", test.failure, err)
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(fmt.Sprintf("%v %+v %#v", e, e, e), "very-secret") {
				t.Errorf("the key shows: %#v", e)
			}
		}
		if provider.IsFailure(err) != test.passes {
			t.Errorf("%v: counts as a failure: %v", err, !test.passes)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (provider.Failure{Status: 500}).Error(cancelled); !errors.Is(err, context.Canceled) || provider.IsFailure(err) {
		t.Errorf("a caller that gave up: %v", err)
	}
}

// Package provider knows the model providers: names, base URLs, key variables, and the meaning of their errors.
package provider

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Protocol is the API that a provider implements.
type Protocol string

// The protocols.
const (
	Gemini Protocol = "gemini" // Google's REST API
	OpenAI Protocol = "openai" // the OpenAI-compatible API
)

// Provider is where a model runs.
type Provider struct {
	Name     string
	Protocol Protocol
	BaseURL  string   // empty: no default, must be configured
	KeyVars  []string // environment variables for its key, preferred first; none: it needs no key
	// Default models; may be empty.
	TextModel, EmbeddingModel string
	// Local means that it usually runs on this machine.
	Local bool
}

func providers() map[string]Provider {
	list := []Provider{
		{
			Name: "gemini", Protocol: Gemini, KeyVars: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
			BaseURL: "https://generativelanguage.googleapis.com", TextModel: "gemini-flash-latest", EmbeddingModel: "gemini-embedding-001",
		},
		{
			Name: "openai", Protocol: OpenAI, KeyVars: []string{"OPENAI_API_KEY"},
			BaseURL: "https://api.openai.com/v1", TextModel: "gpt-4o-mini", EmbeddingModel: "text-embedding-3-small",
		},
		{
			Name: "deepseek", Protocol: OpenAI, KeyVars: []string{"DEEPSEEK_API_KEY"},
			BaseURL: "https://api.deepseek.com/v1", TextModel: "deepseek-chat",
		},
		{Name: "anthropic", Protocol: OpenAI, KeyVars: []string{"ANTHROPIC_API_KEY"}, BaseURL: "https://api.anthropic.com/v1"},
		{Name: "openrouter", Protocol: OpenAI, KeyVars: []string{"OPENROUTER_API_KEY"}, BaseURL: "https://openrouter.ai/api/v1"},
		{
			Name: "mistral", Protocol: OpenAI, KeyVars: []string{"MISTRAL_API_KEY"},
			BaseURL: "https://api.mistral.ai/v1", TextModel: "mistral-small-latest", EmbeddingModel: "mistral-embed",
		},
		{Name: "groq", Protocol: OpenAI, KeyVars: []string{"GROQ_API_KEY"}, BaseURL: "https://api.groq.com/openai/v1"},
		{Name: "moonshot", Protocol: OpenAI, KeyVars: []string{"MOONSHOT_API_KEY"}, BaseURL: "https://api.moonshot.cn/v1"},
		{
			Name: "qwen", Protocol: OpenAI, KeyVars: []string{"DASHSCOPE_API_KEY"},
			BaseURL: "https://dashscope.aliyuncs.com/compatible-mode/v1", TextModel: "qwen-plus", EmbeddingModel: "text-embedding-v4",
		},
		{Name: "zhipu", Protocol: OpenAI, KeyVars: []string{"ZHIPU_API_KEY"}, BaseURL: "https://open.bigmodel.cn/api/paas/v4"},
		{Name: "together", Protocol: OpenAI, KeyVars: []string{"TOGETHER_API_KEY"}, BaseURL: "https://api.together.xyz/v1"},
		{Name: "siliconflow", Protocol: OpenAI, KeyVars: []string{"SILICONFLOW_API_KEY"}, BaseURL: "https://api.siliconflow.cn/v1"},
		{Name: "ollama", Protocol: OpenAI, BaseURL: "http://127.0.0.1:11434/v1", Local: true},
		{Name: "lmstudio", Protocol: OpenAI, BaseURL: "http://127.0.0.1:1234/v1", Local: true},
		{Name: "vllm", Protocol: OpenAI, BaseURL: "http://127.0.0.1:8000/v1", Local: true},
	}
	byName := map[string]Provider{}
	for _, p := range list {
		byName[p.Name] = p
	}
	byName["google"] = byName["gemini"]
	byName["dashscope"] = byName["qwen"]
	return byName
}

// Find returns a provider by its name in any case. "google" is an alias of gemini, and "dashscope" of qwen. The error lists the known
// names.
func Find(name string) (Provider, error) {
	all := providers()
	if p, ok := all[strings.ToLower(name)]; ok {
		return p, nil
	}
	return Provider{}, fmt.Errorf("is %q, which is not a known provider: use one of %s", name,
		strings.Join(slices.Sorted(maps.Keys(all)), ", "))
}

// Target is a model of a provider.
type Target struct {
	Provider Provider
	Model    string
	BaseURL  string
}

// Name returns "provider/model".
func (t Target) Name() string { return t.Provider.Name + "/" + t.Model }

// Remote reports whether texts leave this machine.
func (t Target) Remote() bool {
	u, err := url.Parse(t.BaseURL)
	if err != nil {
		return true
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() != "localhost" && (err != nil || !ip.IsLoopback())
}

// Resolve returns the target for a provider's name, a model and an endpoint. Without a provider's name, the model may be "provider/model".
// The endpoint is a base URL, or a full Gemini URL such as …/v1beta/models/NAME:generateContent. usual returns the provider's default
// model.
func Resolve(name, model, endpoint string, usual func(Provider) string) (Target, error) {
	before, after, slash := strings.Cut(model, "/")
	if name == "" && !slash {
		return Target{}, fmt.Errorf("provider is required for the model %q: set it, or write provider/model", model)
	}
	named := name
	if named == "" {
		named = before
	}
	p, err := Find(named)
	if err != nil {
		return Target{}, fmt.Errorf("provider %w", err)
	}
	// The model may repeat the provider's name. OpenRouter's own models begin with that name.
	if again, err := Find(before); slash && (name == "" || err == nil && again.Name == p.Name && p.Name != "openrouter") {
		model = after
	}
	t := Target{Provider: p, Model: model, BaseURL: p.BaseURL}
	if endpoint != "" {
		named, err := t.parseEndpoint(endpoint)
		if err != nil {
			return Target{}, err
		}
		if named != "" && t.Model != "" && named != t.Model {
			return Target{}, fmt.Errorf("endpoint names the model %q and model is %q: remove one of them", named, t.Model)
		}
		if named != "" {
			t.Model = named
		}
	}
	if t.Model == "" {
		t.Model = usual(p)
	}
	switch {
	case t.Model == "":
		return Target{}, fmt.Errorf("model is required for %s: set it", p.Name)
	case t.BaseURL == "":
		return Target{}, fmt.Errorf("endpoint is required for %s: set its base URL", p.Name)
	}
	return t, nil
}

// parseEndpoint parses the endpoint and returns the model that it names, if any.
func (t *Target) parseEndpoint(endpoint string) (model string, err error) {
	u, err := url.Parse(endpoint)
	if err == nil && (u.User != nil || u.RawQuery != "" || u.Fragment != "") { // these may contain a key, so they are not shown
		return "", errors.New("endpoint contains a user, a query or a fragment: set the URL alone, and the key as api_key")
	}
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("endpoint is not an http or https URL (%.8s…): use an http or https URL such as https://host/v1", endpoint)
	}
	path := strings.TrimRight(u.Path, "/")
	if t.Provider.Protocol != Gemini {
		for _, method := range []string{"/chat/completions", "/embeddings"} {
			path = strings.TrimSuffix(path, method)
		}
		if strings.Contains(path[strings.LastIndexByte(path, '/')+1:], ":") {
			return "", fmt.Errorf("endpoint ends in a method, as Gemini's do, and the provider is %s: give its base URL", t.Provider.Name)
		}
		t.BaseURL = u.Scheme + "://" + u.Host + path
		return "", nil
	}
	before, rest, ok := strings.Cut(path, "/models/")
	if ok {
		var method string
		model, method, _ = strings.Cut(rest, ":")
		switch method {
		case "", "embedContent", "batchEmbedContents", "generateContent":
		default:
			return "", fmt.Errorf("endpoint ends in the method %q: use generateContent or embedContent, or give the base URL alone", method)
		}
		path = before
	}
	// The SDK adds the version and the path.
	for _, version := range []string{"/v1beta", "/v1"} {
		path = strings.TrimSuffix(path, version)
	}
	if path != "" {
		return "", fmt.Errorf("endpoint has the path %q: Gemini's is the host alone, …/v1beta, or …/v1beta/models/NAME:generateContent", path)
	}
	t.BaseURL = u.Scheme + "://" + u.Host
	return model, nil
}

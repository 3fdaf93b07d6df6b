package sidecar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/config"
	"github.com/memsidecar/memsidecar/internal/decide/model"
	"github.com/memsidecar/memsidecar/internal/embed"
	embedgemini "github.com/memsidecar/memsidecar/internal/embed/gemini"
	embedopenai "github.com/memsidecar/memsidecar/internal/embed/openai"
	"github.com/memsidecar/memsidecar/internal/llm"
	llmgemini "github.com/memsidecar/memsidecar/internal/llm/gemini"
	llmopenai "github.com/memsidecar/memsidecar/internal/llm/openai"
	"github.com/memsidecar/memsidecar/internal/provider"
	"github.com/memsidecar/memsidecar/internal/secret"
	"github.com/memsidecar/memsidecar/internal/usage"
)

// How a model is found, and put together from its adapter and the decorators around it.

// locate finds a model and its key. A provider that wants a key and has none is an error, unless the endpoint is the
// operator's own.
func (m *models) locate(part, name, modelName string) (provider.Target, secret.Value, error) {
	endpoint, key, file := m.cfg.Embedding.Endpoint, m.cfg.Embedding.APIKey, m.cfg.Embedding.APIKeyFile
	usual := func(p provider.Provider) string { return p.EmbeddingModel }
	if part != partEmbedding {
		c := m.cfg.Decision
		switch part {
		case partSummary:
			c = m.cfg.Summary
		case partDigest:
			c = m.cfg.Digest.Text()
		}
		endpoint, key, file = c.Endpoint, c.APIKey, c.APIKeyFile
		usual = func(p provider.Provider) string { return p.TextModel }
	}
	target, err := provider.Resolve(name, modelName, endpoint, usual)
	if err != nil {
		return target, "", err
	}
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return target, "", fmt.Errorf("api_key_file cannot be read: %w", err)
		}
		key = secret.Value(strings.TrimSpace(string(text)))
	}
	for _, variable := range target.Provider.KeyVars {
		if key == "" {
			key = secret.Value(config.Getenv(m.environ, variable))
		}
	}
	if key == "" && len(target.Provider.KeyVars) > 0 && endpoint == "" {
		return target, "", fmt.Errorf("api_key is missing for %s: set %s", target.Provider.Name, target.Provider.KeyVars[0])
	}
	return target, key, nil
}

// openEmbedder puts a provider's embedder together. Its size is what is configured, or remembered, or found out by asking.
func (m *models) openEmbedder(ctx context.Context, d decision, before embed.Fingerprint) (embed.Embedder, bool, error) {
	target, key, err := m.locate(partEmbedding, d.provider, d.model)
	if err != nil {
		return nil, false, err
	}
	dimensions := cmp.Or(m.cfg.Embedding.Dimensions, sizeOf(before, target.Provider.Name, target.Model))
	if dimensions == 0 {
		probe, err := m.stackEmbedder(target, key, modelDimensions)
		if err != nil {
			return nil, false, err
		}
		dimensions = modelDimensions
		_, err = probe.Embed(ctx, embed.ForDocument, []string{"memsidecar"})
		if short, ok := errors.AsType[*embed.ShortError](err); ok {
			dimensions, err = short.Numbers, nil
		}
		if err != nil {
			return nil, false, fmt.Errorf("finding out the size of its vectors: %w", err)
		}
	}
	e, err := m.stackEmbedder(target, key, dimensions)
	return e, target.Remote(), err
}

// stackEmbedder is the adapter below its decorators, from the inside to the outside.
func (m *models) stackEmbedder(target provider.Target, key secret.Value, dimensions int) (e embed.Embedder, err error) {
	if target.Provider.Protocol == provider.Gemini {
		e, err = embedgemini.New(target, key, dimensions)
	} else {
		e = embedopenai.New(target, key, dimensions)
	}
	if err != nil {
		return nil, err
	}
	e = embed.WithTimeout(e, m.cfg.Embedding.Timeout)
	e = embed.WithSpan(e, m.tracer)
	e = embed.WithObserver(e, func(ctx context.Context, started time.Time, err error) {
		m.record(ctx, partEmbedding, target.Name(), started, llm.Usage{InputTokens: embed.Tokens(ctx)}, err)
	})
	e = embed.WithBreaker(e, m.breakers[partEmbedding])
	if m.redactor != nil { // also on this machine: that may be a gateway to others
		e = embed.WithRedaction(e, m.redactor.Text)
	}
	return e, nil
}

// stackText is the adapter below its decorators, from the inside to the outside.
func (m *models) stackText(part string, target provider.Target, key secret.Value, timeout time.Duration) (t llm.Model, err error) {
	if target.Provider.Protocol == provider.Gemini {
		t, err = llmgemini.New(target, key)
	} else {
		t = llmopenai.New(target, key)
	}
	if err != nil {
		return nil, err
	}
	t = llm.WithTimeout(t, timeout)
	t = llm.WithSpan(t, part, m.tracer)
	t = llm.WithObserver(t, func(ctx context.Context, started time.Time, u llm.Usage, err error) {
		m.record(ctx, part, target.Name(), started, u, err)
	})
	t = llm.WithBreaker(t, m.breakers[part])
	t = llm.WithBudget(t, m.budget)
	if m.redactor != nil {
		t = llm.WithRedaction(t, m.redactor.Text)
	}
	return t, nil
}

func options(c config.Model) model.Options {
	o := model.Options{Prompt: c.Prompt, Generation: llm.Generation{MaxOutputTokens: c.Generation.MaxOutputTokens}}
	if c.Generation.Temperature >= 0 {
		o.Generation.Temperature = &c.Generation.Temperature
	}
	if c.Generation.TopP >= 0 {
		o.Generation.TopP = &c.Generation.TopP
	}
	return o
}

func (m *models) record(ctx context.Context, part, name string, started time.Time, u llm.Usage, err error) {
	took := time.Since(started)
	call := usage.Call{
		At: m.now().Add(-took), Part: part, Model: name, Latency: took,
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens,
	}
	if err != nil {
		call.Error = err.Error()
	}
	m.calls.Record(ctx, call)
	m.counts.ModelCall(call)
	if part == partEmbedding { // text models are counted where they are limited
		m.budget.Add(usage.User(ctx), u.InputTokens)
	}
}

package sidecar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/config"
	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/decide/local"
	"github.com/memsidecar/memsidecar/internal/decide/model"
	"github.com/memsidecar/memsidecar/internal/digest"
	digestmodel "github.com/memsidecar/memsidecar/internal/digest/model"
	"github.com/memsidecar/memsidecar/internal/embed"
	embedlocal "github.com/memsidecar/memsidecar/internal/embed/local"
	"github.com/memsidecar/memsidecar/internal/lang/redact"
	"github.com/memsidecar/memsidecar/internal/llm"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/observe/metrics"
	"github.com/memsidecar/memsidecar/internal/observe/span"
	"github.com/memsidecar/memsidecar/internal/provider"
	"github.com/memsidecar/memsidecar/internal/server"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/session/summary/extract"
	summarymodel "github.com/memsidecar/memsidecar/internal/session/summary/model"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/usage"
	"github.com/memsidecar/memsidecar/internal/usage/budget"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// The parts that a model can do.
const (
	partEmbedding = "embedding"
	partDecision  = "decision"
	partSummary   = "summary"
	partDigest    = "digest"
)

const (
	auto         = "auto"
	providerNone = "local" // the embedded embedder
	ruleBased    = "rules" // the embedded extractor
	noGate       = "none"  // no model decides before the extractor
	// modelDimensions is how many numbers of a model's vectors are used unless the configuration says otherwise, or the
	// model has fewer.
	modelDimensions = 768
)

// models chooses the model of each part, once the database says which one was used before, and builds it.
type models struct {
	cfg      config.Config
	environ  []string
	redactor *redact.Redactor // nil: nothing is redacted
	log      *slog.Logger
	now      func() time.Time
	rules    *local.Extractor
	records  *sqlstore.Models
	vectors  vectorstore.Backfill
	calls    *usage.Recorder
	budget   *budget.Meter
	counts   *metrics.Metrics
	tracer   oteltrace.Tracer
	breakers map[string]*breaker.Breaker
	// recovered is notified when a model's breaker has closed, and when the models are chosen: postponed work is due then.
	recovered background.Notifier
	// incomplete is called when memories lack vectors of the embedder chosen.
	incomplete func()

	embedder embed.Switch
	deciding *decide.Switch
	local    decide.Extractor // extracts when no model does
	// conversations summarises conversations; nil until it is chosen.
	conversations atomic.Pointer[session.Summarizer]
	// digests extracts the findings of digests; nil until it is chosen.
	digests atomic.Pointer[digest.Extractor]

	mu     sync.Mutex
	chosen map[string]server.Component // without the breaker's state
}

func newModels(p *components) (*models, error) {
	m := &models{
		cfg: p.cfg, environ: p.Environ, redactor: p.redactor, log: p.Log, now: p.Now, rules: p.local, records: p.records, vectors: p.store, calls: p.calls,
		budget: p.meter, counts: p.counts, tracer: span.Tracer(p.tracing),
		breakers: map[string]*breaker.Breaker{}, chosen: map[string]server.Component{},
		deciding: decide.NewSwitch(), recovered: background.NewNotifier(),
	}
	for _, part := range []string{partEmbedding, partDecision, partSummary, partDigest} {
		m.breakers[part] = breaker.New(breaker.Config{
			Name: part, FailureThreshold: uint32(p.cfg.Breaker.Failures), OpenFor: p.cfg.Breaker.OpenFor, //nolint:gosec // 1 to 1000
			IsFailure: provider.IsFailure, Delay: provider.RetryDelay, Log: p.Log, OnChange: m.changed,
		})
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	return m, nil
}

// check reports what is wrong with the configured models, as far as that can be found without calling them.
func (m *models) check() error {
	var errs []error
	e := m.cfg.Embedding
	if namesModel(e.Provider, e.Model, providerNone) {
		_, _, err := m.locate(partEmbedding, configuredProvider(e.Provider), e.Model)
		errs = append(errs, withPart(partEmbedding, err))
	}
	deciding := m.cfg.Decision
	if deciding.Provider == noGate {
		deciding.Provider = auto
	}
	for part, c := range map[string]config.Model{partDecision: deciding, partSummary: m.cfg.Summary} {
		if problem := model.ValidatePrompt(c.Prompt); problem != "" {
			errs = append(errs, fmt.Errorf("%s.prompt %s", part, problem))
		}
		if part == partDecision && c.Prompt != "" && !namesModel(c.Provider, c.Model, ruleBased) {
			errs = append(errs, errors.New("decision.prompt is not used without a model that decides: set decision.provider to one, "+
				"or say in summary.prompt what is worth remembering"))
		}
		if namesModel(c.Provider, c.Model, ruleBased) {
			_, _, err := m.locate(part, configuredProvider(c.Provider), c.Model)
			errs = append(errs, withPart(part, err))
		}
	}
	if problem := digestmodel.ValidatePrompt(m.cfg.Digest.Prompt); problem != "" {
		errs = append(errs, fmt.Errorf("digest.prompt %s", problem))
	}
	if d := m.cfg.Digest; namesModel(d.Provider, d.Model, ruleBased) {
		_, _, err := m.locate(partDigest, configuredProvider(d.Provider), d.Model)
		errs = append(errs, withPart(partDigest, err))
	}
	if err := errors.Join(errs...); err != nil {
		return ConfigError{fmt.Errorf("the configuration of the models is wrong:\n%w", err)}
	}
	return nil
}

func withPart(part string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s.%w", part, err)
}

// namesModel reports whether the configuration names a model itself, instead of what is embedded or "auto".
func namesModel(name, modelName, embedded string) bool {
	return name != auto && name != embedded || strings.Contains(modelName, "/")
}

// configuredProvider is the provider the configuration names, "" when it leaves it to the model's name.
func configuredProvider(name string) string {
	if name == auto {
		return ""
	}
	return name
}

// decision is which provider and model does a part, and why. An empty provider is the embedded one.
type decision struct{ provider, model, reason string }

func (d decision) embedded() bool { return d.provider == "" && d.model == "" }

// choose follows the configuration when it names a provider. "auto" stays with what the database recorded. With a new database it takes
// Gemini when there is a key, else what is embedded.
func (m *models) choose(configured, modelName, embedded, recorded string) decision {
	switch {
	case configured == embedded:
		return decision{reason: "the configuration says so"}
	case namesModel(configured, modelName, embedded):
		return decision{configuredProvider(configured), modelName, "the configuration says so"}
	case recorded == embedded || strings.HasPrefix(recorded, embedded+"/"):
		return decision{reason: "auto: the database was made with it"}
	case recorded != "":
		name, rest, _ := strings.Cut(recorded, "/")
		return decision{name, rest, "auto: the database was made with it"}
	case config.Getenv(m.environ, "GEMINI_API_KEY") != "":
		return decision{"gemini", modelName, "auto: the database is new and GEMINI_API_KEY is set"}
	}
	return decision{reason: "auto: the database is new and GEMINI_API_KEY is not set"}
}

// chooseAll chooses all models that are not chosen yet. It may be called again after an error.
func (m *models) chooseAll(ctx context.Context) error {
	var errs []error
	if m.embedder.Fingerprint() == (embed.Fingerprint{}) {
		errs = append(errs, m.chooseEmbedding(ctx))
	}
	if !m.deciding.Chosen() {
		errs = append(errs, m.chooseDeciding(ctx))
	}
	return errors.Join(errs...)
}

func (m *models) chooseEmbedding(ctx context.Context) error {
	recorded, err := m.records.Choice(ctx, partEmbedding)
	if err != nil {
		return err
	}
	before, _ := embed.ParseFingerprint(recorded) // the zero value when nothing is recorded
	d := m.choose(m.cfg.Embedding.Provider, m.cfg.Embedding.Model, providerNone, strings.TrimSuffix(recorded, suffix(recorded)))
	var embedder embed.Embedder
	remote := false
	if d.embedded() {
		embedder, err = embedlocal.New(cmp.Or(m.cfg.Embedding.Dimensions, sizeOf(before, providerNone, ""), embedlocal.DefaultDimensions))
	} else {
		embedder, remote, err = m.openEmbedder(ctx, d, before)
	}
	if err != nil {
		return fmt.Errorf("embedding: %w", err)
	}
	fingerprint := embedder.Fingerprint()
	complete, changed, err := m.vectors.UseFingerprint(ctx, fingerprint.String())
	if err != nil {
		return err
	}
	if changed {
		d.reason += "; until now it was " + recorded
	}
	m.embedder.Use(embedder)
	m.recordChoice(partEmbedding, fingerprint.String(), d.reason, remote)
	if changed {
		m.log.Warn("the embedding model changed: keywords serve while memories are embedded anew in the background",
			"from", recorded, "to", fingerprint.String())
	}
	if !complete {
		m.incomplete()
	}
	return nil
}

// suffix is what a fingerprint has after "provider/model".
func suffix(fingerprint string) string {
	if i := strings.LastIndexByte(fingerprint, '@'); i >= 0 {
		return fingerprint[i:]
	}
	return ""
}

// sizeOf is the number of dimensions that is remembered for a model, or 0.
func sizeOf(f embed.Fingerprint, providerName, modelName string) int {
	if f.Provider != providerName || modelName != "" && f.Model != modelName {
		return 0
	}
	return f.Dimensions
}

func (m *models) chooseDeciding(ctx context.Context) error {
	summarizer, err := m.chooseText(ctx, partSummary, m.cfg.Summary)
	if err != nil {
		return fmt.Errorf("summary: %w", err)
	}
	gate, err := m.chooseGate(ctx, summarizer != nil)
	if err != nil {
		return fmt.Errorf("decision: %w", err)
	}
	extractor := m.local
	if summarizer != nil {
		if extractor, err = model.NewExtractor(summarizer, options(m.cfg.Summary)); err != nil {
			return err
		}
	}
	conversations := session.Summarizer(extract.New(m.cfg.Session.SummaryMaxChars))
	if summarizer != nil && m.cfg.Session.SummaryMaxChars > 0 {
		conversations = summarymodel.New(summarizer, summarymodel.Options{
			MaxRunes: m.cfg.Session.SummaryMaxChars, Generation: options(m.cfg.Summary).Generation,
		})
	}
	if err := m.chooseDigest(summarizer); err != nil {
		return fmt.Errorf("digest: %w", err)
	}
	m.conversations.Store(&conversations)
	m.deciding.Use(gate, extractor)
	return nil
}

// chooseGate chooses what decides before the extractor, or nil: the configured model; or the classifier, if the extractor is a model.
func (m *models) chooseGate(ctx context.Context, asksModel bool) (decide.Gate, error) {
	c := m.cfg.Decision
	switch {
	case c.Provider == noGate:
		m.recordChoice(partDecision, noGate, "the configuration says so: the extractor decides", false)
		return nil, m.records.Choose(ctx, partDecision, noGate)
	case namesModel(c.Provider, c.Model, ruleBased):
	case !asksModel:
		m.recordChoice(partDecision, noGate, "no model is asked: the extractor decides", false)
		return nil, m.records.Choose(ctx, partDecision, noGate)
	default:
		m.recordChoice(partDecision, ruleBased, "the configuration names no model", false)
		return m.rules.Gate(), m.records.Choose(ctx, partDecision, ruleBased)
	}
	text, err := m.chooseText(ctx, partDecision, m.cfg.Decision)
	if err != nil {
		return nil, err
	}
	return model.NewGate(text, options(m.cfg.Decision))
}

// chooseText chooses the text model of a part; nil are the rules.
func (m *models) chooseText(ctx context.Context, part string, c config.Model) (text llm.Model, err error) {
	recorded, err := m.records.Choice(ctx, part)
	if err != nil {
		return nil, err
	}
	d := m.choose(c.Provider, c.Model, ruleBased, recorded)
	if d.embedded() {
		m.recordChoice(part, ruleBased, d.reason, false)
		return nil, m.records.Choose(ctx, part, ruleBased)
	}
	target, key, err := m.locate(part, d.provider, d.model)
	if err != nil {
		return nil, err
	}
	if text, err = m.stackText(part, target, key, c.Timeout); err != nil {
		return nil, err
	}
	m.recordChoice(part, text.Name(), d.reason, target.Remote())
	return text, m.records.Choose(ctx, part, text.Name())
}

// recordChoice records and logs the implementation of a part.
func (m *models) recordChoice(part, implementation, why string, remote bool) {
	m.mu.Lock()
	m.chosen[part] = server.Component{Name: part, Implementation: implementation, Choice: why, Remote: remote}
	m.mu.Unlock()
	m.log.Info("chosen", "part", part, "by", implementation, "because", why)
	if remote {
		m.log.Warn("texts of users will be sent to another machine", "part", part, "to", implementation)
	}
}

// fingerprint is that of the embedder in use, "" until it is chosen.
func (m *models) fingerprint() string {
	if f := m.embedder.Fingerprint(); f != (embed.Fingerprint{}) {
		return f.String()
	}
	return ""
}

// components reports on each model.
func (m *models) components() []server.Component {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []server.Component
	for _, part := range []string{partEmbedding, partDecision, partSummary, partDigest} {
		c, ok := m.chosen[part]
		switch {
		case !ok:
			c = server.Component{Name: part, Breaker: breaker.Status{Reason: "not chosen yet"}}
		case c.Implementation == ruleBased || c.Implementation == noGate || strings.HasPrefix(c.Implementation, providerNone+"/"):
		default:
			c.Breaker, c.Budgeted = m.breakers[part].Status(), part != partEmbedding
		}
		list = append(list, c)
	}
	return list
}

// chooseAtStart waits briefly for the first choice, which usually needs no time. Until then answers are degraded.
func (m *models) chooseAtStart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return m.chooseAll(ctx)
}

// chooseInBackground repeats chooseAll after errors until everything is chosen. Then it calls chosen.
func (m *models) chooseInBackground(ctx context.Context, err error, again <-chan struct{}, chosen func()) {
	for ; err != nil && ctx.Err() == nil; err = m.chooseAll(ctx) {
		if !errors.Is(err, memory.ErrUnavailable) {
			m.log.Warn("a model cannot be used yet; it is tried again", "error", err)
		}
		timer := time.NewTimer(m.cfg.Breaker.OpenFor)
		select {
		case <-again:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	chosen()
}

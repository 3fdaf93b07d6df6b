// Package metrics exports metrics of a sidecar to Prometheus. docs/operations.md explains each metric; a test compares it with the exported
// names.
//
// Labels have few values, all known to the operator: calls, components, models, states. Users, texts, sessions and namespaces are never
// labels, so the number of series does not grow with the users and reveals nothing about them.
package metrics

import (
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/usage"
)

const prefix = "memsidecar_"

// From half a millisecond, for a call without a model, to a minute, for a slow model.
var seconds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, .8, 1, 2.5, 5, 10, 30, 60}

// Metrics counts events. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	process  *prometheus.Registry
	prices   usage.Prices

	calls       *prometheus.CounterVec
	callTime    *prometheus.HistogramVec
	modelCalls  *prometheus.CounterVec
	modelTime   *prometheus.HistogramVec
	tokens      *prometheus.CounterVec
	cost        *prometheus.CounterVec
	recalls     prometheus.Counter
	degraded    *prometheus.CounterVec
	outcomes    *prometheus.CounterVec
	delay       prometheus.Observer
	lookups     *prometheus.CounterVec
	success     *prometheus.GaugeVec
	failures    *prometheus.CounterVec
	commits     prometheus.Observer
	commitTime  prometheus.Observer
	failedReads prometheus.Counter
	refused     *prometheus.CounterVec
	batched     prometheus.Counter
	extracted   *prometheus.CounterVec
	unreadable  *prometheus.CounterVec
}

// New returns metrics for a program of this version and models with these prices.
func New(version string, prices usage.Prices) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), process: newProcess(), prices: prices}
	m.calls = m.counters("rpc_requests_total", "Calls answered, by method and gRPC code.", "method", "code")
	m.callTime = m.histograms("rpc_duration_seconds", "Time until a call was answered.", seconds, "method")
	m.modelCalls = m.counters("model_calls_total", "Calls that reached a model, by how they ended: ok or error.", "part", "model", "result")
	m.modelTime = m.histograms("model_call_duration_seconds", "Time that a call of a model took.", seconds, "part", "model")
	m.tokens = m.counters("model_tokens_total", "Input and output tokens of models, as counted by their providers.", "part", "model", "direction")
	m.cost = m.counters("model_cost_total", "Cost of model calls according to llm.prices, in the currency's unit.", "part", "model", "currency")
	m.recalls = m.counters("retrievals_total", "Retrieve calls that were answered.").WithLabelValues()
	m.degraded = m.counters("retrievals_degraded_total", "Components that were unavailable in answers of Retrieve.", "component", "reason")
	m.outcomes = m.counters("considerations_total", "How attempts of considerations ended; postponed ones are tried again.", "outcome")
	m.delay = m.histograms("consideration_delay_seconds", "From a dialogue's acceptance to its final outcome.",
		[]float64{.01, .05, .1, .5, 1, 5, 10, 60, 300, 1800, 3600, 6 * 3600, 24 * 3600, 7 * 24 * 3600}).WithLabelValues()
	m.batched = m.counters("considerations_batched_total",
		"Dialogues that were considered in the model call of an earlier one.").WithLabelValues()
	m.lookups = m.counters("embedding_cache_lookups_total", "Queries whose vector the cache was asked for: hit or miss.", "result")
	m.success = m.gauges("background_last_success_timestamp_seconds", "When background work last succeeded, in Unix time; 0 means never.", "loop")
	m.failures = m.counters("background_failures_total", "Rounds of background work that failed.", "loop")
	m.commits = m.histograms("commit_writes", "Writes that shared a commit of the database.",
		prometheus.ExponentialBuckets(1, 2, 10)).WithLabelValues()
	m.commitTime = m.histograms("commit_duration_seconds", "Time that a commit of the database took, its writes included.", seconds).WithLabelValues()
	m.failedReads = m.counters("scrape_problems_total", "Scrapes without figures of the queue, because the database did not answer.").WithLabelValues()
	m.refused = m.counters("quota_refusals_total", "Writes that were undone because a quota was used up, by its key below limits.", "quota")
	m.extracted = m.counters("summary_fallbacks_total",
		"Summaries of conversations that were extracted because the model could not write them.", "reason")
	m.unreadable = m.counters("unreadable_rows_total", "Stored rows that could not be read, each once in the life of the process.", "table")
	m.gauges("build_info", "1; the labels say which program this is.", "version", "go_version").WithLabelValues(version, runtime.Version()).Set(1)
	m.registry.MustRegister(collectors.NewGoCollector(liveHeapToo), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.preset()
	return m
}

// preset exports events that have not happened yet as 0, because a rate needs the value before the first event.
func (m *Metrics) preset() {
	for _, component := range []retrieve.Component{retrieve.Embedding, retrieve.Storage} {
		for _, reason := range retrieve.Causes {
			m.degraded.WithLabelValues(string(component), string(reason))
		}
	}
	for _, outcome := range []memory.State{memory.StateRemembered, memory.StateSkipped, memory.StateFailed} {
		m.outcomes.WithLabelValues(string(outcome))
	}
	m.outcomes.WithLabelValues(postponed)
	for _, quota := range memory.QuotaNames() {
		m.refused.WithLabelValues(string(quota))
	}
	for _, reason := range []string{session.FallbackUnusable, session.FallbackRefused, session.FallbackBudget} {
		m.extracted.WithLabelValues(reason)
	}
	m.unreadable.WithLabelValues("memories")
	for _, result := range []string{hit, miss} {
		m.lookups.WithLabelValues(result)
	}
}

func (m *Metrics) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, labels)
	m.registry.MustRegister(g)
	return g
}

func (m *Metrics) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(h)
	return h
}

// Values of labels that are not defined elsewhere.
const (
	hit, miss  = "hit", "miss"
	resultOK   = "ok"
	resultBad  = "error"
	postponed  = "postponed"
	directIn   = "input"
	directOut  = "output"
	stateLabel = "state"
)

// Call counts a call that was answered.
func (m *Metrics) Call(method, code string, took time.Duration) {
	method = strings.TrimPrefix(method, "/")
	m.calls.WithLabelValues(method, code).Inc()
	m.callTime.WithLabelValues(method).Observe(took.Seconds())
}

// ModelCall counts a model call.
func (m *Metrics) ModelCall(c usage.Call) {
	result := resultOK
	if c.Error != "" {
		result = resultBad
	}
	m.modelCalls.WithLabelValues(c.Part, c.Model, result).Inc()
	m.modelTime.WithLabelValues(c.Part, c.Model).Observe(c.Latency.Seconds())
	m.tokens.WithLabelValues(c.Part, c.Model, directIn).Add(float64(c.InputTokens))
	m.tokens.WithLabelValues(c.Part, c.Model, directOut).Add(float64(c.OutputTokens))
	if cost, ok := m.prices.Of(usage.Sum{Model: c.Model, InputTokens: c.InputTokens, OutputTokens: c.OutputTokens}); ok {
		m.cost.WithLabelValues(c.Part, c.Model, cost.Currency).Add(cost.Amount)
	}
}

// Retrieved counts an answer of Retrieve and the components that were unavailable for it.
func (m *Metrics) Retrieved(missing []retrieve.Degradation) {
	m.recalls.Inc()
	for _, d := range missing {
		m.degraded.WithLabelValues(string(d.Component), string(d.Cause)).Inc()
	}
}

// Considered counts the result of an attempt, and its time since acceptance. A state that is not final means that the consideration is
// retried.
func (m *Metrics) Considered(state memory.State, after time.Duration) {
	if !state.Final() {
		m.outcomes.WithLabelValues(postponed).Inc()
		return
	}
	m.outcomes.WithLabelValues(string(state)).Inc()
	m.delay.Observe(after.Seconds())
}

// Batched counts dialogues that were considered in the model call of an earlier one.
func (m *Metrics) Batched(dialogues int) { m.batched.Add(float64(dialogues)) }

// Refused counts a write that was undone because a quota was used up.
func (m *Metrics) Refused(quota memory.QuotaName) { m.refused.WithLabelValues(string(quota)).Inc() }

// Extracted counts a session summary that was extracted because the model could not write it.
func (m *Metrics) Extracted(reason string) { m.extracted.WithLabelValues(reason).Inc() }

// Unreadable counts a stored row that could not be read.
func (m *Metrics) Unreadable(table string) { m.unreadable.WithLabelValues(table).Inc() }

// EmbeddingLookups counts embedding cache lookups.
func (m *Metrics) EmbeddingLookups(hits, misses int) {
	m.lookups.WithLabelValues(hit).Add(float64(hits))
	m.lookups.WithLabelValues(miss).Add(float64(misses))
}

// Committed counts a commit of the database.
func (m *Metrics) Committed(writes int, took time.Duration) {
	m.commits.Observe(float64(writes))
	m.commitTime.Observe(took.Seconds())
}

// Loop returns the heartbeat for background work of this name.
func (m *Metrics) Loop(name string) background.Heartbeat {
	success, failures := m.success.WithLabelValues(name), m.failures.WithLabelValues(name)
	return func(err error) {
		if err != nil {
			failures.Inc()
			return
		}
		success.SetToCurrentTime()
	}
}

// Handler serves scrapes. Metrics that fail are logged and left out.
func (m *Metrics) Handler(log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, ErrorLog: scrapeLog{log}, MaxRequestsInFlight: 4, Timeout: scrapeLimit * 2,
	})
}

type scrapeLog struct{ log *slog.Logger }

// Println implements promhttp.Logger.
func (l scrapeLog) Println(values ...any) {
	var errs []error
	for _, v := range values {
		if err, ok := v.(error); ok {
			errs = append(errs, err)
		}
	}
	l.log.Warn("some metrics could not be collected", "error", errors.Join(errs...))
}

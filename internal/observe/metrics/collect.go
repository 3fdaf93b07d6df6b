package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
)

// scrapeLimit is how long a scrape waits for the database. Prometheus gives up after ten seconds by default.
const scrapeLimit = 2 * time.Second

// IndexCache is the state of the cache of users' indexes.
type IndexCache struct {
	Hits, Misses, Evictions int64 // since the start
	Users                   int
	Bytes                   int64
}

// Sources are read at each scrape. All of them are required.
type Sources struct {
	Breakers map[string]func() breaker.Status
	// Queue counts considerations by state in all namespaces. It is called with a deadline.
	Queue func(context.Context) ([]queue.Depth, error)
	// Waiting returns the size of the pending dialogues in bytes, or false when it is unknown.
	Waiting func() (bytes int64, ok bool)
	Index   func() IndexCache
	// Sizes returns the sizes of the database and its write-ahead log in bytes.
	Sizes func() (database, log int64)
}

// AddSources adds sources to the metrics. Call it once.
func (m *Metrics) AddSources(s Sources) {
	m.registry.MustRegister(&collector{Sources: s, failed: m.failedReads})
}

type collector struct {
	Sources
	failed prometheus.Counter
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prefix+name, help, labels, nil)
}

var (
	breakerState = desc("breaker_state", "1 for the state that a circuit breaker is in, 0 for the others.", "component", stateLabel)
	queueDepth   = desc("queue_considerations", "Considerations that are pending, running or failed.", stateLabel)
	queueDelayed = desc("queue_delayed_considerations", "Pending considerations that wait for the rest of their conversation.")
	queueAge     = desc("queue_oldest_age_seconds", "Age of the oldest of them, 0 when there is none.", stateLabel)
	queueBytes   = desc("queue_bytes", "Size of the pending dialogues, as queue.max_pending_bytes counts it.")
	indexLookups = desc("index_cache_lookups_total", "Searches that found their user's index in memory (hit) or loaded it (miss).", "result")
	indexDropped = desc("index_cache_evictions_total", "Indexes dropped because index.budget_mib was used up.")
	indexUsers   = desc("index_cache_users", "Users whose index is in memory.")
	indexBytes   = desc("index_cache_bytes", "Memory that the indexes take, as index.budget_mib counts it.")
	databaseSize = desc("database_size_bytes", "Size of the database file.")
	walSize      = desc("database_wal_size_bytes", "Size of the database's write-ahead log.")
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		breakerState, queueDepth, queueDelayed, queueAge, queueBytes, indexLookups, indexDropped, indexUsers, indexBytes, databaseSize, walSize,
	} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	counter := func(d *prometheus.Desc, value int64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
	}
	for component, status := range c.Breakers {
		is := status().State
		for state, label := range map[breaker.State]string{breaker.Closed: "closed", breaker.Open: "open", breaker.HalfOpen: "half_open"} {
			value := 0.0
			if is == state {
				value = 1
			}
			gauge(breakerState, value, component, label)
		}
	}
	if bytes, ok := c.Waiting(); ok {
		gauge(queueBytes, float64(bytes))
	}
	index := c.Index()
	counter(indexLookups, index.Hits, hit)
	counter(indexLookups, index.Misses, miss)
	counter(indexDropped, index.Evictions)
	gauge(indexUsers, float64(index.Users))
	gauge(indexBytes, float64(index.Bytes))
	database, log := c.Sizes()
	gauge(databaseSize, float64(database))
	gauge(walSize, float64(log))

	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	depths, err := c.Queue(ctx)
	if err != nil { // an outage shows in breaker_state; 0 would be wrong
		c.failed.Inc()
		return
	}
	now := time.Now()
	for _, d := range depths {
		gauge(queueDepth, float64(d.Count), string(d.State))
		if d.State == memory.StatePending {
			gauge(queueDelayed, float64(d.Delayed))
		}
		age := 0.0
		if !d.Oldest.IsZero() {
			age = max(0, now.Sub(d.Oldest).Seconds())
		}
		gauge(queueAge, age, string(d.State))
	}
}

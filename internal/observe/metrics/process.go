package metrics

import (
	"regexp"
	"runtime"
	runtimemetrics "runtime/metrics"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Process is what the process takes of its machine. What the system does not tell is 0.
type Process struct {
	ResidentBytes int64
	// LiveHeapBytes is what the garbage collector found in use when it last looked.
	LiveHeapBytes int64
	Goroutines    int
	OpenFiles     int
	CPUTime       time.Duration // since the start
}

const liveHeap = "/gc/heap/live:bytes"

// liveHeapToo exports it as go_gc_heap_live_bytes: what grows when memory leaks, whatever the collector's schedule.
var liveHeapToo = collectors.WithGoCollectorRuntimeMetrics(collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile("^" + liveHeap + "$")})

// newProcess returns what asks the system, in the same way as a scrape does.
func newProcess() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// Process asks the system and the runtime.
func (m *Metrics) Process() Process {
	live := []runtimemetrics.Sample{{Name: liveHeap}}
	runtimemetrics.Read(live)
	p := Process{Goroutines: runtime.NumGoroutine()}
	if live[0].Value.Kind() == runtimemetrics.KindUint64 {
		p.LiveHeapBytes = int64(live[0].Value.Uint64()) //nolint:gosec // no heap is so large
	}
	families, _ := m.process.Gather() // what failed is missing, and 0
	for _, f := range families {
		if len(f.GetMetric()) == 0 {
			continue
		}
		sample := f.GetMetric()[0]
		switch f.GetName() {
		case "process_resident_memory_bytes":
			p.ResidentBytes = int64(sample.GetGauge().GetValue())
		case "process_open_fds":
			p.OpenFiles = int(sample.GetGauge().GetValue())
		case "process_cpu_seconds_total":
			p.CPUTime = time.Duration(sample.GetCounter().GetValue() * float64(time.Second))
		}
	}
	return p
}

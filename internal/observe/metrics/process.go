package metrics

import (
	"regexp"
	"runtime"
	runtimemetrics "runtime/metrics"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Process is the resource use of the process. Values that the system does not provide are 0.
type Process struct {
	ResidentBytes int64
	// LiveHeapBytes is the live heap after the last garbage collection.
	LiveHeapBytes int64
	Goroutines    int
	OpenFiles     int
	CPUTime       time.Duration // since the start
}

const liveHeap = "/gc/heap/live:bytes"

// liveHeapToo also exports go_gc_heap_live_bytes, which grows when memory leaks and does not depend on the collector's schedule.
var liveHeapToo = collectors.WithGoCollectorRuntimeMetrics(collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile("^" + liveHeap + "$")})

// newProcess returns a registry that reads the same values as a scrape.
func newProcess() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// Process reads the resource use from the system and the runtime.
func (m *Metrics) Process() Process {
	live := []runtimemetrics.Sample{{Name: liveHeap}}
	runtimemetrics.Read(live)
	p := Process{Goroutines: runtime.NumGoroutine()}
	if live[0].Value.Kind() == runtimemetrics.KindUint64 {
		p.LiveHeapBytes = int64(live[0].Value.Uint64()) //nolint:gosec // no heap is so large
	}
	families, _ := m.process.Gather() // values that failed stay 0
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

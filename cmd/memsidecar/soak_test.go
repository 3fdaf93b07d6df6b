//go:build !race && unix

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/load"
	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// soakVar sets the duration of TestSoak; `make soak` sets it.
const soakVar = "SOAK"

// The tolerances of TestSoak. A leak in one of a hundred calls adds up to far more in an hour. The slack covers connection pools and the
// timing of garbage collection.
const (
	soakFiles, soakGoroutines = 16, 16 // at rest, compared with before: four readers have two files each
	soakGrowth                = 1.25   // last third over first third
	soakHeapSlack             = 8 << 20
	soakResidentSlack         = 48 << 20 // five page caches of SQLite, of 8 MiB each, fill slowly
	soakDiskSlack             = 24 << 20 // the write-ahead log grows and is truncated
)

// TestSoak: Users talk to the sidecar and are forgotten, so that the stored amount stays constant. Memory, goroutines, files and disk
// stay constant, too, and are released at the end.
func TestSoak(t *testing.T) {
	duration := 6 * time.Second
	if v := os.Getenv(soakVar); v != "" {
		var err error
		if duration, err = time.ParseDuration(v); err != nil || duration <= 0 {
			t.Fatalf("%s=%q: write a duration such as 1h", soakVar, v)
		}
	}
	dir := t.TempDir()
	p := spawn(t, dir, "MEMSIDECAR_HTTP_LISTEN=127.0.0.1:0", "MEMSIDECAR_HTTP_PPROF=true", "MEMSIDECAR_TRACE_MAX_RECORDS=1000",
		"MEMSIDECAR_RETRIEVAL_BUDGET=800ms") // the default
	s := &soak{T: t, process: p, dir: dir, http: soakHTTP(t, p)}
	target := &load.Target{Client: p, Namespace: "soak", Prefix: "soak", Users: 20, Memories: 50}
	sidecartest.NoError(t, target.Prepare(t.Context(), func() {}))
	forgets := soakPercent(t, soakForgetsVar, 0.5) // with 20 users and 100 calls a second, each user is forgotten every 40 s
	mix := load.Mix{
		Rate: 100, Duration: max(2*time.Second, min(duration/10, 2*time.Minute)), InFlight: 256,
		Kinds: []load.Kind{
			{Name: "Retrieve", Share: 70, Call: target.Retrieve},
			{Name: "ConsiderMemorizing", Share: 30 - forgets, Call: target.Consider},
			{Name: "ForgetUser", Share: forgets, Call: target.Forget},
		},
	}
	s.run(mix, nil) // warm-up
	before := s.rest(func(taken) bool { return true })

	mix.Duration, mix.Seed = duration, 1
	var samples []taken
	plenty := s.scarce(soakPercent(t, soakRunsVar, 100))
	s.run(mix, func() { samples = append(samples, s.take()) })
	plenty()
	after := s.rest(func(now taken) bool {
		return now.goroutines <= before.goroutines+soakGoroutines && now.files <= before.files+soakFiles
	})
	t.Logf("at rest before: %s", before)
	first, last := thirdOf(samples, 0), thirdOf(samples, 2)
	for i := range 3 {
		t.Logf("third %d, medians of %d samples: %s", i+1, len(samples)/3, thirdOf(samples, i))
	}
	t.Logf("at rest after: %s", after)
	for _, c := range []struct {
		what                 string
		first, last, allowed int64
	}{
		{"bytes of live heap", first.live, last.live, soakHeapSlack},
		{"bytes of resident memory", first.resident, last.resident, soakResidentSlack},
		{"bytes on disk", first.disk, last.disk, soakDiskSlack},
	} {
		if float64(c.last) > float64(c.first)*soakGrowth+float64(c.allowed) {
			t.Errorf("%s grew from %d in the first third to %d in the last", c.what, c.first, c.last)
		}
	}
}

// taken are the resources that the process uses.
type taken struct{ live, resident, goroutines, files, disk int64 }

func (s taken) String() string {
	return fmt.Sprintf("live heap %.1f MiB, resident %.1f MiB, %d goroutines, %d open files, disk %.1f MiB",
		float64(s.live)/(1<<20), float64(s.resident)/(1<<20), s.goroutines, s.files, float64(s.disk)/(1<<20))
}

// thirdOf returns the medians of the samples' i-th third.
func thirdOf(samples []taken, i int) taken {
	part := samples[i*len(samples)/3 : max(i*len(samples)/3+1, (i+1)*len(samples)/3)]
	middle := func(of func(taken) int64) int64 {
		sorted := slices.SortedFunc(slices.Values(part), func(a, b taken) int { return cmp.Compare(of(a), of(b)) })
		return of(sorted[len(sorted)/2])
	}
	return taken{
		live: middle(func(s taken) int64 { return s.live }), resident: middle(func(s taken) int64 { return s.resident }),
		goroutines: middle(func(s taken) int64 { return s.goroutines }), files: middle(func(s taken) int64 { return s.files }),
		disk: middle(func(s taken) int64 { return s.disk }),
	}
}

type soak struct {
	*testing.T
	*process
	dir, http string
}

// run puts load on the sidecar. It calls sample some hundred times, between once a second and once in ten seconds.
func (s *soak) run(mix load.Mix, sample func()) {
	s.Helper()
	done := make(chan []load.OpenStats, 1)
	go func() { done <- mix.Run(s.Context()) }()
	ticker := time.NewTicker(min(max(mix.Duration/100, time.Second), 10*time.Second))
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if sample != nil {
				sample()
			}
			continue
		case results := <-done:
			if sample == nil {
				return
			}
			sample()
			for _, r := range results {
				s.Logf(
					"%s: %d offered, %d answered, %d shed, %d degraded, %d overtaken by forgetting, errors %v; p50 %s, p99 %s, p99.9 %s, longest %s",
					r.Name,
					r.Offered,
					r.Calls,
					r.Shed,
					r.Degraded,
					r.Overtaken,
					r.Codes,
					r.Percentile(50),
					r.Percentile(99),
					r.Percentile(99.9),
					r.Percentile(100),
				)
				if r.Errors > 0 {
					s.Errorf("%s: %d calls failed, for example: %v", r.Name, r.Errors, r.FirstError)
				}
			}
			return
		}
	}
}

var httpLine = regexp.MustCompile(`health checks and metrics are served.* address=(\S+)`)

// soakHTTP finds the address of the operators' port.
func soakHTTP(t *testing.T, p *process) string {
	t.Helper()
	address := ""
	sidecartest.Eventually(t, "the operators' port is told", func() bool {
		if found := httpLine.FindStringSubmatch(p.log.String()); found != nil {
			address = found[1]
		}
		return address != ""
	})
	return address
}

// take measures the process right after a garbage collection.
func (s *soak) take() taken {
	s.Helper()
	request := sidecartest.Must(http.NewRequestWithContext(s.Context(), http.MethodGet, "http://"+s.http+"/debug/pprof/heap?gc=1", http.NoBody))(s.T)
	request.Close = true // not one of the open files
	resp, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	sidecartest.NoError(s.T, firstError(err, resp.Body.Close()))
	status := sidecartest.Must(s.GetStatus(s.Context(), &memsidecarv1.GetStatusRequest{Scope: &memsidecarv1.Scope{Namespace: "soak"}}))(s.T).GetProcess()
	now := taken{
		live: status.GetLiveHeapBytes(), resident: status.GetResidentBytes(), goroutines: int64(status.GetGoroutineCount()),
		files: int64(status.GetOpenFileCount()),
	}
	sidecartest.NoError(s.T, filepath.WalkDir(s.dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil { // the log may have been removed
				now.disk += info.Size()
			}
		}
		return nil
	}))
	return now
}

// rest waits until nothing is pending and the resources meet the condition.
func (s *soak) rest(is func(taken) bool) taken {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), sidecartest.Timeout)
	defer cancel()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		queue := sidecartest.Must(s.GetStatus(s.Context(), &memsidecarv1.GetStatusRequest{Scope: &memsidecarv1.Scope{Namespace: "soak"}}))(s.T).GetQueue()
		now := s.take()
		if queue != nil && queue.GetPendingCount() == 0 && is(now) {
			return now
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			s.Fatalf("after %s at rest %d dialogues wait, and the process takes: %s", sidecartest.Timeout, queue.GetPendingCount(), now)
		}
	}
}

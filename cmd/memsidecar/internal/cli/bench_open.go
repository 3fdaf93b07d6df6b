package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/load"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// openFlags are the flags of load that does not wait for its answers.
type openFlags struct {
	Rate     float64            `placeholder:"N" help:"N calls arrive each second at random times, up to 100000. Without it, each caller waits for its answer."`
	Mix      map[string]float64 `mapsep:"," placeholder:"CALL=SHARE,…" help:"With --rate: shares of retrieve, consider and forget (retrieve=0.5,consider=0.5)."`
	InFlight int                `default:"1024" placeholder:"N" help:"With --rate: most concurrent calls, 1 to 10000 (${default}). More calls count as shed."`
}

// callNames are the API's names of the calls of a mix.
var callNames = map[string]string{"retrieve": "Retrieve", "consider": "ConsiderMemorizing", "forget": "ForgetUser"}

// validate checks the flags.
func (f *openFlags) validate() error {
	if f.Rate < 0 || f.Rate > 100_000 {
		return usage("--rate %g: write more than 0 and up to 100000", f.Rate)
	}
	if f.InFlight < 1 || f.InFlight > 10_000 {
		return usage("--in-flight %d: write 1 to 10000", f.InFlight)
	}
	if f.Rate == 0 && len(f.Mix) > 0 {
		return usage("--mix needs --rate: how many calls arrive a second")
	}
	whole := 0.0
	for name, share := range f.Mix {
		if callNames[name] == "" {
			return usage("--mix %s: write retrieve, consider or forget", name)
		}
		if !(share >= 0 && share <= 1_000_000) {
			return usage("--mix %s=%g: write a share of 0 or more", name, share)
		}
		whole += share
	}
	if len(f.Mix) > 0 && whole == 0 {
		return usage("--mix: write a share above 0")
	}
	return nil
}

// mix returns the load that the flags describe.
func (f *openFlags) mix(target *load.Target, duration time.Duration) load.Mix {
	shares := f.Mix
	if len(shares) == 0 {
		shares = map[string]float64{"retrieve": 0.5, "consider": 0.5}
	}
	m := load.Mix{Rate: f.Rate, Duration: duration, InFlight: f.InFlight}
	made := target.Calls()
	for _, name := range slices.Sorted(maps.Keys(shares)) {
		if shares[name] > 0 {
			m.Kinds = append(m.Kinds, load.Kind{Name: callNames[name], Share: shares[name], Call: made[name]})
		}
	}
	return m
}

// openLoadRow is a row of an open load's table.
type openLoadRow struct {
	measured
	Offered int64 `json:"offered"`
	Shed    int64 `json:"shed"`
	// Overtaken were refused because their user was being forgotten.
	Overtaken int64            `json:"overtaken"`
	P999      float64          `json:"p999_ms"`
	Codes     map[string]int64 `json:"error_codes,omitempty"`
}

// resources are the resources that the sidecar's process uses.
type resources struct {
	Resident   int64   `json:"resident_bytes"`
	LiveHeap   int64   `json:"live_heap_bytes"`
	Goroutines int32   `json:"goroutines"`
	Files      int32   `json:"open_files"`
	CPU        float64 `json:"cpu_seconds"`
}

// openReport is the output of --json for open load.
type openReport struct {
	Address  string        `json:"address"`
	Users    int           `json:"users"`
	Memories int           `json:"memories_per_user"`
	Rate     float64       `json:"rate"`
	InFlight int           `json:"in_flight"`
	Seconds  float64       `json:"seconds"`
	Measured []openLoadRow `json:"measured"`
	// Before the load, the peak during it, and after it. Unset if the sidecar does not report them.
	Before *resources `json:"before,omitempty"`
	Most   *resources `json:"most,omitempty"`
	After  *resources `json:"after,omitempty"`
	// Pending is how many dialogues of the generated users were pending at the end.
	Pending int64 `json:"pending_considerations"`
}

// open measures a load that does not wait for its answers.
func (c *benchCommand) open(ctx context.Context, p *Program, target *load.Target, addr string) error {
	r := openReport{Address: addr, Users: c.Users, Memories: c.Memories, Rate: c.Rate, InFlight: c.InFlight, Seconds: c.Duration.Seconds()}
	var err error
	if r.Before, _, err = processStatus(ctx, target); err != nil {
		return unfinished(ctx, err)
	}
	p.note("measuring for %s; %g calls arrive each second", c.Duration, c.Rate)
	watched := make(chan *resources, 1)
	watching, stop := context.WithCancel(ctx)
	go func() { watched <- peakResources(watching, target, r.Before) }()
	results := c.mix(target, c.Duration).Run(ctx)
	stop()
	r.Most = <-watched
	if err := ctx.Err(); err != nil {
		return unfinished(ctx, err)
	}
	if r.After, r.Pending, err = processStatus(ctx, target); err != nil {
		return unfinished(ctx, err)
	}
	for i := range results {
		s := &results[i]
		a := openLoadRow{
			measured: measure(s.Name, &s.Stats), Offered: s.Offered, Shed: s.Shed, Overtaken: s.Overtaken, P999: milliseconds(&s.Stats, 99.9), Codes: map[string]int64{},
		}
		for code, n := range s.Codes {
			a.Codes[codeName(code)] = n
		}
		r.Measured = append(r.Measured, a)
	}
	return c.reportOpen(p, r)
}

// processStatus returns the resources of the sidecar's process, and the number of pending dialogues.
func processStatus(ctx context.Context, target *load.Target) (*resources, int64, error) {
	resp, err := target.Client.GetStatus(ctx, &memsidecarv1.GetStatusRequest{Scope: &memsidecarv1.Scope{Namespace: target.Namespace}})
	if err != nil || resp.GetProcess() == nil {
		return nil, resp.GetQueue().GetPendingCount(), err
	}
	s := resp.GetProcess()
	return &resources{
		Resident: s.GetResidentBytes(), LiveHeap: s.GetLiveHeapBytes(), Goroutines: s.GetGoroutineCount(), Files: s.GetOpenFileCount(),
		CPU: s.GetCpuDuration().AsDuration().Seconds(),
	}, resp.GetQueue().GetPendingCount(), nil
}

// peakResources polls every second until the context ends, and returns the maxima.
func peakResources(ctx context.Context, target *load.Target, most *resources) *resources {
	if most == nil {
		return nil
	}
	highest := *most
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return &highest
		}
		if now, _, err := processStatus(ctx, target); err == nil && now != nil {
			highest = resources{
				max(highest.Resident, now.Resident), max(highest.LiveHeap, now.LiveHeap), max(highest.Goroutines, now.Goroutines),
				max(highest.Files, now.Files), max(highest.CPU, now.CPU),
			}
		}
	}
}

// codeName returns the name of a code in the API's documentation.
func codeName(c codes.Code) string {
	if c == codes.Canceled {
		return "CANCELLED"
	}
	var b strings.Builder
	for i, r := range c.String() {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}

func (c *benchCommand) reportOpen(p *Program, r openReport) error {
	if c.JSON {
		if err := json.NewEncoder(p.Stdout).Encode(r); err != nil {
			return err
		}
	} else {
		s := c.screen(p)
		s.print(r.table())
		if r.Before != nil {
			s.say("\n")
			s.print(r.process())
		}
		if r.Pending > 0 {
			s.say("\n%s at the end\n", count(r.Pending, "dialogue was pending", "dialogues were pending"))
		}
	}
	failed := int64(0)
	for _, m := range r.Measured {
		failed += m.Errors
		if m.FirstError != "" {
			p.note("%s failed, for example: %s", m.Call, m.FirstError)
		}
		for _, code := range slices.Sorted(maps.Keys(m.Codes)) {
			p.note("%s: %s with %s", m.Call, count(m.Codes[code], "call", "calls"), code)
		}
		if m.Overtaken > 0 {
			p.note("%s: %s refused, because the user was being forgotten", m.Call, count(m.Overtaken, "call was", "calls were"))
		}
		if m.Shed > 0 {
			p.note("%s: %s shed, because %d were in flight; no percentile includes them", m.Call, count(m.Shed, "call", "calls"), r.InFlight)
		}
	}
	if failed > 0 {
		return failure("%s failed", count(failed, "call", "calls"))
	}
	return nil
}

func (r *openReport) table() *table {
	t := &table{columns: []column{{name: "call"}}}
	for _, name := range []string{"offered/s", "answered/s", "shed", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms", "max ms", "errors", "degraded"} {
		t.columns = append(t.columns, column{name: name, right: true})
	}
	for _, m := range r.Measured {
		t.row(m.Call, fmt.Sprintf("%.1f", float64(m.Offered)/r.Seconds), fmt.Sprintf("%.1f", m.CallsPerSecond), m.Shed, hundredths(m.P50),
			hundredths(m.P90), hundredths(m.P99), hundredths(m.P999), hundredths(m.Max), m.Errors, m.Degraded)
	}
	return t
}

// process returns the table of the process's resources.
func (r *openReport) process() *table {
	t := &table{columns: []column{{name: "sidecar"}}}
	for _, name := range []string{"resident MiB", "live heap MiB", "goroutines", "open files", "cpu s"} {
		t.columns = append(t.columns, column{name: name, right: true})
	}
	for _, line := range []struct {
		when string
		*resources
	}{{"before", r.Before}, {"at most", r.Most}, {"after", r.After}} {
		if line.resources != nil {
			mib := func(bytes int64) string { return fmt.Sprintf("%.1f", float64(bytes)/(1<<20)) }
			t.row(line.when, mib(line.Resident), mib(line.LiveHeap), line.Goroutines, line.Files, hundredths(line.CPU))
		}
	}
	return t
}

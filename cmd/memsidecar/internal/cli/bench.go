package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/load"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type benchCommand struct {
	Users    int           `default:"100" placeholder:"N" help:"Number of generated users, 1 to 100000 (${default})."`
	Memories int           `default:"100" placeholder:"N" help:"Memories of each user, 1 to 10000 (${default})."`
	Callers  int           `default:"64" placeholder:"N" help:"Concurrent callers, each with one call at a time, 1 to 1024 (${default})."`
	Duration time.Duration `default:"10s" placeholder:"DURATION" help:"How long to measure each kind of call, up to 1h (${default})."`
	openFlags
	Keep        bool `help:"Do not delete the generated users at the end."`
	AllowRemote bool `help:"Measure even when the sidecar sends texts to another machine, which may cost money."`

	namespaceFlag
	calls
	output
}

// Help implements kong.HelpProvider.
func (benchCommand) Help() string {
	return `It creates users, in a new namespace unless --namespace names one, and deletes them at the end.

Examples:

    memsidecar bench
    memsidecar bench --users 1000 --memories 10 --callers 8 --duration 30s --json
    memsidecar bench --users 10000 --memories 10 --rate 500 --mix retrieve=0.7,consider=0.3 --duration 1m

With --rate, calls arrive like those of many independent bots, and the latency of a call counts from the time at which it was due.
A stall of the sidecar therefore shows in every call that arrives during the stall.`
}

// Time limit for removing the created users, also after an interruption. Each user's data is purged from the disk.
const (
	removeLimit        = 2 * time.Minute
	removeLimitPerUser = 50 * time.Millisecond
)

// validate checks the flags.
func (c *benchCommand) validate() error {
	for _, flag := range []struct {
		name           string
		value, highest int
	}{{"users", c.Users, 100_000}, {"memories", c.Memories, 10_000}, {"callers", c.Callers, 1024}} {
		if flag.value < 1 || flag.value > flag.highest {
			return usage("--%s %d: write 1 to %d", flag.name, flag.value, flag.highest)
		}
	}
	if c.Duration <= 0 || c.Duration > time.Hour {
		return usage("--duration %s: write more than 0 and up to 1h", c.Duration)
	}
	return c.openFlags.validate()
}

// Run creates users, puts load on the sidecar, shows what the callers saw, and removes the users.
func (c benchCommand) Run(ctx context.Context, p *Program) (err error) {
	if err := c.validate(); err != nil {
		return err
	}
	conn, err := c.dial(p)
	if err != nil {
		return err
	}
	defer conn.close()
	id := "bench-" + strings.ToLower(rand.Text()[:10])
	target := &load.Target{Client: conn, Namespace: cmp.Or(c.Namespace, id), Prefix: id, Users: c.Users, Memories: c.Memories}
	if err := c.check(ctx, target); err != nil {
		return err
	}
	users := fmt.Sprintf("users %s-0 to %s-%d in namespace %s", id, id, c.Users-1, target.Namespace)
	if c.Keep {
		p.note("creating %s; they are not removed at the end", users)
	} else {
		p.note("creating %s; they are removed at the end", users)
		defer func() { err = errors.Join(err, remove(context.WithoutCancel(ctx), p, target, users)) }()
	}
	bar := p.progress(c.Users, "users")
	if err := target.Prepare(ctx, func() { _ = bar.Add(1) }); err != nil {
		return unfinished(ctx, err)
	}
	_ = bar.Finish()
	if c.Rate > 0 {
		return c.open(ctx, p, target, conn.addr)
	}
	limits := load.Limits{Callers: c.Callers, Duration: c.Duration}
	p.note("measuring Retrieve, %d callers for %s", c.Callers, c.Duration)
	retrieved := load.Run(ctx, limits, target.Retrieve)
	p.note("measuring ConsiderMemorizing's acknowledgement, %d callers for %s", c.Callers, c.Duration)
	considered := load.Run(ctx, limits, target.Consider)
	if err := ctx.Err(); err != nil {
		return unfinished(ctx, err)
	}
	return c.report(p, benchReport{
		conn.addr, c.Users, c.Memories, c.Callers, c.Duration.Seconds(),
		[]measured{measure("Retrieve", &retrieved), measure("ConsiderMemorizing", &considered)},
	})
}

// unfinished describes a cancellation.
func unfinished(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return interrupted(" before everything was measured")
	}
	return err
}

// check checks the sidecar's state before anything is created.
func (c *benchCommand) check(ctx context.Context, target *load.Target) error {
	resp, err := target.Client.GetStatus(ctx, &memsidecarv1.GetStatusRequest{Scope: &memsidecarv1.Scope{Namespace: target.Namespace}})
	if err != nil {
		return err
	}
	for _, part := range resp.GetModels().GetComponents() {
		if part.GetRemote() && !c.AllowRemote {
			return failure("the sidecar's %s uses %s on another machine: thousands of generated texts would be sent there and may cost "+
				"money; measure a sidecar without a model, or add --allow-remote", part.GetName(), part.GetImplementation())
		}
	}
	return nil
}

// remove deletes the created users, also after an interruption.
func remove(ctx context.Context, p *Program, target *load.Target, users string) error {
	ctx, cancel := context.WithTimeout(ctx, removeLimit+time.Duration(target.Users)*removeLimitPerUser)
	defer cancel()
	memories, considerations, err := target.Remove(ctx)
	if err != nil {
		return wrapError(err, "some of the %s may remain; memsidecar forget removes them", users)
	}
	p.note("removed %s: %d memories, %d considerations", users, memories, considerations)
	return nil
}

// measured is a line of the table.
type measured struct {
	Call           string  `json:"call"`
	Calls          int64   `json:"calls"`
	CallsPerSecond float64 `json:"calls_per_second"`
	P50            float64 `json:"p50_ms"`
	P90            float64 `json:"p90_ms"`
	P99            float64 `json:"p99_ms"`
	Max            float64 `json:"max_ms"`
	Errors         int64   `json:"errors"`
	Degraded       int64   `json:"degraded"`
	FirstError     string  `json:"first_error,omitempty"`
}

func measure(name string, s *load.Stats) measured {
	m := measured{
		Call: name, Calls: s.Calls, CallsPerSecond: s.PerSecond(), P50: milliseconds(s, 50), P90: milliseconds(s, 90),
		P99: milliseconds(s, 99), Max: milliseconds(s, 100),
		Errors: s.Errors, Degraded: s.Degraded,
	}
	if s.FirstError != nil {
		m.FirstError = s.FirstError.Error()
	}
	return m
}

func milliseconds(s *load.Stats, percentile float64) float64 {
	return float64(s.Percentile(percentile).Microseconds()) / 1000
}

func hundredths(number float64) string { return fmt.Sprintf("%.2f", number) }

// benchReport is the output of --json.
type benchReport struct {
	Address  string     `json:"address"`
	Users    int        `json:"users"`
	Memories int        `json:"memories_per_user"`
	Callers  int        `json:"callers"`
	Seconds  float64    `json:"seconds"`
	Measured []measured `json:"measured"`
}

func (c *benchCommand) report(p *Program, r benchReport) error {
	if c.JSON {
		if err := json.NewEncoder(p.Stdout).Encode(r); err != nil {
			return err
		}
	} else {
		c.screen(p).print(r.table())
	}
	failed := int64(0)
	for _, m := range r.Measured {
		failed += m.Errors
		if m.FirstError != "" {
			p.note("%s failed, for example: %s", m.Call, m.FirstError)
		}
	}
	if failed > 0 {
		return failure("%s failed", count(failed, "call", "calls"))
	}
	return nil
}

func (r benchReport) table() *table {
	t := &table{columns: []column{{name: "call"}}}
	for _, name := range []string{"calls", "calls/s", "p50 ms", "p90 ms", "p99 ms", "max ms", "errors", "degraded"} {
		t.columns = append(t.columns, column{name: name, right: true})
	}
	for _, m := range r.Measured {
		t.row(m.Call, m.Calls, fmt.Sprintf("%.0f", m.CallsPerSecond), hundredths(m.P50), hundredths(m.P90), hundredths(m.P99),
			hundredths(m.Max), m.Errors, m.Degraded)
	}
	return t
}

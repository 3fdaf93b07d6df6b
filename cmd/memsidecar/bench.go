package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/schollz/progressbar/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/load"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type benchCommand struct {
	Addr        string        `default:"127.0.0.1:7420" help:"Address of the running sidecar."`
	Namespace   string        `help:"Namespace for the made-up users; by default a new one."`
	Users       int           `default:"100" help:"Made-up users, 1 to 100000."`
	Memories    int           `default:"100" help:"Memories of each of them, 1 to 10000."`
	Callers     int           `default:"64" help:"Callers at once, each with one call at a time, 1 to 1024."`
	Duration    time.Duration `default:"10s" help:"How long each kind of call is measured, up to 1h."`
	Keep        bool          `help:"Leave the made-up users in the sidecar."`
	AllowRemote bool          `help:"Measure also when the sidecar hands texts to another machine, which may cost money."`
	JSON        bool          `name:"json" help:"Print the result as JSON."`
}

// How long removing what was created may take, after an interruption too. Each user's data is purged from the disk.
const (
	removeLimit        = 2 * time.Minute
	removeLimitPerUser = 50 * time.Millisecond
)

// validate says what is wrong with the flags.
func (b *benchCommand) validate() error {
	var errs []error
	within := func(flag string, value, highest int) {
		if value < 1 || value > highest {
			errs = append(errs, fmt.Errorf("--%s is %d: use 1 to %d", flag, value, highest))
		}
	}
	within("users", b.Users, 100_000)
	within("memories", b.Memories, 10_000)
	within("callers", b.Callers, 1024)
	if b.Duration <= 0 || b.Duration > time.Hour {
		errs = append(errs, fmt.Errorf("--duration is %s: use more than 0 and up to 1h", b.Duration))
	}
	return errors.Join(errs...)
}

// Run creates made-up users, puts load on the sidecar, prints what the callers saw and removes the users again.
func (b benchCommand) Run(ctx context.Context, m *Main) (err error) {
	if err := b.validate(); err != nil {
		return usageError{err}
	}
	conn, err := grpc.NewClient(b.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return usageError{err}
	}
	defer func() { err = firstError(err, conn.Close()) }()
	id := "bench-" + strings.ToLower(rand.Text()[:10])
	target := &load.Target{
		Client: memsidecarv1.NewMemoryServiceClient(conn), Namespace: cmp.Or(b.Namespace, id), Prefix: id,
		Users: b.Users, Memories: b.Memories,
	}
	if err := b.check(ctx, target); err != nil {
		return err
	}
	users := fmt.Sprintf("users %s-0 to %s-%d in namespace %s", id, id, b.Users-1, target.Namespace)
	if b.Keep {
		fmt.Fprintf(m.Stderr, "creating %s, which stay\n", users)
	} else {
		fmt.Fprintf(m.Stderr, "creating %s; they are removed at the end\n", users)
		defer func() { err = errors.Join(err, remove(context.WithoutCancel(ctx), target, users, m.Stderr)) }()
	}
	bar := progressbar.NewOptions(b.Users, progressbar.OptionSetWriter(m.Stderr), progressbar.OptionShowCount(),
		progressbar.OptionSetDescription("users"), progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionOnCompletion(func() { fmt.Fprintln(m.Stderr) }))
	if err := target.Prepare(ctx, func() { _ = bar.Add(1) }); err != nil {
		return interrupted(ctx, err)
	}
	limits := load.Limits{Callers: b.Callers, Duration: b.Duration}
	fmt.Fprintf(m.Stderr, "measuring Retrieve, %d callers for %s\n", b.Callers, b.Duration)
	retrieved := load.Run(ctx, limits, target.Retrieve)
	fmt.Fprintf(m.Stderr, "measuring ConsiderMemorizing's acknowledgement, %d callers for %s\n", b.Callers, b.Duration)
	considered := load.Run(ctx, limits, target.Consider)
	if err := ctx.Err(); err != nil {
		return interrupted(ctx, err)
	}
	return b.report(m.Stdout, []measured{measure("Retrieve", &retrieved), measure("ConsiderMemorizing", &considered)})
}

// interrupted puts a cancellation into words.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("interrupted before everything was measured")
	}
	return err
}

// check asks the sidecar how it is before anything is created.
func (b *benchCommand) check(ctx context.Context, target *load.Target) error {
	resp, err := target.Client.GetStatus(ctx, &memsidecarv1.GetStatusRequest{Scope: &memsidecarv1.Scope{Namespace: target.Namespace}})
	switch {
	case status.Code(err) == codes.Unavailable:
		return fmt.Errorf("the sidecar at %s is not available (%w); if none runs there, start one with: memsidecar serve", b.Addr, err)
	case err != nil:
		return err
	}
	for _, c := range resp.GetComponents() {
		if c.GetRemote() && !b.AllowRemote {
			return fmt.Errorf("the sidecar's %s is done by %s on another machine: thousands of made-up texts would go there and may cost "+
				"money; measure a sidecar without a model, or add --allow-remote", c.GetName(), c.GetImplementation())
		}
	}
	return nil
}

// remove takes back what the command created, also after an interruption.
func remove(ctx context.Context, target *load.Target, users string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, removeLimit+time.Duration(target.Users)*removeLimitPerUser)
	defer cancel()
	memories, considerations, err := target.Remove(ctx)
	if err != nil {
		return fmt.Errorf("some of the %s may be left; ForgetUser removes them: %w", users, err)
	}
	fmt.Fprintf(out, "removed %s: %d memories, %d considerations\n", users, memories, considerations)
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
	ms := func(p float64) float64 { return float64(s.Percentile(p).Microseconds()) / 1000 }
	m := measured{
		Call: name, Calls: s.Calls, CallsPerSecond: s.PerSecond(), P50: ms(50), P90: ms(90), P99: ms(99), Max: ms(100),
		Errors: s.Errors, Degraded: s.Degraded,
	}
	if s.FirstError != nil {
		m.FirstError = s.FirstError.Error()
	}
	return m
}

// benchReport is what --json prints.
type benchReport struct {
	Address  string     `json:"address"`
	Users    int        `json:"users"`
	Memories int        `json:"memories_per_user"`
	Callers  int        `json:"callers"`
	Seconds  float64    `json:"seconds"`
	Measured []measured `json:"measured"`
}

func (b *benchCommand) report(out io.Writer, lines []measured) error {
	failed := int64(0)
	for _, l := range lines {
		failed += l.Errors
	}
	var err error
	if b.JSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(benchReport{b.Addr, b.Users, b.Memories, b.Callers, b.Duration.Seconds(), lines})
	} else {
		err = b.table(out, lines)
	}
	if err == nil && failed > 0 {
		err = fmt.Errorf("%d calls failed", failed)
	}
	return err
}

func (b *benchCommand) table(out io.Writer, lines []measured) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "call\tcalls\tcalls/s\tp50 ms\tp90 ms\tp99 ms\tmax ms\terrors\tdegraded\t")
	for _, l := range lines {
		fmt.Fprintf(w, "%s\t%d\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t%d\t%d\t\n", l.Call, l.Calls, l.CallsPerSecond, l.P50, l.P90, l.P99, l.Max,
			l.Errors, l.Degraded)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, l := range lines {
		if l.FirstError != "" {
			fmt.Fprintf(out, "%s failed, for example: %s\n", l.Call, l.FirstError)
		}
	}
	return nil
}

// Package usage records the cost of model calls: tokens and time, by day, namespace, part and model.
package usage

import (
	"context"
	"log/slog"
	"time"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// Call is one call of a model.
type Call struct {
	At        time.Time     `json:"at"`
	Namespace string        `json:"-"`               // empty for work of several namespaces, such as embedding after a change of model
	Part      string        `json:"part"`            // "embedding", "decision", "summary" or "digest"
	Model     string        `json:"model"`           // "provider/model"
	Error     string        `json:"error,omitempty"` // why it failed, or ""; adapters keep keys out of their errors
	Latency   time.Duration `json:"latency"`
	// Tokens as the provider counts them, 0 when it does not say.
	InputTokens  int64 `json:"input,omitempty"`
	OutputTokens int64 `json:"output,omitempty"`
}

// Sum is the total of a day's calls by one part and model.
type Sum struct {
	Day                       string // as Day names it
	Part, Model               string
	Calls, Failures           int64
	InputTokens, OutputTokens int64
	Latency                   time.Duration // of all calls together
}

// Store keeps the sums; usagetest is its conformance suite. All methods are safe for concurrent use. Errors wrap memory.ErrUnavailable
// when storage is unavailable.
type Store interface {
	// AddUsage adds calls to the sums, atomically.
	AddUsage(ctx context.Context, calls []Call) error
	// Usage returns the sums of a namespace since the day of a time: the newest day first, then by part and model.
	Usage(ctx context.Context, namespace string, since time.Time) ([]Sum, error)
}

// Adder is the part of Store that a Recorder needs.
type Adder interface {
	AddUsage(ctx context.Context, calls []Call) error
}

// Recorder adds calls to the sums in the background. A crash may lose the last second.
type Recorder struct{ writer *background.BatchWriter[Call] }

// NewRecorder returns a recorder that works until Close.
func NewRecorder(store Adder, log *slog.Logger) *Recorder {
	options := background.BatchOptions{Name: "model usage", Every: time.Second, Max: 100_000, Log: log}
	return &Recorder{background.NewBatchWriter(store.AddUsage, options)}
}

// Record records a call made with the context. It never blocks.
func (r *Recorder) Record(ctx context.Context, c Call) {
	c.Namespace = User(ctx).Namespace
	if collector, ok := ctx.Value(collectorKey{}).(*Collector); ok {
		collector.add(c)
	}
	r.writer.Add(c)
}

// Flush writes the pending calls now.
func (r *Recorder) Flush(ctx context.Context) { r.writer.Flush(ctx) }

// Close writes the pending calls.
func (r *Recorder) Close() { r.writer.Close() }

type userKey struct{}

// WithUser returns a context whose model calls are counted for the user; without a user id, for the namespace.
func WithUser(ctx context.Context, user memory.User) context.Context {
	return context.WithValue(ctx, userKey{}, user)
}

// WithNamespace returns a context whose model calls are counted for the namespace and for no user.
func WithNamespace(ctx context.Context, namespace string) context.Context {
	return WithUser(ctx, memory.User{Namespace: namespace})
}

// User returns the user that WithUser has set.
func User(ctx context.Context) memory.User {
	user, _ := ctx.Value(userKey{}).(memory.User)
	return user
}

// Day names the day in which calls are counted: that of UTC, as YYYY-MM-DD.
func Day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// DayAfter returns the end of the day of a time.
func DayAfter(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour) }

// Package logs keeps the log readable: whatever goes wrong a thousand times in a minute is not a thousand lines.
package logs

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	window = time.Minute
	// burst is how many lines of a kind a window has.
	burst = 10
	// maxKinds bounds what is remembered. There are about a hundred kinds.
	maxKinds = 10_000
)

// telling are the attributes that make two lines of the same message different in kind. Their values are few.
var telling = []string{"method", "code", "component", "part", "doing", "what"}

// New writes lines of a level ("debug", "info", "warn" or "error") and those above it, as JSON or as text, and limits them as [Limit]
// does. An unknown level is info.
func New(w io.Writer, level, format string) *slog.Logger {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		least = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: least}
	if format == "json" {
		return slog.New(Limit(slog.NewJSONHandler(w, options)))
	}
	return slog.New(Limit(slog.NewTextHandler(w, options)))
}

// Limit writes at most ten lines of a kind in a minute. The next line of the kind after that says how many were left out.
// Debug lines are not limited: who wants them wants them all.
func Limit(inner slog.Handler) slog.Handler {
	return &limited{inner: inner, kinds: &kinds{counts: map[kind]*count{}, now: time.Now}}
}

type limited struct {
	inner slog.Handler
	kinds *kinds
}

type kind struct {
	level   slog.Level
	message string
	values  string
}

type count struct {
	since   time.Time
	lines   int
	leftOut int
}

type kinds struct {
	mu     sync.Mutex
	counts map[kind]*count
	now    func() time.Time
}

// Enabled implements slog.Handler.
func (l *limited) Enabled(ctx context.Context, level slog.Level) bool {
	return l.inner.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler. The kinds are counted together with those of the handler it comes from.
func (l *limited) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &limited{l.inner.WithAttrs(attrs), l.kinds}
}

// WithGroup implements slog.Handler.
func (l *limited) WithGroup(name string) slog.Handler {
	return &limited{l.inner.WithGroup(name), l.kinds}
}

// Handle implements slog.Handler.
func (l *limited) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelInfo {
		return l.inner.Handle(ctx, r)
	}
	k := kind{level: r.Level, message: r.Message}
	r.Attrs(func(a slog.Attr) bool {
		if slices.Contains(telling, a.Key) {
			k.values += a.Value.String() + "\x00"
		}
		return true
	})
	leftOut, ok := l.kinds.take(k)
	if !ok {
		return nil
	}
	if leftOut > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("left_out", leftOut))
	}
	return l.inner.Handle(ctx, r)
}

// take reports whether a line of the kind is to be written, and how many were left out before it.
func (s *kinds) take(k kind) (leftOut int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	c := s.counts[k]
	if c == nil {
		if len(s.counts) >= maxKinds {
			clear(s.counts)
		}
		c = &count{since: now}
		s.counts[k] = c
	}
	if now.Sub(c.since) >= window {
		leftOut = c.leftOut
		*c = count{since: now}
	}
	if c.lines == burst {
		c.leftOut++
		return 0, false
	}
	c.lines++
	return leftOut, true
}

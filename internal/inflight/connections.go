package inflight

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

const (
	// maxConnections is the limit of open connections on all ports together.
	maxConnections = 1000
	// maxCalls is the limit of running calls on all connections together. Up to about 100 KiB of each are not counted in bytes.
	maxCalls = 1000
	// longestCount is the maximum age with which a running call counts when a connection has to be closed, so that one long export is not
	// mistaken for an attack.
	longestCount = time.Minute
	// idleFirst is more than the total age of a connection's calls can be.
	idleFirst = maxCalls * longestCount
)

// Connections limits the connections of several listeners and their calls. Above a limit it closes one connection: one that never made an
// admitted call, the one whose last call is oldest, or the one whose running calls have the largest total age. Well-behaved clients are not
// affected.
type Connections struct {
	maxConnections, maxCalls int
	now                      func() time.Time

	mu    sync.Mutex
	conns map[*Conn]struct{}
	calls int
}

// NewConnections returns limits for the listeners that are passed to Listen.
func NewConnections() *Connections {
	return &Connections{maxConnections: maxConnections, maxCalls: maxCalls, now: time.Now, conns: map[*Conn]struct{}{}}
}

// Listen applies the limits to a listener.
func (c *Connections) Listen(listener net.Listener) net.Listener { return limited{listener, c} }

type limited struct {
	net.Listener
	connections *Connections
}

// Accept implements net.Listener.
func (l limited) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.connections.add(conn), nil
}

// Conn is a counted connection.
type Conn struct {
	net.Conn
	connections *Connections
	once        sync.Once

	// Guarded by connections.mu.
	since  time.Time // time of the last admitted call, or when the connection was opened
	called bool      // whether a call was ever admitted
	calls  map[*call]struct{}
}

type call struct{ since time.Time }

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.once.Do(func() {
		c.connections.mu.Lock()
		defer c.connections.mu.Unlock()
		delete(c.connections.conns, c)
	})
	return c.Conn.Close()
}

// Evict closes the connection to make room for others.
func (c *Conn) Evict() { _ = c.Close() }

// RemoteAddr implements net.Conn. ConnOf finds the connection by this address.
func (c *Conn) RemoteAddr() net.Addr { return address{c.Conn.RemoteAddr(), c} }

type address struct {
	net.Addr
	conn *Conn
}

// ConnOf returns the connection with this remote address, or nil if it is not counted.
func ConnOf(remote net.Addr) *Conn {
	if a, ok := remote.(address); ok {
		return a.conn
	}
	return nil
}

type connKey struct{}

// WithConn stores the connection of a request in its context, if the connection is counted.
func WithConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, ConnOf(conn.RemoteAddr()))
}

// ConnFrom returns the connection that WithConn stored, or nil.
func ConnFrom(ctx context.Context) *Conn {
	conn, _ := ctx.Value(connKey{}).(*Conn)
	return conn
}

func (c *Connections) add(conn net.Conn) *Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	added := &Conn{Conn: conn, connections: c, since: c.now(), calls: map[*call]struct{}{}}
	if len(c.conns) >= c.maxConnections {
		c.evict(nil)
	}
	c.conns[added] = struct{}{}
	return added
}

// Begin counts a call until end is called. It fails when there are too many calls and no other connection can be closed instead.
func (c *Conn) Begin() (end func(), err error) {
	all := c.connections
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.calls >= all.maxCalls && !all.evict(c) {
		return nil, &memory.OverloadError{Limit: "too many calls are running", RetryAfter: retryAfter}
	}
	begun := &call{since: all.now()}
	c.calls[begun] = struct{}{}
	c.since, c.called = begun.since, true
	all.calls++
	return func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		if _, ok := c.calls[begun]; ok {
			delete(c.calls, begun)
			all.calls--
		}
	}, nil
}

// evict closes the worst connection other than the given one. It stops counting that connection's calls immediately, because they end with
// it.
func (c *Connections) evict(besides *Conn) bool {
	var worst *Conn
	var most time.Duration
	now := c.now()
	for conn := range c.conns {
		var held time.Duration
		for begun := range conn.calls {
			held += min(now.Sub(begun.since), longestCount)
		}
		if besides == nil && len(conn.calls) == 0 { // too many connections: idle ones first, and of those the ones that never called
			held = idleFirst + min(now.Sub(conn.since), idleFirst)
			if !conn.called {
				held += 2 * idleFirst
			}
		}
		if conn == besides {
			continue
		}
		if held > most {
			worst, most = conn, held
		}
	}
	if worst == nil {
		return false
	}
	if besides != nil {
		var own time.Duration
		for begun := range besides.calls {
			own += min(now.Sub(begun.since), longestCount)
		}
		if own >= most {
			return false // the calling connection is the worst
		}
	}
	c.calls -= len(worst.calls)
	clear(worst.calls)
	delete(c.conns, worst)
	go worst.Evict()
	return true
}

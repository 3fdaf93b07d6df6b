package inflight

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

const (
	// maxConnections is how many connections may be open, of all ports together.
	maxConnections = 1000
	// maxCalls is how many calls may be under way, of all connections together. Up to some 100 KiB of each are not counted in bytes.
	maxCalls = 1000
	// longestCount is the age from which a call that is under way counts no more when a connection is chosen to be closed, so that one
	// long export is not taken for an attack.
	longestCount = time.Minute
	// idleFirst is more than the calls of a connection can add up to.
	idleFirst = maxCalls * longestCount
)

// Connections bounds the connections of several listeners and the calls over them. When there are too many, it closes one: a
// connection that never made a call that was admitted, one that has made none for the longest time, or the one whose calls have
// been under way for the longest time in sum. Callers that behave well are none of these.
type Connections struct {
	maxConnections, maxCalls int
	now                      func() time.Time

	mu    sync.Mutex
	conns map[*Conn]struct{}
	calls int
}

// NewConnections returns a bound for the listeners that Listen is given.
func NewConnections() *Connections {
	return &Connections{maxConnections: maxConnections, maxCalls: maxCalls, now: time.Now, conns: map[*Conn]struct{}{}}
}

// Listen bounds the connections of a listener.
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

// Conn is a connection that is counted.
type Conn struct {
	net.Conn
	connections *Connections
	once        sync.Once

	// Guarded by connections.mu.
	since  time.Time // of the last call that was admitted, or of the connection
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

// Evict closes the connection in favour of others.
func (c *Conn) Evict() { _ = c.Close() }

// RemoteAddr implements net.Conn. Conn finds the connection by this address.
func (c *Conn) RemoteAddr() net.Addr { return address{c.Conn.RemoteAddr(), c} }

type address struct {
	net.Addr
	conn *Conn
}

// ConnOf is the connection that has this remote address; nil if it is not counted.
func ConnOf(remote net.Addr) *Conn {
	if a, ok := remote.(address); ok {
		return a.conn
	}
	return nil
}

type connKey struct{}

// WithConn notes in a context which connection a request came over, if it is counted.
func WithConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, ConnOf(conn.RemoteAddr()))
}

// ConnFrom is the connection that WithConn noted; nil if there is none.
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

// Begin counts a call until end. It is refused when there are too many and none of another connection can be ended instead.
func (c *Conn) Begin() (end func(), err error) {
	all := c.connections
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.calls >= all.maxCalls && !all.evict(c) {
		return nil, &memory.OverloadError{Limit: "too many calls are under way", RetryAfter: retryAfter}
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

// evict closes the worst connection besides one. What was called over it is forgotten here, because there is room again as soon as
// it is closed.
func (c *Connections) evict(besides *Conn) bool {
	var worst *Conn
	var most time.Duration
	now := c.now()
	for conn := range c.conns {
		var held time.Duration
		for begun := range conn.calls {
			held += min(now.Sub(begun.since), longestCount)
		}
		if besides == nil && len(conn.calls) == 0 { // connections are too many: those without calls come first, strangers before others
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
			return false // the caller itself is the worst
		}
	}
	c.calls -= len(worst.calls)
	clear(worst.calls)
	delete(c.conns, worst)
	go worst.Evict()
	return true
}

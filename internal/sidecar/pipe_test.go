//go:build !race

package sidecar_test

import (
	"context"
	"net"
	"sync"
)

// pipes is an in-memory listener for HTTP servers. Bufconn does not work for them: net/http ends a read by a deadline in the past and
// then removes the deadline. In Bufconn the deadline may take effect afterwards, and the next read fails.
type pipes struct {
	made   chan net.Conn
	closed chan struct{}
	close  func()
}

func listenInMemory() *pipes {
	p := &pipes{made: make(chan net.Conn), closed: make(chan struct{})}
	p.close = sync.OnceFunc(func() { close(p.closed) })
	return p
}

func (p *pipes) DialContext(ctx context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.made <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.made:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.close()
	return nil
}

func (p *pipes) Addr() net.Addr { return pipesAddr{} }

type pipesAddr struct{}

func (pipesAddr) Network() string { return "pipe" }
func (pipesAddr) String() string  { return "pipe" }

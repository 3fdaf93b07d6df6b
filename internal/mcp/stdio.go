package mcp

import (
	"bufio"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Stdio serves the protocol over a reader and a writer, one message per line, until the reader ends. Then it finishes pending requests,
// which the SDK alone would cancel.
func Stdio(ctx context.Context, server *sdk.Server, in io.Reader, out io.Writer) error {
	writer := &locked{Writer: out}
	reader := &lineReader{in: bufio.NewReaderSize(in, 64<<10), out: writer}
	err := server.Run(ctx, drainingTransport{&sdk.IOTransport{Reader: io.NopCloser(reader), Writer: writer, MaxLineLength: -1}})
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// drainingTransport is a transport that closes after all requests have been answered.
type drainingTransport struct{ sdk.Transport }

// Connect implements sdk.Transport.
func (f drainingTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := f.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	c := &drainingConn{Connection: conn, answered: make(chan struct{}, 1), closed: make(chan struct{}), open: map[jsonrpc.ID]bool{}}
	return c, nil
}

type drainingConn struct {
	sdk.Connection
	mu       sync.Mutex
	open     map[jsonrpc.ID]bool // pending requests
	answered chan struct{}
	once     sync.Once
	closed   chan struct{}
}

// Read implements sdk.Connection.
func (c *drainingConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := c.Connection.Read(ctx)
	if request, ok := message.(*jsonrpc.Request); ok && request.IsCall() {
		c.mu.Lock()
		c.open[request.ID] = true
		c.mu.Unlock()
	}
	for errors.Is(err, io.EOF) && c.waiting() {
		select {
		case <-c.answered:
		case <-c.closed:
			return message, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return message, err
}

// Write implements sdk.Connection.
func (c *drainingConn) Write(ctx context.Context, message jsonrpc.Message) error {
	err := c.Connection.Write(ctx, message)
	if response, ok := message.(*jsonrpc.Response); ok {
		c.mu.Lock()
		delete(c.open, response.ID)
		c.mu.Unlock()
		select {
		case c.answered <- struct{}{}:
		default:
		}
	}
	return err
}

// Close implements sdk.Connection.
func (c *drainingConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Connection.Close()
}

func (c *drainingConn) waiting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open) > 0
}

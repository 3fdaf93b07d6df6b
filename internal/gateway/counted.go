package gateway

import (
	"errors"
	"io"
	"net/http"

	"github.com/memsidecar/memsidecar/internal/inflight"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// jsonCost is the memory for each byte of a large body or answer: as JSON, as a message, and encoded. The server behind the gateway counts
// its own memory.
const jsonCost = 3

// counted limits the memory of large bodies and answers, and counts the call on its connection.
func (g *Gateway) counted(w http.ResponseWriter, r *http.Request, next func(*http.Request)) {
	share := g.options.Bytes.Open(nil)
	if conn := inflight.ConnFrom(r.Context()); conn != nil {
		end, err := conn.Begin()
		if err != nil {
			g.fail(w, err)
			return
		}
		defer end()
		share = g.options.Bytes.Open(conn.Evict)
	}
	defer share.Release()
	body := &countedBody{ReadCloser: r.Body, share: share}
	if known := r.ContentLength; known > inflight.Small && known <= g.options.MaxBytes {
		if err := share.Grow(jsonCost * known); err != nil {
			w.Header().Set("Connection", "close") // the body is not read
			g.fail(w, err)
			return
		}
		body.paid = known
	}
	r = r.WithContext(r.Context())
	r.Body = body
	next(r)
}

// countedBody counts the bytes read from a body beyond those already counted.
type countedBody struct {
	io.ReadCloser
	share      *inflight.Share
	read, paid int64
}

// Read implements io.Reader.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.read += int64(n); b.read > max(b.paid, inflight.Small) {
		if full := b.share.Grow(jsonCost * int64(n)); full != nil {
			return 0, full
		}
		b.paid = b.read
	}
	return n, err
}

// next is called when a message was handled and another follows.
func (b *countedBody) next() {
	b.share.Reset()
	b.read, b.paid = 0, 0
}

// grow counts a large answer until the request ends.
func grow(r *http.Request, size int) error {
	if body, ok := r.Body.(*countedBody); ok && size > inflight.Small {
		return body.share.Grow(jsonCost * int64(size))
	}
	return nil
}

// overloaded reports whether an error is an exceeded limit that may be free later.
func overloaded(err error) bool {
	overload := (*memory.OverloadError)(nil)
	return errors.As(err, &overload)
}

package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/memsidecar/memsidecar/internal/gateway/jsonapi"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// patience is how long a message of a stream may take to arrive. The first, and the only one of other calls, has as long as the
// server gives to a body.
const patience = time.Minute

// setPatience has reading of the body fail after that long; 0 is never.
func setPatience(w http.ResponseWriter, d time.Duration) {
	var deadline time.Time
	if d > 0 {
		deadline = time.Now().Add(d)
	}
	_ = http.NewResponseController(w).SetReadDeadline(deadline) // what has no deadlines has no slow clients
}

// mark is the byte order mark that some programs of Windows begin their texts with. JSON should have none, and may be read with it.
var mark = []byte("\ufeff")

// unmarked is a text without its mark.
func unmarked(r io.Reader) (io.Reader, error) {
	head := make([]byte, len(mark))
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	return io.MultiReader(bytes.NewReader(bytes.TrimPrefix(head[:n], mark)), r), nil
}

// errTooLarge: a message is larger than Options.MaxBytes.
var errTooLarge = errors.New("too large")

// readOne reads a body that is one message. An empty one is the empty message.
func (g *Gateway) readOne(w http.ResponseWriter, r *http.Request, message proto.Message) error {
	var read bytes.Buffer
	if known := r.ContentLength; known > 0 && known <= g.options.MaxBytes {
		read.Grow(int(known) + bytes.MinRead) // so that it is not copied as it grows
	}
	if _, err := read.ReadFrom(http.MaxBytesReader(w, r.Body, g.options.MaxBytes)); err != nil {
		return g.unreadable(jsonapi.Request, err)
	}
	body := bytes.TrimPrefix(read.Bytes(), mark)
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	return jsonapi.Decode(jsonapi.Request, body, message)
}

// unreadable is why a body could not be read.
func (g *Gateway) unreadable(field string, err error) error {
	if overloaded(err) {
		return err
	}
	if oversize := (*http.MaxBytesError)(nil); errors.As(err, &oversize) || errors.Is(err, errTooLarge) {
		return fmt.Errorf("%w: %w", errTooLarge, memory.Invalid(field, "is more than %d bytes: hand it over in parts", g.options.MaxBytes))
	}
	return memory.Invalid(field, "cannot be read: %s", err)
}

// bounded reads as much as is left. Whoever reads several messages sets that anew for each.
type bounded struct {
	reader io.Reader
	left   int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.reader.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

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

// messageTimeout is how long a message of a stream may take to arrive. The first message has the server's timeout for a whole body.
const messageTimeout = time.Minute

// setMessageTimeout sets the deadline for reading from the body; 0 means none.
func setMessageTimeout(w http.ResponseWriter, d time.Duration) {
	var deadline time.Time
	if d > 0 {
		deadline = time.Now().Add(d)
	}
	_ = http.NewResponseController(w).SetReadDeadline(deadline) // an error means that the connection has no deadlines
}

// mark is the byte order mark with which some Windows programs begin their texts. JSON should have none, but it is accepted.
var mark = []byte("\ufeff")

// unmarked returns a reader without the byte order mark.
func unmarked(r io.Reader) (io.Reader, error) {
	head := make([]byte, len(mark))
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	return io.MultiReader(bytes.NewReader(bytes.TrimPrefix(head[:n], mark)), r), nil
}

// errTooLarge means that a message is larger than Options.MaxBytes.
var errTooLarge = errors.New("too large")

// readOne reads a body that is one message. An empty body is an empty message.
func (g *Gateway) readOne(w http.ResponseWriter, r *http.Request, message proto.Message) error {
	var read bytes.Buffer
	if known := r.ContentLength; known > 0 && known <= g.options.MaxBytes {
		read.Grow(int(known) + bytes.MinRead) // avoids copies while it grows
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

// unreadable returns why a body could not be read.
func (g *Gateway) unreadable(field string, err error) error {
	if overloaded(err) {
		return err
	}
	if oversize := (*http.MaxBytesError)(nil); errors.As(err, &oversize) || errors.Is(err, errTooLarge) {
		return fmt.Errorf("%w: %w", errTooLarge, memory.Invalid(field, "is more than %d bytes: send it in parts", g.options.MaxBytes))
	}
	return memory.Invalid(field, "cannot be read: %s", err)
}

// bounded reads up to a limit. Readers of several messages reset the limit for each.
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

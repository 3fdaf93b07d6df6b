package server

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/memsidecar/memsidecar/internal/inflight"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// grpc reads a whole message, decompresses it and decodes it before anything else runs, up to its limit for each of any number of
// streams; and it takes an answer of any size and keeps it until the client reads it. So the bytes of large messages are counted
// here, between grpc's transport and the calls.

const (
	maxHeaderBytes = 32 << 10 // of the headers of a call
	maxStreams     = 100      // calls at a time over one connection
	streamWindow   = 64 << 10 // what a client may send of a call before it is read
	connWindow     = 1 << 20

	// requestCost is what a byte of a large request takes: it is there as it arrived and as it was decoded. A compressed one is there
	// in pieces, too.
	requestCost, compressedCost = 2, 3
	// answerCost is what a byte of a large answer takes: it is there encoded, and what it was made of is not collected at once.
	answerCost = 2
	unpackPart = 64 << 10
	// streamCost is what a call holds that answers many messages: the page that it reads from storage.
	streamCost = 2 << 20
	// gatherers is how many calls may gather large answers at a time. The others wait.
	gatherers = 4
)

// transport receives and sends messages, and counts the large ones.
type transport struct {
	codec    codec
	maxBytes int
	bytes    *inflight.Bytes
	lists    *semaphore.Weighted
	unary    grpc.UnaryServerInterceptor
}

// incoming is grpc's stream below the one that handlers are given. It hands over a message in parts. The interface is not promised by
// grpc: where a version does not have it, messages are read whole, and TestRequestsAreReadInParts fails.
type incoming interface {
	ReadMessageHeader(header []byte) error
	Read(n int) (mem.BufferSlice, error)
	RecvCompress() string
}

// share is an empty share of the bytes for a call. Its connection may be closed when it stalls; that within the process may not,
// because all HTTP requests share it, and theirs are closed instead.
func (t *transport) share(ctx context.Context) *inflight.Share {
	if conn := connOf(ctx); conn != nil {
		return t.bytes.Open(conn.Evict)
	}
	return t.bytes.Open(nil)
}

func connOf(ctx context.Context) *inflight.Conn {
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		return inflight.ConnOf(p.Addr)
	}
	return nil
}

// receive reads a message. An error of io.EOF is the end of the client's messages.
func (t *transport) receive(stream grpc.ServerStream, share *inflight.Share, m any) error {
	ctx := stream.Context()
	in, ok := grpc.ServerTransportStreamFromContext(ctx).(incoming)
	if !ok {
		return stream.RecvMsg(m)
	}
	var header [5]byte
	if err := in.ReadMessageHeader(header[:]); err != nil {
		return broken(ctx, err)
	}
	size := int64(binary.BigEndian.Uint32(header[1:]))
	if size > int64(t.maxBytes) {
		return tooLarge(size, t.maxBytes)
	}
	if size > inflight.Small {
		if err := share.Grow(requestCost * size); err != nil {
			return err
		}
	}
	text, err := readAll(in, int(size))
	if err != nil {
		return broken(ctx, err)
	}
	data := mem.BufferSlice{mem.SliceBuffer(text)}
	if header[0] != 0 {
		if data, err = t.unpack(in.RecvCompress(), data, share); err != nil {
			return err
		}
	}
	return t.codec.Unmarshal(data, m)
}

func tooLarge(size int64, most int) error {
	return memory.Invalid("request", "is %d bytes, more than %d: hand it over in parts", size, most)
}

// broken is why a message could not be read.
func broken(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return io.EOF
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, io.ErrUnexpectedEOF):
		return memory.Invalid("request", "ends in the middle")
	}
	return status.Convert(err).Err()
}

// readAll reads so many bytes, a part at a time: a client cannot have grpc keep a frame for each of many bytes.
func readAll(in incoming, size int) ([]byte, error) {
	const part = 16 << 10
	text := make([]byte, 0, size)
	for len(text) < size {
		data, err := in.Read(min(size-len(text), part))
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
		for _, b := range data {
			text = append(text, b.ReadOnlyData()...)
		}
		data.Free()
	}
	return text, nil
}

// unpack decompresses a message, and stops where it is too large or there is no room for more.
func (t *transport) unpack(name string, data mem.BufferSlice, share *inflight.Share) (unpacked mem.BufferSlice, err error) {
	compressor := encoding.GetCompressor(name)
	if compressor == nil { // a compressed message in a stream that is said not to be
		return nil, memory.Invalid("request", "is compressed, and the call has no grpc-encoding that is known")
	}
	reader, err := compressor.Decompress(data.Reader())
	if err != nil {
		return nil, memory.Invalid("request", "cannot be decompressed: %s", err)
	}
	for size := 0; ; {
		part := make([]byte, min(unpackPart, t.maxBytes+1-size))
		n, err := io.ReadFull(reader, part)
		if size += n; size > t.maxBytes {
			return nil, memory.Invalid("request", "is more than %d bytes when it is decompressed: hand it over in parts", t.maxBytes)
		}
		unpacked = append(unpacked, mem.SliceBuffer(part[:n]))
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF) && n < len(part) && ended(reader):
			return unpacked, nil
		case err != nil:
			return nil, memory.Invalid("request", "cannot be decompressed: %s", err)
		}
		if err := share.Grow(compressedCost * unpackPart); err != nil {
			return nil, err
		}
	}
}

// ended reports whether a reader is at its end, and was not cut off.
func ended(r io.Reader) bool {
	n, err := r.Read(make([]byte, 1))
	return n == 0 && errors.Is(err, io.EOF)
}

// encoded is a message that was encoded already. The codec leaves it as it is.
type encoded struct{ data mem.BufferSlice }

// returned is told when grpc has written a large answer, or given it up.
type returned struct {
	data mem.BufferSlice
	done chan struct{}
}

// Get implements mem.BufferPool; nothing is had from here.
func (returned) Get(length int) *[]byte { return new(make([]byte, length)) }

// Put implements mem.BufferPool.
func (r returned) Put(*[]byte) {
	r.data.Free()
	close(r.done)
}

// send sends a message. One that is large is counted until the client has read it, and so long it waits.
func (t *transport) send(stream grpc.ServerStream, share *inflight.Share, m any) error {
	data, err := t.codec.Marshal(m)
	if err != nil {
		return err
	}
	if data.Len() <= inflight.Small {
		return stream.SendMsg(encoded{data})
	}
	if err := share.Grow(answerCost * int64(data.Len())); err != nil {
		data.Free()
		return err
	}
	written := returned{data: data, done: make(chan struct{})}
	var text []byte
	if len(data) == 1 {
		text = data[0].ReadOnlyData()
	} else {
		text = data.Materialize()
	}
	if err := stream.SendMsg(encoded{mem.BufferSlice{mem.NewBuffer(&text, written)}}); err != nil {
		return err
	}
	select {
	case <-written.done:
	case <-stream.Context().Done(): // grpc drops what it has of it
	}
	return nil
}

// unaryHandler is the handler of a call with one request and one answer, as grpc makes one, with the transport in between.
func (t *transport) unaryHandler(d grpc.MethodDesc) grpc.StreamHandler {
	gathers := slices.Contains(gathering, d.MethodName) || strings.HasPrefix(d.MethodName, "List")
	return func(srv any, stream grpc.ServerStream) error {
		ctx := stream.Context()
		share := t.share(ctx)
		defer share.Release()
		_ = grpc.SetSendCompressor(ctx, encoding.Identity) // a compressed answer would not be known to be written
		var unread error
		decode := func(m any) error {
			unread = t.receive(stream, share, m)
			if errors.Is(unread, io.EOF) {
				unread = memory.Invalid("request", "is missing")
			}
			return nil // so that the interceptors see the call
		}
		intercept := func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			if unread != nil {
				ctx = context.WithValue(ctx, unreadKey{}, unread)
			}
			return t.unary(ctx, req, info, func(ctx context.Context, req any) (any, error) {
				if gathers {
					if err := t.lists.Acquire(ctx, 1); err != nil {
						return nil, err
					}
					defer t.lists.Release(1)
				}
				return handler(ctx, req)
			})
		}
		reply, err := d.Handler(srv, ctx, decode, intercept)
		if err != nil {
			return err
		}
		if err := t.send(stream, share, reply); err != nil {
			return toStatus(err).Err()
		}
		return nil
	}
}

// gathering are the calls besides lists whose answers may be large.
var gathering = []string{"AuditMemories", "GetTrace", "GetNotebook", "GetNumberedList"}

// unreadKey is that of the reason why a request could not be read, in the context of its interceptors.
type unreadKey struct{}

func unreadProblem(ctx context.Context) error {
	err, _ := ctx.Value(unreadKey{}).(error)
	return err
}

// registrar registers services whose calls go through the transport. Those that stream do so by an interceptor.
type registrar struct {
	*grpc.Server
	transport *transport
}

// RegisterService implements grpc.ServiceRegistrar.
func (r registrar) RegisterService(d *grpc.ServiceDesc, impl any) {
	through := *d
	through.Methods, through.Streams = nil, slices.Clone(d.Streams)
	for _, m := range d.Methods {
		through.Streams = append(through.Streams, grpc.StreamDesc{
			StreamName: m.MethodName, Handler: r.transport.unaryHandler(m),
		})
	}
	r.Server.RegisterService(&through, impl)
}

// stream has the messages of a stream go through the transport.
func (t *transport) stream() grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		_ = grpc.SetSendCompressor(stream.Context(), encoding.Identity)
		s := &countedStream{ServerStream: stream, transport: t, received: t.share(stream.Context()), sent: t.share(stream.Context())}
		defer s.received.Release()
		defer s.sent.Release()
		if info.IsServerStream && !isEverybodys(info.FullMethod) && !info.IsClientStream {
			held := t.share(stream.Context())
			defer held.Release()
			if err := held.Grow(streamCost); err != nil {
				return err
			}
		}
		return handler(srv, s)
	}
}

// countedStream is a stream whose large messages are counted.
type countedStream struct {
	grpc.ServerStream
	transport      *transport
	received, sent *inflight.Share
}

// RecvMsg implements grpc.ServerStream. The message before is taken to be done with.
func (s *countedStream) RecvMsg(m any) error {
	s.received.Reset()
	if err := s.transport.receive(s.ServerStream, s.received, m); err != nil {
		return err
	}
	return decodingProblem(m)
}

// SendMsg implements grpc.ServerStream.
func (s *countedStream) SendMsg(m any) error {
	defer s.sent.Reset()
	return s.transport.send(s.ServerStream, s.sent, m)
}

// chained are interceptors as one, the first outermost.
func chained(all ...grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		for _, next := range slices.Backward(all) {
			inner := handler
			handler = func(ctx context.Context, req any) (any, error) { return next(ctx, req, info, inner) }
		}
		return handler(ctx, req)
	}
}

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

// grpc reads, decompresses and decodes a whole message before anything else runs, for any number of streams, and keeps an answer of any
// size until the client has read it. So this file counts the bytes of large messages between grpc's transport and the handlers.

const (
	maxHeaderBytes = 32 << 10 // of the headers of a call
	maxStreams     = 100      // concurrent calls of one connection
	streamWindow   = 64 << 10 // bytes of a call that a client may send before they are read
	connWindow     = 1 << 20

	// requestCost is the memory for each byte of a large request: the received and the decoded bytes. A compressed request also needs its
	// compressed bytes.
	requestCost, compressedCost = 2, 3
	// answerCost is the memory for each byte of a large answer: its encoding, and its values until they are garbage collected.
	answerCost = 2
	unpackPart = 64 << 10
	// streamCost is the memory of a call that streams its answer: one page read from storage.
	streamCost = 2 << 20
	// gatherers is how many calls may build large answers concurrently. Other calls wait.
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

// partReader is the grpc stream below the one that handlers get. It delivers a message in parts. grpc does not guarantee this interface: if a
// version lacks it, messages are read whole, and TestRequestsAreReadInParts fails.
type partReader interface {
	ReadMessageHeader(header []byte) error
	Read(n int) (mem.BufferSlice, error)
	RecvCompress() string
}

// share returns an empty share of the byte limit for a call. If the call stalls, its connection may be closed. The connection inside the
// process is never closed, because all HTTP requests share it; their own connections are closed instead.
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

// receive reads a message. It returns io.EOF when the client has sent all its messages.
func (t *transport) receive(stream grpc.ServerStream, share *inflight.Share, m any) error {
	ctx := stream.Context()
	in, ok := grpc.ServerTransportStreamFromContext(ctx).(partReader)
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
	return memory.Invalid("request", "is %d bytes, more than %d: send it in parts", size, most)
}

// broken returns why a message could not be read.
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

// readAll reads size bytes in parts, so that a client cannot make grpc hold a frame for each byte.
func readAll(in partReader, size int) ([]byte, error) {
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

// unpack decompresses a message. It stops when the message is too large or the byte limit is reached.
func (t *transport) unpack(name string, data mem.BufferSlice, share *inflight.Share) (unpacked mem.BufferSlice, err error) {
	compressor := encoding.GetCompressor(name)
	if compressor == nil { // the message is compressed, but its stream names no known encoding
		return nil, memory.Invalid("request", "is compressed, but the call's grpc-encoding header names no supported encoding")
	}
	reader, err := compressor.Decompress(data.Reader())
	if err != nil {
		return nil, memory.Invalid("request", "cannot be decompressed: %s", err)
	}
	for size := 0; ; {
		part := make([]byte, min(unpackPart, t.maxBytes+1-size))
		n, err := io.ReadFull(reader, part)
		if size += n; size > t.maxBytes {
			return nil, memory.Invalid("request", "is more than %d bytes after decompression: send it in parts", t.maxBytes)
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

// encodedMessage is a message that is already encoded. The codec does not change it.
type encodedMessage struct{ data mem.BufferSlice }

// notifyingPool is a buffer pool that is notified when grpc has written or dropped a large answer.
type notifyingPool struct {
	data mem.BufferSlice
	done chan struct{}
}

// Get implements mem.BufferPool. It is never used.
func (notifyingPool) Get(length int) *[]byte { return new(make([]byte, length)) }

// Put implements mem.BufferPool.
func (r notifyingPool) Put(*[]byte) {
	r.data.Free()
	close(r.done)
}

// send sends a message. A large one is counted, and send blocks until the client has read it.
func (t *transport) send(stream grpc.ServerStream, share *inflight.Share, m any) error {
	data, err := t.codec.Marshal(m)
	if err != nil {
		return err
	}
	if data.Len() <= inflight.Small {
		return stream.SendMsg(encodedMessage{data})
	}
	if err := share.Grow(answerCost * int64(data.Len())); err != nil {
		data.Free()
		return err
	}
	written := notifyingPool{data: data, done: make(chan struct{})}
	var text []byte
	if len(data) == 1 {
		text = data[0].ReadOnlyData()
	} else {
		text = data.Materialize()
	}
	if err := stream.SendMsg(encodedMessage{mem.BufferSlice{mem.NewBuffer(&text, written)}}); err != nil {
		return err
	}
	select {
	case <-written.done:
	case <-stream.Context().Done(): // grpc drops the rest of the message
	}
	return nil
}

// unaryHandler returns a handler for a unary call, as grpc generates one, that uses the transport.
func (t *transport) unaryHandler(d grpc.MethodDesc) grpc.StreamHandler {
	gathers := slices.Contains(gathering, d.MethodName) || strings.HasPrefix(d.MethodName, "List")
	return func(srv any, stream grpc.ServerStream) error {
		ctx := stream.Context()
		share := t.share(ctx)
		defer share.Release()
		_ = grpc.SetSendCompressor(ctx, encoding.Identity) // it is unknown when a compressed answer has been written
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

// gathering are the calls, apart from lists, whose answers may be large.
var gathering = []string{"AuditMemories", "GetTrace", "GetNotebook", "GetNumberedList"}

// unreadKey is the context key of the reason why a request could not be read.
type unreadKey struct{}

func unreadProblem(ctx context.Context) error {
	err, _ := ctx.Value(unreadKey{}).(error)
	return err
}

// registrar registers services whose unary calls use the transport. Streams use it through an interceptor.
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

// stream makes the messages of a stream use the transport.
func (t *transport) stream() grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		_ = grpc.SetSendCompressor(stream.Context(), encoding.Identity)
		s := &countedStream{ServerStream: stream, transport: t, received: t.share(stream.Context()), sent: t.share(stream.Context())}
		defer s.received.Release()
		defer s.sent.Release()
		if info.IsServerStream && !isPublic(info.FullMethod) && !info.IsClientStream {
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

// RecvMsg implements grpc.ServerStream. It assumes that the handler no longer uses the previous message.
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

// chained combines interceptors into one; the first is the outermost.
func chained(all ...grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		for _, next := range slices.Backward(all) {
			inner := handler
			handler = func(ctx context.Context, req any) (any, error) { return next(ctx, req, info, inner) }
		}
		return handler(ctx, req)
	}
}

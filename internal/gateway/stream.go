package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/memsidecar/memsidecar/internal/gateway/jsonapi"
)

// stream makes a streaming call. It sends all requests before it writes an answer.
func (g *Gateway) stream(ctx context.Context, w http.ResponseWriter, r *http.Request, m method) error {
	s, err := g.backend.Conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: m.takes, ServerStreams: m.answers}, m.path)
	if err != nil {
		return err
	}
	if err := g.send(w, r, m, s); err != nil {
		return err
	}
	first := m.output.New().Interface()
	err = s.RecvMsg(first)
	nothing := m.answers && errors.Is(err, io.EOF)
	if err != nil && !nothing {
		return err // nothing was written: the error is answered like that of a unary call
	}
	if !m.answers {
		runtime.ForwardResponseMessage(ctx, g.mux, g.json, w, r, first)
		return nil
	}
	// The library requires metadata, but none is passed on.
	ctx = runtime.NewServerMetadataContext(ctx, runtime.ServerMetadata{})
	runtime.ForwardResponseStream(ctx, g.mux, g.json, w, r, func() (proto.Message, error) {
		if nothing {
			return nil, io.EOF
		}
		if message := first; message != nil {
			first = nil
			return message, nil
		}
		message := m.output.New().Interface()
		return message, s.RecvMsg(message)
	})
	return nil
}

// send sends the messages in the body and closes the sending side of the stream.
func (g *Gateway) send(w http.ResponseWriter, r *http.Request, m method, s grpc.ClientStream) error {
	var err error
	if m.takes {
		err = g.sendAll(w, r, m, s)
	} else {
		request := m.input.New().Interface()
		if err = g.readOne(w, r, request); err == nil {
			err = s.SendMsg(request)
		}
	}
	if err == nil {
		err = s.CloseSend()
	}
	if errors.Is(err, io.EOF) {
		return nil // the server ended the call; receiving returns its error
	}
	return err
}

// sendAll sends the messages of the body, which are consecutive JSON values.
func (g *Gateway) sendAll(w http.ResponseWriter, r *http.Request, m method, s grpc.ClientStream) error {
	body := &bounded{reader: r.Body, left: g.options.MaxBytes}
	text, err := unmarked(body)
	if err != nil {
		return g.unreadable("request[0]", err)
	}
	decoder := json.NewDecoder(text)
	for number := 0; ; number++ {
		body.left = g.options.MaxBytes
		var value json.RawMessage
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			setMessageTimeout(w, 0) // the end may have been read before the last message was sent
			return nil
		}
		field := fmt.Sprintf("request[%d]", number)
		if err != nil {
			return g.unreadable(field, err)
		}
		message := m.input.New().Interface()
		if err := jsonapi.Decode(field, value, message); err != nil {
			return err
		}
		if err := s.SendMsg(message); err != nil {
			return err
		}
		setMessageTimeout(w, messageTimeout)
		if counted, ok := r.Body.(*countedBody); ok {
			counted.next()
		}
	}
}

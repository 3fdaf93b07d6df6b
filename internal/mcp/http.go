package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/memsidecar/memsidecar/internal/memory"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// Headers that bind a request to a user. Their values are percent-encoded, because headers are ASCII and ids are not.
const (
	userHeader        = "Memsidecar-User"
	namespaceHeader   = "Memsidecar-Namespace"
	agentHeader       = "Memsidecar-Agent"
	channelHeader     = "Memsidecar-Channel"
	channelKindHeader = "Memsidecar-Channel-Kind"
)

// HTTPOptions configures a handler.
type HTTPOptions struct {
	Options
	// User is the default user; if it is "", requests must name one.
	User string
	// MaxBytes is the maximum size of a request.
	MaxBytes int64
	// WriteError writes an error for a request that is not a valid message of the protocol.
	WriteError func(w http.ResponseWriter, code int, message string)
}

// Handler serves the streamable HTTP form of the protocol. There are no sessions: each request is bound by its own headers and calls with
// its own authorization, so a restart loses nothing and no session can be hijacked.
func Handler(conn grpc.ClientConnInterface, options HTTPOptions) http.Handler {
	if options.Schemas == nil {
		options.Schemas = sdk.NewSchemaCache()
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	streamable := sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server {
		server, _ := r.Context().Value(serverKey{}).(*sdk.Server)
		return server
	}, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, Logger: options.Log,
		PropagateRequestCancellation: true,
		DisableLocalhostProtection:   true, // gateway.Protect does this, depending on tokens
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		binding, err := bind(r, options.User)
		if err != nil {
			options.WriteError(w, http.StatusBadRequest, err.Error())
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, options.MaxBytes))
		if oversize := (*http.MaxBytesError)(nil); errors.As(err, &oversize) {
			options.WriteError(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the request is more than %d bytes", options.MaxBytes))
			return
		}
		if overload := (*memory.OverloadError)(nil); errors.As(err, &overload) {
			options.WriteError(w, http.StatusTooManyRequests, err.Error())
			return
		}
		if err == nil && !utf8.Valid(body) { // the JSON decoder would replace invalid characters
			err = errNotUTF8
		}
		if err != nil {
			options.WriteError(w, http.StatusBadRequest, "the request cannot be read: "+err.Error())
			return
		}
		own := headerConn{conn, callHeaders(r)}
		server := NewServer(Clients{
			Memory: memsidecarv1.NewMemoryServiceClient(
				own,
			), NumberedLists: memsidecarv1.NewNumberedListServiceClient(own), Digests: memsidecarv1.NewDigestServiceClient(own),
		}, binding, options.Options)
		r = r.WithContext(context.WithValue(r.Context(), serverKey{}, server))
		r.Body = io.NopCloser(bytes.NewReader(body))
		streamable.ServeHTTP(w, r)
	})
}

// serverKey is the context key of a request's server, which the library asks for more than once.
type serverKey struct{}

var errNotUTF8 = errors.New("it is not UTF-8")

// bind returns the user and the scopes of a request.
func bind(r *http.Request, user string) (Binding, error) {
	values := map[string]string{}
	for _, name := range []string{userHeader, namespaceHeader, agentHeader, channelHeader, channelKindHeader} {
		given := r.Header.Values(name)
		if len(given) > 1 {
			return Binding{}, fmt.Errorf("the header %s is given %d times: send it once", name, len(given))
		}
		if len(given) == 0 {
			continue
		}
		value, err := url.PathUnescape(given[0])
		if err != nil {
			return Binding{}, fmt.Errorf("the header %s is not percent-encoded: %w", name, err)
		}
		if !utf8.ValidString(value) {
			return Binding{}, fmt.Errorf("the header %s is not UTF-8: percent-encode the bytes of UTF-8", name)
		}
		values[name] = value
	}
	if values[userHeader] != "" {
		user = values[userHeader]
	}
	if user == "" {
		return Binding{}, fmt.Errorf("the user is missing: set the header %s, or api.mcp_user in the configuration", userHeader)
	}
	b := Binding{}
	for scope, kind := range map[**memsidecarv1.Scope]memsidecarv1.ChannelKind{
		&b.ReadScope: memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT, &b.WriteScope: memsidecarv1.ChannelKind_CHANNEL_KIND_UNSPECIFIED,
	} {
		if text := values[channelKindHeader]; text != "" {
			given, ok := memsidecarv1.ChannelKind_value["CHANNEL_KIND_"+strings.ToUpper(text)]
			if !ok {
				return Binding{}, fmt.Errorf("the header %s is %.80q: use direct, group or unspecified", channelKindHeader, text)
			}
			kind = memsidecarv1.ChannelKind(given)
		} else if values[channelHeader] != "" {
			return Binding{}, fmt.Errorf("the channel's kind is missing: set the header %s to direct or group", channelKindHeader)
		}
		*scope = &memsidecarv1.Scope{
			Namespace: values[namespaceHeader], UserId: user, AgentId: values[agentHeader], ChannelId: values[channelHeader], ChannelKind: kind,
		}
	}
	return b, nil
}

// callHeaders returns the headers that are passed on with each call of a request.
func callHeaders(r *http.Request) metadata.MD {
	md := metadata.MD{}
	for _, name := range []string{"authorization", "traceparent", "tracestate", "x-request-id"} {
		md.Append(name, slices.Clone(r.Header.Values(name))...)
	}
	return md
}

// headerConn is a connection that adds headers to its calls.
type headerConn struct {
	grpc.ClientConnInterface
	headers metadata.MD
}

// Invoke implements grpc.ClientConnInterface. No tool uses streams.
func (c headerConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	return c.ClientConnInterface.Invoke(metadata.NewOutgoingContext(ctx, c.headers), method, args, reply, opts...)
}

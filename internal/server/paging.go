package server

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/memsidecar/memsidecar/internal/memory"
)

const (
	defaultPageSize = 50
	messagePageSize = 20 // default of ListMessages
	maxPageSize     = 1000
)

// A page token is the position of the next page, encrypted and authenticated with a key that is derived from the database's key and the
// query, including namespace and user. So tokens reveal nothing, cannot be forged, and are rejected when they are sent with other fields.
// An interceptor opens the token of a request and seals that of the answer; handlers see only positions.

// pagedRequest is a request for a page, following AIP-158.
type pagedRequest interface {
	proto.Message
	GetPageSize() int32
	GetPageToken() string
}

// The interceptor replaces an opened token by one of these prefixes, followed by the position or the problem.
const (
	openedToken  = "="
	refusedToken = "!"
)

const invalidToken = "is invalid: start again without it"

// pages seals page tokens with the database's key, which is read when the first page is requested.
type pages struct {
	load func(context.Context) ([]byte, error)
	mu   sync.Mutex
	key  []byte
}

// unary opens and seals the page tokens of list calls.
func (p *pages) unary() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		r, ok := req.(pagedRequest)
		if !ok {
			return handler(ctx, req)
		}
		sealer, err := p.sealer(ctx, queryHash(r))
		if err != nil {
			return nil, err
		}
		if token := r.GetPageToken(); token != "" {
			setToken(r, "page_token", open(sealer, token))
		}
		resp, err := handler(ctx, req)
		if answer, ok := resp.(interface {
			proto.Message
			GetNextPageToken() string
		}); err == nil && ok && answer.GetNextPageToken() != "" {
			sealed := sealer.Seal(nil, nil, []byte(answer.GetNextPageToken()), nil) //nolint:gosec // it makes a random nonce itself
			setToken(answer, "next_page_token", base64.RawURLEncoding.EncodeToString(sealed))
		}
		return resp, err
	}
}

func setToken(m proto.Message, field protoreflect.Name, token string) {
	reflected := m.ProtoReflect()
	reflected.Set(reflected.Descriptor().Fields().ByName(field), protoreflect.ValueOfString(token))
}

// sealer returns the cipher for one query.
func (p *pages) sealer(ctx context.Context, query []byte) (cipher.AEAD, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.key == nil {
		key, err := p.load(ctx)
		if err != nil {
			return nil, err
		}
		p.key = key
	}
	mac := hmac.New(sha256.New, p.key)
	mac.Write(query)
	block, err := aes.NewCipher(mac.Sum(nil))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func open(sealer cipher.AEAD, token string) string {
	sealed, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return refusedToken + invalidToken
	}
	place, err := sealer.Open(nil, nil, sealed, nil)
	if err != nil {
		return refusedToken + "is invalid for this query: repeat the fields of the first page, or start again without it"
	}
	return openedToken + string(place)
}

// page reads the size and the position of the requested page.
func page(r pagedRequest, usual int, v *memory.Violations) (size int, after string) {
	size = int(r.GetPageSize())
	switch {
	case size == 0:
		size = usual
	case size < 0:
		v.Add("page_size", "is negative")
	case size > maxPageSize:
		size = maxPageSize // AIP-158: coerced, not rejected
	}
	token := r.GetPageToken()
	after, opened := strings.CutPrefix(token, openedToken)
	switch problem, refused := strings.CutPrefix(token, refusedToken); {
	case refused:
		v.Add("page_token", "%s", problem)
	case token != "" && !opened: // the interceptor did not open it
		v.Add("page_token", "%s", invalidToken)
	}
	return size, after
}

// queryHash hashes all fields of a request except page size and token.
func queryHash(r pagedRequest) []byte {
	query := proto.Clone(r)
	m := query.ProtoReflect()
	fields := m.Descriptor().Fields()
	m.Clear(fields.ByName("page_size"))
	m.Clear(fields.ByName("page_token"))
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(query)
	if err != nil {
		data = fmt.Append(nil, err) // a request that was decoded can be encoded
	}
	sum := sha256.Sum256(append([]byte(m.Descriptor().FullName()+"\x00"), data...))
	return sum[:]
}

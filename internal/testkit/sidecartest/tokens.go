package sidecartest

import (
	"context"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/memsidecar/memsidecar/internal/access"
)

// ServeGuarded starts a sidecar that requires tokens, and returns tokens by name. "a" and "b" may write in the namespaces of their
// names, "reader" may read in a, "below" may write in all namespaces below a, "head" is an administrator of a, and "admin" of all.
func ServeGuarded(t *testing.T, settings ...string) (*Sidecar, map[string]string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens")
	tokens := map[string]string{}
	for id, grant := range map[string]access.Grant{
		"a":      {Namespace: "a", Level: access.Write},
		"b":      {Namespace: "b", Level: access.Write},
		"reader": {Namespace: "a", Level: access.Read},
		"below":  {Namespace: "a/*", Level: access.Write},
		"admin":  {Namespace: "*", Level: access.Admin},
		"head":   {Namespace: "a", Level: access.Admin},
	} {
		tokens[id] = AddToken(t, file, id, grant)
	}
	return Serve(t, append(settings, "auth.tokens_file="+file)...), tokens
}

// AddToken adds a new token to a file.
func AddToken(t *testing.T, file, id string, grant access.Grant) string {
	t.Helper()
	grant.ID = id
	token := access.NewToken()
	NoError(t, access.Add(file, access.NewEntry(grant, token)))
	return token
}

// Authorization is the authorization header of every call.
type Authorization string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (a Authorization) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": string(a)}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (Authorization) RequireTransportSecurity() bool { return false }

// As returns the same sidecar, called with a token.
func (r *Sidecar) As(t *testing.T, token string, options ...grpc.DialOption) *Sidecar {
	t.Helper()
	return r.With(t, Authorization("Bearer "+token), options...)
}

// With returns the same sidecar, called with an authorization header.
func (r *Sidecar) With(t *testing.T, a Authorization, options ...grpc.DialOption) *Sidecar {
	t.Helper()
	other := *r
	other.Conn = Must(grpc.NewClient(r.Addr, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithPerRPCCredentials(a))...))(t)
	t.Cleanup(func() { _ = other.Conn.Close() })
	other.Stubs = NewStubs(other.Conn)
	return &other
}

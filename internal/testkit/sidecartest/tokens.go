package sidecartest

import (
	"context"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/memsidecar/memsidecar/internal/access"
)

// ServeGuarded runs a sidecar that wants tokens, and returns some: "a" and "b" may write in the namespaces of their names,
// "reader" may read in a, "below" may write in all below a, "admin" may do everything, and "head" everything in a.
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

func AddToken(t *testing.T, file, id string, grant access.Grant) string {
	t.Helper()
	grant.ID = id
	token := access.NewToken()
	NoError(t, access.Add(file, access.NewEntry(grant, token)))
	return token
}

// Authorization is metadata that goes with every call.
type Authorization string

func (a Authorization) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": string(a)}, nil
}

func (Authorization) RequireTransportSecurity() bool { return false }

// As is the same sidecar, called with a token.
func (r *Sidecar) As(t *testing.T, token string, options ...grpc.DialOption) *Sidecar {
	t.Helper()
	return r.With(t, Authorization("Bearer "+token), options...)
}

func (r *Sidecar) With(t *testing.T, a Authorization, options ...grpc.DialOption) *Sidecar {
	t.Helper()
	other := *r
	other.Conn = Must(grpc.NewClient(r.Addr, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithPerRPCCredentials(a))...))(t)
	t.Cleanup(func() { _ = other.Conn.Close() })
	other.Stubs = NewStubs(other.Conn)
	return &other
}

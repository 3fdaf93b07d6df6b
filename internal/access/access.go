// Package access decides who may call: bearer tokens, which namespaces each of them reaches, and rate limits.
//
// A token is 256 random bits, so storing its SHA-256 is safe: it cannot be guessed. A slow hash such as bcrypt is for passwords that people
// choose; here it would only make every call slow.
package access

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// The errors of this package. Compare with errors.Is.
var (
	// ErrUnauthenticated means that the token is missing, unknown or expired.
	ErrUnauthenticated = errors.New("not authenticated")
	// ErrDenied means that a valid token does not allow the call.
	ErrDenied = errors.New("permission denied")
)

// Level is what a token allows. Each level includes those before it.
type Level int

// The levels.
const (
	Read  Level = iota // reading calls
	Write              // calls that create, update and delete
	Admin              // calls about the sidecar as a whole
)

var levelNames = []string{"read", "write", "admin"}

// String returns the level's name.
func (l Level) String() string { return levelNames[l] }

// ParseLevel returns the level of a name.
func ParseLevel(name string) (Level, error) {
	for i, n := range levelNames {
		if n == name {
			return Level(i), nil
		}
	}
	return 0, fmt.Errorf("access %q is not known: use read, write or admin", name)
}

// everywhere is the pattern for all namespaces. below is the end of a pattern for all namespaces below one.
const (
	allNamespaces = "*"
	below         = "/*"
)

// Grant is what a token allows.
type Grant struct {
	ID string
	// Namespace is one namespace, a/b/* for all below a/b, or * for all.
	Namespace string
	Level     Level
	// Expires is when the token expires; zero means never.
	Expires time.Time
}

// Unrestricted is the grant of all callers when no tokens are configured.
func Unrestricted() Grant { return Grant{Namespace: allNamespaces, Level: Admin} }

// OnlyNamespace returns the grant's namespace if it reaches exactly one.
func (g Grant) OnlyNamespace() (namespace string, ok bool) {
	return g.Namespace, !strings.HasSuffix(g.Namespace, allNamespaces)
}

// CheckAllNamespaces returns an error if the grant does not reach all namespaces, for calls about the sidecar as a whole.
func (g Grant) CheckAllNamespaces() error {
	if g.Namespace != allNamespaces {
		return fmt.Errorf("%w: the token %q is for the namespace %s, but this call covers all namespaces", ErrDenied, g.ID, g.Namespace)
	}
	return nil
}

// Includes reports whether the grant includes the namespace.
func (g Grant) Includes(namespace string) bool {
	if prefix, ok := strings.CutSuffix(g.Namespace, allNamespaces); ok {
		return strings.HasPrefix(namespace, prefix)
	}
	return g.Namespace == namespace
}

// ResolveNamespace returns the namespace of a request. When the request names none, it is the grant's if that has exactly one, otherwise the
// default. It returns an error if the grant does not reach the namespace.
func (g Grant) ResolveNamespace(namespace string) (string, error) {
	if bound, ok := g.OnlyNamespace(); ok && namespace == "" {
		namespace = bound
	}
	if namespace == "" {
		namespace = memory.DefaultNamespace
	}
	if !g.Includes(namespace) {
		return "", fmt.Errorf("%w: the token %q is for the namespace %s and does not reach the requested one", ErrDenied, g.ID, g.Namespace)
	}
	return namespace, nil
}

// CheckLevel returns an error if a call needs a higher level than the grant has.
func (g Grant) CheckLevel(needed Level) error {
	if g.Level < needed {
		return fmt.Errorf("%w: the token %q has %s access, and this call needs %s", ErrDenied, g.ID, g.Level, needed)
	}
	return nil
}

// namespaceProblem returns what is wrong with the namespace pattern of a grant, or "".
func namespaceProblem(pattern string) string {
	if pattern == allNamespaces {
		return ""
	}
	name := strings.TrimSuffix(pattern, below)
	if name == "" {
		return `is missing: name one, all below one as "a/b/*", or all as "*"`
	}
	if wrong := (memory.Scope{Namespace: name}).Validate("namespace", false); len(wrong) > 0 {
		return wrong[0].Problem
	}
	return ""
}

type grantKey struct{}

// WithGrant returns a context that carries a caller's grant.
func WithGrant(ctx context.Context, g Grant) context.Context {
	return context.WithValue(ctx, grantKey{}, g)
}

// GrantOf returns the caller's grant; ok is false if the context carries none.
func GrantOf(ctx context.Context) (g Grant, ok bool) {
	g, ok = ctx.Value(grantKey{}).(Grant)
	return g, ok
}

// Package access is who may call: bearer tokens, what each of them reaches, and how much anybody may ask for.
//
// A token is 256 random bits, so its SHA-256 is all that is stored: nobody can guess what it is of. A slow hash such as bcrypt
// protects passwords that people choose, of which there are few enough to try; here it would only make every call slow.
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
	// ErrUnauthenticated: there is no token, or none that is known and valid.
	ErrUnauthenticated = errors.New("not authenticated")
	// ErrDenied: the token is known and does not reach what was asked for.
	ErrDenied = errors.New("permission denied")
)

// Level is what a token may do. Each level includes those before it.
type Level int

// The levels.
const (
	Read  Level = iota // calls that show
	Write              // calls that store, change and delete
	Admin              // what concerns the sidecar as a whole
)

var levelNames = []string{"read", "write", "admin"}

// String is the level's name.
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

// everywhere is the pattern of all namespaces; below ends that of all below one.
const (
	everywhere = "*"
	below      = "/*"
)

// Grant is what a token allows.
type Grant struct {
	ID string
	// Namespace is one namespace, a/b/* for all below a/b, or * for all.
	Namespace string
	Level     Level
	// Expires is when the token ends; zero is never.
	Expires time.Time
}

// Anybody is the grant of callers while no tokens are asked for.
func Anybody() Grant { return Grant{Namespace: everywhere, Level: Admin} }

// Bound returns the only namespace that the grant reaches, if there is only one.
func (g Grant) Bound() (namespace string, ok bool) {
	return g.Namespace, !strings.HasSuffix(g.Namespace, everywhere)
}

// Everywhere is an error if the grant does not reach all namespaces: for what shows the sidecar as a whole.
func (g Grant) Everywhere() error {
	if g.Namespace != everywhere {
		return fmt.Errorf("%w: the token %q is for the namespace %s, and this concerns all of them", ErrDenied, g.ID, g.Namespace)
	}
	return nil
}

// Reaches reports whether the grant includes the namespace.
func (g Grant) Reaches(namespace string) bool {
	if prefix, ok := strings.CutSuffix(g.Namespace, everywhere); ok {
		return strings.HasPrefix(namespace, prefix)
	}
	return g.Namespace == namespace
}

// Confine returns the namespace that a request means by the one it names: without one that is the grant's, if it has only
// one, else the default. It is an error if the grant does not reach it.
func (g Grant) Confine(namespace string) (string, error) {
	if bound, ok := g.Bound(); ok && namespace == "" {
		namespace = bound
	}
	if namespace == "" {
		namespace = memory.DefaultNamespace
	}
	if !g.Reaches(namespace) {
		return "", fmt.Errorf("%w: the token %q is for the namespace %s and does not reach this one", ErrDenied, g.ID, g.Namespace)
	}
	return namespace, nil
}

// Permit is an error if a call needs more than the grant has.
func (g Grant) Permit(needed Level) error {
	if g.Level < needed {
		return fmt.Errorf("%w: the token %q has %s access, and this call needs %s", ErrDenied, g.ID, g.Level, needed)
	}
	return nil
}

// namespaceProblem says what is wrong with the pattern of a grant, or "".
func namespaceProblem(pattern string) string {
	if pattern == everywhere {
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

// GrantOf returns the caller's grant: none at all if the context carries none.
func GrantOf(ctx context.Context) (g Grant, ok bool) {
	g, ok = ctx.Value(grantKey{}).(Grant)
	return g, ok
}

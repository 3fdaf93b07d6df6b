package server

import (
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// recheckEvery is how often the token of a running stream is checked again. New calls also notice a changed token file within a second
// (access.Tokens).
const recheckEvery = time.Second

// guardedStream ends a stream at the next message after its token was revoked, expired, or lost access to the stream's namespace.
type guardedStream struct {
	grpc.ServerStream
	guard   *guard
	method  string
	counted bool

	mu         sync.Mutex // messages may be sent and received concurrently
	checked    time.Time
	namespaces []string // namespaces that the stream has named so far
}

// RecvMsg implements grpc.ServerStream.
func (s *guardedStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if err := s.recheck(); err != nil {
		return err
	}
	user, scoped, err := s.guard.confine(s.Context(), m)
	if err == nil && scoped {
		s.mu.Lock()
		if !slices.Contains(s.namespaces, user.Namespace) {
			s.namespaces = append(s.namespaces, user.Namespace)
		}
		s.mu.Unlock()
	}
	if err == nil && scoped && !s.counted {
		s.counted = true
		err = s.guard.allow(user)
	}
	return err
}

// SendMsg implements grpc.ServerStream.
func (s *guardedStream) SendMsg(m any) error {
	if err := s.recheck(); err != nil {
		return err
	}
	return s.ServerStream.SendMsg(m)
}

// recheck returns an error if the token no longer allows the stream.
func (s *guardedStream) recheck() error {
	if s.guard.tokens == nil || isPublic(s.method) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.checked) < recheckEvery {
		return nil
	}
	header, _ := metadata.FromIncomingContext(s.Context())
	grant, err := s.guard.authenticate(header, s.method)
	for i := 0; err == nil && i < len(s.namespaces); i++ {
		_, err = grant.ResolveNamespace(s.namespaces[i])
	}
	if err != nil {
		return err // returned again for the next message if the handler continues
	}
	s.checked = time.Now()
	return nil
}

// isPublic reports whether a call needs no token.
func isPublic(method string) bool {
	return slices.ContainsFunc(publicServices, func(service string) bool { return strings.HasPrefix(method, "/"+service+"/") })
}

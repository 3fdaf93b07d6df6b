package server

import (
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// recheckEvery is how often the token of a stream that is under way is looked at again. A call that begins learns of a changed
// file within a second, too (access.Tokens).
const recheckEvery = time.Second

// guardedStream ends a stream with the message after its token was revoked, expired or changed so that it does not reach
// what the stream is about.
type guardedStream struct {
	grpc.ServerStream
	guard   *guard
	method  string
	counted bool

	mu         sync.Mutex // messages may go in both directions at once
	checked    time.Time
	namespaces []string // that the stream is about, as far as it has said
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

// recheck is an error if the token does not allow the stream any more.
func (s *guardedStream) recheck() error {
	if s.guard.tokens == nil || isEverybodys(s.method) {
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
		_, err = grant.Confine(s.namespaces[i])
	}
	if err != nil {
		return err // and again with the next message, should the handler go on
	}
	s.checked = time.Now()
	return nil
}

// isEverybodys reports whether a call needs no token.
func isEverybodys(method string) bool {
	return slices.ContainsFunc(everybodys, func(service string) bool { return strings.HasPrefix(method, "/"+service+"/") })
}

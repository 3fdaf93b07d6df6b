package providertest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Script is a server with a list of answers: it uses the first for the first request and so on, and repeats the last. Use it for what
// Server's faults do not cover, such as an endpoint that rejects a field.
type Script struct {
	URL string

	mu       sync.Mutex
	answers  []http.HandlerFunc
	requests []Request
}

// Play returns a server that runs until the test ends.
func Play(t testing.TB, answers ...http.HandlerFunc) *Script {
	s := &Script{answers: answers}
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	s.URL = server.URL
	return s
}

// ServeHTTP records the request and answers it. The answer may read the body again.
func (s *Script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // an answer would be an empty 200
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	s.mu.Lock()
	answer := s.answers[min(len(s.requests), len(s.answers)-1)]
	s.requests = append(s.requests, Request{Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header.Clone(), Body: string(body)})
	s.mu.Unlock()
	answer(w, r)
}

// Requests returns the requests so far.
func (s *Script) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// JSON answers with a status and a body.
func JSON(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // the client may be gone
	}
}

// Disconnect ends the connection without an answer.
func Disconnect(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// Wait does not answer before the client leaves.
func Wait(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

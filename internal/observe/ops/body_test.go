package ops

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestMissingBodyClosesTheConnection: A client cannot hold a connection by announcing a body and not sending it, whether the handler reads it or
// not.
func TestMissingBodyClosesTheConnection(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"refused": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) },
		"read": func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err != nil {
				w.WriteHeader(http.StatusTeapot)
			}
		},
	} {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := newServer(handler, time.Millisecond, slog.New(slog.DiscardHandler))
		server.http.ReadHeaderTimeout = 0 // the body's timeout is tested
		go func() { _ = server.Serve(listener) }()
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(conn)
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusTeapot {
			t.Errorf("%s: %s", name, answer.Status)
		}
		if _, err := in.ReadByte(); err == nil {
			t.Errorf("%s: the connection remains open", name)
		}
		_ = conn.Close()
		server.Stop(context.WithoutCancel(t.Context()))
	}
}

// deadlineRecorder records the deadlines that are set.
type deadlineRecorder struct {
	http.ResponseWriter
	deadlines []time.Time
}

func (n *deadlineRecorder) SetReadDeadline(t time.Time) error {
	n.deadlines = append(n.deadlines, t)
	return nil
}

// TestDeadlineEndsWithTheBody: After the body, the call may take any time. A request without a body has no deadline.
func TestDeadlineEndsWithTheBody(t *testing.T) {
	for text, want := range map[string]int{"": 0, "some": 2} {
		w := &deadlineRecorder{ResponseWriter: httptest.NewRecorder()}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(text))
		limitBodyTime(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if len(w.deadlines) != min(want, 1) {
				t.Errorf("%q: before it is read: %v", text, w.deadlines)
			}
			if data, err := io.ReadAll(r.Body); err != nil || string(data) != text {
				t.Errorf("read %q, %v", data, err)
			}
		}), time.Hour).ServeHTTP(w, r)
		if len(w.deadlines) != want || want > 0 && (w.deadlines[0].IsZero() || !w.deadlines[1].IsZero()) {
			t.Errorf("%q: the deadlines were %v", text, w.deadlines)
		}
	}
}

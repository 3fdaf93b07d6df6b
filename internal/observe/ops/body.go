package ops

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// limitBodyTime limits how long the server waits for a body. A body that the handler does not read, because it rejects the request, is read by
// the server before it answers, without a time limit. http.Server.ReadTimeout would also run during the call, and end it.
func limitBodyTime(next http.Handler, bodyTimeout time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			control := http.NewResponseController(w)
			// An error means that the connection has no deadlines.
			_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
			r.Body = &body{r.Body, control}
		}
		next.ServeHTTP(w, r)
	})
}

// body removes the deadline when it has been read, because the deadline would then only end the call.
type body struct {
	io.ReadCloser
	control *http.ResponseController
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

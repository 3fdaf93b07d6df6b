package ops

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// arriving ends the wait for a body that does not come, whoever sends it: what the handler does not read, because it refuses the
// request, the server reads before it answers, and by itself it waits for ever. A timeout of the server's own for reading would
// go on while the call is answered, and end it.
func arriving(next http.Handler, patience time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			control := http.NewResponseController(w)
			// What has no deadlines has no slow clients.
			_ = control.SetReadDeadline(time.Now().Add(patience))
			r.Body = &body{r.Body, control}
		}
		next.ServeHTTP(w, r)
	})
}

// body is one that may take its time no longer once it is there: then the deadline would only end the call.
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

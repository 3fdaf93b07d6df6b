package provider

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/memsidecar/memsidecar/internal/secret"
)

const (
	// maxErrorBytes is how much of an error's body is read, and maxAnswerBytes how much of an answer's: 100 vectors of 4,096
	// numbers take some 10 MB as JSON.
	maxErrorBytes  = 64 << 10
	maxAnswerBytes = 64 << 20
	// idleConnections is how many connections to one provider are kept for the next calls; the queue's workers and the
	// queries use them at the same time.
	idleConnections = 16
)

// newHTTPClient returns the client that the SDKs are given. header is added to each request, unless the key is empty.
//
// An answer that is no success becomes a *StatusError here, below the SDKs, so that one place reads it, and because
// generative-ai-go answers HTTP 503 by trying again by itself, for as long as the context lasts: retrying belongs to those
// who know how long there is. A redirect is such an answer too: the key goes to the endpoint that was configured and to
// nobody else.
func newHTTPClient(header string, key secret.Value) *http.Client {
	base := http.DefaultTransport
	if t, ok := base.(*http.Transport); ok {
		t = t.Clone()
		t.MaxIdleConnsPerHost = idleConnections
		t.ResponseHeaderTimeout = 10 * time.Minute // the longest timeout that can be configured
		base = t
	}
	return &http.Client{Transport: transport{base: base, header: header, key: key}}
}

type transport struct {
	base   http.RoundTripper
	header string
	key    secret.Value
}

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.header != "" && t.key != "" {
		r = r.Clone(r.Context())
		r.Header.Set(t.header, t.key.Reveal())
	}
	resp, err := t.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBytes))
		if closing := resp.Body.Close(); closing != nil && err == nil {
			err = closing
		}
		if err != nil && r.Context().Err() != nil {
			return nil, r.Context().Err()
		}
		return nil, newStatusError(resp.StatusCode, resp.Header, body) // the status says enough when the body broke off
	}
	resp.Body = &bounded{ReadCloser: resp.Body, left: maxAnswerBytes}
	return resp, nil
}

// CloseIdleConnections makes that of http.Client work.
func (t transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// bounded fails when an answer is larger than any that makes sense, instead of taking all memory.
type bounded struct {
	io.ReadCloser
	left int64
}

var errTooLarge = fmt.Errorf("the answer is larger than %d MiB", maxAnswerBytes>>20)

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		var one [1]byte
		if n, err := b.ReadCloser.Read(one[:]); n == 0 && err != nil {
			return 0, err
		}
		return 0, errTooLarge
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}

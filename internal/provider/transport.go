package provider

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/memsidecar/memsidecar/internal/secret"
)

const (
	// maxErrorBytes and maxAnswerBytes limit how much of an error's body and of an answer is read: 100 vectors of 4,096 numbers are about
	// 10 MB of JSON.
	maxErrorBytes  = 64 << 10
	maxAnswerBytes = 64 << 20
	// idleConnections is how many idle connections to one provider are kept. Workers and queries use them concurrently.
	idleConnections = 16
)

// newHTTPClient returns the HTTP client for the SDKs. It adds the key in header to each request, unless the key is empty.
//
// Error answers become a *StatusError here, below the SDKs. So one function parses them, and generative-ai-go cannot retry HTTP 503 on its
// own until the context ends. Redirects are errors, too, so that the key is sent only to the configured endpoint.
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
		return nil, newStatusError(resp.StatusCode, resp.Header, body) // the status suffices when the body is incomplete
	}
	resp.Body = &bounded{ReadCloser: resp.Body, left: maxAnswerBytes}
	return resp, nil
}

// CloseIdleConnections implements the interface that http.Client uses.
func (t transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// bounded fails when an answer exceeds the limit, so that it cannot use all memory.
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

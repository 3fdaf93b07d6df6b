package gateway

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// RejectForeignPages rejects requests of web pages, which can send requests to loopback from a browser on this machine. Requests from another origin
// are rejected, and there are no CORS headers. A page whose host name points to 127.0.0.1 has the same origin but names its own host. So
// where loopback is the only protection, requests must name a loopback host.
func RejectForeignPages(next http.Handler, loopbackOnly bool) http.Handler {
	origins := http.NewCrossOriginProtection()
	origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		WriteError(w, http.StatusForbidden, "requests from web pages of another origin are rejected: call from a program")
	}))
	return origins.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if loopbackOnly && !namesLoopback(r.Host) {
			WriteError(w, http.StatusForbidden, "the request names another host: address it to 127.0.0.1 or localhost, or set auth.tokens_file")
			return
		}
		next.ServeHTTP(w, r)
	}))
}

func namesLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if len(host) > 1 && host[0] == '[' && host[len(host)-1] == ']' {
		host = host[1 : len(host)-1]
	}
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

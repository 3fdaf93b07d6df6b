package gateway

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Protect keeps web pages out. A page that somebody on this machine looks at can send requests to loopback. Those that say
// they come from another origin are refused, and nothing answers the question whether they may be made (CORS is off). A page
// whose host name was pointed to 127.0.0.1 is of the same origin, but names that host; so where loopback is all that keeps
// strangers out, requests must name loopback.
func Protect(next http.Handler, loopbackOnly bool) http.Handler {
	origins := http.NewCrossOriginProtection()
	origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		Refuse(w, http.StatusForbidden, "requests of web pages from elsewhere are refused: call from a program")
	}))
	return origins.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if loopbackOnly && !namesLoopback(r.Host) {
			Refuse(w, http.StatusForbidden, "the request is for another host than this: address it to 127.0.0.1 or localhost, or set auth.tokens_file")
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

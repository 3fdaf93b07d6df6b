package config

import (
	"fmt"
	"net/url"

	"github.com/memsidecar/memsidecar/internal/listen"
)

func (h HTTP) validate(check func(key, problem, fix string)) {
	if h.Listen == "" {
		if h.Pprof {
			check("http.pprof", "is on without a port", "set http.listen, such as 127.0.0.1:7421")
		}
		return
	}
	if problem := listen.NetworkAddressProblem(h.Listen); problem != "" {
		check("http.listen", problem, "use host:port, such as 127.0.0.1:7421")
		return
	}
	switch remote := !listen.IsLocal(h.Listen); {
	case remote && h.Pprof:
		check(
			"http.pprof",
			fmt.Sprintf("is on, and http.listen, %s, is outside of loopback", h.Listen),
			"listen on 127.0.0.1, or switch it off",
		)
	case remote && !h.AllowRemote:
		check("http.listen", fmt.Sprintf("is %s, outside of loopback: whoever reaches it sees the metrics", h.Listen),
			"listen on 127.0.0.1, or set http.allow_remote")
	}
}

func (o OTel) validate(check func(key, problem, fix string)) {
	if o.Endpoint == "" {
		return
	}
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		check("otel.endpoint", fmt.Sprintf("is %q", o.Endpoint), "use a URL, such as http://127.0.0.1:4317")
	}
}

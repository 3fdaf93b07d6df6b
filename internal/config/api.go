package config

import (
	"github.com/memsidecar/memsidecar/internal/listen"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// API is the API over HTTP, besides gRPC: JSON and, if wanted, MCP.
type API struct {
	Listen  string `koanf:"listen" doc:"host:port on which the same calls are answered as JSON over HTTP, or unix:/path for a socket; empty serves none; as for listen it needs tls and auth outside of loopback"`
	MCP     bool   `koanf:"mcp" doc:"whether models' programs may use the memory over MCP at /mcp of that port"`
	MCPUser string `koanf:"mcp_user" doc:"whose memory it is for MCP requests without the header Memsidecar-User; empty refuses them"`
}

// validate checks where the API is served; exposed says what an address open to others lacks.
func (a API) validate(check func(key, problem, fix string), exposed func(address string) (problem, fix string)) {
	switch {
	case a.Listen == "" && a.MCP:
		check("api.mcp", "is on without a port", "set api.listen, such as 127.0.0.1:7422")
	case a.Listen != "":
		check("api.listen", listen.Problem(a.Listen), "use host:port, such as 127.0.0.1:7422, or unix: with an absolute path")
		if problem, fix := exposed(a.Listen); problem != "" {
			check("api.listen", problem, fix)
		}
	}
	if a.MCPUser == "" {
		return
	}
	if !a.MCP {
		check("api.mcp_user", "is set, and api.mcp is off", "set api.mcp, or leave this out")
	}
	check("api.mcp_user", memory.IDProblem(a.MCPUser), "name a user by the user_id that the bot calls with")
}

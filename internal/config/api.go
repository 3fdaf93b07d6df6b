package config

import (
	"github.com/memsidecar/memsidecar/internal/listen"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// API configures the API over HTTP: JSON and, optionally, MCP.
type API struct {
	Listen  string `koanf:"listen"`
	MCP     bool   `koanf:"mcp"`
	MCPUser string `koanf:"mcp_user"`
}

// validate checks the API's address; exposed returns what an address outside of loopback lacks.
func (a API) validate(check func(key, problem, fix string), exposed func(address string) (problem, fix string)) {
	switch {
	case a.Listen == "" && a.MCP:
		check("api.mcp", "is on without a port", "set api.listen, such as 127.0.0.1:7422")
	case a.Listen != "":
		check("api.listen", listen.AddressProblem(a.Listen), "use host:port, such as 127.0.0.1:7422, or unix: with an absolute path")
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

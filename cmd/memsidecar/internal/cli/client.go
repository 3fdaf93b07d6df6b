// Package cli holds the commands that use a running sidecar: one struct per command, with its flags and a Run method. It also has what
// commands share: flags for the sidecar and the scope, error messages with remedies, tables, JSON, progress.
package cli

import (
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// Commands are the commands that talk to a running sidecar.
type Commands struct {
	Retrieve       retrieveCommand        `cmd:"" group:"use" help:"Find the memories that help to answer a question."`
	Remember       rememberCommand        `cmd:"" group:"use" help:"Store a statement, or let the sidecar decide whether to."`
	Forget         forgetCommand          `cmd:"" group:"use" help:"Delete everything that is stored about a user."`
	Memories       memoriesCommands       `cmd:"" group:"use" help:"List, change, undo, delete, export and import memories."`
	Import         importCommands         `cmd:"" group:"use" help:"Import from mem0, nanobot, LanceDB and others."`
	Considerations considerationsCommands `cmd:"" group:"use" help:"Show the outcome of the dialogues that were sent."`
	Sessions       sessionsCommands       `cmd:"" group:"use" help:"Read, append to, export and import conversations."`
	NumberedLists  numberedListsCommands  `cmd:"" group:"use" help:"Store numbered lists, so that a bot knows what \"3\" means."`
	Digest         digestCommands         `cmd:"" group:"use" help:"Show and create summaries of a user's days."`
	Notebook       notebookCommand        `cmd:"" group:"use" help:"Show all memories of a user, grouped by kind."`
	Trace          traceCommands          `cmd:"" group:"use" help:"Show what the sidecar did in a call, and why."`
	Settings       settingsCommands       `cmd:"" group:"use" help:"Show and change a user's settings."`
	Users          usersCommands          `cmd:"" group:"use" help:"List the users of a namespace."`
	MCP            mcpCommand             `cmd:"" name:"mcp" group:"use" help:"Serve a user's memory over MCP, on standard input and output."`
	Replay         replayCommand          `cmd:"" group:"use" help:"Send a file of messages to a running sidecar."`
	Audit          auditCommand           `cmd:"" group:"tend" help:"Report duplicates, junk and quarantined memories."`
	Status         statusCommand          `cmd:"" group:"tend" help:"Show the state of the parts, the queue and the costs."`
	Bench          benchCommand           `cmd:"" group:"tend" help:"Measure a running sidecar with generated users."`
	Health         healthCommand          `cmd:"" group:"tend" help:"Exit with 0 when the sidecar serves. For health probes."`
}

// Program is the environment of the commands.
type Program struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Getenv returns an environment variable, or "".
	Getenv func(name string) string
	// Version is the program's version.
	Version string
	// Sidecar returns the configuration of the local sidecar.
	Sidecar func() (Sidecar, error)
}

// Sidecar is the part of a sidecar's configuration that clients need.
type Sidecar struct {
	Listen   string // where it listens
	CertFile string // its certificate; "" without encryption
}

// Options returns the parser options for the commands.
func (p *Program) Options() []kong.Option {
	return []kong.Option{
		kong.Bind(p),
		kong.Vars{
			"standings": strings.Join(names(standingNames), ","), "standinglist": strings.Join(names(standingNames), ", "),
			"kinds": strings.Join(names(kindNames), ","), "kindlist": strings.Join(names(kindNames), ", "),
			"traces": strings.Join(names(traceNames), ","), "tracelist": strings.Join(names(traceNames), ", "),
			"page":         "50",
			"memorystates": strings.Join(names(memoryStateNames), ","), "memorystatelist": strings.Join(names(memoryStateNames), ", "),
			"states": strings.Join(names(stateNames), ","), "statelist": strings.Join(names(stateNames), ", "),
		},
		// Not kong's own `env`, which would read the process's environment instead of Program's.
		kong.Resolvers(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
			if name := flag.Tag.Get("variable"); name != "" {
				if value := p.Getenv(name); value != "" {
					return value, nil
				}
			}
			return nil, nil //nolint:nilnil // kong's way to say that there is none
		})),
	}
}

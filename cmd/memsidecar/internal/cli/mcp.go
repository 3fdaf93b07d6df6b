package cli

import (
	"context"

	"github.com/memsidecar/memsidecar/internal/mcp"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type mcpCommand struct {
	place
	agentFlag
	calls
}

// Help implements kong.HelpProvider.
func (mcpCommand) Help() string {
	return `A program that runs a model starts this command and uses the Model Context Protocol over its standard input and output.
The flags decide whose memory it is; the model cannot. New memories belong to no channel unless --channel-kind names one.

Examples:

    memsidecar mcp -u alice
    memsidecar mcp -u alice --addr bot.example:7420 --tls --token-file token`
}

// Run serves until standard input ends.
func (c mcpCommand) Run(ctx context.Context, p *Program) error {
	sees, err := c.readScope()
	if err != nil {
		return err
	}
	says, err := c.writeScope()
	if err != nil {
		return err
	}
	sees.AgentId, says.AgentId = c.Agent, c.Agent
	conn, err := c.dial(p)
	if err != nil {
		return err
	}
	defer conn.close()
	server := mcp.NewServer(mcp.Clients{
		Memory:        memsidecarv1.NewMemoryServiceClient(conn),
		NumberedLists: memsidecarv1.NewNumberedListServiceClient(conn),
		Digests:       memsidecarv1.NewDigestServiceClient(conn),
	}, mcp.Binding{ReadScope: sees, WriteScope: says}, mcp.Options{Version: p.Version})
	ended := make(chan error, 1)
	go func() { ended <- mcp.Stdio(ctx, server, p.Stdin, p.Stdout) }()
	select {
	case err := <-ended:
		if ctx.Err() == nil && err != nil {
			return failure("the protocol ended with: %v", err)
		}
	case <-ctx.Done(): // reading standard input cannot be ended
	}
	if ctx.Err() != nil {
		return interrupted("")
	}
	return nil
}

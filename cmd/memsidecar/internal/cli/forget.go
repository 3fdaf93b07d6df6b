package cli

import (
	"context"
	"fmt"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type forgetCommand struct {
	Yes bool `short:"y" help:"Do not ask for confirmation."`

	person
	calls
	output
}

// Help implements kong.HelpProvider.
func (forgetCommand) Help() string {
	return `Permanently deletes memories, dialogues, sessions, traces, numbered lists and settings in all channels, also from the disk.
On a terminal it asks for the user's id first.

Examples:

    memsidecar memories export -u alice alice.jsonl    # what would be lost
    memsidecar forget -u alice`
}

// Run deletes everything of the user and shows the receipt.
func (c forgetCommand) Run(ctx context.Context, p *Program) error {
	scope, conn, err := c.reach(p, c.userScope)
	if err != nil {
		return err
	}
	defer conn.close()
	if !c.Yes {
		if err := p.confirm(ctx, fmt.Sprintf("This deletes everything that %s has stored about %s, permanently.", conn.addr, c.User), c.User); err != nil {
			return err
		}
	}
	resp, err := conn.ForgetUser(ctx, &memsidecarv1.ForgetUserRequest{Scope: scope})
	if err != nil {
		return err
	}
	return c.show(p, resp, func(s *screen) {
		s.say("forgot %s\n", s.paint(line(c.User), bold))
		purged := cell{"yes", green}
		if !resp.GetPurgedFromDisk() {
			purged = cell{"not yet: a reader is using the file; the sidecar retries in the background, see memsidecar status", yellow}
		}
		s.fields("memories", resp.GetMemoryCount(), "considerations", resp.GetConsiderationCount(),
			"messages to other users", resp.GetMessageCount(), "sessions", resp.GetSessionCount(),
			"messages of sessions", resp.GetSessionMessageCount(), "traces", resp.GetTraceCount(),
			"registry items", resp.GetRegistryItemCount(), "numbered lists", resp.GetNumberedListCount(),
			"findings of digests", resp.GetDigestFindingCount(), "files", resp.GetFileCount(),
			"settings", yesNo(resp.GetSettingsDeleted()), "token count", yesNo(resp.GetTokenCountDeleted()),
			"purged from disk", purged)
	})
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

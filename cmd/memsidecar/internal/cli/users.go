package cli

import (
	"cmp"
	"context"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type usersCommands struct {
	List usersList `cmd:"" help:"List the users of a namespace, with how much is stored of each."`
}

type usersList struct {
	Prefix string `placeholder:"TEXT" help:"Only users whose id begins with this; not with --recent."`
	Recent bool   `help:"Most recently active first, instead of by id."`

	pages
	namespaceFlag
	calls
	output
}

// Help implements kong.HelpProvider.
func (usersList) Help() string {
	return `The last activity is when a message or a memory was last stored, to within ten minutes. With --json every line is one user.

Examples:

    memsidecar users list --recent
    memsidecar users list -n telegram --prefix tg:
    memsidecar users list --all --json | jq -r .user_id`
}

// Run lists users.
func (c usersList) Run(ctx context.Context, p *Program) error {
	conn, err := c.dial(p)
	if err != nil {
		return err
	}
	defer conn.close()
	request := &memsidecarv1.ListUsersRequest{Scope: &memsidecarv1.Scope{Namespace: c.Namespace}, UserIdPrefix: c.Prefix}
	if c.Recent {
		request.Order = memsidecarv1.UserOrder_USER_ORDER_LAST_ACTIVE
	}
	list := listing[*memsidecarv1.User]{
		table: &table{columns: []column{
			{name: "user", wraps: true},
			{name: "memories", right: true},
			{name: "sessions", right: true},
			{name: "messages", right: true},
			{name: "pending", right: true},
			{name: "last active"},
		}},
		page: func(size int32, token string) ([]*memsidecarv1.User, string, error) {
			request.PageSize, request.PageToken = size, token
			resp, err := conn.ListUsers(ctx, request)
			return resp.GetUsers(), resp.GetNextPageToken(), err
		},
		row: func(u *memsidecarv1.User) []any {
			return []any{
				u.GetUserId(), u.GetMemoryCount(), u.GetSessionCount(), u.GetMessageCount(), u.GetPendingConsiderationCount(),
				cmp.Or(date(u.GetLastActiveTime()), "never"),
			}
		},
	}
	return list.show(p, c.pages, c.output)
}

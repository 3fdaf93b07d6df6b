package cli

import (
	"context"
	"fmt"
	"strings"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type numberedListsCommands struct {
	Put    numberedListsPut    `cmd:"" help:"Store a list: the numbered results of a tool, or of a scheduled check."`
	Select numberedListsSelect `cmd:"" help:"Show the items that a user's words select from the current list."`
	Show   numberedListsShow   `cmd:"" help:"Show the current list."`
	Items  numberedListsItems  `cmd:"" help:"List the items in a registry, newest first."`
	Unseen numberedListsUnseen `cmd:"" help:"Print the keys that are not in a registry."`
	Delete numberedListsDelete `cmd:"" help:"Delete a registry and the current list."`
	Import numberedListsImport `cmd:"" help:"Import the list of another program."`
}

// numberedListsHelp is the help that all commands about numbered lists share.
const numberedListsHelp = `Without --channel-kind, uses no channel. The current list belongs to the --session, else to the --channel, else to the --user
of the call that stored it: pass the same flags again.
`

// numberedListScope selects where numbered lists are shown.
type numberedListScope struct {
	conversation
	Session string `group:"scope" placeholder:"ID" help:"The session."`
}

func (f numberedListScope) scope() (*memsidecarv1.Scope, error) {
	scope, err := f.writeScope()
	if err == nil {
		scope.SessionId = f.Session
	}
	return scope, err
}

// listFlag is the flag for a registry's name.
type listFlag struct {
	Name string `name:"list" placeholder:"NAME" help:"The registry's name. By default \"default\", or that of the current list."`
}

// registryFlags select a registry.
type registryFlags struct {
	listFlag
	Registry string `enum:",user,channel,namespace" default:"" placeholder:"KIND" help:"Owner of the registry (default: the first that a flag names)."`
}

func (f registryFlags) kind() memsidecarv1.RegistryKind {
	return memsidecarv1.RegistryKind(valueOf(memsidecarv1.RegistryKind_value, "REGISTRY_KIND_", f.Registry))
}

// languageFlag is the flag for the language of texts for models.
type languageFlag struct {
	Language string `placeholder:"TAG" help:"Language of the line for the model, such as zh. By default that of the titles."`
}

// itemTable returns a list's items as a table.
func itemTable() *table {
	return &table{columns: []column{{name: "#", right: true}, {name: "key"}, {name: "title", wraps: true}, {name: "seen"}, {name: "note"}}}
}

// numbered adds a row with an item.
func (t *table) numbered(n *memsidecarv1.NumberedItem) {
	t.row(n.GetNumber(), n.GetItem().GetKey(), n.GetItem().GetTitle(), date(n.GetItem().GetFirstSeenTime()), itemNote(n.GetItem(), n.GetIsNew()))
}

func itemNote(i *memsidecarv1.RegistryItem, isNew bool) string {
	var notes []string
	if isNew {
		notes = append(notes, "new")
	}
	if i.GetNotified() {
		notes = append(notes, "notified")
	}
	return strings.Join(notes, ", ")
}

type numberedListsSelect struct {
	Number []string `arg:"" help:"The user's words: 3, 第三个, the last one, 1 and 3, all of them, none of them, or a title."`

	listFlag
	languageFlag
	numberedListScope
	calls
	output
}

// Help implements kong.HelpProvider.
func (numberedListsSelect) Help() string {
	return numberedListsHelp + `
Examples:

    memsidecar numbered-lists select -u alice 3
    memsidecar numbered-lists select -u 小林 第三个
    memsidecar numbered-lists select -u alice --list papers the last one
    memsidecar numbered-lists select -u alice 1 and 3`
}

// Run shows the items.
func (c numberedListsSelect) Run(ctx context.Context, p *Program) error {
	scope, conn, err := c.reach(p, c.scope)
	if err != nil {
		return err
	}
	defer conn.close()
	resp, err := conn.SelectItems(ctx, &memsidecarv1.SelectItemsRequest{
		Scope: scope, List: c.Name, Language: c.Language,
		Selector: &memsidecarv1.SelectItemsRequest_Text{Text: strings.Join(c.Number, " ")},
	})
	if err != nil {
		return err
	}
	return c.show(p, resp, func(s *screen) {
		if len(resp.GetSelected()) != 1 {
			s.fields("selected", cell{fmt.Sprintf("%d of %d", len(resp.GetSelected()), resp.GetItemCount()), bold}, "list", resp.GetList(),
				"shown", date(resp.GetShowTime()), "for the model", resp.GetPromptLine())
			if len(resp.GetSelected()) > 0 {
				s.say("\n")
				t := itemTable()
				for _, n := range resp.GetSelected() {
					t.numbered(n)
				}
				s.print(t)
			}
			return
		}
		item := resp.GetItem()
		s.fields("key", cell{item.GetKey(), bold}, "title", item.GetTitle(), "attributes", item.GetAttributesJson(),
			"number", fmt.Sprintf("%d of %d", resp.GetNumber(), resp.GetItemCount()), "list", resp.GetList(), "shown", date(resp.GetShowTime()),
			"first seen", date(item.GetFirstSeenTime()), "notified", yesNo(item.GetNotified()), "for the model", resp.GetPromptLine())
	})
}

type numberedListsShow struct {
	listFlag
	languageFlag
	numberedListScope
	calls
	output
}

// Help implements kong.HelpProvider.
func (numberedListsShow) Help() string {
	return numberedListsHelp + `
Examples:

    memsidecar numbered-lists show -u alice
    memsidecar numbered-lists show -u alice --channel g1 --channel-kind group --list papers`
}

// Run shows the list.
func (c numberedListsShow) Run(ctx context.Context, p *Program) error {
	scope, conn, err := c.reach(p, c.scope)
	if err != nil {
		return err
	}
	defer conn.close()
	resp, err := conn.GetNumberedList(ctx, &memsidecarv1.GetNumberedListRequest{Scope: scope, List: c.Name, Language: c.Language})
	if err != nil {
		return err
	}
	return c.show(p, resp, func(s *screen) {
		l := resp.GetNumberedList()
		s.fields("list", cell{l.GetList(), bold}, "registry", nameOf(l.GetRegistryKind().String(), "REGISTRY_KIND_"),
			"shown", date(l.GetShowTime()), "expires", date(l.GetExpireTime()), "for the model", resp.GetPromptLine())
		s.say("\n")
		t := itemTable()
		for _, n := range l.GetItems() {
			t.numbered(n)
		}
		s.print(t)
	})
}

type numberedListsItems struct {
	pages
	registryFlags
	numberedListScope
	calls
	output
}

// Help implements kong.HelpProvider.
func (numberedListsItems) Help() string {
	return numberedListsHelp + `With --json every line is one item.

Examples:

    memsidecar numbered-lists items -u alice
    memsidecar numbered-lists items --registry namespace --list films --all --json`
}

// Run lists the items.
func (c numberedListsItems) Run(ctx context.Context, p *Program) error {
	scope, conn, err := c.reach(p, c.scope)
	if err != nil {
		return err
	}
	defer conn.close()
	t := &table{columns: itemTable().columns[1:]}
	checked := ""
	list := listing[*memsidecarv1.RegistryItem]{
		table: t,
		page: func(size int32, token string) ([]*memsidecarv1.RegistryItem, string, error) {
			resp, err := conn.ListItems(ctx, &memsidecarv1.ListItemsRequest{
				Scope: scope, RegistryKind: c.kind(), List: c.Name, PageSize: size, PageToken: token,
			})
			checked = date(resp.GetLastCheckTime())
			return resp.GetItems(), resp.GetNextPageToken(), err
		},
		row: func(i *memsidecarv1.RegistryItem) []any {
			return []any{i.GetKey(), i.GetTitle(), date(i.GetFirstSeenTime()), itemNote(i, false)}
		},
	}
	if err := list.show(p, c.pages, c.output); err != nil {
		return err
	}
	if checked != "" {
		p.note("last checked %s", checked)
	}
	return nil
}

type numberedListsUnseen struct {
	Key []string `arg:"" help:"Keys: URLs or ids."`

	registryFlags
	numberedListScope
	calls
	output
}

// Help implements kong.HelpProvider.
func (numberedListsUnseen) Help() string {
	return numberedListsHelp + `Prints one key per line.

Examples:

    memsidecar numbered-lists unseen --registry namespace /mv/823D /mv/GYoj
    cat urls | xargs memsidecar numbered-lists unseen -u alice`
}

// Run prints the keys.
func (c numberedListsUnseen) Run(ctx context.Context, p *Program) error {
	scope, conn, err := c.reach(p, c.scope)
	if err != nil {
		return err
	}
	defer conn.close()
	resp, err := conn.FilterUnseen(ctx, &memsidecarv1.FilterUnseenRequest{Scope: scope, RegistryKind: c.kind(), List: c.Name, Keys: c.Key})
	if err != nil {
		return err
	}
	return c.show(p, resp, func(s *screen) {
		for _, key := range resp.GetUnseenKeys() {
			s.say("%s\n", line(key))
		}
	})
}

type numberedListsDelete struct {
	Only string `enum:",registry,shown" default:"" placeholder:"PART" help:"Delete only the registry, or only the current list (shown)."`

	registryFlags
	numberedListScope
	calls
	output
}

// Help implements kong.HelpProvider.
func (numberedListsDelete) Help() string {
	return numberedListsHelp + `After its registry is deleted, every item counts as new. Current lists keep their items.

Examples:

    memsidecar numbered-lists delete -u alice --list films
    memsidecar numbered-lists delete -u alice --only shown`
}

// Run deletes the registry, the current list, or both.
func (c numberedListsDelete) Run(ctx context.Context, p *Program) error {
	scope, conn, err := c.reach(p, c.scope)
	if err != nil {
		return err
	}
	defer conn.close()
	resp, err := conn.DeleteNumberedList(ctx, &memsidecarv1.DeleteNumberedListRequest{
		Scope: scope, RegistryKind: c.kind(), List: c.Name,
		Part: memsidecarv1.NumberedListPart(valueOf(memsidecarv1.NumberedListPart_value, "NUMBERED_LIST_PART_", c.Only)),
	})
	if err != nil {
		return err
	}
	return c.show(p, resp, func(s *screen) {
		s.say("deleted %s", count(resp.GetItemCount(), "item", "items"))
		if resp.GetShownDeleted() {
			s.say(" and the current list")
		}
		s.say("\n")
	})
}

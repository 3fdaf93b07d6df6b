package manage

import (
	"context"

	"github.com/memsidecar/memsidecar/internal/lists"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// exportResults visits the user's registries, each followed by its items, and what is being shown to the user.
func (k *Keeper) exportResults(ctx context.Context, user memory.User, visit Visitor) error {
	for after, more := "", true; more; more = after != "" {
		registries, next, err := k.Results.Registries(ctx, user, after, pageSize)
		if err != nil {
			return err
		}
		for _, r := range registries {
			if err := visit.Registry(r); err != nil {
				return err
			}
			if err := k.exportItems(ctx, r.Registry, visit); err != nil {
				return err
			}
		}
		after = next
	}
	for after, more := "", true; more; more = after != "" {
		lists, next, err := k.Results.Lists(ctx, user, after, listsPage)
		if err != nil {
			return err
		}
		for _, l := range lists {
			if err := visit.NumberedList(l); err != nil {
				return err
			}
		}
		after = next
	}
	return nil
}

// listsPage is less than pageSize, because a list is as long as what one call puts.
const listsPage = 10

func (k *Keeper) exportItems(ctx context.Context, r lists.Registry, visit Visitor) error {
	for after, more := "", true; more; more = after != "" {
		page, err := k.Results.Items(ctx, lists.View{Registry: r, Part: true}, after, pageSize)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			if err := visit.RegistryItem(item); err != nil {
				return err
			}
		}
		after = page.Next
	}
	return nil
}

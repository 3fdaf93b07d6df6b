package decide

import (
	"context"
	"errors"
	"fmt"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// store stores entries together. If there is not enough room for all, it stores them one by one, as many as possible: repetitions of
// existing memories need no room, and a request to forget must not be delayed. It still returns an error, which fails the
// consideration; a retry stores the rest.
func (c *Considerer) store(ctx context.Context, user memory.User, entries []vectorstore.Entry) ([]vectorstore.Applied, error) {
	applied, err := c.Memories.Apply(ctx, user, entries)
	var over *memory.QuotaError
	if !errors.As(err, &over) {
		return applied, err
	}
	stored := 0
	if len(entries) > 1 {
		for i := range entries {
			_, err := c.Memories.Apply(ctx, user, entries[i:i+1])
			switch {
			case err == nil:
				stored++
			case !errors.As(err, &over):
				return nil, err
			}
		}
	}
	return nil, fmt.Errorf("%d of %d statements were stored: %w; the dialogue is kept, and RetryConsideration stores the rest once there is room",
		stored, len(entries), over)
}

package manage

import (
	"context"
	"sync"

	"github.com/memsidecar/memsidecar/internal/lang/compare"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// maxCandidates is how many memories that share words with a statement are compared with it. One that says the same shares
// nearly all of its words, so it is among the first.
const maxCandidates = 100

// sayingTheSame returns the id of an active memory of the same visibility that says what a text says, or "". It goes by the
// letters alone, see similar.Same: vectors find "likes tea" and "dislikes tea" alike.
func (k *Keeper) sayingTheSame(ctx context.Context, scope memory.Scope, text string) (string, error) {
	filter := vectorstore.Filter{Audience: memory.OnlyVisibility(scope.Channel)}
	hits, err := k.Store.SearchKeyword(ctx, scope.User(), text, filter, maxCandidates)
	if err != nil {
		return "", err
	}
	prepared := compare.Prepare(text)
	for _, h := range hits {
		if prepared.Same(compare.Prepare(h.Memory.Text)) {
			return h.Memory.ID, nil
		}
	}
	return "", nil
}

// turns let one caller at a time compare and store for a user. Otherwise two calls with nearly the same text would both
// store it.
type turns struct {
	mu    sync.Mutex
	users map[memory.User]*turn
}

type turn struct {
	held    chan struct{} // holds one value while a caller has its turn
	callers int
}

// take waits for the user's turn. The caller must call release.
func (t *turns) take(ctx context.Context, user memory.User) (release func(), err error) {
	t.mu.Lock()
	if t.users == nil {
		t.users = map[memory.User]*turn{}
	}
	u := t.users[user]
	if u == nil {
		u = &turn{held: make(chan struct{}, 1)}
		t.users[user] = u
	}
	u.callers++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if u.callers--; u.callers == 0 {
			delete(t.users, user)
		}
	}
	select {
	case u.held <- struct{}{}:
		return func() { <-u.held; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

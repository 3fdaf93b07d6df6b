package manage

import (
	"context"
	"sync"

	"github.com/memsidecar/memsidecar/internal/lang/compare"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// maxCandidates is the number of memories with shared words that are compared with a statement. A memory that says the same shares
// nearly all words, so it is among the first.
const maxCandidates = 100

// sayingTheSame returns the id of an active memory of the same visibility that says the same as a text, or "". It compares spelling
// only (see compare.Same), because vectors of "likes tea" and "dislikes tea" are alike.
func (k *Service) sayingTheSame(ctx context.Context, scope memory.Scope, text string) (string, error) {
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

// turns has a lock for each user. A caller holds it while it compares and stores a text; otherwise two concurrent calls with nearly the
// same text would both store it.
type turns struct {
	mu    sync.Mutex
	users map[memory.User]*turn
}

type turn struct {
	held    chan struct{} // holds a value while locked
	callers int
}

// take locks the user. The caller must call release.
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

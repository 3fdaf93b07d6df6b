package manage

import (
	"context"
	"fmt"
	"sync"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// calls are the running calls of each user. A call must not store anything after its user was forgotten, for example because an embedder
// was slow.
type calls struct {
	mu    sync.Mutex
	users map[memory.User]*userCalls
}

type userCalls struct {
	running    map[*Call]struct{}
	forgetting int           // how often the user is being forgotten now
	over       chan struct{} // closed when that is over
}

// Call is a running call.
type Call struct {
	calls  *calls
	user   memory.User
	cancel context.CancelCauseFunc
	idle   bool          // it waits for its caller; guarded by calls.mu
	done   chan struct{} // closed by Leave
}

// Idle says whether the call only waits for its caller. Forget does not wait for an idle call. When the call continues, it must check
// whether it was cancelled.
func (c *Call) Idle(idle bool) {
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	c.idle = idle
}

// Leave ends the call.
func (c *Call) Leave() {
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	u := c.calls.of(c.user)
	delete(u.running, c)
	c.calls.tidy(c.user, u)
	close(c.done)
}

// Begin registers a call that may store something of a user. It waits while the user is being forgotten. cancel is called with an error
// for the caller when the user is to be forgotten; the call must end then.
func (e *Eraser) Begin(ctx context.Context, user memory.User, cancel context.CancelCauseFunc) (*Call, error) {
	c := &Call{calls: &e.calls, user: user, cancel: cancel, done: make(chan struct{})}
	for {
		e.calls.mu.Lock()
		u := e.calls.of(user)
		if u.forgetting == 0 {
			u.running[c] = struct{}{}
			e.calls.mu.Unlock()
			break
		}
		over := u.over
		e.calls.mu.Unlock()
		select {
		case <-over:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return c, nil
}

// of returns the calls of a user. c must be locked.
func (c *calls) of(user memory.User) *userCalls {
	if c.users == nil {
		c.users = map[memory.User]*userCalls{}
	}
	u := c.users[user]
	if u == nil {
		u = &userCalls{running: map[*Call]struct{}{}}
		c.users[user] = u
	}
	return u
}

// tidy drops a user without running calls. c must be locked.
func (c *calls) tidy(user memory.User, u *userCalls) {
	if len(u.running) == 0 && u.forgetting == 0 {
		delete(c.users, user)
	}
}

// end cancels a user's calls, waits for them, and keeps others from beginning until release is called.
func (c *calls) end(ctx context.Context, user memory.User) (release func(), err error) {
	c.mu.Lock()
	u := c.of(user)
	if u.forgetting++; u.forgetting == 1 {
		u.over = make(chan struct{})
	}
	var waitFor []*Call
	for running := range u.running {
		running.cancel(fmt.Errorf("%w: user %q was forgotten while the call was under way, and nothing that it had begun is kept", memory.ErrPrecondition, user.ID))
		if !running.idle {
			waitFor = append(waitFor, running)
		}
	}
	c.mu.Unlock()
	release = func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if u.forgetting--; u.forgetting == 0 {
			close(u.over)
			c.tidy(user, u)
		}
	}
	for _, running := range waitFor {
		select {
		case <-running.done:
		case <-ctx.Done():
			release()
			return nil, ctx.Err()
		}
	}
	return release, nil
}

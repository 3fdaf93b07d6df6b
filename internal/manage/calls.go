package manage

import (
	"context"
	"fmt"
	"sync"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// calls are those under way, by the user whose they are: what such a call is about to store must not be stored after the user
// was forgotten, because an embedder was slow, for example.
type calls struct {
	mu    sync.Mutex
	users map[memory.User]*userCalls
}

type userCalls struct {
	running    map[*Call]struct{}
	forgetting int           // how often the user is being forgotten now
	over       chan struct{} // closed when that is over
}

// Call is a call under way.
type Call struct {
	calls  *calls
	user   memory.User
	cancel context.CancelCauseFunc
	idle   bool          // it waits for its caller; guarded by calls.mu
	done   chan struct{} // closed by Leave
}

// Idle says whether the call does nothing but wait for its caller. Nobody waits for one that does. When it goes on it must see
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

// Begin notes a call that may store something of a user. It waits while the user is being forgotten. cancel is called when the
// user is to be forgotten, with an error for the caller; the call must end then.
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

// of is what is known of a user. The calls must be locked.
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

// tidy drops a user of whom nothing is under way. The calls must be locked.
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

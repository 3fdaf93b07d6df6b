package manage

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/memsidecar/memsidecar/internal/lists"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
)

// Receipt says what forgetting a user deleted.
type Receipt struct {
	Memories        int64
	Considerations  int64
	Messages        int64 // of the user, in other people's dialogues
	SessionMessages int64 // of the user, and to the user, in sessions
	Sessions        int64 // in which no other user takes part
	Traces          int64
	Settings        bool
	Tokens          bool // the count of the tokens that models used for the user
	Lists           lists.Forgotten
	Digests         int64 // findings
	Files           int
	Purged          bool // the bytes are gone from the files
}

// Forgetter deletes the data of a user in one store.
type Forgetter interface {
	// Name names the data, for errors.
	Name() string
	// Forget deletes the data and adds the counts to the receipt. It can be repeated after an error or an interruption.
	Forget(ctx context.Context, user memory.User, r *Receipt) error
}

// NewForgetter returns a Forgetter that calls forget, and passes the result to add.
func NewForgetter[T any](
	name string, forget func(context.Context, memory.User) (T, error), add func(*Receipt, T),
) Forgetter {
	return forgetter[T]{name, forget, add}
}

type forgetter[T any] struct {
	name   string
	forget func(context.Context, memory.User) (T, error)
	add    func(*Receipt, T)
}

// Name implements Forgetter.
func (f forgetter[T]) Name() string { return f.name }

// Forget implements Forgetter.
func (f forgetter[T]) Forget(ctx context.Context, user memory.User, r *Receipt) error {
	deleted, err := f.forget(ctx, user)
	f.add(r, deleted)
	return err
}

// Barrier is background work that stores data of users.
type Barrier interface {
	// Bar cancels work that uses the user's words, and blocks new work until release is called.
	Bar(ctx context.Context, user memory.User) (release func(), err error)
}

// Purger removes deleted bytes from the disk.
type Purger interface {
	Purge(ctx context.Context) (bool, error)
	PurgeLater()
}

// EraserConfig is what an Eraser works with.
type EraserConfig struct {
	// Barriers are blocked during a deletion, so that no job stores anything after it.
	Barriers []Barrier
	// Forgetters delete everything of a user, in stages. The stages run one after the other; the forgetters of a stage run concurrently,
	// must add to different fields of the receipt, and share commits: the user's calls wait until all are done.
	Forgetters [][]Forgetter
	Purger     Purger
	// Memories deletes the memories learned in a session.
	Memories *Service
	Sessions Sessions
	// Policies reports whether a namespace has sessions.
	Policies interface{ CheckEnabled(namespace string) error }
	Traces   interface {
		ForgetSession(ctx context.Context, namespace, sessionID string, channel memory.Channel, users ...string) (int64, error)
	}
	Lists interface {
		ForgetSession(ctx context.Context, namespace, sessionID string, channel memory.Channel, users ...string) error
	}
}

// Sessions is the part of session.Store that deleting a session needs.
type Sessions interface {
	Get(ctx context.Context, v session.Viewer, sessionID string) (session.Session, error)
	Participants(ctx context.Context, namespace, sessionID string) ([]string, error)
	Delete(ctx context.Context, v session.Viewer, sessionID string) (session.Deleted, error)
}

// Eraser forgets users and deletes sessions.
type Eraser struct {
	EraserConfig
	calls calls
}

// NewEraser returns an Eraser.
func NewEraser(config EraserConfig) *Eraser { return &Eraser{EraserConfig: config} }

// Forget deletes everything of a user. It ends the user's running calls, makes new ones wait, and blocks background work, so that
// nothing is stored after the deletion. After an error the deletion is partial; repeating the call completes it.
func (e *Eraser) Forget(ctx context.Context, user memory.User) (r Receipt, err error) {
	if err := e.forget(ctx, user, &r); err != nil {
		return r, err
	}
	r.Purged, err = e.Purger.Purge(ctx)
	return r, err
}

// forget is Forget without the purge. Calls and jobs may run during the purge.
func (e *Eraser) forget(ctx context.Context, user memory.User, r *Receipt) error {
	open, err := e.calls.end(ctx, user)
	if err != nil {
		return err
	}
	defer open()
	release, err := e.blockAll(ctx, user.Namespace, []string{user.ID})
	if err != nil {
		return err
	}
	defer release()
	for _, stage := range e.Forgetters {
		group, ctx := errgroup.WithContext(ctx)
		for _, f := range stage {
			group.Go(func() error {
				if err := f.Forget(ctx, user, r); err != nil {
					return fmt.Errorf("forgetting %s: %w", f.Name(), err)
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// blockAll blocks the background work of all these users until release is called.
func (e *Eraser) blockAll(ctx context.Context, namespace string, users []string) (release func(), err error) {
	var releases []func()
	release = func() {
		for _, release := range releases {
			release()
		}
	}
	for _, id := range users {
		for _, barrier := range e.Barriers {
			one, err := barrier.Bar(ctx, memory.User{Namespace: namespace, ID: id})
			if err != nil {
				release()
				return nil, err
			}
			releases = append(releases, one)
		}
	}
	return release, nil
}

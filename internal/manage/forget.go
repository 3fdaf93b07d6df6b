package manage

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/memsidecar/memsidecar/internal/lists"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// Receipt says what forgetting a user deleted.
type Receipt struct {
	Memories        int64
	Considerations  int64
	Messages        int64 // of the user, in other people's dialogues
	SessionMessages int64 // of the user, and to the user, in sessions
	Sessions        int64 // in which nobody else takes part
	Traces          int64
	Settings        bool
	Tokens          bool // a count of the tokens that models took for the user
	Results         lists.Forgotten
	Digests         int64 // findings
	Files           int
	Purged          bool // the bytes are gone from the files
}

// Forget deletes everything of a user. Calls of the user are ended before, others wait; jobs are barred meanwhile, so that none
// stores anything after the deletion. Sessions come before jobs: of what waits in a session a job may be made until it is gone.
// When it fails in the middle, what was deleted stays deleted, and calling it again completes it.
func (k *Keeper) Forget(ctx context.Context, user memory.User) (r Receipt, err error) {
	if r, err = k.forget(ctx, user); err != nil {
		return r, err
	}
	r.Purged, err = k.Purger.Purge(ctx)
	return r, err
}

func (k *Keeper) forget(ctx context.Context, user memory.User) (r Receipt, err error) {
	open, err := k.calls.end(ctx, user)
	if err != nil {
		return r, err
	}
	defer open()
	release, err := k.barAll(ctx, user.Namespace, []string{user.ID})
	if err != nil {
		return r, err
	}
	defer release()
	defer k.Uncache() // nothing of the user runs that could fill it again
	// What is written in the background comes first: others' records of what is considered together are changed below. What
	// does not rest on each other is deleted at the same time, and shares commits: the user's calls wait until all is.
	err = together(ctx, func(ctx context.Context) (err error) {
		r.Traces, err = k.Traces.Forget(ctx, user)
		return err
	}, func(ctx context.Context) (err error) {
		r.Digests, err = k.Digests.Forget(ctx, user)
		return err
	})
	if err != nil {
		return r, err
	}
	said, err := k.Sessions.Forget(ctx, user)
	if err != nil {
		return r, err
	}
	r.SessionMessages, r.Sessions = said.Messages, said.Sessions
	forgotten, err := k.Queue.Forget(ctx, user)
	if err != nil {
		return r, err
	}
	r.Considerations, r.Messages = forgotten.Considerations, forgotten.Messages
	err = together(ctx, func(ctx context.Context) error {
		rest, err := k.Digests.Forget(ctx, user) // what somebody's messages to this user have added meanwhile
		if r.Digests += rest; err != nil {
			return err
		}
		r.Files, err = k.DigestFiles(user)
		return err
	}, func(ctx context.Context) (err error) {
		r.Results, err = k.Results.Forget(ctx, user)
		return err
	}, func(ctx context.Context) (err error) {
		r.Settings, err = k.Settings.Forget(ctx, user)
		return err
	}, func(ctx context.Context) (err error) {
		r.Tokens, err = k.Tokens.Forget(ctx, user)
		return err
	}, func(ctx context.Context) (err error) {
		r.Memories, err = k.Store.Forget(ctx, user)
		return err
	})
	return r, err
}

// together does all at the same time, and waits for all; the error is the first.
func together(ctx context.Context, all ...func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, one := range all {
		group.Go(func() error { return one(ctx) })
	}
	return group.Wait()
}

// Delete deletes a memory, and its words from what is kept of how it came about, and from the files of digests. Its bytes are
// purged in the background.
func (k *Keeper) Delete(ctx context.Context, user memory.User, id string, audience memory.Audience) error {
	err := k.remove(ctx, user, id, audience)
	if err == nil {
		k.Rewrite(context.WithoutCancel(ctx), user)
	}
	return err
}

// remove is Delete but for the files.
func (k *Keeper) remove(ctx context.Context, user memory.User, id string, audience memory.Audience) error {
	if err := k.Store.Delete(ctx, user, id, audience); err != nil {
		return err
	}
	k.Uncache()
	k.Traces.Flush(ctx)
	// The memory is gone and cannot be deleted again, so this is done whether or not the caller waits.
	err := k.Queue.ForgetMemory(context.WithoutCancel(ctx), user, id)
	k.Purger.PurgeLater()
	return err
}

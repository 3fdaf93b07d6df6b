package budget

import (
	"context"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/usage"
)

// Standing is how a budget stands.
type Standing struct {
	User  memory.User // without an id: the namespace as a whole
	Limit int64       // tokens a day; 0 is none
	Count
	RefusedUsers int64     // of a namespace: users whose own budgets refused calls
	Until        time.Time // when the day is over
}

// Standings are the budgets of a namespace that are set: its own, then that of the user if it has an id. The first is there
// also when it has no limit but users have one.
func (m *Meter) Standings(ctx context.Context, user memory.User) (list []Standing, err error) {
	now := m.options.Now()
	day, until := usage.Day(now), usage.DayAfter(now)
	limits := m.options.Limits(user.Namespace)
	if limits == (Limits{}) {
		return nil, nil
	}
	m.writer.Flush(ctx)
	all := Standing{User: memory.User{Namespace: user.Namespace}, Limit: limits.Namespace, Until: until}
	if all.Count, err = m.store.Get(ctx, day, all.User); err != nil {
		return nil, err
	}
	if all.RefusedUsers, err = m.store.RefusedUsers(ctx, day, user.Namespace); err != nil {
		return nil, err
	}
	list = append(list, all)
	if limits.User > 0 && user.ID != "" {
		own := Standing{User: user, Limit: limits.User, Until: until}
		if own.Count, err = m.store.Get(ctx, day, user); err != nil {
			return nil, err
		}
		list = append(list, own)
	}
	return list, nil
}

// Today is what was counted for a user today.
func (m *Meter) Today(ctx context.Context, user memory.User) (Entry, error) {
	e := Entry{Day: usage.Day(m.options.Now()), User: user}
	m.writer.Flush(ctx)
	var err error
	e.Count, err = m.store.Get(ctx, e.Day, user)
	return e, err
}

// Forget deletes the counts of a user and reports whether there were any. The namespace's count stays. Running calls of the
// user count from zero.
func (m *Meter) Forget(ctx context.Context, user memory.User) (bool, error) {
	m.writer.Flush(ctx) // so that none is written after the deletion
	had, err := m.store.Forget(ctx, user)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.counts, user)
	return had, err
}

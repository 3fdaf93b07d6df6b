package local

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// Store implements vectorstore.Store.
type Store struct {
	db          sqldb.Access
	fingerprint atomic.Pointer[string] // of the vectors used by searches
	cache       *cache
	writers     userLocks
	quotas      *sqlstore.Quotas
	onWrite     atomic.Pointer[func()]
}

var _ vectorstore.Store = (*Store)(nil)

// Options describes the store.
type Options struct {
	// Fingerprint is that of the vectors used by searches; empty until a call of UseFingerprint.
	Fingerprint string
	// IndexBudget limits the bytes of the indexes of all users together. An index in use is never evicted.
	IndexBudget int64
	// Quotas limit how many memories are stored; optional.
	Quotas *sqlstore.Quotas
}

// New returns a store over the database.
func New(db sqldb.Access, options Options) *Store {
	s := &Store{db: db, cache: newCache(options.IndexBudget), quotas: options.Quotas}
	if options.Fingerprint != "" {
		s.fingerprint.Store(&options.Fingerprint)
	}
	db.OnOpen(s.Reset)
	return s
}

// Reset drops all indexes. They are loaded again when they are needed.
func (s *Store) Reset() { s.cache.clear() }

// DropIndex drops the index of a user whose rows were changed by other means than this store.
func (s *Store) DropIndex(user memory.User) { s.cache.forget(user) }

// Apply implements vectorstore.Store.
func (s *Store) Apply(ctx context.Context, user memory.User, entries []vectorstore.Entry) ([]vectorstore.Applied, error) {
	defer s.writers.lock(user)()
	var applied []vectorstore.Applied
	var changed []changed
	err := s.db.Write(ctx, func(tx sqldb.Tx) error {
		applied = nil
		before, err := sqlstore.NamespaceMemories(ctx, tx, user.Namespace)
		if err != nil {
			return err
		}
		userRow, err := sqlstore.EnsureUserRow(ctx, tx, user)
		if err != nil {
			return err
		}
		a := applier{tx: tx, user: user, userRow: userRow, fingerprint: s.indexed()}
		for i := range entries {
			done, err := a.apply(ctx, &entries[i])
			if err != nil {
				return err
			}
			applied = append(applied, done)
		}
		changed = a.changed
		if err := sqlstore.TouchUser(ctx, tx, userRow, latest(entries)); err != nil {
			return err
		}
		return s.quotas.MemoriesWithin(ctx, tx, user.Namespace, before)
	})
	if err != nil {
		return nil, s.quotas.Note(err)
	}
	s.reindex(ctx, user, changed)
	s.written()
	return applied, nil
}

// latest returns the time of the newest entry.
func latest(entries []vectorstore.Entry) (at time.Time) {
	for i := range entries {
		if created := entries[i].Memory.CreatedAt; created.After(at) {
			at = created
		}
	}
	return at
}

// changed is a memory after a write, for the index.
type changed struct {
	memory    memory.Memory
	embedding *vectorstore.Embedding // nil: the vectors in the index stay
}

// reindex applies a committed write to the user's index.
func (s *Store) reindex(ctx context.Context, user memory.User, list []changed) {
	s.cache.change(user, func(x *index) error {
		for _, c := range list {
			if err := x.put(ctx, c.memory, c.embedding); err != nil {
				return err
			}
		}
		return nil
	})
}

// indexed returns the fingerprint of the vectors used by searches, or "".
func (s *Store) indexed() string {
	if f := s.fingerprint.Load(); f != nil {
		return *f
	}
	return ""
}

// Get implements vectorstore.Store.
func (s *Store) Get(ctx context.Context, user memory.User, id string, audience memory.Audience) (memory.Memory, error) {
	var m memory.Memory
	err := s.db.Read(ctx, func(q sqldb.Querier) error {
		var err error
		_, m, err = find(ctx, q, user, id, audience)
		return err
	})
	return m, err
}

// List implements vectorstore.Store.
func (s *Store) List(ctx context.Context, user memory.User, query vectorstore.ListQuery) (vectorstore.Page, error) {
	after, err := parseCursor(query.After)
	if err != nil {
		return vectorstore.Page{}, err
	}
	var page vectorstore.Page
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		page, err = listRows(ctx, q, user, query, after)
		return err
	})
	return page, err
}

// Update implements vectorstore.Store.
func (s *Store) Update(ctx context.Context, user memory.User, id string, audience memory.Audience, patch vectorstore.Patch) (memory.Memory, error) {
	defer s.writers.lock(user)()
	var m memory.Memory
	err := s.db.Write(ctx, func(tx sqldb.Tx) error {
		var err error
		m, err = update(ctx, tx, user, id, audience, &patch)
		return err
	})
	if err != nil {
		return memory.Memory{}, err
	}
	s.cache.change(user, func(x *index) error {
		if patch.Text == nil && patch.Embedding.Fingerprint == "" {
			return x.put(ctx, m, nil)
		}
		return x.put(ctx, m, &patch.Embedding)
	})
	return m, nil
}

// Delete implements vectorstore.Store.
func (s *Store) Delete(ctx context.Context, user memory.User, id string, audience memory.Audience) error {
	defer s.writers.lock(user)()
	err := s.db.Write(ctx, func(tx sqldb.Tx) error {
		row, _, err := find(ctx, tx, user, id, audience)
		if err != nil && !sqldb.Skip(tx, err) { // an unreadable memory can be deleted
			return err
		}
		return remove(ctx, tx, row, id)
	})
	if err != nil {
		return err
	}
	s.cache.change(user, func(x *index) error { return x.remove(ctx, id) })
	return nil
}

// Forget implements vectorstore.Store.
func (s *Store) Forget(ctx context.Context, user memory.User) (count int64, err error) {
	defer s.writers.lock(user)()
	err = s.db.Write(ctx, func(tx sqldb.Tx) error {
		userRow, err := sqlstore.UserRow(ctx, tx, user)
		if err != nil || userRow == 0 {
			return err
		}
		if count, err = tx.Affect(ctx, `DELETE FROM memories WHERE user_row = ?`, userRow); err != nil {
			return err
		}
		if _, err = tx.Exec(ctx, `DELETE FROM applied_statements WHERE user_row = ?`, userRow); err != nil {
			return err
		}
		return sqlstore.DropUserRow(ctx, tx, userRow)
	})
	if err != nil {
		return 0, err
	}
	s.cache.forget(user)
	return count, nil
}

// MarkUsed implements vectorstore.Store.
func (s *Store) MarkUsed(ctx context.Context, uses []vectorstore.Use) error {
	uses = together(uses)
	err := s.db.Write(ctx, func(tx sqldb.Tx) error {
		for _, use := range uses {
			_, err := tx.Exec(ctx, `UPDATE memories SET use_count = use_count + ?, last_used_at = ?
				WHERE user_row = (SELECT id FROM users WHERE namespace = ? AND user_id = ?) AND id = ?`,
				use.Count, sqldb.Micros(use.At), use.User.Namespace, use.User.ID, use.MemoryID)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, use := range uses {
		s.cache.change(use.User, func(x *index) error {
			x.used(use)
			return nil
		})
	}
	return nil
}

// together merges all uses of each memory into one.
func together(uses []vectorstore.Use) []vectorstore.Use {
	type key struct {
		user memory.User
		id   string
	}
	places := make(map[key]int, len(uses))
	var sums []vectorstore.Use
	for _, use := range uses {
		k := key{use.User, use.MemoryID}
		i, known := places[k]
		if !known {
			places[k] = len(sums)
			sums = append(sums, use)
			continue
		}
		sums[i].Count += use.Count
		if use.At.After(sums[i].At) {
			sums[i].At = use.At
		}
	}
	return sums
}

// SearchVector implements vectorstore.Store.
func (s *Store) SearchVector(
	ctx context.Context, user memory.User, fingerprint string, vector []float32, filter vectorstore.Filter, limit int,
) ([]vectorstore.Hit, error) {
	x, err := s.index(ctx, user)
	if err != nil {
		return nil, err
	}
	if fingerprint != x.fingerprint {
		return nil, fmt.Errorf("the index holds vectors of %q, not of %q", x.fingerprint, fingerprint)
	}
	return x.searchVector(ctx, vector, filter, limit)
}

// SearchKeyword implements vectorstore.Store.
func (s *Store) SearchKeyword(ctx context.Context, user memory.User, query string, filter vectorstore.Filter, limit int) ([]vectorstore.Hit, error) {
	x, err := s.index(ctx, user)
	if err != nil {
		return nil, err
	}
	return x.searchKeyword(ctx, query, filter, limit)
}

// Standing implements vectorstore.Store.
func (s *Store) Standing(ctx context.Context, user memory.User, filter vectorstore.Filter) ([]*memory.Memory, error) {
	x, err := s.index(ctx, user)
	if err != nil {
		return nil, err
	}
	return x.standing(ctx, &filter)
}

func (s *Store) index(ctx context.Context, user memory.User) (*index, error) {
	return s.cache.get(ctx, user, func(ctx context.Context) (*index, error) {
		x, err := newIndex(s.indexed())
		if err != nil {
			return nil, err
		}
		err = s.db.Read(ctx, func(q sqldb.Querier) error { return load(ctx, q, user, x) })
		return x, err
	})
}

// cursor is the position of a memory in a list.
type cursor struct{ createdAt, row int64 }

func (c cursor) String() string { return fmt.Sprintf("%d.%d", c.createdAt, c.row) }

func parseCursor(s string) (*cursor, error) {
	if s == "" {
		return nil, nil
	}
	created, row, ok := strings.Cut(s, ".")
	c := &cursor{}
	var err1, err2 error
	c.createdAt, err1 = strconv.ParseInt(created, 10, 64)
	c.row, err2 = strconv.ParseInt(row, 10, 64)
	if !ok || err1 != nil || err2 != nil {
		return nil, memory.Invalid("page_token", "is invalid: start again without it")
	}
	return c, nil
}

// userLocks serialises the writers of one user, so that the index changes in the order of the commits.
type userLocks struct {
	mu    sync.Mutex
	users map[memory.User]*userLock
}

type userLock struct {
	sync.Mutex
	holders int // including waiting ones
}

// lock waits for the user's lock and returns the function that releases it.
func (l *userLocks) lock(user memory.User) (unlock func()) {
	l.mu.Lock()
	if l.users == nil {
		l.users = map[memory.User]*userLock{}
	}
	u := l.users[user]
	if u == nil {
		u = &userLock{}
		l.users[user] = u
	}
	u.holders++
	l.mu.Unlock()

	u.Lock()
	return func() {
		u.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if u.holders--; u.holders == 0 {
			delete(l.users, user)
		}
	}
}

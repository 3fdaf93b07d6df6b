package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// cachedSettings is how many users' settings are kept in memory: they are read with every call and hardly ever change.
const cachedSettings = 10_000

// Settings keeps the users' settings.
type Settings struct {
	db sqldb.Access

	mu      sync.Mutex
	cache   *lru.Cache[memory.User, memory.Settings]
	changes int64 // counts changes, so that what was read before one is not cached after it
}

// NewSettings returns the settings in the database.
func NewSettings(db sqldb.Access) *Settings {
	cache, err := lru.New[memory.User, memory.Settings](cachedSettings)
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	s := &Settings{db: db, cache: cache}
	db.OnOpen(s.reset)
	return s
}

// reset clears the cache.
func (s *Settings) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
	s.cache.Purge()
}

// Get returns a user's settings, or the defaults.
func (s *Settings) Get(ctx context.Context, user memory.User) (settings memory.Settings, err error) {
	s.mu.Lock()
	settings, ok := s.cache.Get(user)
	changes := s.changes
	s.mu.Unlock()
	if ok {
		return settings, nil
	}
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		settings, err = getSettings(ctx, q, user)
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.changes == changes {
		s.cache.Add(user, settings)
	}
	return settings, err
}

// changed drops what is cached of a user whose settings were written.
func (s *Settings) changed(user memory.User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
	s.cache.Remove(user)
}

// Update lets change modify the user's settings and stores the result.
func (s *Settings) Update(ctx context.Context, user memory.User, change func(*memory.Settings)) (settings memory.Settings, err error) {
	err = s.db.Write(ctx, func(tx sqldb.Tx) error {
		settings, err = getSettings(ctx, tx, user)
		if err != nil && !sqldb.Skip(tx, err) {
			return err
		}
		if err != nil { // what cannot be read is set again
			settings = memory.Settings{Paused: settings.Paused}
		}
		change(&settings)
		row, err := EnsureUserRow(ctx, tx, user)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO settings (user_row, time_zone, language, paused, updated_at, memorize_every)
			VALUES (?1, ?2, ?3, ?4, ?5, ?6)
			ON CONFLICT DO UPDATE SET time_zone = ?2, language = ?3, paused = ?4, updated_at = ?5, memorize_every = ?6`,
			row, settings.TimeZone, settings.Language, settings.Paused, sqldb.Micros(settings.UpdatedAt), settings.MemorizeEvery)
		return err
	})
	s.changed(user)
	return settings, err
}

// Forget deletes a user's settings and reports whether there were any.
func (s *Settings) Forget(ctx context.Context, user memory.User) (had bool, err error) {
	err = s.db.Write(ctx, func(tx sqldb.Tx) error {
		row, err := UserRow(ctx, tx, user)
		if err != nil {
			return err
		}
		deleted, err := tx.Affect(ctx, `DELETE FROM settings WHERE user_row = ?`, row)
		if err != nil {
			return err
		}
		had = deleted > 0
		return DropUserRow(ctx, tx, row)
	})
	s.changed(user)
	return had, err
}

func getSettings(ctx context.Context, q sqldb.Querier, user memory.User) (settings memory.Settings, err error) {
	var updated sql.NullInt64
	err = q.QueryRow(ctx, `SELECT s.time_zone, s.language, s.paused, s.updated_at, s.memorize_every
		FROM settings s JOIN users u ON u.id = s.user_row WHERE u.namespace = ? AND u.user_id = ?`, user.Namespace, user.ID).
		Scan(&settings.TimeZone, &settings.Language, &settings.Paused, &updated, &settings.MemorizeEvery)
	if errors.Is(err, sql.ErrNoRows) {
		return memory.Settings{}, nil
	}
	settings.UpdatedAt = sqldb.Time(updated)
	if err != nil {
		return settings, sqldb.Scanned("settings", user.ID, err)
	}
	return settings, sqldb.Texts("settings", user.ID, settings.TimeZone, settings.Language)
}

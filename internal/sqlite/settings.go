package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Settings keeps the users' settings.
type Settings struct{ db Access }

// NewSettings returns the settings in the database.
func NewSettings(db Access) *Settings { return &Settings{db} }

// Get returns a user's settings, the defaults when there are none.
func (s *Settings) Get(ctx context.Context, user memory.User) (settings memory.Settings, err error) {
	err = s.db.Read(ctx, func(q Querier) error {
		settings, err = getSettings(ctx, q, user)
		return err
	})
	return settings, err
}

// Update lets change modify the user's settings and stores the result.
func (s *Settings) Update(ctx context.Context, user memory.User, change func(*memory.Settings)) (settings memory.Settings, err error) {
	err = s.db.Write(ctx, func(tx *Tx) error {
		if settings, err = getSettings(ctx, tx, user); err != nil {
			return err
		}
		change(&settings)
		row, err := EnsureUserRow(ctx, tx, user)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO settings (user_row, time_zone, language, paused, updated_at) VALUES (?1, ?2, ?3, ?4, ?5)
			ON CONFLICT DO UPDATE SET time_zone = ?2, language = ?3, paused = ?4, updated_at = ?5`,
			row, settings.TimeZone, settings.Language, settings.Paused, Micros(settings.UpdatedAt))
		return err
	})
	return settings, err
}

// Forget deletes a user's settings and reports whether there were any.
func (s *Settings) Forget(ctx context.Context, user memory.User) (had bool, err error) {
	err = s.db.Write(ctx, func(tx *Tx) error {
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
	return had, err
}

func getSettings(ctx context.Context, q Querier, user memory.User) (settings memory.Settings, err error) {
	var updated sql.NullInt64
	err = q.QueryRow(ctx, `SELECT s.time_zone, s.language, s.paused, s.updated_at FROM settings s JOIN users u ON u.id = s.user_row
		WHERE u.namespace = ? AND u.user_id = ?`, user.Namespace, user.ID).
		Scan(&settings.TimeZone, &settings.Language, &settings.Paused, &updated)
	if errors.Is(err, sql.ErrNoRows) {
		return memory.Settings{}, nil
	}
	settings.UpdatedAt = Time(updated)
	return settings, err
}

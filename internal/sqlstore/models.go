package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/usage"
)

// Models keeps which models were chosen and what they cost.
type Models struct{ db sqldb.Access }

// NewModels returns the models' records in the database.
func NewModels(db sqldb.Access) *Models { return &Models{db} }

// Choice returns what was chosen for a part ("embedding", "decision", "summary"), or "".
func (s *Models) Choice(ctx context.Context, part string) (choice string, err error) {
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		err := q.QueryRow(ctx, `SELECT choice FROM model_choices WHERE part = ?`, part).Scan(&choice)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return choice, err
}

// Choose records what was chosen for a part.
func (s *Models) Choose(ctx context.Context, part, choice string) error {
	if before, err := s.Choice(ctx, part); err != nil || before == choice {
		return err // nothing to write: a full disk is no reason to go without a model
	}
	return s.db.Write(ctx, func(tx sqldb.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO model_choices (part, choice) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET choice = ?2`,
			part, choice)
		return err
	})
}

// AddUsage implements usage.Store.
func (s *Models) AddUsage(ctx context.Context, calls []usage.Call) error {
	return s.db.Write(ctx, func(tx sqldb.Tx) error {
		for _, c := range calls {
			failed := 0
			if c.Error != "" {
				failed = 1
			}
			_, err := tx.Exec(ctx, `INSERT INTO model_usage (day, namespace, part, model, calls, failures, input_tokens,
				output_tokens, latency_us) VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6, ?7, ?8) ON CONFLICT DO UPDATE SET
				calls = calls + 1, failures = failures + ?5, input_tokens = input_tokens + ?6,
				output_tokens = output_tokens + ?7, latency_us = latency_us + ?8`,
				usage.Day(c.At), c.Namespace, c.Part, c.Model, failed, c.InputTokens, c.OutputTokens,
				c.Latency.Microseconds())
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Usage returns what the calls since a day cost in a namespace: the newest day first, by part and model.
func (s *Models) Usage(ctx context.Context, namespace string, since time.Time) (sums []usage.Sum, err error) {
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		rows, err := q.Query(ctx, `SELECT day, part, model, calls, failures, input_tokens, output_tokens, latency_us FROM model_usage
			WHERE day >= ? AND namespace = ? ORDER BY day DESC, part, model`, usage.Day(since), namespace)
		if err != nil {
			return err
		}
		sums, err = sqldb.Collect(rows, func(scan func(...any) error) (s usage.Sum, err error) {
			var latency int64
			err = scan(&s.Day, &s.Part, &s.Model, &s.Calls, &s.Failures, &s.InputTokens, &s.OutputTokens, &latency)
			s.Latency = time.Duration(latency) * time.Microsecond
			return s, err
		})
		return err
	})
	return sums, err
}

package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// Due implements digest.Store.
func (d *Digests) Due(ctx context.Context, now time.Time, limit int) (due []memory.User, next time.Time, err error) {
	err = d.db.Read(ctx, func(r sqldb.Querier) error {
		rows, err := r.Query(ctx, `SELECT u.namespace, u.user_id, p.due_at FROM digest_progress p JOIN users u ON u.id = p.user_row
			WHERE p.due_at IS NOT NULL ORDER BY p.due_at LIMIT ?`, limit+1)
		if err != nil {
			return err
		}
		type item struct {
			user memory.User
			at   time.Time
		}
		all, err := sqldb.Collect(rows, func(scan func(...any) error) (i item, err error) {
			var at sql.NullInt64
			err = scan(&i.user.Namespace, &i.user.ID, &at)
			i.at = sqldb.Time(at)
			return i, err
		})
		due, next = nil, time.Time{}
		for _, i := range all {
			if len(due) == limit || i.at.After(now) {
				next = i.at
				break
			}
			due = append(due, i.user)
		}
		return err
	})
	return due, next, err
}

// Done implements digest.Store.
func (d *Digests) Done(ctx context.Context, user memory.User, rule digest.Rule) error {
	return d.db.Write(ctx, func(tx sqldb.Tx) error {
		userRow, err := UserRow(ctx, tx, user)
		if err != nil || userRow == 0 {
			return err
		}
		var waiting, people int64
		err = tx.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE role = 'user') FROM session_messages
			INDEXED BY session_messages_undigested WHERE owner_row = ? AND digest IS NOT NULL AND digest = 0`, userRow).Scan(&waiting, &people)
		if err != nil {
			return err
		}
		if waiting == 0 {
			_, err := tx.Exec(ctx, `DELETE FROM digest_progress WHERE user_row = ?`, userRow)
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE digest_progress SET waiting = ?, due_at = ?, postponed = 0 WHERE user_row = ?`,
			people, sqldb.Micros(dueAt(people, rule)), userRow)
		return err
	})
}

// answerPatience is how long a digest waits for the answer to what was said last: of a problem it tells the solution, too.
const answerPatience = time.Minute

// dueAt is when a digest of a user of whom so many messages wait is due.
func dueAt(people int64, rule digest.Rule) time.Time {
	if rule.Every > 0 && people >= int64(rule.Every) {
		return rule.Now
	}
	return rule.DayEnd
}

// Postpone implements digest.Store.
func (d *Digests) Postpone(ctx context.Context, user memory.User, until time.Time) error {
	return d.db.Write(ctx, func(tx sqldb.Tx) error {
		userRow, err := UserRow(ctx, tx, user)
		if err != nil || userRow == 0 {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE digest_progress SET due_at = max(due_at, ?), postponed = 1 WHERE user_row = ? AND due_at IS NOT NULL`,
			sqldb.Micros(until), userRow)
		return err
	})
}

// longestDay is longer than any day, also one on which clocks are set: no digest is due later.
const longestDay = 26 * time.Hour

// MakeDue implements digest.Store. It costs what is due later than now.
func (d *Digests) MakeDue(ctx context.Context, o digest.Overdue) error {
	return d.db.Write(ctx, func(tx sqldb.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE digest_progress SET due_at = ?1, postponed = 0 WHERE due_at IS NOT NULL AND due_at > ?1
			AND (due_at > ?2 OR postponed AND due_at > ?3 OR ?4 > 0 AND waiting >= ?4 AND due_at > max(?3, ?5))`,
			sqldb.Micros(o.Now), sqldb.Micros(o.Now.Add(longestDay)), sqldb.Micros(o.Now.Add(o.Longest)), o.Every, sqldb.Micros(o.Now.Add(2*answerPatience)))
		return err
	})
}

// digestState is what is written on a message that is being appended: nil for what no digest looks at.
func (w *appending) digestState(m *memory.Message, owner int64, withheld bool) any {
	person := session.Owner(m, w.Scope.UserID)
	_, byItself := w.Digests[person]
	switch {
	case owner == 0 || withheld || w.Paused[person] || m.Role != memory.RoleUser && m.Role != memory.RoleAssistant:
		return nil
	case w.Settled || !byItself:
		return digestWhenAsked
	}
	return digestByItself
}

// scheduleDigests makes digests due of those who have said enough, or at the end of their day.
func (w *appending) scheduleDigests(ctx context.Context, tx sqldb.Tx) error {
	for person, rule := range w.Digests {
		said, ok := w.digested[person]
		if !ok {
			continue
		}
		userRow, err := w.user(ctx, tx, person)
		if err != nil {
			return err
		}
		soon := w.at
		if w.Messages[len(w.Messages)-1].Role == memory.RoleUser {
			soon = soon.Add(answerPatience)
		}
		if err := scheduleDigest(ctx, tx, userRow, said, digest.Rule{Now: soon, Every: rule.Every, DayEnd: rule.DayEnd}); err != nil {
			return err
		}
	}
	return nil
}

// scheduleDigest adds to what waits for a digest, and makes it due by the rule if it was not due sooner.
func scheduleDigest(ctx context.Context, tx sqldb.Tx, userRow, said int64, rule digest.Rule) error {
	// Most messages change nothing about when it is due: then its index is left alone.
	known, err := tx.Affect(ctx, `UPDATE digest_progress SET waiting = waiting + ?1 WHERE user_row = ?2
		AND due_at <= CASE WHEN ?3 > 0 AND waiting + ?1 >= ?3 THEN ?4 ELSE ?5 END`,
		said, userRow, rule.Every, sqldb.Micros(rule.Now), sqldb.Micros(rule.DayEnd))
	if err != nil || known > 0 {
		return err
	}
	var waiting int64
	err = tx.QueryRow(ctx, `INSERT INTO digest_progress (user_row, waiting) VALUES (?1, ?2)
		ON CONFLICT DO UPDATE SET waiting = waiting + ?2 RETURNING waiting`, userRow, said).Scan(&waiting)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE digest_progress SET due_at = min(coalesce(due_at, ?1), ?1) WHERE user_row = ?2`, sqldb.Micros(dueAt(waiting, rule)), userRow)
	return err
}

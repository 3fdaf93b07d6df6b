package sqlstore

import (
	"context"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// How much is deleted in one transaction: everybody else's writes wait for it.
const (
	deletedMessages  = 1000
	deletedDialogues = 200
	leftSessions     = 200
)

// Delete implements session.Store.
func (s *Sessions) Delete(ctx context.Context, v session.Viewer, sessionID string) (deleted session.Deleted, err error) {
	var row int64
	err = s.rewrite(ctx, func(tx sqldb.Tx) error {
		found, err := writableSession(ctx, tx, v, sessionID)
		if err != nil {
			return err
		}
		row, deleted = found.row, session.Deleted{Messages: found.Messages}
		deleted.Considerations, err = s.free(ctx, tx, found)
		return err
	})
	if err != nil {
		return session.Deleted{}, err
	}
	// The id is free: nobody can make the call again, so it is completed whether or not its caller waits.
	return deleted, s.complete(context.WithoutCancel(ctx), row)
}

// free gives the session's id up, and deletes the considerations of it that have not ended.
func (s *Sessions) free(ctx context.Context, tx sqldb.Tx, freed *sessionRow) (considerations int64, err error) {
	for _, statement := range []string{
		`UPDATE sessions SET id = NULL, ref = NULL, consider_at = NULL, summarize_at = NULL WHERE row = ?`,
		`DELETE FROM current_sessions WHERE session_row = ?`,
		`DELETE FROM session_summaries WHERE session_row = ?`,
		`DELETE FROM digest_findings WHERE session_row = ?`,
	} {
		if _, err := tx.Exec(ctx, statement, freed.row); err != nil {
			return 0, err
		}
	}
	rows, err := tx.Query(ctx, `SELECT DISTINCT dialogue_row FROM considerations WHERE session_row = ? AND state `+isPending, freed.row)
	if err != nil {
		return 0, err
	}
	dialogues, err := sqldb.Column[int64](rows)
	if err != nil {
		return 0, err
	}
	var users []string
	err = s.queue.pending.changing(ctx, tx, dialogues, func() error {
		rows, err := tx.Query(ctx, `DELETE FROM considerations WHERE session_row = ? AND state `+isPending+` RETURNING user_id`, freed.row)
		if err == nil {
			users, err = sqldb.Column[string](rows)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, id := range users {
		if err := advance(ctx, tx, memory.User{Namespace: freed.Namespace, ID: id}, time.Now()); err != nil {
			return 0, err
		}
	}
	return int64(len(users)), nil
}

// complete deletes what is left of a session whose id is free, in steps. A write goes from one step to the next as long as there
// was less to do than a step may.
func (s *Sessions) complete(ctx context.Context, row int64) error {
	for more := true; more; {
		err := s.rewrite(ctx, func(tx sqldb.Tx) (err error) {
			for _, step := range []func(context.Context, sqldb.Tx, int64) (more bool, err error){deleteMessages, s.emptyDialogues, deleteSession} {
				if more, err = step(ctx, tx, row); more || err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func deleteMessages(ctx context.Context, tx sqldb.Tx, sessionRow int64) (more bool, err error) {
	removed, err := queryRemoved(ctx, tx, `session_row = ? ORDER BY position LIMIT ?`, sessionRow, deletedMessages)
	if err != nil {
		return false, err
	}
	return len(removed) == deletedMessages, removeMessages(ctx, tx, removed)
}

// emptyDialogues takes the messages out of the dialogues that came of a session. How they ended stays, without the words in
// it, and the messages keep their places; a dialogue that nobody considers any more goes.
func (s *Sessions) emptyDialogues(ctx context.Context, tx sqldb.Tx, sessionRow int64) (more bool, err error) {
	type dialogue struct {
		row      int64
		messages []byte
	}
	rows, err := tx.Query(ctx, `SELECT row, messages FROM dialogues WHERE session_row = ? LIMIT ?`, sessionRow, deletedDialogues)
	if err != nil {
		return false, err
	}
	found, err := sqldb.Collect(rows, func(scan func(...any) error) (d dialogue, err error) {
		err = scan(&d.row, &d.messages)
		return d, err
	})
	if err != nil {
		return false, err
	}
	for _, f := range found {
		deleted, err := tx.Affect(ctx, `DELETE FROM dialogues WHERE row = ?1
			AND NOT EXISTS (SELECT 1 FROM considerations WHERE dialogue_row = ?1)`, f.row)
		if err != nil {
			return false, err
		}
		if deleted > 0 {
			continue
		}
		var d memory.Dialogue
		if sqldb.Skip(tx, sqldb.DecodeJSON(dialoguesTable, f.row, f.messages, &d.Messages)) {
			d.Messages = nil
		}
		for _, speaker := range d.Speakers() {
			d, _ = d.Without(speaker) // when nobody's words are left, nothing is
		}
		texts, err := encodeMessages(d.Messages)
		if err != nil {
			return false, err
		}
		err = s.queue.pending.changing(ctx, tx, []int64{f.row}, func() error {
			_, err := tx.Exec(ctx, `UPDATE dialogues SET messages = ?, payload_hash = x'', session_row = NULL, session_id = '',
				turn_id = '', otel_trace_id = '' WHERE row = ?`, jsonArray(texts), f.row)
			return err
		})
		if err != nil {
			return false, err
		}
		_, err = tx.Exec(ctx, `UPDATE considerations SET checkpoint = NULL, session_row = NULL WHERE dialogue_row = ?`, f.row)
		if err == nil {
			err = emptyOutcomes(ctx, tx, f.row)
		}
		if err != nil {
			return false, err
		}
	}
	return len(found) == deletedDialogues, nil
}

const deletedReason = "the session was deleted since"

// emptyOutcomes takes the words out of what became of a dialogue: reasons quote what was said, changes what was remembered.
func emptyOutcomes(ctx context.Context, tx sqldb.Tx, dialogueRow int64) error {
	return rewriteOutcomes(ctx, tx, dialogueRow, func(o *memory.Outcome) {
		replace(&o.Reason, deletedReason)
		replace(&o.Error, deletedReason)
		for i := range o.Changes {
			o.Changes[i].Text = ""
			replace(&o.Changes[i].Reason, deletedReason)
		}
	})
}

// deleteSession deletes the session itself, and users of whom nothing else is stored.
func deleteSession(ctx context.Context, tx sqldb.Tx, sessionRow int64) (more bool, err error) {
	rows, err := tx.Query(ctx, `SELECT user_row FROM session_participants WHERE session_row = ? LIMIT ?`, sessionRow, deletedMessages)
	if err != nil {
		return false, err
	}
	users, err := sqldb.Column[int64](rows)
	if err != nil {
		return false, err
	}
	if len(users) == deletedMessages {
		for _, user := range users {
			if err := leave(ctx, tx, sessionRow, user); err != nil {
				return false, err
			}
			if err := DropUserRow(ctx, tx, user); err != nil {
				return false, err
			}
		}
		return true, nil
	}
	if _, err := tx.Exec(ctx, `DELETE FROM sessions WHERE row = ?`, sessionRow); err != nil {
		return false, err
	}
	for _, user := range users {
		if err := DropUserRow(ctx, tx, user); err != nil {
			return false, err
		}
	}
	return false, nil
}

// leave takes a user out of those who take part.
func leave(ctx context.Context, tx sqldb.Tx, sessionRow, userRow int64) error {
	left, err := tx.Affect(ctx, `DELETE FROM session_participants WHERE user_row = ? AND session_row = ?`, userRow, sessionRow)
	if err != nil || left == 0 {
		return err
	}
	if _, err = tx.Exec(ctx, `UPDATE sessions SET participants = participants - 1 WHERE row = ?`, sessionRow); err != nil {
		return err
	}
	return disown(ctx, tx, sessionRow, userRow)
}

// Sweep implements session.Store.
func (s *Sessions) Sweep(ctx context.Context) error {
	var left []int64
	err := s.db.Read(ctx, func(q sqldb.Querier) error {
		rows, err := q.Query(ctx, `SELECT row FROM sessions WHERE id IS NULL`)
		if err == nil {
			left, err = sqldb.Column[int64](rows)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, row := range left {
		if err := s.complete(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

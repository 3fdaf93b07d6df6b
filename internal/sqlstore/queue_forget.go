package sqlstore

import (
	"context"
	"encoding/json"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/trace"
)

// forgottenReason replaces a reason or an error that may quote a forgotten user.
const forgottenReason = "a participant was forgotten"

// considered is a dialogue in which a user to forget took part, and that user's consideration.
type considered struct {
	seq, row, createdAt  int64
	id, namespace, owner string // the owner is the scope's user
	messages             []byte
}

// Forget implements queue.Store. It works in steps, each of which leaves the data consistent, so an interrupted call can be repeated.
// In other users' dialogues a message of the user is replaced with an empty one, so that the positions that memories cite stay valid.
func (s *Queue) Forget(ctx context.Context, user memory.User) (forgotten queue.Forgotten, err error) {
	for more := true; more; {
		var step queue.Forgotten
		unquoted := map[memory.User]bool{}
		err := s.db.Write(ctx, func(tx sqldb.Tx) (err error) {
			clear(unquoted)
			step, more, err = s.forgetConsidered(ctx, tx, user, unquoted)
			return err
		})
		if err != nil {
			return forgotten, err
		}
		forgotten.Considerations += step.Considerations
		forgotten.Messages += step.Messages
		if s.Unquoted != nil {
			for other := range unquoted {
				s.Unquoted(other)
			}
		}
	}
	return forgotten, nil
}

func (s *Queue) forgetConsidered(ctx context.Context, tx sqldb.Tx, user memory.User, unquoted map[memory.User]bool) (f queue.Forgotten, more bool, err error) {
	rows, err := tx.Query(ctx, `SELECT c.seq, d.row, d.created_at, d.id, d.namespace, d.user_id, d.messages FROM considerations c
		JOIN dialogues d ON d.row = c.dialogue_row WHERE c.namespace = ? AND c.user_id = ? ORDER BY c.seq LIMIT ?`,
		user.Namespace, user.ID, deletedDialogues)
	if err != nil {
		return f, false, err
	}
	found, err := sqldb.Collect(rows, func(scan func(...any) error) (d considered, err error) {
		err = scan(&d.seq, &d.row, &d.createdAt, &d.id, &d.namespace, &d.owner, &d.messages)
		return d, err
	})
	if err != nil {
		return f, false, err
	}
	for _, d := range found {
		var removed int64
		err := s.pending.changing(ctx, tx, []int64{d.row}, func() (err error) {
			if _, err := tx.Exec(ctx, `DELETE FROM considerations WHERE seq = ?`, d.seq); err != nil {
				return err
			}
			removed, err = d.forget(ctx, tx, user.ID, unquoted)
			return err
		})
		if err != nil {
			return f, false, err
		}
		f.Considerations++
		f.Messages += removed
	}
	return f, len(found) == deletedDialogues, nil
}

// forget deletes a dialogue without any consideration, or removes the speaker's words from it: what the speaker said and, if the
// dialogue is the speaker's, the answers.
func (d *considered) forget(ctx context.Context, tx sqldb.Tx, speaker string, unquoted map[memory.User]bool) (removed int64, err error) {
	deleted, err := tx.Affect(ctx, `DELETE FROM dialogues WHERE row = ?1
		AND NOT EXISTS (SELECT 1 FROM considerations WHERE dialogue_row = ?1)`, d.row)
	if err != nil || deleted > 0 {
		return 0, err
	}
	var rest memory.Dialogue
	if sqldb.Skip(tx, sqldb.DecodeJSON(dialoguesTable, d.id, d.messages, &rest.Messages)) {
		rest.Messages = nil // their speakers are unknown
	}
	rest, count := rest.Without(speaker)
	own := d.owner == speaker
	if own {
		rest = rest.WithoutAnswers()
	}
	text, err := json.Marshal(rest.Messages)
	if err != nil {
		return 0, err
	}
	_, err = tx.Exec(ctx, `UPDATE dialogues SET messages = ?1, payload_hash = x'', request_id = CASE WHEN ?2 THEN NULL ELSE request_id END,
		turn_id = CASE WHEN ?2 THEN '' ELSE turn_id END, otel_trace_id = CASE WHEN ?2 THEN '' ELSE otel_trace_id END,
		user_id = CASE WHEN ?2 THEN '' ELSE user_id END WHERE row = ?3`, string(text), own, d.row)
	if err != nil || count == 0 && !own {
		return int64(count), err
	}
	return int64(count), d.unquote(ctx, tx, unquoted)
}

// unquote removes from the considerations of other users what may quote the removed words: a decision that was not applied, reasons and
// errors. Their memories stay, because they are based on their own words.
func (d *considered) unquote(ctx context.Context, tx sqldb.Tx, unquoted map[memory.User]bool) error {
	// Decisions of other considerations may be based on those words.
	if _, err := tx.Exec(ctx, `UPDATE considerations SET checkpoint = NULL WHERE dialogue_row = ?`, d.row); err != nil {
		return err
	}
	if err := rewriteOutcomes(ctx, tx, d.row, func(o *memory.Outcome) {
		replace(&o.Reason, forgottenReason)
		replace(&o.Error, forgottenReason)
		for i := range o.Changes {
			replace(&o.Changes[i].Reason, forgottenReason)
		}
	}); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, `SELECT user_id FROM considerations WHERE dialogue_row = ?`, d.row)
	if err != nil {
		return err
	}
	others, err := sqldb.Column[string](rows)
	if err != nil {
		return err
	}
	for _, id := range others {
		other := memory.User{Namespace: d.namespace, ID: id}
		if err := d.unquoteTraces(ctx, tx, other); err != nil {
			return err
		}
		changed, err := d.unquoteMemories(ctx, tx, other)
		if err != nil {
			return err
		}
		if changed {
			unquoted[other] = true
		}
	}
	return nil
}

// replace replaces a text with a note, unless it is empty.
func replace(text *string, note string) {
	if *text != "" {
		*text = note
	}
}

// rewriteOutcomes changes the outcomes of a dialogue's considerations.
func rewriteOutcomes(ctx context.Context, tx sqldb.Tx, dialogueRow int64, change func(*memory.Outcome)) error {
	type endedOutcome struct {
		seq  int64
		text []byte
	}
	rows, err := tx.Query(ctx, `SELECT seq, outcome FROM considerations WHERE dialogue_row = ?`, dialogueRow)
	if err != nil {
		return err
	}
	found, err := sqldb.Collect(rows, func(scan func(...any) error) (e endedOutcome, err error) {
		err = scan(&e.seq, &e.text)
		return e, err
	})
	if err != nil {
		return err
	}
	for _, e := range found {
		var o memory.Outcome
		if sqldb.Skip(tx, sqldb.DecodeJSON(considerationsTable, e.seq, e.text, &o)) {
			o = memory.Outcome{Error: unreadableOutcome}
		}
		change(&o)
		text, err := json.Marshal(o)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE considerations SET outcome = ? WHERE seq = ?`, string(text), e.seq); err != nil {
			return err
		}
	}
	return nil
}

// unquoteTraces changes the traces of another user's consideration of the dialogue.
func (d *considered) unquoteTraces(ctx context.Context, tx sqldb.Tx, other memory.User) error {
	return rewriteTraces(ctx, tx, considerTraces, []any{other.Namespace, other.ID, d.createdAt, d.id}, func(r *trace.Record) {
		replace(&r.Error, forgottenReason)
		for i := range r.ModelCalls {
			replace(&r.ModelCalls[i].Error, forgottenReason)
		}
		if r.Consider != nil {
			replace(&r.Consider.Reason, forgottenReason)
			for i := range r.Consider.Changes {
				replace(&r.Consider.Changes[i].Reason, forgottenReason)
			}
		}
	})
}

// unquoteMemories changes the reasons in another user's memories and digests that came from the dialogue.
func (d *considered) unquoteMemories(ctx context.Context, tx sqldb.Tx, other memory.User) (changed bool, err error) {
	userRow, err := UserRow(ctx, tx, other)
	if err != nil || userRow == 0 {
		return false, err
	}
	// The ids of the statements are the consideration's with a slash and a number; after the slash comes 0.
	n, err := tx.Affect(ctx, `UPDATE memories SET provenance = json_set(provenance, '$.reason', ?3) WHERE user_row = ?1
		AND id IN (SELECT memory_id FROM applied_statements WHERE user_row = ?1 AND statement_id > ?2 || '/' AND statement_id < ?2 || '0')
		AND iif(json_valid(provenance), provenance ->> '$.consideration' = ?2 AND provenance ->> '$.reason' <> '', 0)`, userRow, d.id, forgottenReason)
	if err != nil {
		return false, err
	}
	if _, err = tx.Exec(ctx, `UPDATE memory_revisions SET reason = ?3 WHERE user_row = ?1 AND consideration_id = ?2 AND reason <> ''`,
		userRow, d.id, forgottenReason); err != nil {
		return false, err
	}
	_, err = tx.Exec(ctx, `UPDATE digest_findings SET finding = json_set(finding, '$.reason', ?3) WHERE user_row = ?1 AND contribution = ?2
		AND iif(json_valid(finding), finding ->> '$.reason' <> '', 0)`, userRow, d.id, forgottenReason)
	return n > 0, err
}

const deletedMemoryReason = "the memory has been deleted"

// ForgetMemory implements queue.Store. applied_statements lists the considerations that concern the memory. It is kept, so that nothing
// is applied twice.
func (s *Queue) ForgetMemory(ctx context.Context, user memory.User, id string) error {
	return s.db.Write(ctx, func(tx sqldb.Tx) error {
		userRow, err := UserRow(ctx, tx, user)
		if err != nil || userRow == 0 {
			return err
		}
		// A digest may have found the same in the same message, without making a memory of it.
		if _, err := tx.Exec(ctx, `DELETE FROM digest_findings WHERE row IN (SELECT p.row FROM digest_findings k JOIN digest_findings p
			ON p.user_row = k.user_row AND p.session_id = k.session_id AND p.said_at = k.said_at AND p.finding ->> '$.passing'
			AND p.finding ->> '$.category' = k.finding ->> '$.category' WHERE k.user_row = ?1 AND k.memory_id = ?2)`, userRow, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM digest_findings WHERE user_row = ? AND memory_id = ?`, userRow, id); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT DISTINCT d.row, d.created_at, d.id, d.namespace FROM applied_statements a
			JOIN dialogues d ON d.id = substr(a.statement_id, 1, instr(a.statement_id, '/') - 1)
			WHERE a.user_row = ? AND a.memory_id = ?`, userRow, id)
		if err != nil {
			return err
		}
		found, err := sqldb.Collect(rows, func(scan func(...any) error) (d considered, err error) {
			err = scan(&d.row, &d.createdAt, &d.id, &d.namespace)
			return d, err
		})
		if err != nil {
			return err
		}
		for _, d := range found {
			if err := d.forgetMemory(ctx, tx, user, id); err != nil {
				return err
			}
		}
		return nil
	})
}

func (d *considered) forgetMemory(ctx context.Context, tx sqldb.Tx, user memory.User, id string) error {
	changed := func(reason *string, changes []memory.MemoryChange) {
		for i := range changes {
			if c := &changes[i]; c.MemoryID == id {
				c.Text = ""
				replace(&c.Reason, deletedMemoryReason)
				replace(reason, deletedMemoryReason)
			}
		}
	}
	if err := rewriteOutcomes(ctx, tx, d.row, func(o *memory.Outcome) { changed(&o.Reason, o.Changes) }); err != nil {
		return err
	}
	return rewriteTraces(ctx, tx, considerTraces, []any{user.Namespace, user.ID, d.createdAt, d.id}, func(r *trace.Record) {
		if r.Consider != nil {
			changed(&r.Consider.Reason, r.Consider.Changes)
		}
	})
}

// considerTraces selects the traces of a user's consideration of a dialogue.
const considerTraces = `INDEXED BY traces_by_user WHERE namespace = ? AND user_id = ? AND created_at >= ? AND kind = 'consider'
	AND iif(json_valid(record), record ->> '$.consider.consideration' = ?, 1)`

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// Messages that a withdrawn memory rests on, or that were not to be kept, stay in their session, and are excluded from all that is derived
// from messages: search, topics, summaries and digests. An answer of the bot is excluded with the message that it follows.

// answerReach is the number of positions in which the message before an answer is searched for.
const answerReach = 20

// notExcluded is the condition for messages that are not excluded; table is session_messages or its alias in the query.
func notExcluded(table string) string {
	return fmt.Sprintf(`NOT EXISTS (SELECT 1 FROM memory_messages x WHERE x.message_row = %[1]s.row AND x.excluded = 1)
		AND (%[1]s.role <> 'assistant' OR NOT EXISTS (SELECT 1 FROM memory_messages x WHERE x.excluded = 1 AND x.message_row =
			(SELECT p.row FROM session_messages p INDEXED BY session_messages_by_place WHERE p.session_row = %[1]s.session_row
				AND p.position BETWEEN %[1]s.position - %[2]d AND %[1]s.position - 1 AND p.role = 'user'
				ORDER BY p.position DESC LIMIT 1)))`, table, answerReach)
}

// RestMemory records that a memory of a user rests on the messages that said cites.
func RestMemory(ctx context.Context, tx sqldb.Tx, userRow int64, id string, said *memory.Memory) error {
	rows, err := citedMessages(ctx, tx, userRow, said)
	if err != nil {
		return err
	}
	for _, row := range rows {
		_, err := tx.Exec(ctx, `INSERT INTO memory_messages (message_row, user_row, cause, rests, excluded) VALUES (?, ?, ?, 1, 0)
			ON CONFLICT DO UPDATE SET rests = 1`, row, userRow, id)
		if err != nil {
			return err
		}
	}
	return nil
}

// ExcludeMemory excludes the messages on which a withdrawn memory rests, those of the memories that it superseded, and those that asked for
// it to be withdrawn; request cites them and may be nil.
func ExcludeMemory(ctx context.Context, tx sqldb.Tx, userRow int64, withdrawn, request *memory.Memory) error {
	// Memories of earlier versions have no rows yet.
	if err := RestMemory(ctx, tx, userRow, withdrawn.ID, withdrawn); err != nil {
		return err
	}
	changed, err := tx.Affect(ctx, `UPDATE memory_messages SET excluded = 1 WHERE user_row = ? AND cause = ? AND excluded = 0`, userRow, withdrawn.ID)
	if err != nil {
		return err
	}
	rows, err := tx.Query(ctx, `WITH RECURSIVE before(id) AS (
			SELECT id FROM memories WHERE user_row = ?1 AND superseded_by = ?2
			UNION SELECT m.id FROM memories m JOIN before b ON m.user_row = ?1 AND m.superseded_by = b.id)
		SELECT DISTINCT x.message_row FROM before b JOIN memory_messages x ON x.user_row = ?1 AND x.cause = b.id AND x.rests = 1`,
		userRow, withdrawn.ID)
	if err != nil {
		return err
	}
	others, err := sqldb.Column[int64](rows)
	if err != nil {
		return err
	}
	if request != nil {
		asking, err := citedMessages(ctx, tx, userRow, request)
		if err != nil {
			return err
		}
		others = append(others, asking...)
	}
	more, err := exclude(ctx, tx, userRow, withdrawn.ID, others)
	if err != nil || changed+more == 0 {
		return err
	}
	return renewSummaries(ctx, tx, userRow, withdrawn.ID)
}

// exclude excludes messages for a cause, and returns how many were not excluded for it before.
func exclude(ctx context.Context, tx sqldb.Tx, userRow int64, cause string, rows []int64) (changed int64, err error) {
	for _, row := range rows {
		n, err := tx.Affect(ctx, `INSERT INTO memory_messages (message_row, user_row, cause, rests, excluded) VALUES (?, ?, ?, 0, 1)
			ON CONFLICT DO UPDATE SET excluded = 1 WHERE excluded = 0`, row, userRow, cause)
		if err != nil {
			return changed, err
		}
		changed += n
	}
	return changed, nil
}

// RestoreMemory undoes ExcludeMemory.
func RestoreMemory(ctx context.Context, tx sqldb.Tx, userRow int64, id string) error {
	if err := renewSummaries(ctx, tx, userRow, id); err != nil {
		return err
	}
	for _, statement := range []string{
		`DELETE FROM memory_messages WHERE user_row = ? AND cause = ? AND rests = 0`,
		`UPDATE memory_messages SET excluded = 0 WHERE user_row = ? AND cause = ?`,
	} {
		if _, err := tx.Exec(ctx, statement, userRow, id); err != nil {
			return err
		}
	}
	return nil
}

// DropMemory removes what is known of the messages of a memory that is being deleted. Those that are excluded stay excluded.
func DropMemory(ctx context.Context, tx sqldb.Tx, userRow int64, id string) error {
	_, err := tx.Exec(ctx, `DELETE FROM memory_messages WHERE user_row = ? AND cause = ? AND excluded = 0`, userRow, id)
	return err
}

// Exclude implements session.Store.
func (s *Sessions) Exclude(ctx context.Context, user memory.User, considerationID string, refs []string) error {
	return s.rewrite(ctx, func(tx sqldb.Tx) error {
		userRow, err := UserRow(ctx, tx, user)
		if err != nil || userRow == 0 {
			return err
		}
		rows, err := citedMessages(ctx, tx, userRow, &memory.Memory{Provenance: memory.Provenance{ConsiderationID: considerationID, MessageIDs: refs}})
		if err != nil {
			return err
		}
		changed, err := exclude(ctx, tx, userRow, considerationID, rows)
		if err != nil || changed == 0 {
			return err
		}
		return renewSummaries(ctx, tx, userRow, considerationID)
	})
}

// forgetCauses removes the user from the exclusions of messages that stay: other users' and the answers to them.
func forgetCauses(ctx context.Context, tx sqldb.Tx, userRow int64) error {
	_, err := tx.Exec(ctx, `INSERT OR IGNORE INTO memory_messages (message_row, user_row, cause, rests, excluded)
		SELECT message_row, 0, '', 0, 1 FROM memory_messages WHERE user_row = ? AND excluded = 1`, userRow)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `DELETE FROM memory_messages WHERE user_row = ?`, userRow)
	return err
}

// dropUser deletes the user's row, and the user from the exclusions.
func dropUser(ctx context.Context, tx sqldb.Tx, userRow int64) error {
	if err := forgetCauses(ctx, tx, userRow); err != nil {
		return err
	}
	return DropUserRow(ctx, tx, userRow)
}

// renewSummaries deletes the summaries that cover messages excluded for a cause, invalidates running ones, and requests new ones. The
// column summarize_at may be overwritten from the cache of sessions: then the next message makes the summary due.
func renewSummaries(ctx context.Context, tx sqldb.Tx, userRow int64, cause string) error {
	type place struct{ session, position int64 }
	rows, err := tx.Query(ctx, `SELECT m.session_row, min(m.position) FROM memory_messages x JOIN session_messages m ON m.row = x.message_row
		WHERE x.user_row = ? AND x.cause = ? AND x.excluded = 1 GROUP BY m.session_row`, userRow, cause)
	if err != nil {
		return err
	}
	places, err := sqldb.Collect(rows, func(scan func(...any) error) (p place, err error) {
		err = scan(&p.session, &p.position)
		return p, err
	})
	if err != nil {
		return err
	}
	for _, p := range places {
		_, err := tx.Exec(ctx, `UPDATE sessions SET exclusions = exclusions + 1, summarize_at = CASE WHEN id IS NOT NULL
			AND EXISTS (SELECT 1 FROM session_summaries WHERE session_row = ?1 AND last_position >= ?2) THEN ?3 ELSE summarize_at END
			WHERE row = ?1`, p.session, p.position, sqldb.Micros(time.Now()))
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `DELETE FROM session_summaries WHERE session_row = ? AND last_position >= ?`, p.session, p.position)
		if err != nil {
			return err
		}
	}
	return nil
}

// citedMessages returns the rows of the messages that a memory cites, in order and without messages of other people. Messages that are in
// no session are left out.
func citedMessages(ctx context.Context, tx sqldb.Tx, userRow int64, m *memory.Memory) (rows []int64, err error) {
	f := citations{tx: tx, dialogues: map[string]*citedDialogue{}}
	own, err := f.dialogue(ctx, m.Provenance.ConsiderationID)
	if err != nil {
		return nil, err
	}
	session := own.session
	if session == 0 {
		if session, err = f.session(ctx, userRow, m); err != nil {
			return nil, err
		}
	}
	var found []int64
	for _, ref := range m.Provenance.MessageIDs {
		consideration, number, ok := positionOf(ref)
		switch {
		case ok && consideration == "":
			err = f.said(ctx, &found, own, number)
		case ok:
			var earlier *citedDialogue
			if earlier, err = f.dialogue(ctx, consideration); err == nil {
				err = f.said(ctx, &found, earlier, number)
			}
		case session == 0:
		case strings.HasPrefix(ref, "@") && m.Provenance.ConsiderationID == "": // of a digest
			err = f.add(ctx, &found, `session_row = ? AND position = ?`, session, strings.TrimPrefix(ref, "@"))
		default:
			err = f.add(ctx, &found, `session_row = ? AND id = ?`, session, ref)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, row := range found {
		var own bool
		err := tx.QueryRow(ctx, `SELECT role <> 'user' OR owner_row IS ? FROM session_messages WHERE row = ?`, userRow, row).Scan(&own)
		if err != nil {
			return nil, err
		}
		if own {
			rows = append(rows, row)
		}
	}
	slices.Sort(rows)
	return slices.Compact(rows), nil
}

// positionOf reads a reference that names a message by its position in a dialogue.
func positionOf(ref string) (consideration string, number int, ok bool) {
	consideration, digits, ok := strings.Cut(ref, "#")
	if !ok || consideration != "" && !strings.HasPrefix(consideration, "con_") {
		return "", 0, false
	}
	number, err := strconv.Atoi(digits)
	return consideration, number, err == nil && number >= 0
}

// citations finds messages in sessions.
type citations struct {
	tx        sqldb.Tx
	dialogues map[string]*citedDialogue
}

// citedDialogue is a dialogue whose messages are in a session.
type citedDialogue struct {
	session  int64 // 0: in none
	messages []memory.Message
	texts    []string // the messages in stored form
}

func (f *citations) dialogue(ctx context.Context, consideration string) (*citedDialogue, error) {
	if d := f.dialogues[consideration]; d != nil {
		return d, nil
	}
	d := &citedDialogue{}
	f.dialogues[consideration] = d
	var session sql.NullInt64
	var text []byte
	err := f.tx.QueryRow(ctx, `SELECT session_row, messages FROM dialogues WHERE id = ?`, consideration).Scan(&session, &text)
	if errors.Is(err, sql.ErrNoRows) {
		return d, nil
	}
	if err != nil {
		return nil, err
	}
	d.session = session.Int64
	if sqldb.Skip(f.tx, sqldb.DecodeJSON(dialoguesTable, consideration, text, &d.messages)) {
		d.messages = nil
	}
	d.texts, err = encodeMessages(d.messages)
	return d, err
}

// session returns the session of a memory whose dialogue is not kept any more.
func (f *citations) session(ctx context.Context, userRow int64, m *memory.Memory) (row int64, err error) {
	if m.SessionID == "" {
		return 0, nil
	}
	err = f.tx.QueryRow(ctx, `SELECT s.row FROM sessions s JOIN session_participants p ON p.session_row = s.row
		WHERE p.user_row = ? AND s.id = ? AND s.visibility = ? ORDER BY s.row DESC LIMIT 1`, userRow, m.SessionID, m.Channel.VisibilityKey()).Scan(&row)
	return row, sqldb.Optional(err)
}

// said adds the session's message that is a message of a dialogue. A person's is found by its time, an answer near a person's.
func (f *citations) said(ctx context.Context, found *[]int64, d *citedDialogue, number int) error {
	if d.session == 0 || number >= len(d.messages) {
		return nil
	}
	if d.messages[number].Role == memory.RoleUser {
		return f.add(ctx, found, `session_row = ? AND role = 'user' AND withheld = 0 AND said_at = ? AND message = ?`,
			d.session, sqldb.Micros(d.messages[number].Time), d.texts[number])
	}
	nearest := -1
	for i := range d.messages {
		if d.messages[i].Role == memory.RoleUser && (nearest < 0 || distance(i, number) < distance(nearest, number)) {
			nearest = i
		}
	}
	if nearest < 0 {
		return nil
	}
	var position int64
	err := f.tx.QueryRow(ctx, `SELECT position FROM session_messages WHERE session_row = ? AND role = 'user' AND withheld = 0 AND said_at = ?
		AND message = ? LIMIT 1`, d.session, sqldb.Micros(d.messages[nearest].Time), d.texts[nearest]).Scan(&position)
	if err != nil {
		return sqldb.Optional(err)
	}
	reach := int64(distance(nearest, number) + answerReach)
	return f.add(ctx, found, `session_row = ? AND position BETWEEN ? AND ? AND message = ?`, d.session, position-reach, position+reach, d.texts[number])
}

func distance(a, b int) int { return max(a-b, b-a) }

// add adds the rows of the messages that match.
func (f *citations) add(ctx context.Context, found *[]int64, where string, args ...any) error {
	rows, err := f.tx.Query(ctx, `SELECT row FROM session_messages WHERE `+where, args...)
	if err != nil {
		return err
	}
	list, err := sqldb.Column[int64](rows)
	*found = append(*found, list...)
	return err
}

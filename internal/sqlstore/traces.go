package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/trace"
)

// tracesStep is how many records one transaction writes or deletes: others wait for it.
const tracesStep = 500

// Traces implements trace.Store.
type Traces struct{ db sqldb.Access }

var _ trace.Store = (*Traces)(nil)

// NewTraces returns the traces in the database.
func NewTraces(db sqldb.Access) *Traces { return &Traces{db} }

// Append implements trace.Store.
func (s *Traces) Append(ctx context.Context, records []trace.Record) error {
	for part := range slices.Chunk(records, tracesStep) {
		texts := make([][]byte, len(part))
		for i := range part {
			text, err := json.Marshal(&part[i])
			if err != nil {
				return err
			}
			texts[i] = text
		}
		if err := s.db.Write(ctx, func(tx sqldb.Tx) error { return appendTraces(ctx, tx, part, texts) }); err != nil {
			return err
		}
	}
	return nil
}

func appendTraces(ctx context.Context, tx sqldb.Tx, records []trace.Record, texts [][]byte) error {
	for i := range records {
		r := &records[i]
		_, err := tx.Exec(ctx, `INSERT INTO traces (id, namespace, user_id, agent_id, channel_kind, channel_id, visibility,
			session_id, turn_id, kind, created_at, record) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			r.ID, r.Scope.Namespace, r.Scope.UserID, r.Scope.AgentID, string(r.Scope.Channel.Kind), r.Scope.Channel.ID,
			r.Scope.Channel.VisibilityKey(), r.Scope.SessionID, r.TurnID, string(r.Kind()), r.At.UnixMicro(), string(texts[i]))
		if err != nil {
			return err
		}
	}
	return nil
}

const traceColumns = `row, id, namespace, user_id, agent_id, channel_kind, channel_id, session_id, turn_id, created_at, record`

// numbered is a record with its row, which makes the order total.
type numbered struct {
	trace.Record
	row int64
}

func scanTrace(scan func(...any) error) (r numbered, err error) {
	var at int64
	var text []byte
	err = scan(&r.row, &r.ID, &r.Scope.Namespace, &r.Scope.UserID, &r.Scope.AgentID, &r.Scope.Channel.Kind, &r.Scope.Channel.ID,
		&r.Scope.SessionID, &r.TurnID, &at, &text)
	r.At = time.UnixMicro(at).UTC()
	if err != nil {
		return r, sqldb.Scanned("traces", r.ID, err)
	}
	return r, errors.Join(sqldb.DecodeJSON("traces", r.ID, text, &r.Record), sqldb.Times("traces", r.ID, r.At))
}

// Get implements trace.Store.
func (s *Traces) Get(ctx context.Context, user memory.User, id string, audience memory.Audience) (r trace.Record, err error) {
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		found, err := scanTrace(q.QueryRow(ctx, `SELECT `+traceColumns+` FROM traces WHERE id = ? AND namespace = ? AND user_id = ?`,
			id, user.Namespace, user.ID).Scan)
		if errors.Is(err, sql.ErrNoRows) || (err == nil || errors.Is(err, memory.ErrDamaged)) && !audience.Sees(found.Scope.Channel) {
			return fmt.Errorf("trace %q: %w", id, memory.ErrNotFound)
		}
		r = found.Record
		return err
	})
	return r, err
}

// List implements trace.Store.
func (s *Traces) List(ctx context.Context, l trace.ListQuery) (records []trace.Record, next string, err error) {
	query, args, err := listTraces(l)
	if err != nil {
		return nil, "", err
	}
	var found []sqldb.Marked[numbered]
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		rows, err := q.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		found, err = sqldb.CollectMarked(q, rows, scanTrace)
		return err
	})
	if len(found) > l.Limit {
		found = found[:l.Limit]
		last := found[l.Limit-1].Row
		next = fmt.Sprintf("%d.%d", last.At.UnixMicro(), last.row)
	}
	for _, r := range found {
		if !r.Damaged && l.Audience.Sees(r.Row.Scope.Channel) {
			records = append(records, r.Row.Record)
		}
	}
	return records, next, err
}

// listTraces makes the query of a page and one more. Every index it names ends with the time, so that a page costs what
// it looks at.
func listTraces(l trace.ListQuery) (query string, args []any, err error) {
	index := "traces_by_user"
	where := []string{"namespace = ?", "user_id = ?"}
	args = []any{l.User.Namespace, l.User.ID}
	add := func(condition string, values ...any) {
		where, args = append(where, condition), append(args, values...)
	}
	if l.SessionID != "" {
		index = "traces_by_session"
		add("session_id = ? AND session_id <> ''", l.SessionID)
	}
	if l.TurnID != "" {
		index = "traces_by_turn"
		add("turn_id = ? AND turn_id <> ''", l.TurnID)
	}
	if l.Kind != "" {
		add("kind = ?", string(l.Kind))
	}
	if keys, all := l.Audience.Keys(); !all {
		visible, err := json.Marshal(keys)
		if err != nil {
			return "", nil, err
		}
		add("visibility IN (SELECT value FROM json_each(?))", string(visible))
	}
	// Stored times are whole microseconds: what began at or after From did so at or after the next whole one.
	if !l.From.IsZero() {
		add("created_at >= ?", wholeMicros(l.From))
	}
	if !l.Before.IsZero() {
		add("created_at < ?", wholeMicros(l.Before))
	}
	order, compare := "DESC", "<"
	if l.OldestFirst {
		order, compare = "ASC", ">"
	}
	if l.After != "" {
		at, row, ok := strings.Cut(l.After, ".")
		micros, err1 := strconv.ParseInt(at, 10, 64)
		number, err2 := strconv.ParseInt(row, 10, 64)
		if !ok || err1 != nil || err2 != nil {
			return "", nil, memory.Invalid("page_token", "is invalid: start again without it")
		}
		add("(created_at, row) "+compare+" (?, ?)", micros, number)
	}
	query = `SELECT ` + traceColumns + ` FROM traces INDEXED BY ` + index + ` WHERE ` + strings.Join(where, " AND ") +
		` ORDER BY created_at ` + order + `, row ` + order + ` LIMIT ?`
	return query, append(args, l.Limit+1), nil
}

// wholeMicros rounds a time up to what the database keeps.
func wholeMicros(t time.Time) int64 {
	micros := t.UnixMicro()
	if time.UnixMicro(micros).Before(t) {
		micros++
	}
	return micros
}

// Prune implements trace.Store.
func (s *Traces) Prune(ctx context.Context, before time.Time, keep, limit int) (deleted int64, err error) {
	var rows []int64
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		rows, err = prunable(ctx, q, before, keep, limit)
		return err
	})
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	list, err := json.Marshal(rows)
	if err != nil {
		return 0, err
	}
	err = s.db.Write(ctx, func(tx sqldb.Tx) error {
		deleted, err = tx.Affect(ctx, `DELETE FROM traces WHERE row IN (SELECT value FROM json_each(?))`, string(list))
		return err
	})
	return deleted, err
}

// prunable finds the oldest rows that are too old or too many. Rows are given out in order, so that hardly anything needs
// to be counted until there may be too many.
func prunable(ctx context.Context, q sqldb.Querier, before time.Time, keep, limit int) ([]int64, error) {
	at, row := before.UnixMicro(), int64(0) // up to and including these
	var span sql.NullInt64
	err := q.QueryRow(ctx, `SELECT (SELECT max(row) FROM traces) - (SELECT min(row) FROM traces) + 1`).Scan(&span)
	if err != nil {
		return nil, err
	}
	if span.Int64 > int64(keep) {
		var beyondAt, beyondRow int64
		err := q.QueryRow(ctx, `SELECT created_at, row FROM traces INDEXED BY traces_by_time ORDER BY created_at DESC, row DESC
			LIMIT 1 OFFSET ?`, keep).Scan(&beyondAt, &beyondRow)
		switch {
		case errors.Is(err, sql.ErrNoRows): // there are gaps
		case err != nil:
			return nil, err
		case beyondAt >= at:
			at, row = beyondAt, beyondRow
		}
	}
	rows, err := q.Query(ctx, `SELECT row FROM traces WHERE (created_at, row) <= (?, ?) ORDER BY created_at, row LIMIT ?`,
		at, row, limit)
	if err != nil {
		return nil, err
	}
	return sqldb.Column[int64](rows)
}

// Forget implements trace.Store.
func (s *Traces) Forget(ctx context.Context, user memory.User) (int64, error) {
	return s.deleteInSteps(ctx, `namespace = ? AND user_id = ?`, user.Namespace, user.ID)
}

// ForgetSession implements trace.Store.
func (s *Traces) ForgetSession(ctx context.Context, namespace, sessionID string, channel memory.Channel, users ...string) (int64, error) {
	if sessionID == "" {
		return 0, nil // what happened in no session
	}
	list, err := jsonList(users)
	if err != nil {
		return 0, err
	}
	return s.deleteInSteps(ctx, `namespace = ? AND session_id = ? AND session_id <> '' AND visibility = ?
		AND (? = 0 OR user_id IN (SELECT value FROM json_each(?)))`, namespace, sessionID, channel.VisibilityKey(), len(users), list)
}

func (s *Traces) deleteInSteps(ctx context.Context, where string, args ...any) (count int64, err error) {
	for {
		var deleted int64
		err := s.db.Write(ctx, func(tx sqldb.Tx) (err error) {
			deleted, err = tx.Affect(ctx, `DELETE FROM traces WHERE row IN (SELECT row FROM traces WHERE `+where+` LIMIT `+
				strconv.Itoa(tracesStep)+`)`, args...)
			return err
		})
		count += deleted
		if err != nil || deleted < tracesStep {
			return count, err
		}
	}
}

// rewriteTraces changes the records that a clause finds.
func rewriteTraces(ctx context.Context, tx sqldb.Tx, where string, args []any, change func(*trace.Record)) error {
	type stored struct {
		row  int64
		text []byte
	}
	rows, err := tx.Query(ctx, `SELECT row, record FROM traces `+where, args...)
	if err != nil {
		return err
	}
	found, err := sqldb.Collect(rows, func(scan func(...any) error) (r stored, err error) {
		err = scan(&r.row, &r.text)
		return r, err
	})
	if err != nil {
		return err
	}
	for _, f := range found {
		var r trace.Record
		if sqldb.Skip(tx, sqldb.DecodeJSON("traces", f.row, f.text, &r)) { // what it says cannot be taken out of it
			if _, err := tx.Exec(ctx, `DELETE FROM traces WHERE row = ?`, f.row); err != nil {
				return err
			}
			continue
		}
		change(&r)
		text, err := json.Marshal(&r)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE traces SET record = ? WHERE row = ?`, string(text), f.row); err != nil {
			return err
		}
	}
	return nil
}

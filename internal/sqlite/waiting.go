package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
)

// Waiting is what waits in the queue, or runs, in all namespaces.
type Waiting struct {
	Considerations int64
	Bytes          int64 // of their dialogues' messages as they are stored, each dialogue once
	Counted        bool  // false for a moment after the start, when much waits
}

// with is what waits when so much more does.
func (w Waiting) with(more Waiting) Waiting {
	w.Considerations += more.Considerations
	w.Bytes += more.Bytes
	return w
}

// What waits is the sum of what was accepted, which the writer adds up itself (accepted), and of what a table of the writer's connection
// alone has counted: there triggers see every way in which a consideration ceases to wait, or begins to again. What a transaction takes
// back is taken back in both. Nothing of it is in the file, which therefore cannot contradict it.
const (
	waits = `IN ('pending', 'running')`

	countTable = `CREATE TEMP TABLE waiting (considerations INTEGER NOT NULL, bytes INTEGER NOT NULL, counted INTEGER NOT NULL);
		INSERT INTO waiting VALUES (0, 0, 0)`

	// countSize is how much a consideration adds to what waits, or takes away: its dialogue when no other one waits for it. A
	// dialogue that is being deleted has been taken away by countDialogueDeleted.
	countSize = `CASE WHEN EXISTS (SELECT 1 FROM considerations WHERE dialogue_row = ROW.dialogue_row AND seq <> ROW.seq AND state ` + waits + `)
		THEN 0 ELSE coalesce((SELECT octet_length(messages) FROM dialogues WHERE row = ROW.dialogue_row), 0) END`
	countMore = `UPDATE waiting SET considerations = considerations + 1, bytes = bytes + ` + countSize + `; END`
	countLess = `UPDATE waiting SET considerations = considerations - 1, bytes = bytes - ` + countSize + `; END`

	countEnded = `CREATE TEMP TRIGGER count_ended AFTER UPDATE OF state ON main.considerations
		WHEN OLD.state ` + waits + ` AND NOT NEW.state ` + waits + ` BEGIN `
	countRetried = `CREATE TEMP TRIGGER count_retried AFTER UPDATE OF state ON main.considerations
		WHEN NEW.state ` + waits + ` AND NOT OLD.state ` + waits + ` BEGIN `
	countDeleted = `CREATE TEMP TRIGGER count_deleted AFTER DELETE ON main.considerations WHEN OLD.state ` + waits + ` BEGIN `

	countRewritten = `CREATE TEMP TRIGGER count_rewritten AFTER UPDATE OF messages ON main.dialogues
		WHEN EXISTS (SELECT 1 FROM considerations WHERE dialogue_row = NEW.row AND state ` + waits + `)
		BEGIN UPDATE waiting SET bytes = bytes + octet_length(NEW.messages) - octet_length(OLD.messages); END`
	countDialogueDeleted = `CREATE TEMP TRIGGER count_dialogue_deleted BEFORE DELETE ON main.dialogues
		WHEN EXISTS (SELECT 1 FROM considerations WHERE dialogue_row = OLD.row AND state ` + waits + `)
		BEGIN UPDATE waiting SET bytes = bytes - octet_length(OLD.messages); END`
)

func countStatements() []string {
	with := func(trigger, body, row string) string { return trigger + strings.ReplaceAll(body, "ROW.", row+".") }
	return []string{
		countTable, with(countEnded, countLess, "NEW"), with(countRetried, countMore, "NEW"),
		with(countDeleted, countLess, "OLD"), countRewritten, countDialogueDeleted,
	}
}

const (
	// countAtOnce is how many may wait for what waits to be counted before the database counts as open. That takes milliseconds;
	// a million takes seconds, and goes on in the background.
	countAtOnce = 2000
	countAgain  = 10 * time.Second // after an error
)

// beginCounting sets the triggers going, and counts what waits already. It is called before the writer runs.
func (d *database) beginCounting(ctx context.Context) error {
	for _, statement := range countStatements() {
		if _, err := d.conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	var some int
	err := d.conn.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT 1 FROM considerations INDEXED BY considerations_line
		WHERE state `+waits+` LIMIT ?)`, countAtOnce).Scan(&some)
	if err != nil {
		return err
	}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d.stopCounting = cancel
	if some < countAtOnce {
		w, err := countWaiting(ctx, d.conn.QueryRowContext)
		if err != nil {
			return err
		}
		if _, err := d.conn.ExecContext(ctx, addCounted, w.Considerations, w.Bytes); err != nil {
			return err
		}
		return d.noteWaiting(ctx)
	}
	d.counting.Go(func() { d.countEventually(background) })
	return nil
}

// accepted is what was accepted since the table began to count.
type accepted struct {
	committed Waiting
	now       Waiting // in the transaction under way
	noted     Waiting // what waits in all, as of the last commit
	stale     bool    // more may wait than that and what was accepted now
}

func (a *accepted) commit() {
	a.committed, a.now = a.committed.with(a.now), Waiting{}
}

const addCounted = `UPDATE waiting SET considerations = considerations + ?, bytes = bytes + ?, counted = 1`

// countWaiting costs what waits.
func countWaiting(ctx context.Context, query func(context.Context, string, ...any) *sql.Row) (w Waiting, err error) {
	err = query(ctx, `SELECT count(*) FROM considerations INDEXED BY considerations_line WHERE state `+waits).Scan(&w.Considerations)
	if err == nil {
		err = query(ctx, `SELECT coalesce(sum(octet_length(messages)), 0) FROM dialogues WHERE row IN
			(SELECT dialogue_row FROM considerations INDEXED BY considerations_line WHERE state `+waits+`)`).Scan(&w.Bytes)
	}
	return w, err
}

// countEventually counts in the background what waited when it began. What changes meanwhile is counted by the triggers.
func (d *database) countEventually(ctx context.Context) {
	for {
		err := d.countBefore(ctx)
		if err == nil || ctx.Err() != nil || errors.Is(err, errClosed) {
			return
		}
		d.log.Warn("what waits in the queue cannot be counted yet; queue.max_pending does not hold meanwhile", "error", err)
		if !background.Sleep(ctx, countAgain) {
			return
		}
	}
}

func (d *database) countBefore(ctx context.Context) (err error) {
	reader, err := d.readers.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	// Between two transactions of the writer the triggers begin at 0, and the reader keeps what the database is then.
	began := false
	err = d.submit(ctx, &writeRequest{after: func(context.Context) error {
		if _, err := d.tx.Exec(ctx, `UPDATE waiting SET considerations = 0, bytes = 0`); err != nil {
			return err
		}
		d.tx.accepted.committed = Waiting{}
		if _, err := reader.ExecContext(ctx, `BEGIN`); err != nil {
			return err
		}
		began = true
		var one int
		return reader.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT 1 FROM considerations LIMIT 1)`).Scan(&one)
	}})
	if began {
		defer func() {
			_, end := reader.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
			err = errors.Join(err, end)
		}()
	}
	if err != nil {
		return err
	}
	w, err := countWaiting(ctx, reader.QueryRowContext)
	if err != nil {
		return err
	}
	return d.submit(ctx, &writeRequest{fn: func(tx *Tx) error {
		_, err := tx.Exec(ctx, addCounted, w.Considerations, w.Bytes)
		return err
	}})
}

// endCounting waits for what counts in the background.
func (d *database) endCounting() {
	if d.stopCounting != nil {
		d.stopCounting()
	}
	d.counting.Wait()
}

// noteWaiting keeps what is counted where others than the writer see it.
func (d *database) noteWaiting(ctx context.Context) error {
	w, err := d.tx.readWaiting(ctx)
	if d.tx.accepted.stale = err != nil; err == nil {
		d.tx.accepted.noted = w
		d.waiting.Store(&w)
	}
	return err
}

// readWaiting is what waits now, in the middle of a transaction as well.
func (t *Tx) readWaiting(ctx context.Context) (w Waiting, err error) {
	err = t.QueryRow(ctx, `SELECT considerations, bytes, counted FROM waiting`).Scan(&w.Considerations, &w.Bytes, &w.Counted)
	return w.with(t.accepted.committed).with(t.accepted.now), err
}

// Waiting is what waits in the queue; the zero value while storage is down.
func (s *Storage) Waiting() Waiting {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.db == nil {
		return Waiting{}
	}
	if w := s.db.waiting.Load(); w != nil {
		return *w
	}
	return Waiting{}
}

// wait counts what is being accepted: considerations that wait for one dialogue of so many bytes. It is a *memory.OverloadError when
// too much waits of everybody together already. A trigger would cost more: with one on inserts SQLite keeps a copy of each page that
// they change.
func wait(ctx context.Context, tx *Tx, a queue.Acceptance, considerations, bytes int64) error {
	if considerations == 0 { // what is skipped does not wait
		return nil
	}
	if a.MaxPendingTotal > 0 || a.MaxPendingBytes > 0 {
		if err := hasRoomForAll(ctx, tx, a); err != nil {
			return err
		}
	}
	tx.accepted.now = tx.accepted.now.with(Waiting{Considerations: considerations, Bytes: bytes})
	return nil
}

// hasRoomForAll is a *memory.OverloadError when too much waits of everybody together. Only when that seems to be so is it asked what has
// ceased to wait in this transaction.
func hasRoomForAll(ctx context.Context, tx *Tx, a queue.Acceptance) (err error) {
	w := tx.accepted.noted.with(tx.accepted.now)
	if !tx.accepted.stale && (!w.Counted || overfull(w, a) == "") {
		return nil
	}
	if w, err = tx.readWaiting(ctx); err != nil || !w.Counted {
		return err
	}
	full := overfull(w, a)
	if full == "" {
		return nil
	}
	return &memory.OverloadError{
		Limit:      full + ": keep this dialogue; memsidecar status says which model the others wait for",
		RetryAfter: overloadRetry,
	}
}

// overfull says which bound on what waits of everybody is reached, or "".
func overfull(w Waiting, a queue.Acceptance) string {
	switch {
	case a.MaxPendingTotal > 0 && w.Considerations >= int64(a.MaxPendingTotal):
		return fmt.Sprintf("%d considerations of all users are waiting already (queue.max_pending)", w.Considerations)
	case a.MaxPendingBytes > 0 && w.Bytes >= a.MaxPendingBytes:
		return fmt.Sprintf("%d MiB of dialogues of all users are waiting already (queue.max_pending_bytes)", w.Bytes>>20)
	}
	return ""
}

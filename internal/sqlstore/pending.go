package sqlstore

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// Pending counts pending and running considerations in all namespaces.
type Pending struct {
	Considerations int64
	Bytes          int64 // stored bytes of their dialogues' messages, each dialogue once
	Counted        bool  // false until all rows pending at the start are counted
}

// isPending is the condition for a consideration's state.
const isPending = `IN ('pending', 'running')`

// countedPerWrite is the number of dialogues that one transaction counts, in some milliseconds.
const countedPerWrite = 2000

// pendingCounter counts pending considerations in memory. It starts with the stored rows: with each accepted dialogue and each claim of
// jobs it counts some more, in the order of the dialogues' rows, until all are counted. A change of a counted dialogue changes the
// numbers; a change of another one does not, because that one is counted later.
//
// It sees only changes by this process. With several processes on one database the rows must be counted again periodically, by restart.
type pendingCounter struct {
	mu sync.Mutex
	counting
}

// counting is the state of the counter.
type counting struct {
	total   Pending
	started bool
	counted int64 // dialogues up to this row are counted
}

// restart starts counting again, because the database may be another one.
func (c *pendingCounter) restart() { c.move(counting{}) }

func (c *pendingCounter) get() Pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// add changes the numbers if the dialogue is counted; a rollback of the transaction reverts the change.
func (c *pendingCounter) add(tx sqldb.Tx, dialogueRow, considerations, bytes int64) {
	if considerations == 0 && bytes == 0 || !c.addCounted(dialogueRow, considerations, bytes) {
		return
	}
	tx.OnRollback(func() { c.addCounted(0, -considerations, -bytes) })
}

func (c *pendingCounter) addCounted(dialogueRow, considerations, bytes int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if dialogueRow > c.counted {
		return false
	}
	c.total.Considerations += considerations
	c.total.Bytes += bytes
	return true
}

// advance counts some dialogues that are not counted yet.
func (c *pendingCounter) advance(ctx context.Context, tx sqldb.Tx) error {
	c.mu.Lock()
	before := c.counting
	c.mu.Unlock()
	if before.total.Counted {
		return nil
	}
	after, err := before.next(ctx, tx)
	if tx.Unreadable(err) != nil {
		return nil //nolint:nilerr // the numbers stay incomplete, and nothing is refused because of them
	}
	if err != nil {
		return err
	}
	c.move(after)
	tx.OnRollback(func() { c.move(before) })
	return nil
}

func (c *pendingCounter) move(to counting) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counting = to
}

func (p counting) next(ctx context.Context, tx sqldb.Tx) (counting, error) {
	if !p.started {
		// Considerations have the order of their dialogues, so counting starts at the first pending one.
		err := tx.QueryRow(ctx, `SELECT coalesce((SELECT dialogue_row - 1 FROM considerations WHERE seq =
			(SELECT min(seq) FROM considerations INDEXED BY considerations_line WHERE state `+isPending+`)), ?)`, int64(math.MaxInt64)).Scan(&p.counted)
		if err != nil {
			return p, err
		}
		p.started = true
	}
	var last, dialogues int64
	err := tx.QueryRow(ctx, `SELECT coalesce(max(row), 0), count(*) FROM (SELECT row FROM dialogues WHERE row > ? ORDER BY row LIMIT ?)`,
		p.counted, countedPerWrite).Scan(&last, &dialogues)
	if err != nil {
		return p, err
	}
	var considerations, bytes int64
	err = tx.QueryRow(ctx, `SELECT coalesce(sum(pending), 0), coalesce(sum(bytes), 0) FROM (
		SELECT octet_length(messages) AS bytes, (SELECT count(*) FROM considerations WHERE dialogue_row = dialogues.row AND state `+isPending+`) AS pending
		FROM dialogues WHERE row > ? AND row <= ?) WHERE pending > 0`, p.counted, last).Scan(&considerations, &bytes)
	if err != nil {
		return p, err
	}
	p.total.Considerations += considerations
	p.total.Bytes += bytes
	if p.counted = last; dialogues < countedPerWrite {
		p.counted, p.total.Counted = math.MaxInt64, true
	}
	return p, nil
}

// changing calls fn, which changes dialogues or their considerations, and updates the numbers.
func (c *pendingCounter) changing(ctx context.Context, tx sqldb.Tx, dialogueRows []int64, fn func() error) error {
	considerations, bytes := make([]int64, len(dialogueRows)), make([]int64, len(dialogueRows))
	var err error
	for i, row := range dialogueRows {
		if considerations[i], bytes[i], err = pendingOf(ctx, tx, row); err != nil {
			return err
		}
	}
	if err := fn(); err != nil {
		return err
	}
	for i, row := range dialogueRows {
		n, size, err := pendingOf(ctx, tx, row)
		if err != nil {
			return err
		}
		c.add(tx, row, n-considerations[i], size-bytes[i])
	}
	return nil
}

// pendingOf counts how many considerations of a dialogue are pending, and its bytes if any is.
func pendingOf(ctx context.Context, q sqldb.Querier, dialogueRow int64) (considerations, bytes int64, err error) {
	err = q.QueryRow(ctx, `SELECT count(*), CASE WHEN count(*) > 0 THEN (SELECT octet_length(messages) FROM dialogues WHERE row = ?1) ELSE 0 END
		FROM considerations WHERE dialogue_row = ?1 AND state `+isPending, dialogueRow).Scan(&considerations, &bytes)
	return considerations, bytes, err
}

// hasRoomForAll returns a *memory.OverloadError if too much is pending for all users together.
func (c *pendingCounter) hasRoomForAll(ctx context.Context, tx sqldb.Tx, a queue.Acceptance) error {
	if a.MaxPendingTotal <= 0 && a.MaxPendingBytes <= 0 {
		return nil
	}
	if err := c.advance(ctx, tx); err != nil {
		return err
	}
	p := c.get()
	if !p.Counted {
		return nil
	}
	var full string
	switch {
	case a.MaxPendingTotal > 0 && p.Considerations >= int64(a.MaxPendingTotal):
		full = fmt.Sprintf("%d considerations of all users are pending already (queue.max_pending)", p.Considerations)
	case a.MaxPendingBytes > 0 && p.Bytes >= a.MaxPendingBytes:
		full = fmt.Sprintf("%d MiB of dialogues of all users are pending already (queue.max_pending_bytes)", p.Bytes>>20)
	default:
		return nil
	}
	return &memory.OverloadError{
		Limit:      full + ": keep this dialogue; memsidecar status says which model the others wait for",
		RetryAfter: overloadRetry,
	}
}

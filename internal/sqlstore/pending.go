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

// Pending is how much is pending or running in the queue, in all namespaces.
type Pending struct {
	Considerations int64
	Bytes          int64 // of the messages of their dialogues as they are stored, each dialogue once
	Counted        bool  // false until everything that was pending at the start is counted
}

// isPending is the condition for a consideration's state.
const isPending = `IN ('pending', 'running')`

// countedPerWrite is how many dialogues one transaction counts: some milliseconds.
const countedPerWrite = 2000

// pendingCounter counts what is pending, in memory. It begins with the rows: each dialogue that is accepted and each claim of jobs counts some,
// in the order of the dialogues' rows, until all are counted. A change of a dialogue that is counted changes the numbers, a change
// of another one does not, because it will be counted later.
//
// It counts what this process does. With several processes on one database the numbers must be read from rows again at times: restart does that.
type pendingCounter struct {
	mu sync.Mutex
	counting
}

// counting is how far the counter is.
type counting struct {
	total   Pending
	started bool
	counted int64 // dialogues up to this row are counted
}

// restart counts from the beginning, because the database may be another one.
func (c *pendingCounter) restart() { c.move(counting{}) }

func (c *pendingCounter) get() Pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// add changes the numbers if the dialogue is counted, until the transaction is rolled back.
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
		// Considerations have the order of their dialogues. Before the first that is pending there is nothing to count.
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

// changing calls fn, which changes dialogues or considerations of them, and counts what that changes.
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

// hasRoomForAll is a *memory.OverloadError when too much is pending of all users together.
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
		full = fmt.Sprintf("%d considerations of all users are waiting already (queue.max_pending)", p.Considerations)
	case a.MaxPendingBytes > 0 && p.Bytes >= a.MaxPendingBytes:
		full = fmt.Sprintf("%d MiB of dialogues of all users are waiting already (queue.max_pending_bytes)", p.Bytes>>20)
	default:
		return nil
	}
	return &memory.OverloadError{
		Limit:      full + ": keep this dialogue; memsidecar status says which model the others wait for",
		RetryAfter: overloadRetry,
	}
}

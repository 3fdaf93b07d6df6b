package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/recall"
)

// removedMessage is a message whose row is being deleted.
type removedMessage struct {
	row, owner int64 // owner is 0 when nobody is named
	message    memory.Message
}

// unindexMessages takes the words of messages out of their owners' keyword indexes, in the transaction that deletes the
// messages. Their vectors go with their rows.
func unindexMessages(ctx context.Context, tx *Tx, messages []removedMessage) error {
	byOwner := map[int64][]removedMessage{}
	for _, m := range messages {
		if m.owner != 0 && recall.Indexed(m.message.Role) {
			byOwner[m.owner] = append(byOwner[m.owner], m)
		}
	}
	for owner, list := range byOwner {
		state, err := getIndexState(ctx, tx, owner)
		if err != nil {
			return err
		}
		if !state.exists {
			continue
		}
		if err := unindex(ctx, tx, owner, state, list); err != nil {
			return err
		}
	}
	return nil
}

// unindex takes out one user's messages. Those after indexed_upto may be in postings, too, when it was interrupted.
func unindex(ctx context.Context, tx *Tx, userRow int64, state indexState, messages []removedMessage) error {
	slices.SortFunc(messages, func(a, b removedMessage) int { return int(a.row - b.row) })
	rows := map[string][]int64{}    // by term, rising
	lengths := map[int64]int64{}    // by row
	removed := map[int64]struct{}{} // rows
	for i := range messages {
		m := &messages[i]
		terms := recall.Terms(&m.message)
		lengths[m.row] = int64(len(terms))
		for _, term := range terms {
			list, known := rows[term]
			switch {
			case !known:
				rows[strings.Clone(term)] = []int64{m.row}
			case list[len(list)-1] != m.row:
				rows[term] = append(list, m.row)
			}
		}
	}
	terms := make([]string, 0, len(rows))
	for term := range rows {
		terms = append(terms, term)
	}
	slices.Sort(terms) // neighbours share pages
	for _, term := range terms {
		if err := removePostings(ctx, tx, userRow, term, rows[term], removed); err != nil {
			return err
		}
	}
	for row := range removed {
		if row <= state.upto {
			state.messages--
			state.length -= lengths[row]
		}
	}
	_, err := tx.Exec(ctx, `UPDATE message_indexes SET messages = ?, length = ? WHERE user_row = ?`,
		max(0, state.messages), max(0, state.length), userRow)
	return err
}

// removePostings takes messages, given by rising rows, out of a term's blocks, and notes those that were there.
func removePostings(ctx context.Context, tx *Tx, userRow int64, term string, rows []int64, removed map[int64]struct{}) error {
	block, err := lastBlock(ctx, tx, userRow, term)
	if err != nil || block == nil {
		return err
	}
	total, found := block.total, int64(0)
	for len(rows) > 0 {
		if rows[len(rows)-1] < block.first {
			block = &postingBlock{}
			err := tx.QueryRow(ctx, `SELECT first_row, total, data FROM message_postings WHERE user_row = ? AND term = ? AND first_row <= ?
				ORDER BY first_row DESC LIMIT 1`, userRow, term, rows[len(rows)-1]).Scan(&block.first, &block.total, &block.data)
			if errors.Is(err, sql.ErrNoRows) {
				break
			}
			if err == nil {
				block.postings, err = decodePostings(nil, block.first, block.data)
			}
			if err != nil {
				return err
			}
		}
		n, err := removeFromBlock(ctx, tx, userRow, term, block, rows, removed)
		if err != nil {
			return err
		}
		found, total = found+n, total-n
		earlier, _ := slices.BinarySearch(rows, block.first)
		rows = rows[:earlier]
	}
	if found == 0 {
		return nil
	}
	_, err = tx.Exec(ctx, `UPDATE message_postings SET total = ?3 WHERE user_row = ?1 AND term = ?2 AND first_row =
		(SELECT max(first_row) FROM message_postings WHERE user_row = ?1 AND term = ?2)`, userRow, term, total)
	return err
}

// removeFromBlock takes those messages out of a block that are in it.
func removeFromBlock(ctx context.Context, tx *Tx, userRow int64, term string, block *postingBlock, rows []int64, removed map[int64]struct{}) (n int64, err error) {
	var left []posting
	for _, p := range block.postings {
		if _, found := slices.BinarySearch(rows, p.row); found {
			removed[p.row] = struct{}{}
		} else {
			left = append(left, p)
		}
	}
	if len(left) == len(block.postings) {
		return 0, nil
	}
	if len(left) == 0 || left[0].row != block.first { // which is in the key
		if err := deleteBlock(ctx, tx, userRow, term, block.first); err != nil {
			return 0, err
		}
	}
	if len(left) > 0 {
		if err := putBlock(ctx, tx, userRow, term, left[0].row, block.total, encodePostings(left)); err != nil {
			return 0, err
		}
	}
	return int64(len(block.postings) - len(left)), nil
}

// forgetStep is how many blocks of postings, or vectors, one transaction deletes: other writes wait meanwhile.
const forgetStep = 2000

// forgetIndex deletes some of what was derived from a user's messages and reports whether all of it is gone. It is to be
// called until then, in transactions of its own: before the user's messages are deleted, so that they need not be taken
// out one by one, and once more after. unindexMessages is called for them all the same: meanwhile some may be indexed.
func forgetIndex(ctx context.Context, tx *Tx, userRow int64) (done bool, err error) {
	if _, err := tx.Exec(ctx, `DELETE FROM message_indexes WHERE user_row = ?`, userRow); err != nil {
		return false, err
	}
	blocks, err := tx.Affect(ctx, `DELETE FROM message_postings WHERE (user_row, term, first_row) IN
		(SELECT user_row, term, first_row FROM message_postings WHERE user_row = ? LIMIT ?)`, userRow, forgetStep)
	if err != nil || blocks == forgetStep {
		return false, err
	}
	vectors, err := tx.Affect(ctx, `DELETE FROM message_embeddings WHERE message_row IN
		(SELECT message_row FROM message_embeddings WHERE user_row = ? LIMIT ?)`, userRow, forgetStep)
	return vectors < forgetStep, err
}

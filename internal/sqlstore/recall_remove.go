package sqlstore

import (
	"context"
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve/recall"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// removedMessage is a message whose row is being deleted.
type removedMessage struct {
	row, owner int64 // owner is 0 when nobody is named
	message    memory.Message
	unreadable bool // its words are not known
}

// unindexMessages takes the words of messages out of their owners' keyword indexes, in the transaction that deletes the
// messages. Their vectors go with their rows.
func unindexMessages(ctx context.Context, tx sqldb.Tx, messages []removedMessage) error {
	byOwner := map[int64][]removedMessage{}
	for _, m := range messages {
		if m.owner != 0 && recall.Indexed(m.message.Role) {
			byOwner[m.owner] = append(byOwner[m.owner], m)
		}
	}
	for _, m := range messages {
		if m.owner == 0 || !m.unreadable {
			continue
		}
		// Where its words are in the index is not known, so the index goes, and is made again of the messages that are left.
		if err := dropIndex(ctx, tx, m.owner); err != nil {
			return err
		}
		delete(byOwner, m.owner)
	}
	for owner, list := range byOwner {
		state, err := getIndexState(ctx, tx, owner)
		if err != nil {
			return err
		}
		if !state.exists {
			continue
		}
		err = unindex(ctx, tx, owner, state, list)
		if sqldb.Skip(tx, err) { // a block that cannot be read may hold the messages
			err = dropIndex(ctx, tx, owner)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unindex takes out one user's messages. Those after indexed_upto may be in postings, too, when it was interrupted.
func unindex(ctx context.Context, tx sqldb.Tx, userRow int64, state indexState, messages []removedMessage) error {
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

// dropIndex deletes a user's keyword index. It is made again in the background.
func dropIndex(ctx context.Context, tx sqldb.Tx, userRow int64) error {
	if _, err := tx.Exec(ctx, `DELETE FROM message_postings WHERE user_row = ?`, userRow); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `DELETE FROM message_indexes WHERE user_row = ?`, userRow)
	return err
}

// removePostings takes messages, given by rising rows, out of a term's blocks, and notes those that were there.
func removePostings(ctx context.Context, tx sqldb.Tx, userRow int64, term string, rows []int64, removed map[int64]struct{}) error {
	last, err := lastBlock(ctx, tx, userRow, term)
	if err != nil || last == nil {
		return err
	}
	// The last block comes last, because it says how many postings all have.
	split, _ := slices.BinarySearch(rows, last.first)
	var found int64
	for earlier := rows[:split]; len(earlier) > 0; {
		block, err := blockOf(ctx, tx, userRow, term, earlier[len(earlier)-1])
		if err != nil {
			return err
		}
		if block == nil {
			break
		}
		if left := block.without(earlier, removed); len(left) < len(block.postings) {
			found += int64(len(block.postings) - len(left))
			if err := rewriteBlock(ctx, tx, userRow, term, block.first, 0, left); err != nil {
				return err
			}
		}
		n, _ := slices.BinarySearch(earlier, block.first)
		earlier = earlier[:n]
	}
	left := last.without(rows[split:], removed)
	found += int64(len(last.postings) - len(left))
	if found == 0 {
		return nil
	}
	total := last.total - found
	if err := rewriteBlock(ctx, tx, userRow, term, last.first, total, left); err != nil || len(left) > 0 || total == 0 {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE message_postings SET total = ?3 WHERE user_row = ?1 AND term = ?2 AND first_row =
		(SELECT max(first_row) FROM message_postings WHERE user_row = ?1 AND term = ?2)`, userRow, term, total)
	return err
}

// blockOf is the block that a message is in if it has the term, or nil.
func blockOf(ctx context.Context, q sqldb.Querier, userRow int64, term string, row int64) (*postingBlock, error) {
	return readBlock(q.QueryRow(ctx, `SELECT first_row, total, data FROM message_postings
		WHERE user_row = ? AND term = ? AND first_row <= ? ORDER BY first_row DESC LIMIT 1`, userRow, term, row))
}

// without returns a block's postings except those of messages, which are given by rising rows.
func (b *postingBlock) without(rows []int64, removed map[int64]struct{}) (left []posting) {
	for _, p := range b.postings {
		if _, found := slices.BinarySearch(rows, p.row); found {
			removed[p.row] = struct{}{}
		} else {
			left = append(left, p)
		}
	}
	return left
}

// rewriteBlock replaces a block by its remaining postings.
func rewriteBlock(ctx context.Context, tx sqldb.Tx, userRow int64, term string, first, total int64, left []posting) error {
	if len(left) == 0 || left[0].row != first { // which is in the key
		if err := deleteBlock(ctx, tx, userRow, term, first); err != nil {
			return err
		}
	}
	if len(left) == 0 {
		return nil
	}
	return putBlock(ctx, tx, userRow, term, left[0].row, total, encodePostings(left))
}

// forgetStep is how many blocks of postings, or vectors, one transaction deletes: other writes wait meanwhile.
const forgetStep = 2000

// forgetIndex deletes some of the data derived from a user's messages, and reports whether all of it is gone. It must be called until
// then, in transactions of its own: before the user's messages are deleted, so that they need not be removed from the index one by one,
// and again afterwards. unindexMessages is called for them as well, because some may be indexed in the meantime.
func forgetIndex(ctx context.Context, tx sqldb.Tx, userRow int64) (done bool, err error) {
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

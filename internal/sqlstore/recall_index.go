package sqlstore

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve/recall"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// Sizes of the background work.
const (
	// tailSize is how many messages of a user wait before they are indexed together: each batch writes a page for each
	// different term, and each search reads the tail.
	tailSize = 64
	// indexBatch is how many messages are indexed together at most. Larger batches write fewer pages.
	indexBatch = 1024
	// termsPerWrite keeps a transaction short, because other writes wait.
	termsPerWrite = 256
	// scanSize is how many messages are looked at for whose they are.
	scanSize = 2000
	// noteEvery is after how many messages it is noted on disk how far the work is. After a crash some are looked at again.
	noteEvery = 1000
)

// indexState is a row of message_indexes.
type indexState struct {
	exists           bool
	upto             int64
	messages, length int64
}

func getIndexState(ctx context.Context, q sqldb.Querier, userRow int64) (s indexState, err error) {
	err = q.QueryRow(ctx, `SELECT indexed_upto, messages, length FROM message_indexes WHERE user_row = ?`, userRow).
		Scan(&s.upto, &s.messages, &s.length)
	if errors.Is(err, sql.ErrNoRows) {
		return s, nil
	}
	s.exists = err == nil
	return s, err
}

// errTailChanged means that messages were deleted while their postings were being made.
var errTailChanged = errors.New("the messages changed meanwhile")

// IndexNext implements recall.Index.
func (s *Recall) IndexNext(ctx context.Context) (more bool, err error) {
	if s.started.CompareAndSwap(false, true) {
		if s.seen, _, err = s.progress(ctx, progressPostings); err != nil {
			s.started.Store(false)
			return false, err
		}
		s.noted = s.seen
	}
	owners, last, found, err := s.ownersAfter(ctx, s.seen)
	if err != nil {
		return false, err
	}
	for _, owner := range owners {
		for more := true; more; {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			if more, err = s.indexTail(ctx, owner); err != nil {
				return false, err
			}
		}
	}
	s.seen = last
	if s.seen-s.noted >= noteEvery {
		if err := s.note(ctx, progressPostings, "", s.seen); err != nil {
			return false, err
		}
		s.noted = s.seen
	}
	return found == scanSize, nil
}

// ownersAfter reads whose the next messages are, the row of the last of them, and how many they are.
func (s *Recall) ownersAfter(ctx context.Context, after int64) (owners []int64, last int64, found int, err error) {
	last = after
	err = s.db.Read(ctx, func(q sqldb.Querier) (err error) {
		rows, err := q.Query(ctx, `SELECT row, owner_row FROM session_messages WHERE row > ? ORDER BY row LIMIT ?`, after, scanSize)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		seen := map[int64]bool{}
		for rows.Next() {
			var owner sql.NullInt64
			if err := rows.Scan(&last, &owner); err != nil {
				return err
			}
			if found++; owner.Valid && !seen[owner.Int64] {
				seen[owner.Int64] = true
				owners = append(owners, owner.Int64)
			}
		}
		return rows.Err()
	})
	return owners, last, found, err
}

// tailMessage is a message that is not in the postings yet.
type tailMessage struct {
	row     int64
	channel memory.Channel
	message memory.Message
}

// indexTail moves the oldest messages of a user that are not in the postings there, if there are enough of them, and reports whether there
// may be more. It writes in several transactions; the last moves indexed_upto, and until then searches ignore what the others wrote. A
// crash between them leaves postings that the next attempt removes.
func (s *Recall) indexTail(ctx context.Context, userRow int64) (more bool, err error) {
	var state indexState
	var messages []tailMessage
	var taken int // those that are not searched included
	var upto int64
	err = s.db.Read(ctx, func(q sqldb.Querier) (err error) {
		if state, err = getIndexState(ctx, q, userRow); err != nil {
			return err
		}
		// Counting costs less than reading, and most often there are too few.
		err = q.QueryRow(ctx, `SELECT count(*) FROM (SELECT 1 FROM session_messages WHERE owner_row = ? AND row > ? LIMIT ?)`,
			userRow, state.upto, tailSize).Scan(&taken)
		if err != nil || taken < tailSize {
			return err
		}
		messages, taken, upto, err = readTail(ctx, q, userRow, state.upto, indexBatch)
		return err
	})
	if err != nil || taken < tailSize {
		return false, err
	}
	lists, length := postingsOf(messages)
	words := slices.Sorted(maps.Keys(lists)) // neighbours share pages
	batch := tailBatch{userRow: userRow, state: state, upto: upto, taken: taken, messages: int64(len(messages)), length: length}
	for first := true; first || len(words) > 0; first = false {
		part := words[:min(termsPerWrite, len(words))]
		words = words[len(part):]
		err := s.db.Write(ctx, func(tx sqldb.Tx) error { return batch.write(ctx, tx, part, lists, first, len(words) == 0) })
		if errors.Is(err, errTailChanged) {
			return true, nil // once more, with what is left
		}
		if err != nil {
			return false, err
		}
	}
	return taken == indexBatch, nil
}

// postingsOf makes the postings of messages, and adds up their lengths.
func postingsOf(messages []tailMessage) (lists map[string][]posting, length int64) {
	lists = map[string][]posting{}
	for _, m := range messages {
		terms := recall.Terms(&m.message)
		length += int64(len(terms))
		tag := newPostingTag(len(terms), m.channel)
		slices.Sort(terms)
		for len(terms) > 0 {
			term, n := terms[0], 1
			for n < len(terms) && terms[n] == term {
				n++
			}
			terms = terms[n:]
			list, known := lists[term]
			if !known {
				term = strings.Clone(term) // a part of its text, all of which it would keep in memory
			}
			lists[term] = append(list, posting{row: m.row, frequency: n, tag: tag})
		}
	}
	return lists, length
}

// readTail reads a user's messages after a row, oldest first, those that are searched; taken counts all, and upto is the
// last.
func readTail(ctx context.Context, q sqldb.Querier, userRow, after int64, limit int) (messages []tailMessage, taken int, upto int64, err error) {
	rows, err := q.Query(ctx, `SELECT m.row, m.role, m.withheld <> 0, m.message, s.channel_kind, s.channel_id
		FROM session_messages m JOIN sessions s ON s.row = m.session_row WHERE m.owner_row = ? AND m.row > ?
		ORDER BY m.row LIMIT ?`, userRow, after, limit)
	if err != nil {
		return nil, 0, 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var m tailMessage
		var role memory.Role
		var withheld bool
		var text []byte
		if err := rows.Scan(&upto, &role, &withheld, &text, &m.channel.Kind, &m.channel.ID); err != nil {
			return nil, 0, 0, err
		}
		taken++
		if withheld || !recall.Indexed(role) {
			continue
		}
		m.row = upto
		if sqldb.Skip(q, decodeMessage(m.row, text, &m.message)) {
			continue
		}
		messages = append(messages, m)
	}
	return messages, taken, upto, rows.Err()
}

// tailBatch is a part of a user's tail that is being written.
type tailBatch struct {
	userRow          int64
	state            indexState // before
	upto             int64      // the row of its last message
	taken            int        // messages between, those that are not searched included
	messages, length int64      // of those that are
}

// write writes the postings of some terms; with the last ones the batch is in the index.
func (b *tailBatch) write(ctx context.Context, tx sqldb.Tx, terms []string, lists map[string][]posting, first, last bool) error {
	if err := b.check(ctx, tx, first); err != nil {
		return err
	}
	for _, term := range terms {
		err := addPostings(ctx, tx, b.userRow, term, b.state.upto, lists[term])
		if sqldb.Skip(tx, err) { // the index is made again, of the messages
			return dropIndex(ctx, tx, b.userRow)
		}
		if err != nil {
			return err
		}
	}
	if !last {
		return nil
	}
	_, err := tx.Exec(ctx, `UPDATE message_indexes SET indexed_upto = ?, messages = messages + ?, length = length + ?
		WHERE user_row = ?`, b.upto, b.messages, b.length, b.userRow)
	return err
}

// check verifies that nothing that was read was deleted since, and that the index was not moved. Rows are not used again, and only this
// moves the index, so counting is enough.
func (b *tailBatch) check(ctx context.Context, tx sqldb.Tx, first bool) error {
	var left int
	err := tx.QueryRow(ctx, `SELECT count(*) FROM session_messages WHERE owner_row = ? AND row > ? AND row <= ?`,
		b.userRow, b.state.upto, b.upto).Scan(&left)
	if err != nil {
		return err
	}
	now, err := getIndexState(ctx, tx, b.userRow)
	if err != nil {
		return err
	}
	if first && !b.state.exists && !now.exists && left == b.taken {
		_, err := tx.Exec(ctx, `INSERT INTO message_indexes (user_row, indexed_upto, messages, length) VALUES (?, 0, 0, 0)`, b.userRow)
		return err
	}
	if !now.exists || now.upto != b.state.upto || left != b.taken {
		return errTailChanged
	}
	return nil
}

// addPostings adds a term's postings, all after the row upto, behind those up to it. Later ones that an interrupted attempt
// left are taken out first.
func addPostings(ctx context.Context, tx sqldb.Tx, userRow int64, term string, upto int64, added []posting) error {
	block, err := lastBlock(ctx, tx, userRow, term)
	if err != nil {
		return err
	}
	for block != nil && block.first > upto {
		rest := block.total - int64(len(block.postings))
		if err := deleteBlock(ctx, tx, userRow, term, block.first); err != nil {
			return err
		}
		if block, err = lastBlock(ctx, tx, userRow, term); err != nil {
			return err
		}
		if block != nil {
			block.total = rest
		}
	}
	if block == nil {
		block = &postingBlock{first: added[0].row}
	}
	for n := len(block.postings); n > 0 && block.postings[n-1].row > upto; n-- {
		block.postings = block.postings[:n-1]
		block.total--
		block.data = nil
	}
	if block.data == nil && len(block.postings) > 0 {
		block.data = encodePostings(block.postings)
	}
	total := block.total + int64(len(added))
	last := block.first
	if n := len(block.postings); n > 0 {
		last = block.postings[n-1].row
	}
	for _, p := range added {
		if len(block.data)+maxPosting > maxBlock {
			if err := putBlock(ctx, tx, userRow, term, block.first, 0, block.data); err != nil {
				return err
			}
			block, last = &postingBlock{first: p.row}, p.row
		}
		block.data, last = appendPosting(block.data, last, p), p.row
	}
	return putBlock(ctx, tx, userRow, term, block.first, total, block.data)
}

const postingsTable = "message_postings"

// postingBlock is a row of message_postings.
type postingBlock struct {
	first, total int64
	postings     []posting
	data         []byte
}

// lastBlock is the last block of a term, or nil.
func lastBlock(ctx context.Context, q sqldb.Querier, userRow int64, term string) (*postingBlock, error) {
	return readBlock(q.QueryRow(ctx, `SELECT first_row, total, data FROM message_postings WHERE user_row = ? AND term = ?
		ORDER BY first_row DESC LIMIT 1`, userRow, term))
}

func readBlock(row *sql.Row) (*postingBlock, error) {
	var b postingBlock
	err := row.Scan(&b.first, &b.total, &b.data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if b.postings, err = decodePostings(nil, b.first, b.data); err != nil {
		return &b, sqldb.Damaged(postingsTable, b.first, err.Error())
	}
	return &b, nil
}

func putBlock(ctx context.Context, tx sqldb.Tx, userRow int64, term string, first, total int64, data []byte) error {
	_, err := tx.Exec(ctx, `INSERT INTO message_postings (user_row, term, first_row, total, data) VALUES (?1, ?2, ?3, ?4, ?5)
		ON CONFLICT DO UPDATE SET total = ?4, data = ?5`, userRow, term, first, total, data)
	return err
}

func deleteBlock(ctx context.Context, tx sqldb.Tx, userRow int64, term string, first int64) error {
	_, err := tx.Exec(ctx, `DELETE FROM message_postings WHERE user_row = ? AND term = ? AND first_row = ?`, userRow, term, first)
	return err
}

// posting says that a message holds a term.
type posting struct {
	row       int64 // the message
	frequency int
	tag       postingTag
}

// A block of postings is, for each, a varint of twice the distance to the row before, plus 1 when a varint of the
// frequency follows, and the tag. The first distance is from the block's first_row and so 0.
const (
	// maxBlock keeps a block with its key below what SQLite stores inside a page of a table without a rowid (1,002 bytes).
	maxBlock = 900
	// maxPosting is the longest a posting gets.
	maxPosting = 2*binary.MaxVarintLen64 + 1
)

var errPostings = errors.New("a block of postings is broken")

// appendPosting adds a posting to a block whose last row is given.
func appendPosting(data []byte, last int64, p posting) []byte {
	distance := uint64(p.row-last) << 1 //nolint:gosec // rows rise inside a block
	if p.frequency > 1 {
		data = binary.AppendUvarint(data, distance|1)
		data = binary.AppendUvarint(data, uint64(p.frequency))
	} else {
		data = binary.AppendUvarint(data, distance)
	}
	return append(data, byte(p.tag))
}

// decodePostings adds a block's postings to a list.
func decodePostings(list []posting, first int64, data []byte) ([]posting, error) {
	row := first
	list = slices.Grow(list, len(data)/2) // most take two or three bytes
	for len(data) > 0 {
		head, n := binary.Uvarint(data)
		if n <= 0 {
			return nil, errPostings
		}
		data = data[n:]
		p := posting{frequency: 1}
		if head&1 != 0 {
			frequency, n := binary.Uvarint(data)
			if n <= 0 || frequency > math.MaxInt32 {
				return nil, errPostings
			}
			p.frequency, data = int(frequency), data[n:]
		}
		if len(data) == 0 {
			return nil, errPostings
		}
		row += int64(head >> 1)
		p.row, p.tag, data = row, postingTag(data[0]), data[1:]
		list = append(list, p)
	}
	return list, nil
}

// encodePostings writes a whole block.
func encodePostings(list []posting) []byte {
	var data []byte
	last := list[0].row
	for _, p := range list {
		data = appendPosting(data, last, p)
		last = p.row
	}
	return data
}

// postingTag is what a search wants to know of a message before it reads it: about how many terms it has, in the upper
// half, and in the lower half which visibility, one of sixteen classes. What is found is then looked at exactly.
type postingTag byte

func newPostingTag(length int, channel memory.Channel) postingTag {
	class := min(15, int(math.Round(2*math.Log2(float64(max(1, length))))))
	return postingTag(class<<4 | int(visibilityClass(channel.VisibilityKey()))) //nolint:gosec // below 256
}

func visibilityClass(key string) uint8 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return uint8(h.Sum32() % 16)
}

// length is the number of terms, about.
func (t postingTag) length() float64 { return lengths[t>>4] }

// lengths are what the classes of length stand for: each is 1.4 times the one before.
var lengths = func() (l [16]float64) {
	for i := range l {
		l[i] = math.Exp2(float64(i) / 2)
	}
	return l
}()

// visibilityClasses are the classes that an audience sees.
type visibilityClasses uint16

func classesOf(audience memory.Audience) (c visibilityClasses) {
	keys, all := audience.Keys()
	if all {
		return math.MaxUint16
	}
	for _, key := range keys {
		c |= 1 << visibilityClass(key)
	}
	return c
}

func (c visibilityClasses) has(t postingTag) bool { return c&(1<<(t&15)) != 0 }

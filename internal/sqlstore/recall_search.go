package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"

	"github.com/memsidecar/memsidecar/internal/retrieve/recall"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// Limits of a search, so that it takes milliseconds for any number of messages.
const (
	// maxTail limits the unindexed messages that a search reads; it reads the newest. There are more only shortly after many messages
	// arrived.
	maxTail = 512
	// maxScored limits the postings that are scored: rare terms first, and of frequent terms the newest.
	maxScored = 32 << 10
	// slack is the number of messages read in addition to the limit: the lengths in postings are rounded.
	slack = 32
	// maxRead limits the candidates read to find some that the filter admits.
	maxRead  = 4096
	readStep = 256
)

// SearchKeyword implements recall.Store.
func (s *Recall) SearchKeyword(ctx context.Context, q recall.Query, text string) (hits []recall.Hit, err error) {
	terms := recall.QueryTerms(text)
	if len(terms) == 0 || q.Limit <= 0 {
		return nil, nil
	}
	err = s.db.Read(ctx, func(db sqldb.Querier) error {
		userRow, err := UserRow(ctx, db, q.User)
		if err != nil || userRow == 0 {
			return err
		}
		search := keywordSearch{Querier: db, query: q, userRow: userRow, terms: terms}
		hits, err = search.run(ctx)
		return err
	})
	return hits, err
}

// keywordSearch is a running search.
type keywordSearch struct {
	sqldb.Querier
	query   recall.Query
	userRow int64
	terms   []string // of the query
	state   indexState
	scorer  *recall.Scorer
}

func (s *keywordSearch) run(ctx context.Context) ([]recall.Hit, error) {
	// The state is read first: messages indexed since are found in the tail and ignored in the blocks.
	var err error
	if s.state, err = getIndexState(ctx, s, s.userRow); err != nil {
		return nil, err
	}
	tail, err := s.readTail(ctx)
	if err != nil {
		return nil, err
	}
	blocks, err := s.lastBlocks(ctx)
	if err != nil {
		return nil, err
	}
	holders := make([]int64, len(s.terms))
	count, length := s.state.messages, s.state.length
	for i, b := range blocks {
		holders[i] = b.total
	}
	counter := recall.NewScorer(s.terms, holders, 0, 0)
	for _, m := range tail {
		count, length = count+1, length+int64(len(m.terms))
		for i, n := range counter.Frequencies(m.terms) {
			if n > 0 {
				holders[i]++
			}
		}
	}
	s.scorer = recall.NewScorer(s.terms, holders, count, length)

	candidates, err := s.candidates(ctx, blocks)
	if err != nil {
		return nil, err
	}
	hits, err := s.resolve(ctx, candidates)
	if err != nil {
		return nil, err
	}
	for _, m := range tail {
		if score := s.scorer.Score(m.terms); score > 0 && s.query.Filter.Matches(m.message.Channel, m.message.AgentID, m.message.Time) {
			hits = append(hits, rowHit{m.row, recall.Hit{Message: m.message, Score: score}})
		}
	}
	slices.SortFunc(hits, byRelevance)
	if s.query.NeighborWeight > 0 {
		if hits, err = s.lift(ctx, hits); err != nil {
			return nil, err
		}
	}
	found := make([]recall.Hit, 0, min(s.query.Limit, len(hits)))
	for _, h := range hits[:min(s.query.Limit, len(hits))] {
		found = append(found, h.Hit)
	}
	return found, nil
}

type rowHit struct {
	row int64
	recall.Hit
}

func byRelevance(a, b rowHit) int {
	return cmp.Or(cmp.Compare(b.Relevance(), a.Relevance()), cmp.Compare(b.row, a.row))
}

// foundMessage is a message with its row and its terms.
type foundMessage struct {
	row     int64
	message session.Message
	terms   []string
}

// readTail reads the unindexed messages.
func (s *keywordSearch) readTail(ctx context.Context) (tail []foundMessage, err error) {
	rows, err := s.Query(ctx, `SELECT `+messageColumns+` FROM session_messages m JOIN sessions s ON s.row = m.session_row
		WHERE m.owner_row = ? AND m.row > ? AND `+searchable+` ORDER BY m.row DESC LIMIT ?`, s.userRow, s.state.upto, maxTail)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		row, m, err := scanMessage(rows, nil)
		if sqldb.Skip(s.Querier, err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		tail = append(tail, foundMessage{row, m, recall.Terms(&m.Message)})
	}
	return tail, rows.Err()
}

// lastBlocks reads the last block of each term. It is empty for a term without postings.
func (s *keywordSearch) lastBlocks(ctx context.Context) (blocks []postingBlock, err error) {
	blocks = make([]postingBlock, len(s.terms))
	if !s.state.exists {
		return blocks, nil
	}
	list, err := json.Marshal(s.terms)
	if err != nil {
		return nil, err
	}
	rows, err := s.Query(ctx, `SELECT t.key, p.first_row, p.total, p.data FROM json_each(?2) t CROSS JOIN message_postings p
		WHERE p.user_row = ?1 AND p.term = t.value AND p.first_row =
			(SELECT max(first_row) FROM message_postings WHERE user_row = ?1 AND term = t.value)`, s.userRow, string(list))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var i int
		var b postingBlock
		if err := rows.Scan(&i, &b.first, &b.total, &b.data); err != nil {
			return nil, err
		}
		if b.postings, err = decodePostings(nil, b.first, b.data); err != nil {
			sqldb.Skip(s.Querier, sqldb.Damaged(postingsTable, b.first, err.Error()))
			continue
		}
		// The tail has the postings of an interrupted attempt.
		for n := len(b.postings); n > 0 && b.postings[n-1].row > s.state.upto; n-- {
			b.postings = b.postings[:n-1]
			b.total--
		}
		blocks[i] = b
	}
	return blocks, rows.Err()
}

// candidates returns approximate scores of messages by their postings.
func (s *keywordSearch) candidates(ctx context.Context, blocks []postingBlock) (candidateHeap, error) {
	order := make([]int, len(blocks))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(blocks[a].total, blocks[b].total) })
	classes := classesOf(s.query.Filter.Audience)
	var known int64
	for i := range blocks {
		known += blocks[i].total
	}
	sums := make(map[int64]recall.Sum, min(known, maxScored))
	left := maxScored
	for done, i := range order {
		b := &blocks[i]
		postings := b.postings
		room := left / (len(order) - done)
		if b.total > int64(len(postings)) && len(postings) < room {
			var err error
			if postings, err = s.olderPostings(ctx, s.terms[i], b.first, postings, room); err != nil {
				return nil, err
			}
		}
		left -= len(postings)
		for _, p := range postings {
			if p.row <= s.state.upto && classes.has(p.tag) {
				sums[p.row] = s.scorer.Add(sums[p.row], i, p.frequency, p.tag.length())
			}
		}
	}
	candidates := make(candidateHeap, 0, len(sums))
	for row, sum := range sums {
		candidates = append(candidates, candidate{row, float32(sum.Score())})
	}
	candidates.init()
	return candidates, nil
}

// olderPostings adds the postings of a term's blocks before one, newest blocks first, until there are enough.
func (s *keywordSearch) olderPostings(ctx context.Context, term string, before int64, list []posting, enough int) (_ []posting, err error) {
	rows, err := s.Query(ctx, `SELECT first_row, data FROM message_postings WHERE user_row = ? AND term = ? AND first_row < ?
		ORDER BY first_row DESC`, s.userRow, term, before)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for len(list) < enough && rows.Next() {
		var first int64
		var data sql.RawBytes
		if err := rows.Scan(&first, &data); err != nil {
			return nil, err
		}
		more, err := decodePostings(list, first, data)
		if err != nil {
			sqldb.Skip(s.Querier, sqldb.Damaged(postingsTable, first, err.Error()))
			continue
		}
		list = more
	}
	return list, rows.Err()
}

// resolve reads the best candidates that the filter admits, and computes their exact scores.
func (s *keywordSearch) resolve(ctx context.Context, candidates candidateHeap) (hits []rowHit, err error) {
	enough := s.query.Limit + slack
	for read := 0; len(hits) < enough && len(candidates) > 0 && read < maxRead; {
		n := min(len(candidates), enough-len(hits))
		if read > 0 {
			n = min(len(candidates), readStep) // the filter excludes most
		}
		rows := make([]int64, n)
		for i := range rows {
			rows[i] = candidates.pop().row
		}
		read += n
		found, err := readMessages(ctx, s, s.userRow, rows, &s.query.Filter)
		if err != nil {
			return nil, err
		}
		for row, m := range found {
			if score := s.scorer.Score(recall.Terms(&m.Message)); score > 0 {
				hits = append(hits, rowHit{row, recall.Hit{Message: m, Score: score}})
			}
		}
	}
	return hits, nil
}

// messageColumns are the columns of session_messages m and sessions s that scanMessage reads.
const messageColumns = `m.row, s.id, s.ref, s.channel_kind, s.channel_id, m.position, m.received_at, m.consideration, m.agent_id, m.said_at, m.message`

// searchable is the condition for messages that can be found. A session without an id is being deleted.
var searchable = `m.withheld = 0 AND m.role IN ('user', 'assistant') AND s.id IS NOT NULL AND ` + notExcluded("m")

// scanMessage reads messageColumns. For a message that the filter does not admit it returns row 0.
func scanMessage(rows *sql.Rows, filter *recall.Filter) (row int64, m session.Message, err error) {
	var received, said sql.NullInt64
	var consideration sql.NullString
	var agent string
	var text sql.RawBytes
	err = rows.Scan(&row, &m.SessionID, &m.SessionRef, &m.Channel.Kind, &m.Channel.ID, &m.Position, &received, &consideration, &agent, &said, &text)
	if err != nil {
		return 0, m, sqldb.Scanned(messagesTable, row, err)
	}
	if filter != nil && !filter.Matches(m.Channel, agent, sqldb.Time(said)) {
		return 0, m, nil
	}
	m.ReceivedAt, m.ConsiderationID = sqldb.Time(received), consideration.String
	return row, m, decodeMessage(row, text, &m.Message)
}

// readMessages reads a user's messages by their rows, if the filter admits them.
func readMessages(ctx context.Context, q sqldb.Querier, userRow int64, rows []int64, filter *recall.Filter) (messages map[int64]session.Message, err error) {
	list, err := json.Marshal(rows)
	if err != nil {
		return nil, err
	}
	found, err := q.Query(ctx, `SELECT `+messageColumns+` FROM json_each(?) t CROSS JOIN session_messages m ON m.row = t.value
		JOIN sessions s ON s.row = m.session_row WHERE m.owner_row = ? AND `+searchable, string(list), userRow)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	messages = make(map[int64]session.Message, len(rows))
	for found.Next() {
		row, m, err := scanMessage(found, filter)
		if sqldb.Skip(q, err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if row != 0 {
			messages[row] = m
		}
	}
	return messages, found.Err()
}

// Neighbors implements recall.Store.
func (s *Recall) Neighbors(ctx context.Context, q recall.Query, of []session.Message, count int) ([]recall.Neighbors, error) {
	neighbors := make([]recall.Neighbors, len(of))
	err := s.db.Read(ctx, func(db sqldb.Querier) error {
		userRow, err := UserRow(ctx, db, q.User)
		if err != nil || userRow == 0 {
			return err
		}
		for i := range of {
			m := &of[i]
			// The viewer takes part in the session of a user's own messages. The audience decides the rest.
			viewer := session.Viewer{Namespace: q.User.Namespace, UserID: q.User.ID, Audience: q.Filter.Audience}
			if !viewer.Sees(&session.Session{Namespace: q.User.Namespace, Channel: m.Channel, Participants: []string{q.User.ID}}) {
				continue
			}
			if neighbors[i].Later, err = later(ctx, db, q, userRow, m); err != nil {
				return err
			}
			if count <= 0 {
				continue
			}
			if neighbors[i].Before, err = readNeighbors(ctx, db, q, m, `<`, `DESC`, count); err != nil {
				return err
			}
			slices.Reverse(neighbors[i].Before)
			if neighbors[i].After, err = readNeighbors(ctx, db, q, m, `>`, `ASC`, count); err != nil {
				return err
			}
		}
		return nil
	})
	return neighbors, err
}

// later returns the newest memory that superseded one which rests on a message, or nil.
func later(ctx context.Context, db sqldb.Querier, q recall.Query, userRow int64, of *session.Message) (*recall.Later, error) {
	var found recall.Later
	err := db.QueryRow(ctx, `WITH RECURSIVE later(id) AS (
			SELECT m.superseded_by FROM sessions s JOIN session_messages t ON t.session_row = s.row AND t.position = ?3
				JOIN memory_messages x ON x.message_row = t.row AND x.user_row = ?4 AND x.rests = 1
				JOIN memories m ON m.user_row = x.user_row AND m.id = x.cause
			WHERE s.namespace = ?1 AND s.ref = ?2 AND m.superseded_by <> ''
			UNION SELECT m.superseded_by FROM later l JOIN memories m ON m.user_row = ?4 AND m.id = l.id WHERE m.superseded_by <> '')
		SELECT m.id, m.text FROM later l JOIN memories m ON m.user_row = ?4 AND m.id = l.id
		WHERE m.withdrawn_at IS NULL AND m.quarantine = '' AND (?5 IS NULL OR m.observed_at <= ?5)
		ORDER BY m.observed_at DESC, m.row DESC LIMIT 1`,
		q.User.Namespace, of.SessionRef, of.Position, userRow, sqldb.Micros(q.Filter.SaidUntil)).Scan(&found.MemoryID, &found.Text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil //nolint:nilnil // most messages are not outdated
	}
	return &found, err
}

// readNeighbors reads the messages on one side of a message, nearest first.
func readNeighbors(
	ctx context.Context, db sqldb.Querier, q recall.Query, of *session.Message, side, order string, count int,
) (list []session.Message, err error) {
	rows, err := db.Query(ctx, `SELECT `+messageColumns+` FROM sessions s JOIN session_messages m ON m.session_row = s.row
		WHERE s.namespace = ?1 AND s.ref = ?2 AND m.position `+side+` ?3 AND `+searchable+` AND (?4 IS NULL OR m.agent_id = ?4)
		ORDER BY m.position `+order+` LIMIT ?5`, q.User.Namespace, of.SessionRef, of.Position, q.Filter.AgentID, count)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	filter := &recall.Filter{Audience: q.Filter.Audience, AgentID: q.Filter.AgentID, SaidUntil: q.Filter.SaidUntil}
	for rows.Next() {
		row, m, err := scanMessage(rows, filter)
		if sqldb.Skip(db, err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if row != 0 {
			list = append(list, m)
		}
	}
	return list, rows.Err()
}

// candidate is a message that a search may find.
type candidate struct {
	row   int64
	score float32
}

// candidateHeap returns candidates best first, and newest first among equals. Most candidates are never read, so a heap is faster than
// sorting. It is also faster than container/heap, which boxes each value.
type candidateHeap []candidate

func (h candidateHeap) less(i, j int) bool {
	return h[i].score > h[j].score || h[i].score == h[j].score && h[i].row > h[j].row
}

func (h candidateHeap) init() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h *candidateHeap) pop() candidate {
	list := *h
	best := list[0]
	last := len(list) - 1
	list[0] = list[last]
	*h = list[:last]
	h.down(0)
	return best
}

func (h candidateHeap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if right := child + 1; right < len(h) && h.less(right, child) {
			child = right
		}
		if !h.less(child, i) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve/recall"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// lift adds scores of neighbouring messages to hits (best first), and adds messages found only through their neighbours.
func (s *keywordSearch) lift(ctx context.Context, hits []rowHit) ([]rowHit, error) {
	places := make(map[int64]int, len(hits)) // in hits
	for i := range hits {
		places[hits[i].row] = i
	}
	lifting := hits[:min(recall.Lifting, len(hits))]
	around, err := s.around(ctx, lifting)
	if err != nil {
		return nil, err
	}
	lifted := map[int64]float64{} // rows
	for i := range lifting {
		own := around[lifting[i].row]
		at := slices.Index(own, lifting[i].row)
		for j := max(0, at-recall.Reach); j < min(len(own), at+recall.Reach+1); j++ {
			if j != at {
				lifted[own[j]] = max(lifted[own[j]], s.query.NeighborWeight*recall.Lift(lifting[i].Score, j-at))
			}
		}
	}
	var unread []int64
	for row := range lifted {
		if _, known := places[row]; !known {
			unread = append(unread, row)
		}
	}
	found, err := readMessages(ctx, s, s.userRow, unread, &s.query.Filter)
	if err != nil {
		return nil, err
	}
	for row, m := range found {
		places[row] = len(hits)
		hits = append(hits, rowHit{row, recall.Hit{Message: m, Score: s.scorer.Score(recall.Terms(&m.Message))}})
	}
	for row, share := range lifted {
		if i, ok := places[row]; ok {
			hits[i].Neighbors = share
		}
	}
	slices.SortFunc(hits, byRelevance)
	return hits, nil
}

// around returns, for each hit, the rows of the user's messages near it in its session that the filter admits, in order and including
// the hit. It does not read their texts.
func (s *keywordSearch) around(ctx context.Context, hits []rowHit) (around map[int64][]int64, err error) {
	around = make(map[int64][]int64, len(hits))
	channels := make(map[int64]memory.Channel, len(hits))
	rows := make([]int64, len(hits))
	for i := range hits {
		rows[i], channels[hits[i].row] = hits[i].row, hits[i].Message.Channel
	}
	list, err := json.Marshal(rows)
	if err != nil {
		return nil, err
	}
	found, err := s.Query(ctx, `SELECT hit.row, m.row, m.agent_id, m.said_at
		FROM json_each(?1) t CROSS JOIN session_messages hit ON hit.row = t.value
		CROSS JOIN session_messages m ON m.session_row = hit.session_row AND m.position BETWEEN hit.position - ?2 AND hit.position + ?2
		WHERE m.owner_row = ?3 AND m.withheld = 0 AND m.role IN ('user', 'assistant') AND `+notExcluded("m")+` ORDER BY t.key, m.position`,
		string(list), recall.Within, s.userRow)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var hit, row int64
		var agent string
		var said sql.NullInt64
		if err := found.Scan(&hit, &row, &agent, &said); err != nil {
			return nil, err
		}
		if s.query.Filter.Matches(channels[hit], agent, sqldb.Time(said)) {
			around[hit] = append(around[hit], row)
		}
	}
	return around, found.Err()
}

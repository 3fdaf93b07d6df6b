package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// checkKeywords makes the keyword index of past messages again, a user at a time, and compares.
func checkKeywords(ctx context.Context, s sqldb.Querier) (f sqldb.Finding, err error) {
	f = sqldb.Finding{Check: "keywords", About: "the keyword index of past messages is what the messages give", Remedy: remedyReindex}
	if err := f.Ask(ctx, s, `SELECT format('user %d has postings and no index', user_row) FROM message_postings
		WHERE user_row NOT IN (SELECT user_row FROM message_indexes) GROUP BY user_row`); err != nil {
		return f, err
	}
	rows, err := s.Query(ctx, `SELECT user_row FROM message_indexes ORDER BY user_row`)
	if err != nil {
		return f, err
	}
	users, err := sqldb.Column[int64](rows)
	if err != nil {
		return f, err
	}
	for _, user := range users {
		problem, err := compareKeywords(ctx, s, user)
		if err != nil {
			return f, err
		}
		if problem != "" {
			f.Add(fmt.Sprintf("user %d: %s", user, problem))
		}
	}
	return f, nil
}

// compareKeywords says how a user's index differs from what the messages give; "" when it does not. Postings after
// indexed_upto are of an attempt that was interrupted; searches pass over them.
func compareKeywords(ctx context.Context, s sqldb.Querier, user int64) (problem string, err error) {
	state, err := getIndexState(ctx, s, user)
	if err != nil {
		return "", err
	}
	want := map[string][]posting{}
	var messages, length int64
	for after := int64(0); after < state.upto; {
		batch, taken, upto, err := readTail(ctx, s, user, after, indexBatch)
		if err != nil {
			return "", err
		}
		if taken == 0 {
			break
		}
		batch = slices.DeleteFunc(batch, func(m tailMessage) bool { return m.row > state.upto })
		lists, n := postingsOf(batch)
		for term, list := range lists {
			want[term] = append(want[term], list...)
		}
		messages, length, after = messages+int64(len(batch)), length+n, upto
	}
	if messages != state.messages || length != state.length {
		return fmt.Sprintf("the index counts %d messages of %d terms, and there are %d of %d", state.messages, state.length, messages, length), nil
	}
	differ, err := compareBlocks(ctx, s, user, state.upto, want)
	if err != nil {
		return "", err
	}
	if missing := len(want); differ == 0 && missing > 0 {
		return fmt.Sprintf("%d terms are not in the index", missing), nil
	} else if differ > 0 {
		return fmt.Sprintf("%d terms have other postings", differ), nil
	}
	return "", nil
}

// compareBlocks counts the terms whose postings differ, and takes all that it sees out of what is wanted.
func compareBlocks(ctx context.Context, s sqldb.Querier, user, upto int64, want map[string][]posting) (differ int, err error) {
	rows, err := s.Query(ctx, `SELECT term, first_row, data FROM message_postings WHERE user_row = ? ORDER BY term, first_row`, user)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var term string
	var got []posting
	flush := func() {
		got = slices.DeleteFunc(got, func(p posting) bool { return p.row > upto })
		if !slices.Equal(got, want[term]) {
			differ++
		}
		delete(want, term)
		got = got[:0]
	}
	for first := true; rows.Next(); first = false {
		var t string
		var firstRow int64
		var data []byte
		if err := rows.Scan(&t, &firstRow, &data); err != nil {
			return 0, err
		}
		if !first && t != term {
			flush()
		}
		term = t
		if got, err = decodePostings(got, firstRow, data); err != nil {
			return 0, fmt.Errorf("user %d: %w", user, err)
		}
	}
	if len(got) > 0 || term != "" {
		flush()
	}
	return differ, rows.Err()
}

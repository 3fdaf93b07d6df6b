package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/embed"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// Remedies for problems that a check finds.
const (
	remedyReindex    = "stop the sidecar and rebuild the derived data: memsidecar reindex (docs/backup.md)"
	remedyUnreadable = "delete the listed data, or restore a backup: until then lists and searches skip it (docs/backup.md)"
	remedyReport     = "the sidecar continues, but this should not happen: please report it, with this output"
)

// Checks returns the checks of the meaning of rows, for the command check. They read the whole database.
func Checks() []sqldb.Check {
	checks := make([]sqldb.Check, 0, len(rowChecks)+2)
	for i := range rowChecks {
		checks = append(checks, rowChecks[i].run)
	}
	return append(checks, checkVectors, checkKeywords)
}

// rowCheck is a check that SQL can express. Each query returns a line for each problem.
type rowCheck struct {
	name, about, remedy string
	queries             []string
}

func (c *rowCheck) run(ctx context.Context, q sqldb.Querier) (sqldb.Finding, error) {
	f := sqldb.Finding{Check: c.name, About: c.about, Remedy: c.remedy}
	if err := checkDecoded(ctx, q, &f); err != nil {
		return f, err
	}
	for _, query := range c.queries {
		if err := f.Ask(ctx, q, query); err != nil {
			return f, err
		}
	}
	return f, nil
}

// rowChecks are the checks in SQL.
//
// Some references look wrong but are not: applied_statements and superseded_by may name deleted memories, dialogues and findings may
// name deleted sessions.
var rowChecks = []rowCheck{
	{
		"memories", "memories can be read and have text, and their revisions belong to the same user", remedyReport,
		[]string{
			`SELECT format('memory %s has no words', id) FROM memories WHERE text = ''`,
			`SELECT format('memory %s took its own place', id) FROM memories WHERE superseded_by = id`,
			`SELECT format('revision %s of memory %s belongs to another user', r.id, m.id) FROM memory_revisions r
				JOIN memories m ON m.row = r.memory_row WHERE m.user_row <> r.user_row`,
		},
	},
	{
		"considerations", "dialogues can be read and have considerations, and a user's pending ones are due", remedyReport,
		[]string{
			`SELECT format('dialogue %s is considered by nobody', id) FROM dialogues d
				WHERE NOT EXISTS (SELECT 1 FROM considerations WHERE dialogue_row = d.row)
				AND NOT EXISTS (SELECT 1 FROM sessions WHERE row = d.session_row AND id IS NULL)`, // being deleted
			`SELECT format('consideration %d belongs to another namespace than its dialogue', c.seq) FROM considerations c
				JOIN dialogues d ON d.row = c.dialogue_row WHERE d.namespace <> c.namespace`,
			`SELECT format('consideration %d is %s and yet due', seq, state) FROM considerations WHERE due_at IS NOT NULL AND state <> 'pending'`,
			`SELECT format('consideration %d waits, and neither it nor any of its user is due', min(seq)) FROM considerations
				WHERE state IN ('pending', 'running') GROUP BY namespace, user_id HAVING count(due_at) = 0 AND sum(state = 'running') = 0`,
			`SELECT format('consideration %d waits, and several of its user are due', min(seq)) FROM considerations
				WHERE state IN ('pending', 'running') GROUP BY namespace, user_id HAVING count(due_at) + sum(state = 'running') > 1`,
		},
	},
	{
		"sessions", "sessions and their messages can be read, and the counts are right", remedyReport,
		[]string{
			`SELECT format('session %d counts %d messages and has %d', s.row, s.messages, count(m.row)) FROM sessions s
				LEFT JOIN session_messages m ON m.session_row = s.row WHERE s.id IS NOT NULL
				GROUP BY s.row HAVING count(m.row) <> s.messages`,
			`SELECT format('session %d counts %d participants and has %d', s.row, s.participants, count(p.user_row)) FROM sessions s
				LEFT JOIN session_participants p ON p.session_row = s.row WHERE s.id IS NOT NULL
				GROUP BY s.row HAVING count(p.user_row) <> s.participants`,
			`SELECT format('session %d has messages after its last', s.row) FROM sessions s JOIN session_messages m ON m.session_row = s.row
				GROUP BY s.row HAVING max(m.position) > s.last_position`,
			`SELECT format('current session %d is that of a user who is not there', row) FROM current_sessions
				WHERE user_row <> 0 AND NOT EXISTS (SELECT 1 FROM users WHERE id = user_row)`,
		},
	},
	{
		"usage", "the counts of quotas and lists of users are right", remedyReport,
		[]string{
			`SELECT format('user %d counts %d bytes of messages and has %d', u.id, u.message_bytes, coalesce(sum(octet_length(m.message)), 0)) FROM users u
				LEFT JOIN session_messages m ON m.owner_row = u.id AND m.row <= (SELECT counted_upto FROM usage_progress)
				GROUP BY u.id HAVING coalesce(sum(octet_length(m.message)), 0) <> u.message_bytes`,
			`SELECT format('user %d counts %d memories and has %d', u.id, u.memories, count(m.row)) FROM users u
				LEFT JOIN memories m ON m.user_row = u.id GROUP BY u.id HAVING count(m.row) <> u.memories`,
			`SELECT format('user %d counts %d messages and has %d', u.id, u.message_count, count(m.row)) FROM users u
				LEFT JOIN session_messages m ON m.owner_row = u.id AND m.row <= (SELECT counted_upto FROM usage_progress)
				GROUP BY u.id HAVING count(m.row) <> u.message_count`,
			fmt.Sprintf(`SELECT format('user %%d was active after the noted time', u.id) FROM users u WHERE u.active_at + %d < max(
				coalesce((SELECT max(created_at) FROM memories WHERE user_row = u.id), 0),
				coalesce((SELECT max(received_at) FROM session_messages WHERE owner_row = u.id), 0))`, memory.UserActivityStep.Microseconds()),
			`SELECT format('a namespace counts %d memories and %d bytes of messages, and has %d and %d', coalesce(n.memories, 0), coalesce(n.message_bytes, 0),
				has.memories, has.bytes) FROM (SELECT namespace, sum(memories) AS memories, sum(bytes) AS bytes FROM (
					SELECT namespace, 0 AS memories, 0 AS bytes FROM namespace_usage
					UNION ALL SELECT namespace, memories, 0 FROM users
					UNION ALL SELECT s.namespace, 0, octet_length(m.message) FROM session_messages m JOIN sessions s ON s.row = m.session_row
						WHERE m.row <= (SELECT counted_upto FROM usage_progress)
				) GROUP BY namespace) AS has LEFT JOIN namespace_usage n ON n.namespace = has.namespace
				WHERE has.memories <> coalesce(n.memories, 0) OR has.bytes <> coalesce(n.message_bytes, 0)`,
		},
	},
	{"digests", "findings of digests can be read", remedyReport, nil},
	{"traces", "traces can be read", remedyReport, nil},
	{"settings", "users' settings can be read", remedyReport, nil},
	{
		"results", "the items of numbered lists can be read, and are numbered from 1 without gaps", remedyReport,
		[]string{
			`SELECT format('list %d has gaps in its numbers', list_row) FROM result_list_items
				GROUP BY list_row HAVING min(number) <> 1 OR max(number) <> count(*)`,
		},
	},
}

// checkVectors compares vectors with the fingerprints under which they are stored.
func checkVectors(ctx context.Context, s sqldb.Querier) (f sqldb.Finding, err error) {
	f = sqldb.Finding{
		Check: "vectors", Remedy: remedyReindex,
		About: "vectors have the length of their fingerprint, and none is missing where the table says that all exist",
	}
	for _, query := range []string{
		`SELECT format('fingerprint %s is in use and not known', choice) FROM model_choices
			WHERE part = 'embedding' AND choice NOT IN (SELECT name FROM fingerprints)`,
		`SELECT format('memory %s lacks vectors of %s', m.id, f.name) FROM fingerprints f JOIN memories m
			WHERE f.complete = 1 AND f.name = (SELECT choice FROM model_choices WHERE part = 'embedding') AND m.withdrawn_at IS NULL
			AND NOT EXISTS (SELECT 1 FROM embeddings e WHERE e.memory_row = m.row AND e.fingerprint = f.id)`,
		`SELECT format('memory %s has %d parts and lacks some of %s', m.id, count(*), f.name) FROM embeddings e
			JOIN memories m ON m.row = e.memory_row JOIN fingerprints f ON f.id = e.fingerprint
			GROUP BY e.memory_row, e.fingerprint HAVING max(e.chunk) <> count(*) - 1`,
		`SELECT format('the vector of message %d is kept for another user', e.message_row) FROM message_embeddings e
			JOIN session_messages m ON m.row = e.message_row WHERE m.owner_row IS NOT e.user_row`,
	} {
		if err := f.Ask(ctx, s, query); err != nil {
			return f, err
		}
	}
	if err := checkNumbers(ctx, s, &f); err != nil {
		return f, err
	}
	rows, err := s.Query(ctx, `SELECT 'memories', f.name, length(e.vector), count(*) FROM embeddings e JOIN fingerprints f ON f.id = e.fingerprint
		GROUP BY 2, 3 UNION ALL SELECT 'messages', fingerprint, length(vector), count(*) FROM message_embeddings GROUP BY 2, 3`)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var of, name string
		var length, count int64
		if err := rows.Scan(&of, &name, &length, &count); err != nil {
			return f, err
		}
		fingerprint, err := embed.ParseFingerprint(name)
		if err != nil {
			f.Add(err.Error())
		} else if length != 4*int64(fingerprint.Dimensions) {
			f.Add(fmt.Sprintf("%d vectors of %s under %s have %d bytes, not %d", count, of, name, length, 4*fingerprint.Dimensions))
		}
	}
	return f, rows.Err()
}

// storedRows is a table whose rows are decoded by the kinds of its columns. Readers skip a row that this check calls unreadable.
type storedRows struct {
	finding, kind, id, from string // its check, the name of a row, the column of its id, and the table
	texts                   []string
	json                    []string
	jsonOrNothing           []string // or empty
	times                   []string
	shares                  []string // numbers from 0 to 1
}

var decodedRows = []storedRows{
	{
		finding: "memories", kind: "memory", id: "id", from: "memories", json: []string{"provenance"}, shares: []string{"importance"},
		texts: []string{"text", "agent_id", "channel_id", "session_id", "language", "kind", "superseded_by", "quarantine", "standing"},
		times: []string{"created_at", "updated_at", "observed_at", "last_said_at", "last_used_at", "valid_from", "valid_to", "withdrawn_at"},
	},
	{finding: "memories", kind: "revision", id: "id", from: "memory_revisions", json: []string{"before"}, texts: []string{"reason"}},
	{
		finding: "memories", kind: "result of statement", id: "statement_id", from: "applied_statements",
		jsonOrNothing: []string{"related"},
	},
	{finding: "considerations", kind: "dialogue", id: "id", from: "dialogues", json: []string{"messages"}, times: []string{"created_at"}},
	{
		finding: "considerations", kind: "consideration", id: "seq", from: "considerations",
		json: []string{"outcome"}, jsonOrNothing: []string{"checkpoint"}, times: []string{"accepted_at", "updated_at"},
	},
	{
		finding: "sessions", kind: "session", id: "row", from: "sessions",
		texts: []string{"id", "title", "metadata", "channel_id"}, times: []string{"created_at", "updated_at"},
	},
	{
		finding: "sessions", kind: "message", id: "row", from: "session_messages",
		json: []string{"message"}, times: []string{"received_at", "said_at"},
	},
	{finding: "sessions", kind: "summary of session", id: "session_row", from: "session_summaries", texts: []string{"text"}},
	{finding: "traces", kind: "trace", id: "id", from: "traces", json: []string{"record"}, times: []string{"created_at"}},
	{
		finding: "digests", kind: "finding", id: "row", from: "digest_findings",
		json: []string{"finding"}, times: []string{"made_at", "said_at"},
	},
	{
		finding: "results", kind: "item", id: "row", from: "result_items",
		texts: []string{"key", "title"}, jsonOrNothing: []string{"attributes"}, times: []string{"first_seen"},
	},
	{finding: "settings", kind: "settings of user", id: "user_row", from: "settings", texts: []string{"time_zone", "language"}},
}

// checkDecoded decodes the rows of a finding.
func checkDecoded(ctx context.Context, s sqldb.Querier, f *sqldb.Finding) error {
	before := f.Problems
	for i := range decodedRows {
		if r := &decodedRows[i]; r.finding == f.Check {
			if err := r.check(ctx, s, f); err != nil {
				return err
			}
		}
	}
	if f.Problems > before {
		f.Remedy = remedyUnreadable
	}
	return nil
}

func (r *storedRows) check(ctx context.Context, s sqldb.Querier, f *sqldb.Finding) (err error) {
	columns := []string{r.id}
	var holds []func(any) string
	for _, group := range []struct {
		columns []string
		problem func(any) string
	}{
		{r.texts, textProblem},
		{r.json, jsonProblem},
		{r.jsonOrNothing, jsonOrNothingProblem},
		{r.times, timeProblem},
		{r.shares, shareProblem},
	} {
		for _, column := range group.columns {
			columns, holds = append(columns, column), append(holds, group.problem)
		}
	}
	rows, err := s.Query(ctx, `SELECT `+strings.Join(columns, ", ")+` FROM `+r.from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	values := make([]any, len(columns))
	into := make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		for i, problem := range holds {
			if p := problem(values[i+1]); p != "" {
				f.Add(fmt.Sprintf("%s %s cannot be read: %s %s", r.kind, strings.ToValidUTF8(fmt.Sprint(values[0]), "?"), columns[i+1], p))
				break
			}
		}
	}
	return rows.Err()
}

func textProblem(value any) string {
	switch v := value.(type) {
	case nil:
	case string:
		if !utf8.ValidString(v) {
			return "is not UTF-8"
		}
	default:
		return "is not text"
	}
	return ""
}

func jsonProblem(value any) string {
	if problem := textProblem(value); problem != "" {
		return problem
	}
	if text, _ := value.(string); !json.Valid([]byte(text)) {
		return "holds broken JSON"
	}
	return ""
}

func jsonOrNothingProblem(value any) string {
	if value == nil || value == "" {
		return ""
	}
	return jsonProblem(value)
}

func timeProblem(value any) string {
	switch v := value.(type) {
	case nil:
	case int64:
		if year := time.UnixMicro(v).UTC().Year(); year < 1 || year > 9999 {
			return "is an impossible time"
		}
	default:
		return "is not a time"
	}
	return ""
}

func shareProblem(value any) string {
	n, ok := value.(float64)
	if !ok || !(n >= 0 && n <= 1) { // also true for NaN
		return "is an impossible number"
	}
	return ""
}

// checkNumbers lists the memories whose vectors cannot be read.
func checkNumbers(ctx context.Context, s sqldb.Querier, f *sqldb.Finding) (err error) {
	rows, err := s.Query(ctx, `SELECT m.id, f.name, e.vector FROM embeddings e JOIN memories m ON m.row = e.memory_row
		JOIN fingerprints f ON f.id = e.fingerprint`)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id, name string
		var vector []byte
		if err := rows.Scan(&id, &name, &vector); err != nil {
			return err
		}
		fingerprint, err := embed.ParseFingerprint(name)
		if err != nil {
			continue // reported by the check of vectors
		}
		if _, problem := sqldb.DecodeVector(vector, fingerprint.Dimensions); problem != "" {
			f.Add(fmt.Sprintf("a vector of memory %s cannot be read: it %s (memsidecar reindex rebuilds it)", id, problem))
		}
	}
	return rows.Err()
}

// checkKeywords rebuilds the keyword index of past messages in memory, user by user, and compares.
func checkKeywords(ctx context.Context, s sqldb.Querier) (f sqldb.Finding, err error) {
	f = sqldb.Finding{Check: "keywords", About: "the keyword index of past messages matches the messages", Remedy: remedyReindex}
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

// compareKeywords returns how a user's index differs from the messages, or "". Postings after indexed_upto belong to an interrupted
// attempt; searches ignore them.
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

// compareBlocks counts the terms whose postings differ, and removes all postings that it finds from wanted.
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

package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/memsidecar/memsidecar/internal/embed"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// What to do about what is wrong.
const (
	remedyReindex    = "stop the sidecar and make anew what is derived: memsidecar reindex (docs/backup.md)"
	remedyUnreadable = "delete what is named, or restore a backup: until then lists and searches go without it (docs/backup.md)"
	remedyReport     = "the sidecar goes on, and this should not be: please report it, with this output"
)

// Checks are the checks of what rows mean, for the command check. They read the whole database.
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

// rowChecks are those that SQL can tell. Each query returns a line a problem.
//
// What may look wrong and is not: applied_statements and superseded_by name memories that were deleted since, dialogues and
// findings name sessions that were.
var rowChecks = []rowCheck{
	{
		"memories", "memories can be read and have words, and their revisions belong to the same user", remedyReport,
		[]string{
			`SELECT format('memory %s has no words', id) FROM memories WHERE text = ''`,
			`SELECT format('memory %s took its own place', id) FROM memories WHERE superseded_by = id`,
			`SELECT format('revision %s of memory %s belongs to another user', r.id, m.id) FROM memory_revisions r
				JOIN memories m ON m.row = r.memory_row WHERE m.user_row <> r.user_row`,
		},
	},
	{
		"considerations", "dialogues can be read and have considerations, and what waits of a user is due", remedyReport,
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
		"sessions", "sessions and their messages can be read, and what is counted is right", remedyReport,
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
		"usage", "what quotas count is right", remedyReport,
		[]string{
			`SELECT format('user %d counts %d bytes of messages and has %d', u.id, u.message_bytes, coalesce(sum(octet_length(m.message)), 0)) FROM users u
				LEFT JOIN session_messages m ON m.owner_row = u.id AND m.row <= (SELECT counted_upto FROM usage_progress)
				GROUP BY u.id HAVING coalesce(sum(octet_length(m.message)), 0) <> u.message_bytes`,
			`SELECT format('user %d counts %d memories and has %d', u.id, u.memories, count(m.row)) FROM users u
				LEFT JOIN memories m ON m.user_row = u.id GROUP BY u.id HAVING count(m.row) <> u.memories`,
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
	{"digests", "what digests are made of can be read", remedyReport, nil},
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

// checkVectors compares vectors with the fingerprints they are kept under.
func checkVectors(ctx context.Context, s sqldb.Querier) (f sqldb.Finding, err error) {
	f = sqldb.Finding{
		Check: "vectors", Remedy: remedyReindex,
		About: "vectors are as long as their fingerprint says, and none is missing where all are said to be there",
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

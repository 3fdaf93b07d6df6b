package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/embed"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// storedRows is a table whose rows are decoded, by what its columns hold. A row that Check calls unreadable is one that readers skip.
type storedRows struct {
	finding, kind, id, from string // the check it belongs to, what a row is called, the column of its name, and the table
	texts                   []string
	json                    []string
	jsonOrNothing           []string // empty when there is nothing to say
	times                   []string
	shares                  []string // numbers from 0 to 1
}

var decodedRows = []storedRows{
	{
		finding: "memories", kind: "memory", id: "id", from: "memories", json: []string{"provenance"}, shares: []string{"importance"},
		texts: []string{"text", "agent_id", "channel_id", "session_id", "language", "kind", "superseded_by", "quarantine"},
		times: []string{"created_at", "updated_at", "observed_at", "last_said_at", "last_used_at", "valid_from", "valid_to", "withdrawn_at"},
	},
	{finding: "memories", kind: "revision", id: "id", from: "memory_revisions", json: []string{"before"}, texts: []string{"reason"}},
	{
		finding: "memories", kind: "what was applied of statement", id: "statement_id", from: "applied_statements",
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

// checkDecoded decodes the rows that belong to a finding.
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
		return "is no text"
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
		return "is no time"
	}
	return ""
}

func shareProblem(value any) string {
	n, ok := value.(float64)
	if !ok || !(n >= 0 && n <= 1) { // what is no number is not between them either
		return "is an impossible number"
	}
	return ""
}

// checkNumbers names the memories whose vectors cannot be read.
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
			continue // the check of vectors says so
		}
		if _, problem := sqldb.DecodeVector(vector, fingerprint.Dimensions); problem != "" {
			f.Add(fmt.Sprintf("a vector of memory %s cannot be read: it %s (memsidecar reindex makes it again)", id, problem))
		}
	}
	return rows.Err()
}

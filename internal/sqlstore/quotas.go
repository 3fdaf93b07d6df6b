package sqlstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// Quotas hold what is stored within its limits. They are asked inside the transaction that stores, after it has stored: the
// error undoes it. The nil Quotas limit nothing.
type Quotas struct {
	// Limit says how much may be stored in a namespace; 0 is any amount.
	Limit func(namespace string, name memory.QuotaName) int64
	// Refused is called for each write that was undone. Optional.
	Refused func(memory.QuotaName)
}

func (q *Quotas) limit(namespace string, name memory.QuotaName) int64 {
	if q == nil {
		return 0
	}
	return q.Limit(namespace, name)
}

// Note counts a write that ended in an error, if a quota was why, and returns the error.
func (q *Quotas) Note(err error) error {
	var over *memory.QuotaError
	if q != nil && q.Refused != nil && errors.As(err, &over) {
		q.Refused(over.Quota)
	}
	return err
}

// within is a *memory.QuotaError when so much has been stored now that the limit is passed, added being what this write has added
// to it. What adds nothing is never refused.
func within(s memory.Standing, added int64) error {
	if s.Limit == 0 || added <= 0 || s.Used <= s.Limit {
		return nil
	}
	s.Used -= added
	return &memory.QuotaError{Standing: s, Needed: added}
}

// NamespaceMemories counts the memories of a namespace.
func NamespaceMemories(ctx context.Context, q sqldb.Querier, namespace string) (memories int64, err error) {
	err = q.QueryRow(ctx, `SELECT memories FROM namespace_usage WHERE namespace = ?`, namespace).Scan(&memories)
	return memories, sqldb.Optional(err)
}

// MemoriesWithin checks the memories of a namespace after a write; before is how many there were.
func (q *Quotas) MemoriesWithin(ctx context.Context, tx sqldb.Tx, namespace string, before int64) error {
	limit := q.limit(namespace, memory.QuotaNamespaceMemories)
	if limit == 0 {
		return nil
	}
	now, err := NamespaceMemories(ctx, tx, namespace)
	if err != nil {
		return err
	}
	return within(memory.Standing{Quota: memory.QuotaNamespaceMemories, Limit: limit, Used: now}, now-before)
}

// What is stored of messages is what is counted and what is in the tail, see migrations/00015_tail.sql. It is asked in one query, so
// that it is of one moment.
const (
	namespaceBytesQuery = `SELECT coalesce((SELECT message_bytes FROM namespace_usage WHERE namespace = ?1), 0)
		+ coalesce((SELECT sum(octet_length(m.message)) FROM session_messages m NOT INDEXED CROSS JOIN sessions s ON s.row = m.session_row
			WHERE m.row > (SELECT counted_upto FROM usage_progress) AND s.namespace = ?1), 0)`
	userBytesQuery = `SELECT message_bytes
		+ coalesce((SELECT sum(octet_length(message)) FROM session_messages INDEXED BY session_messages_by_owner
			WHERE owner_row = users.id AND row > (SELECT counted_upto FROM usage_progress)), 0) FROM users WHERE `
)

// tailLength is how many messages of all users together are in the tail when it is counted, about.
const tailLength = 128

// countTail is called with the row of each message that is stored.
func countTail(ctx context.Context, tx sqldb.Tx, row int64) error {
	if row%tailLength != 0 {
		return nil
	}
	for _, statement := range []string{
		// NOT INDEXED leaves the rows themselves, of which the tail is the end.
		`UPDATE users SET message_bytes = message_bytes + tail.bytes, message_count = message_count + tail.messages
			FROM (SELECT owner_row, sum(octet_length(message)) AS bytes, count(*) AS messages FROM session_messages NOT INDEXED
				WHERE row > (SELECT counted_upto FROM usage_progress) AND owner_row IS NOT NULL GROUP BY owner_row) AS tail
			WHERE tail.owner_row = users.id`,
		`INSERT INTO namespace_usage (namespace, memories, message_bytes)
			SELECT s.namespace, 0, sum(octet_length(m.message)) FROM session_messages m NOT INDEXED CROSS JOIN sessions s ON s.row = m.session_row
				WHERE m.row > (SELECT counted_upto FROM usage_progress) GROUP BY s.namespace
			ON CONFLICT (namespace) DO UPDATE SET message_bytes = message_bytes + excluded.message_bytes`,
		`UPDATE usage_progress SET counted_upto = (SELECT max(row) FROM session_messages)`,
	} {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func namespaceBytes(ctx context.Context, q sqldb.Querier, namespace string) (bytes int64, err error) {
	err = q.QueryRow(ctx, namespaceBytesQuery, namespace).Scan(&bytes)
	return bytes, err
}

// historyWithin checks the messages of a namespace and of those whose messages were added, by how many bytes.
func (q *Quotas) historyWithin(ctx context.Context, tx sqldb.Tx, w *appending) error {
	if w.done.Added == 0 {
		return nil
	}
	namespace := w.Scope.Namespace
	if limit := q.limit(namespace, memory.QuotaUserHistory); limit > 0 {
		for id, row := range w.users {
			if w.stored[row] == 0 {
				continue
			}
			var used int64
			if err := tx.QueryRow(ctx, userBytesQuery+`id = ?`, row).Scan(&used); err != nil {
				return err
			}
			if err := within(memory.Standing{Quota: memory.QuotaUserHistory, UserID: id, Limit: limit, Used: used}, w.stored[row]); err != nil {
				return err
			}
		}
	}
	limit := q.limit(namespace, memory.QuotaNamespaceHistory)
	if limit == 0 {
		return nil
	}
	used, err := namespaceBytes(ctx, tx, namespace)
	if err != nil {
		return err
	}
	added := int64(0)
	for _, bytes := range w.stored {
		added += bytes
	}
	return within(memory.Standing{Quota: memory.QuotaNamespaceHistory, Limit: limit, Used: used}, added)
}

// The lists of a user or a namespace: registries, and lists being shown. No more rows are counted than are of interest.
const (
	userRegistries      = `SELECT 1 FROM result_registries INDEXED BY result_registries_by_member WHERE namespace = ?1 AND member = ?2 AND member <> '' LIMIT ?3`
	userLists           = `SELECT 1 FROM result_lists INDEXED BY result_lists_by_user WHERE namespace = ?1 AND user_id = ?2 AND user_id <> '' LIMIT ?3`
	namespaceRegistries = `SELECT 1 FROM result_registries WHERE namespace = ?1 AND ?2 = ?2 LIMIT ?3`
	namespaceLists      = `SELECT 1 FROM result_lists WHERE namespace = ?1 AND ?2 = ?2 LIMIT ?3`
)

func countLists(ctx context.Context, q sqldb.Querier, query string, user memory.User, upTo int64) (n int64, err error) {
	err = q.QueryRow(ctx, `SELECT count(*) FROM (`+query+`)`, user.Namespace, user.ID, upTo).Scan(&n)
	return n, err
}

// listsWithin checks the lists of a namespace and of a user, if there is one, when one was added.
func (q *Quotas) listsWithin(ctx context.Context, tx sqldb.Tx, user memory.User, ofUser, ofNamespace string) error {
	for _, check := range []struct {
		name  memory.QuotaName
		of    string
		query string
	}{{memory.QuotaUserLists, user.ID, ofUser}, {memory.QuotaNamespaceLists, "", ofNamespace}} {
		limit := q.limit(user.Namespace, check.name)
		if limit == 0 || check.name == memory.QuotaUserLists && user.ID == "" {
			continue
		}
		used, err := countLists(ctx, tx, check.query, user, limit+1)
		if err != nil {
			return err
		}
		if err := within(memory.Standing{Quota: check.name, UserID: check.of, Limit: limit, Used: used}, 1); err != nil {
			return err
		}
	}
	return nil
}

// Usage reads how much of the quotas is used.
type Usage struct {
	db     sqldb.Access
	quotas *Quotas
}

// NewUsage returns the usage of these quotas.
func NewUsage(db sqldb.Access, quotas *Quotas) *Usage { return &Usage{db, quotas} }

// Standings are the usage of the quotas of a namespace, and of its user if there is one. Usage without a limit is included where it need
// not be counted.
func (u *Usage) Standings(ctx context.Context, user memory.User) (list []memory.Standing, err error) {
	limit := func(name memory.QuotaName) int64 { return u.quotas.limit(user.Namespace, name) }
	err = u.db.Read(ctx, func(q sqldb.Querier) error {
		memories, err := NamespaceMemories(ctx, q, user.Namespace)
		if err != nil {
			return err
		}
		bytes, err := namespaceBytes(ctx, q, user.Namespace)
		if err != nil {
			return err
		}
		list = []memory.Standing{
			{Quota: memory.QuotaNamespaceMemories, Limit: limit(memory.QuotaNamespaceMemories), Used: memories},
			{Quota: memory.QuotaNamespaceHistory, Limit: limit(memory.QuotaNamespaceHistory), Used: bytes},
		}
		if user.ID != "" {
			var own int64
			err := q.QueryRow(ctx, userBytesQuery+`namespace = ? AND user_id = ?`, user.Namespace, user.ID).Scan(&own)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
			list = append(list, memory.Standing{Quota: memory.QuotaUserHistory, UserID: user.ID, Limit: limit(memory.QuotaUserHistory), Used: own})
		}
		for _, each := range []struct {
			name              memory.QuotaName
			of                string
			registries, lists string
		}{
			{memory.QuotaNamespaceLists, "", namespaceRegistries, namespaceLists},
			{memory.QuotaUserLists, user.ID, userRegistries, userLists},
		} {
			if limit(each.name) == 0 || each.name == memory.QuotaUserLists && user.ID == "" {
				continue
			}
			registries, err := countLists(ctx, q, each.registries, user, limit(each.name)+1)
			if err != nil {
				return err
			}
			lists, err := countLists(ctx, q, each.lists, user, limit(each.name)+1)
			if err != nil {
				return err
			}
			list = append(list, memory.Standing{Quota: each.name, UserID: each.of, Limit: limit(each.name), Used: max(registries, lists)})
		}
		return nil
	})
	return list, err
}

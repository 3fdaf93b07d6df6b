package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// Users lists users.
type Users struct{ db sqldb.Access }

// NewUsers returns the users in the database.
func NewUsers(db sqldb.Access) *Users { return &Users{db} }

// TouchUser notes that something was stored for a user. Only one call in memory.UserActivityStep writes.
func TouchUser(ctx context.Context, tx sqldb.Tx, row int64, at time.Time) error {
	_, err := tx.Exec(ctx, `UPDATE users SET active_at = ?2 WHERE id = ?1 AND active_at < ?3`,
		row, sqldb.Micros(at), sqldb.Micros(at.Add(-memory.UserActivityStep)))
	return err
}

// userSummaries reads what is counted with the user's row, and counts the rest by indexes, for the users of the page only. Messages are
// counted with their bytes: those after counted_upto are not yet.
const userSummaries = `SELECT u.user_id, u.memories,
	u.message_count + (SELECT count(*) FROM session_messages m INDEXED BY session_messages_by_owner
		WHERE m.owner_row = u.id AND m.row > (SELECT counted_upto FROM usage_progress)),
	(SELECT count(*) FROM session_participants p INDEXED BY session_participants_by_user WHERE p.user_row = u.id),
	(SELECT count(*) FROM considerations c INDEXED BY considerations_line
		WHERE c.namespace = u.namespace AND c.user_id = u.user_id AND c.state IN ('pending', 'running')),
	u.active_at FROM users u `

// The pages of each order. Each is read from an index, from the place where it begins to its end. SQLite searches an index by one lower
// bound only, so that of a prefix and that of a page are two queries.
const (
	usersFromID     = userSummaries + `WHERE u.namespace = ?1 AND u.user_id >= ?2 ORDER BY u.user_id LIMIT ?3`
	usersAfterID    = userSummaries + `WHERE u.namespace = ?1 AND u.user_id > ?2 ORDER BY u.user_id LIMIT ?3`
	usersByActivity = userSummaries + `WHERE u.namespace = ?1 AND (u.active_at, u.user_id) < (?2, ?3)
		ORDER BY u.active_at DESC, u.user_id DESC LIMIT ?4`
)

// List returns a page of the users of a namespace. In the order of activity a user who becomes active between two pages moves to the
// front: such a user may be missing from the pages, and is never on two.
func (s *Users) List(ctx context.Context, query memory.UserQuery) (page memory.UserPage, err error) {
	text, args := usersFromID, []any{query.Namespace, query.Prefix, query.Limit + 1}
	if query.After != "" {
		text, args = usersAfterID, []any{query.Namespace, query.After, query.Limit + 1}
	}
	if query.Order == memory.UsersByActivity {
		at, id, err := parseActivity(query.After)
		if err != nil {
			return page, err
		}
		text, args = usersByActivity, []any{query.Namespace, at, id, query.Limit + 1}
	}
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		rows, err := q.Query(ctx, text, args...)
		if err != nil {
			return err
		}
		page.Users, err = sqldb.Collect(rows, func(scan func(...any) error) (u memory.UserSummary, err error) {
			var active int64
			err = scan(&u.ID, &u.Memories, &u.Messages, &u.Sessions, &u.Pending, &active)
			u.LastActive = sqldb.Time(sql.NullInt64{Int64: active, Valid: active != 0})
			return u, err
		})
		return err
	})
	if err != nil {
		return memory.UserPage{}, err
	}
	// Ids that begin with the prefix follow each other, and the first user is the first of them.
	for i := range page.Users {
		if query.Order == memory.UsersByID && !strings.HasPrefix(page.Users[i].ID, query.Prefix) {
			page.Users = page.Users[:i]
			break
		}
	}
	if len(page.Users) <= query.Limit {
		return page, nil
	}
	page.Users = page.Users[:query.Limit]
	last := &page.Users[query.Limit-1]
	page.Next = last.ID
	if query.Order == memory.UsersByActivity {
		page.Next = fmt.Sprintf("%d/%s", micros(last.LastActive), last.ID)
	}
	return page, nil
}

// micros is a time as active_at holds it; 0 for the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// parseActivity reads the place after which a page in the order of activity begins.
func parseActivity(after string) (at int64, id string, err error) {
	if after == "" {
		return math.MaxInt64, "", nil
	}
	text, id, ok := strings.Cut(after, "/")
	if at, err = strconv.ParseInt(text, 10, 64); err != nil || !ok {
		return 0, "", memory.Invalid("page_token", "is invalid: start again without it")
	}
	return at, id, nil
}

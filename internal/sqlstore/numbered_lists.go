package sqlstore

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/lists"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// NumberedLists implements results.Store.
type NumberedLists struct {
	db sqldb.Access
	// Quotas limit how many lists are stored; optional. They must be set before the lists are used.
	Quotas *Quotas
}

var _ lists.Store = (*NumberedLists)(nil)

// NewNumberedLists returns the numbered lists in the database.
func NewNumberedLists(db sqldb.Access) *NumberedLists { return &NumberedLists{db: db} }

// visibleRegistries selects the rows of the visible parts of a registry; viewArgs are its parameters, from ?1 on.
const visibleRegistries = `(SELECT row FROM result_registries WHERE namespace = ?1 AND kind = ?2 AND member = ?3 AND list = ?4
	AND (?5 OR visibility IN (SELECT value FROM json_each(?6))) AND (?2 = 'user' OR channel_id = ?7))`

func viewArgs(v lists.View) ([]any, error) {
	keys, all := v.Keys()
	visible, err := jsonList(keys)
	return []any{v.Namespace, string(v.Kind), v.Member, v.List, all, visible, v.Channel.ID}, err
}

// lastCheck returns the time of a registry's last scheduled check.
func lastCheck(ctx context.Context, q sqldb.Querier, view []any) (time.Time, error) {
	var at sql.NullInt64
	err := q.QueryRow(ctx, `SELECT max(last_check_at) FROM result_registries WHERE row IN `+visibleRegistries, view...).Scan(&at)
	return sqldb.Time(at), err
}

// knownItem is an item of the registry, as the view sees it.
type knownItem struct {
	lists.Item
	found bool
}

func findItem(ctx context.Context, q sqldb.Querier, view []any, key string) (known knownItem, err error) {
	known.Key = key
	var firstSeen, notified sql.NullInt64
	err = q.QueryRow(ctx, `SELECT title, attributes, (SELECT min(first_seen) FROM result_items WHERE key = ?8 AND registry_row IN `+
		visibleRegistries+`), (SELECT max(notified) FROM result_items WHERE key = ?8 AND registry_row IN `+visibleRegistries+`)
		FROM result_items WHERE key = ?8 AND registry_row IN `+visibleRegistries+` ORDER BY updated_at DESC, row DESC LIMIT 1`,
		append(slices.Clip(view), key)...).Scan(&known.Title, &known.Attributes, &firstSeen, &notified)
	known.found = err == nil
	known.FirstSeen, known.Notified = sqldb.Time(firstSeen), notified.Int64 != 0
	return known, sqldb.Optional(err)
}

// Put implements results.Store.
func (s *NumberedLists) Put(ctx context.Context, p lists.Put) (done lists.PutResult, err error) {
	view, err := viewArgs(p.View)
	if err != nil {
		return done, err
	}
	p.At = p.At.Truncate(time.Microsecond).UTC()
	err = s.db.Write(ctx, func(tx sqldb.Tx) error {
		done = lists.PutResult{}
		registry, err := s.ensureRegistry(ctx, tx, p.View.Registry)
		if err != nil {
			return err
		}
		done.Items = make([]lists.Numbered, len(p.Items))
		for i := range p.Items {
			isNew, err := putItem(ctx, tx, registry, view, &p, &p.Items[i])
			if err != nil {
				return err
			}
			done.Items[i] = lists.Numbered{Number: i + 1, New: isNew}
		}
		for i := range p.Items { // now that all fields of a key are merged
			item, err := findItem(ctx, tx, view, p.Items[i].Key)
			if err != nil {
				return err
			}
			done.Items[i].Item = item.Item
		}
		check := p.LastCheck
		if p.Mode == lists.Scheduled {
			check = p.At
		}
		if _, err := tx.Exec(ctx, `UPDATE result_registries SET last_check_at = max(coalesce(last_check_at, ?2), ?2)
			WHERE row = ?1 AND ?2 IS NOT NULL`, registry, sqldb.Micros(check)); err != nil {
			return err
		}
		if done.LastCheck, err = lastCheck(ctx, tx, view); err != nil {
			return err
		}
		if done.Shown, err = s.showPut(ctx, tx, registry, view, &p, done.Items); err != nil {
			return err
		}
		done.Evicted, err = evict(ctx, tx, registry, &p)
		return err
	})
	return done, s.Quotas.Note(err)
}

func (s *NumberedLists) ensureRegistry(ctx context.Context, tx sqldb.Tx, r lists.Registry) (row int64, err error) {
	key := []any{r.Namespace, string(r.Kind), r.Member, r.List, r.Channel.VisibilityKey(), r.Channel.ID, string(r.Channel.Kind)}
	added, err := tx.Affect(ctx, `INSERT INTO result_registries (namespace, kind, member, list, visibility, channel_id, channel_kind)
		VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`, key...)
	if err == nil && added > 0 {
		err = s.Quotas.listsWithin(ctx, tx, memory.User{Namespace: r.Namespace, ID: r.Member}, userRegistries, namespaceRegistries)
	}
	if err != nil {
		return 0, err
	}
	err = tx.QueryRow(ctx, `SELECT row FROM result_registries WHERE namespace = ? AND kind = ? AND member = ? AND list = ?
		AND visibility = ? AND channel_id = ?`, key[:6]...).Scan(&row)
	return row, err
}

// putItem adds or updates one item in the registry's own part.
func putItem(ctx context.Context, tx sqldb.Tx, registry int64, view []any, p *lists.Put, item *lists.Item) (isNew bool, err error) {
	known, err := findItem(ctx, tx, view, item.Key)
	if err == nil && known.found {
		_, err = tx.Exec(ctx, `UPDATE result_items SET last_seen = ?9 WHERE key = ?8 AND registry_row IN `+visibleRegistries,
			append(slices.Clip(view), item.Key, p.At.UnixMicro())...)
	}
	if err != nil || known.found && p.Mode != lists.Manual {
		return false, err
	}
	stored := lists.Item{Key: item.Key, Title: item.Title, Attributes: item.Attributes, FirstSeen: p.At}
	switch {
	case p.Mode == lists.Scheduled:
		stored.Notified = true
	case p.Mode == lists.Import:
		stored.Notified = item.Notified
		if !item.FirstSeen.IsZero() {
			stored.FirstSeen = item.FirstSeen
		}
	case known.found:
		stored.FirstSeen, stored.Notified = known.FirstSeen, known.Notified
		if stored.Title == "" {
			stored.Title = known.Title
		}
		if stored.Attributes == "" {
			stored.Attributes = known.Attributes
		}
	}
	_, err = tx.Exec(ctx, `INSERT INTO result_items (registry_row, key, title, attributes, first_seen, notified, updated_at, last_seen)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7) ON CONFLICT DO UPDATE SET title = ?3, attributes = ?4, updated_at = ?7`,
		registry, stored.Key, stored.Title, stored.Attributes, stored.FirstSeen.UnixMicro(), stored.Notified, p.At.UnixMicro())
	return !known.found, err
}

// showPut shows the items of a Put as a list.
func (s *NumberedLists) showPut(ctx context.Context, tx sqldb.Tx, registry int64, view []any, p *lists.Put, items []lists.Numbered) (bool, error) {
	if p.Place == nil {
		return false, nil
	}
	switch p.Mode {
	case lists.Manual:
		return true, s.show(ctx, tx, registry, p, p.At, items)
	case lists.Import:
		if len(p.ShownKeys) == 0 {
			return false, nil
		}
	default:
		return false, nil
	}
	shownAt := p.ShownAt.Truncate(time.Microsecond).UTC()
	var newer bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM result_lists WHERE namespace = ? AND place = ? AND place_id = ? AND member = ?
		AND visibility = ? AND list = ? AND shown_at >= ?)`, append(placeArgs(p.Place), p.View.List, shownAt.UnixMicro())...).Scan(&newer)
	if err != nil || newer {
		return false, err
	}
	items = make([]lists.Numbered, len(p.ShownKeys))
	for i, key := range p.ShownKeys {
		known, err := findItem(ctx, tx, view, key)
		if err != nil {
			return false, err
		}
		if !known.found {
			known.FirstSeen = shownAt
		}
		items[i] = lists.Numbered{Number: i + 1, Item: known.Item}
	}
	return true, s.show(ctx, tx, registry, p, shownAt, items)
}

// placeArgs are the columns that, with the list's name, identify a list.
func placeArgs(p *lists.Place) []any {
	return []any{p.Namespace, string(p.Kind), p.ID, p.Member, p.Channel.VisibilityKey()}
}

func (s *NumberedLists) show(ctx context.Context, tx sqldb.Tx, registry int64, p *lists.Put, at time.Time, items []lists.Numbered) error {
	list := append(placeArgs(p.Place), p.View.List)
	before, err := tx.Affect(ctx, `DELETE FROM result_lists WHERE namespace = ? AND place = ? AND place_id = ? AND member = ?
		AND visibility = ? AND list = ?`, list...)
	if err != nil {
		return err
	}
	owner := p.Place.Member
	if owner == "" {
		owner = p.View.Member // the group sees a list of one of its members
	}
	row, err := tx.Insert(ctx, `INSERT INTO result_lists (namespace, place, place_id, member, visibility, list, channel_kind, channel_id,
		user_id, registry_kind, registry_row, shown_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		append(list, string(p.Place.Channel.Kind), p.Place.Channel.ID, owner, string(p.View.Kind), registry, at.UnixMicro())...)
	if err != nil {
		return err
	}
	for _, item := range items {
		if _, err := tx.Exec(ctx, `INSERT INTO result_list_items (list_row, number, key, title, attributes, first_seen, notified)
			VALUES (?, ?, ?, ?, ?, ?, ?)`, row, item.Number, item.Key, item.Title, item.Attributes, item.FirstSeen.UnixMicro(),
			item.Notified); err != nil {
			return err
		}
	}
	if before > 0 { // it replaced another list
		return nil
	}
	return s.Quotas.listsWithin(ctx, tx, memory.User{Namespace: p.Place.Namespace, ID: owner}, userLists, namespaceLists)
}

// evict deletes items of a registry that are too many or too old, those last seen longest ago first. All items of the current Put stay:
// otherwise a check would report the evicted ones again the next time.
func evict(ctx context.Context, tx sqldb.Tx, registry int64, p *lists.Put) (int, error) {
	deleted, err := tx.Affect(ctx, `DELETE FROM result_items WHERE registry_row = ? AND last_seen < ?`, registry, seenAfter(p.Limits))
	if err != nil {
		return 0, err
	}
	var left int64
	err = tx.QueryRow(ctx, `SELECT count(*) FROM result_items WHERE registry_row = ?`, registry).Scan(&left)
	over := left - int64(p.Limits.MaxItems)
	if err != nil || over <= 0 {
		return int(deleted), err
	}
	keys := make([]string, len(p.Items))
	for i := range p.Items {
		keys[i] = p.Items[i].Key
	}
	put, err := jsonList(keys)
	if err != nil {
		return int(deleted), err
	}
	more, err := tx.Affect(ctx, `DELETE FROM result_items WHERE row IN (SELECT row FROM result_items INDEXED BY result_items_by_time
		WHERE registry_row = ?1 AND key NOT IN (SELECT value FROM json_each(?2)) ORDER BY last_seen, first_seen, row LIMIT ?3)`,
		registry, put, over)
	return int(deleted + more), err
}

// seenAfter and shownAfter convert times for comparisons; "no limit" is before all times.
func seenAfter(l lists.Limits) int64 { return beforeAll(l.SeenAfter) }

func shownAfter(l lists.Limits) int64 { return beforeAll(l.ShownAfter) }

func beforeAll(t time.Time) int64 {
	if t.IsZero() {
		return -1 << 62
	}
	return t.UnixMicro()
}

// Sweep implements results.Store.
func (s *NumberedLists) Sweep(ctx context.Context, l lists.Limits, limit int) (deleted int64, err error) {
	err = s.db.Write(ctx, func(tx sqldb.Tx) error {
		lists, err := tx.Affect(ctx, `DELETE FROM result_lists WHERE row IN (SELECT row FROM result_lists INDEXED BY result_lists_by_time
			WHERE shown_at <= ?1 LIMIT ?2)`, shownAfter(l), limit)
		if err != nil {
			return err
		}
		items, err := tx.Affect(ctx, `DELETE FROM result_items WHERE row IN (SELECT row FROM result_items INDEXED BY result_items_by_age
			WHERE last_seen < ?1 LIMIT ?2)`, seenAfter(l), limit)
		deleted = lists + items
		return err
	})
	return deleted, err
}

// ForgetSession implements results.Store.
func (s *NumberedLists) ForgetSession(ctx context.Context, namespace, sessionID string, channel memory.Channel, users ...string) error {
	if sessionID == "" {
		return nil
	}
	list, err := jsonList(users)
	if err != nil {
		return err
	}
	return s.db.Write(ctx, func(tx sqldb.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM result_lists WHERE namespace = ? AND place = ? AND place_id = ? AND visibility = ?
			AND (? = 0 OR user_id IN (SELECT value FROM json_each(?)))`,
			namespace, string(lists.PlaceSession), sessionID, channel.VisibilityKey(), len(users), list)
		return err
	})
}

// Forget implements results.Store.
func (s *NumberedLists) Forget(ctx context.Context, user memory.User) (f lists.Forgotten, err error) {
	if user.ID == "" {
		return f, nil // no user
	}
	err = s.db.Write(ctx, func(tx sqldb.Tx) (err error) {
		if f.Lists, err = tx.Affect(ctx, `DELETE FROM result_lists WHERE namespace = ? AND user_id = ? AND user_id <> ''`,
			user.Namespace, user.ID); err != nil {
			return err
		}
		if f.Items, err = tx.Affect(ctx, `DELETE FROM result_items WHERE registry_row IN
			(SELECT row FROM result_registries WHERE namespace = ? AND member = ? AND member <> '')`, user.Namespace, user.ID); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `DELETE FROM result_registries WHERE namespace = ? AND member = ? AND member <> ''`, user.Namespace, user.ID)
		return err
	})
	return f, err
}

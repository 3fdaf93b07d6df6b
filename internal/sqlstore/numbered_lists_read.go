package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/lists"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// staleAfter is the age at which an item's last-seen time is written again: its precision of days is enough, and a read is cheaper than
// a write.
const staleAfter = time.Hour

// Unseen implements results.Store.
func (s *NumberedLists) Unseen(ctx context.Context, v lists.View, keys []string, at time.Time) (unseen []string, last time.Time, err error) {
	view, err := viewArgs(v)
	if err != nil {
		return nil, last, err
	}
	list, err := jsonList(keys)
	if err != nil {
		return nil, last, err
	}
	const stale = ` FROM result_items WHERE key IN (SELECT value FROM json_each(?8)) AND last_seen < ?9
		AND registry_row IN ` + visibleRegistries
	before := append(slices.Clip(view), list, at.Add(-staleAfter).UnixMicro())
	refresh := false
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		if err := q.QueryRow(ctx, `SELECT EXISTS (SELECT 1`+stale+`)`, before...).Scan(&refresh); err != nil {
			return err
		}
		rows, err := q.Query(ctx, `SELECT value FROM json_each(?8) k WHERE NOT EXISTS (SELECT 1 FROM result_items
			WHERE key = k.value AND registry_row IN `+visibleRegistries+`) GROUP BY value ORDER BY min(k.key)`, append(view, list)...)
		if err != nil {
			return err
		}
		unseen, err = sqldb.Column[string](rows)
		if err != nil {
			return err
		}
		last, err = lastCheck(ctx, q, view)
		return err
	})
	if err == nil && refresh {
		// The answer is correct without this write. Failing storage, or a caller that left, is noticed elsewhere.
		_ = s.db.Write(ctx, func(tx sqldb.Tx) error {
			_, err := tx.Exec(ctx, `UPDATE result_items SET last_seen = ?10 WHERE row IN (SELECT row`+stale+`)`,
				append(before, at.UnixMicro())...)
			return err
		})
	}
	return unseen, last, err
}

// listedItem is an item with its position in the order.
type listedItem struct {
	lists.Item
	firstSeen, row int64
}

// Items implements results.Store. An item in several parts is listed once, with the earliest time at which it was seen.
func (s *NumberedLists) Items(ctx context.Context, v lists.View, after string, limit int) (page lists.Page, err error) {
	view, err := viewArgs(v)
	if err != nil {
		return page, err
	}
	start := listedItem{firstSeen: math.MaxInt64}
	if after != "" {
		if _, err := fmt.Sscanf(after, "%d.%d", &start.firstSeen, &start.row); err != nil {
			return page, memory.Invalid("page_token", "is invalid: start again without it")
		}
	}
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		page = lists.Page{}
		if err := q.QueryRow(ctx, `SELECT count(DISTINCT key) FROM result_items WHERE registry_row IN `+visibleRegistries,
			view...).Scan(&page.Total); err != nil {
			return err
		}
		rows, err := q.Query(ctx, `SELECT m.key, i.title, i.attributes, m.seen, m.notified, m.first FROM (
				SELECT key, min(first_seen) AS seen, max(notified) AS notified, min(row) AS first FROM result_items
				WHERE registry_row IN `+visibleRegistries+` GROUP BY key) m
			JOIN result_items i ON i.row = (SELECT row FROM result_items WHERE key = m.key AND registry_row IN `+visibleRegistries+`
				ORDER BY updated_at DESC, row DESC LIMIT 1)
			WHERE m.seen < ?8 OR m.seen = ?8 AND m.first > ?9 ORDER BY m.seen DESC, m.first LIMIT ?10`,
			append(slices.Clip(view), start.firstSeen, start.row, limit+1)...)
		if err != nil {
			return err
		}
		found, err := sqldb.CollectMarked(q, rows, func(scan func(...any) error) (i listedItem, err error) {
			err = scan(&i.Key, &i.Title, &i.Attributes, &i.firstSeen, &i.Notified, &i.row)
			i.FirstSeen = time.UnixMicro(i.firstSeen).UTC()
			if err != nil {
				return i, sqldb.Scanned(itemsTable, i.row, err)
			}
			return i, checkItem(i.row, &i.Item)
		})
		if err != nil {
			return err
		}
		bytes := 0
		for n, m := range found {
			i := m.Row
			bytes += len(i.Key) + len(i.Title) + len(i.Attributes)
			if n == limit || n > 0 && bytes > maxPageBytes {
				page.Next = fmt.Sprintf("%d.%d", found[n-1].Row.firstSeen, found[n-1].Row.row)
				break
			}
			if m.Damaged {
				continue
			}
			page.Items = append(page.Items, i.Item)
		}
		page.LastCheck, err = lastCheck(ctx, q, view)
		return err
	})
	return page, err
}

const listColumns = `l.row, l.namespace, l.place, l.place_id, l.member, l.list, l.channel_kind, l.channel_id, l.registry_kind, l.shown_at`

// listItems selects the items of lists l with the columns below, with their current state in the registry, else their state when they
// were shown. One query reads list and items, so that they are consistent.
const (
	listItems = ` JOIN result_list_items s ON s.list_row = l.row
		LEFT JOIN result_items i ON i.registry_row = l.registry_row AND i.key = s.key`
	listItemColumns = `s.number, s.key, coalesce(i.title, s.title), coalesce(i.attributes, s.attributes),
		coalesce(i.first_seen, s.first_seen), coalesce(i.notified, s.notified)`
)

const (
	itemsTable     = "result_items"
	unreadableItem = "(this item cannot be read any more)"
)

// checkItem returns a *memory.DamagedError if an item has an invalid value.
func checkItem(row int64, i *lists.Item) error {
	if i.Attributes != "" && !json.Valid([]byte(i.Attributes)) {
		return sqldb.Damaged(itemsTable, row, "it holds broken JSON")
	}
	return errors.Join(sqldb.Texts(itemsTable, row, i.Key, i.Title, i.Attributes), sqldb.Times(itemsTable, row, i.FirstSeen))
}

// shownRow is a list with its row.
type shownRow struct {
	lists.Shown
	row int64
}

// collectShown builds the lists from rows of listColumns and listItemColumns, ordered by list and number.
func collectShown(q sqldb.Querier, rows *sql.Rows) (found []shownRow, err error) {
	_, err = sqldb.Collect(rows, func(scan func(...any) error) (struct{}, error) {
		var l shownRow
		var n lists.Numbered
		var shownAt, firstSeen int64
		err := scan(&l.row, &l.Place.Namespace, &l.Place.Kind, &l.Place.ID, &l.Place.Member, &l.List, &l.Place.Channel.Kind,
			&l.Place.Channel.ID, &l.Kind, &shownAt, &n.Number, &n.Key, &n.Title, &n.Attributes, &firstSeen, &n.Notified)
		if len(found) == 0 || found[len(found)-1].row != l.row {
			l.ShownAt = time.UnixMicro(shownAt).UTC()
			found = append(found, l)
		}
		n.FirstSeen = time.UnixMicro(firstSeen).UTC()
		if sqldb.Skip(q, checkItem(l.row, &n.Item)) { // the item keeps its number
			n.Item = lists.Item{Key: strings.ToValidUTF8(n.Key, "\uFFFD"), Title: unreadableItem, Notified: n.Notified}
		}
		last := &found[len(found)-1]
		last.Items = append(last.Items, n)
		return struct{}{}, err
	})
	return found, err
}

// Shown implements results.Store.
func (s *NumberedLists) Shown(ctx context.Context, p lists.Place, list string, after time.Time) (shown lists.Shown, err error) {
	found, err := s.shownAt(ctx, p, list, after, 1)
	switch {
	case err != nil:
		return shown, err
	case len(found) == 0:
		return shown, memory.ErrNotFound
	}
	return found[0], nil
}

// AllShown implements results.Store.
func (s *NumberedLists) AllShown(ctx context.Context, p lists.Place, after time.Time) ([]lists.Shown, error) {
	return s.shownAt(ctx, p, "", after, -1)
}

// shownAt reads the lists shown at a place, last shown first; a negative limit means no limit.
func (s *NumberedLists) shownAt(ctx context.Context, p lists.Place, list string, after time.Time, limit int) (shown []lists.Shown, err error) {
	keys, all := p.Keys()
	visible, err := jsonList(keys)
	if err != nil {
		return nil, err
	}
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		shown = nil
		rows, err := q.Query(ctx, `SELECT `+listColumns+`, `+listItemColumns+` FROM (SELECT * FROM result_lists
			WHERE namespace = ?1 AND place = ?2 AND place_id = ?3 AND member = ?4
			AND (?5 OR visibility IN (SELECT value FROM json_each(?6))) AND (?7 = '' OR list = ?7) AND shown_at > ?8
			ORDER BY shown_at DESC, row DESC LIMIT ?9) l`+listItems+` ORDER BY l.shown_at DESC, l.row DESC, s.number`,
			p.Namespace, string(p.Kind), p.ID, p.Member, all, visible, list, beforeAll(after), limit)
		if err != nil {
			return err
		}
		found, err := collectShown(q, rows)
		for i := range found {
			shown = append(shown, found[i].Shown)
		}
		return err
	})
	return shown, err
}

// Delete implements results.Store.
func (s *NumberedLists) Delete(ctx context.Context, v *lists.View, p *lists.Place, list string) (items int64, registry, shown bool, err error) {
	err = s.db.Write(ctx, func(tx sqldb.Tx) error {
		items, registry, shown = 0, false, false
		if v != nil {
			view, err := viewArgs(*v)
			if err != nil {
				return err
			}
			if items, err = tx.Affect(ctx, `DELETE FROM result_items WHERE registry_row IN `+visibleRegistries, view...); err != nil {
				return err
			}
			n, err := tx.Affect(ctx, `DELETE FROM result_registries WHERE row IN `+visibleRegistries, view...)
			if err != nil {
				return err
			}
			registry = n > 0
		}
		if p == nil {
			return nil
		}
		keys, all := p.Keys()
		visible, err := jsonList(keys)
		if err != nil {
			return err
		}
		n, err := tx.Affect(ctx, `DELETE FROM result_lists WHERE namespace = ? AND place = ? AND place_id = ? AND member = ?
			AND (? OR visibility IN (SELECT value FROM json_each(?))) AND list = ?`,
			p.Namespace, string(p.Kind), p.ID, p.Member, all, visible, list)
		shown = n > 0
		return err
	})
	return items, registry, shown, err
}

// Registries implements results.Store.
func (s *NumberedLists) Registries(ctx context.Context, user memory.User, after string, limit int) (all []lists.Exported, next string, err error) {
	type row struct {
		lists.Exported
		row int64
	}
	var found []row
	last, err := rowAfter(after)
	if err != nil || user.ID == "" {
		return nil, "", err
	}
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		rows, err := q.Query(ctx, `SELECT row, namespace, kind, channel_kind, channel_id, member, list, last_check_at FROM result_registries
			WHERE namespace = ? AND member = ? AND member <> '' AND row > ? ORDER BY row LIMIT ?`, user.Namespace, user.ID, last, limit+1)
		if err != nil {
			return err
		}
		found, err = sqldb.Collect(rows, func(scan func(...any) error) (r row, err error) {
			var check sql.NullInt64
			err = scan(&r.row, &r.Namespace, &r.Kind, &r.Channel.Kind, &r.Channel.ID, &r.Member, &r.List, &check)
			r.LastCheck = sqldb.Time(check)
			return r, err
		})
		return err
	})
	for _, r := range found[:min(len(found), limit)] {
		all = append(all, r.Exported)
	}
	if len(found) > limit {
		next = strconv.FormatInt(found[limit-1].row, 10)
	}
	return all, next, err
}

// Lists implements results.Store.
func (s *NumberedLists) Lists(ctx context.Context, user memory.User, after string, limit int) (all []lists.Shown, next string, err error) {
	last, err := rowAfter(after)
	if err != nil || user.ID == "" {
		return nil, "", err
	}
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		all, next = nil, ""
		rows, err := q.Query(ctx, `SELECT `+listColumns+`, `+listItemColumns+` FROM (SELECT * FROM result_lists
			WHERE namespace = ? AND user_id = ? AND user_id <> '' AND row > ? ORDER BY row LIMIT ?) l`+listItems+`
			ORDER BY l.row, s.number`, user.Namespace, user.ID, last, limit+1)
		if err != nil {
			return err
		}
		found, err := collectShown(q, rows)
		if err != nil {
			return err
		}
		for _, r := range found[:min(len(found), limit)] {
			all = append(all, r.Shown)
		}
		if len(found) > limit {
			next = strconv.FormatInt(found[limit-1].row, 10)
		}
		return nil
	})
	return all, next, err
}

// rowAfter parses a page token.
func rowAfter(after string) (int64, error) {
	if after == "" {
		return 0, nil
	}
	row, err := strconv.ParseInt(after, 10, 64)
	if err != nil {
		return 0, memory.Invalid("page_token", "is invalid: start again without it")
	}
	return row, nil
}

-- +goose Up

-- When an item of a registry was last seen: put, imported, or asked about. Items leave a registry in this order, whether a list shows them or
-- not: a list keeps copies of its items. Until now an item aged from when it was first seen.
ALTER TABLE result_items ADD COLUMN last_seen INTEGER NOT NULL DEFAULT 0;
UPDATE result_items SET last_seen = max(first_seen, updated_at);

DROP INDEX result_items_by_time;
DROP INDEX result_items_by_age;
CREATE INDEX result_items_by_time ON result_items (registry_row, last_seen, first_seen);
CREATE INDEX result_items_by_age ON result_items (last_seen);

-- It answered whether a list shows an item.
DROP INDEX result_list_items_by_key;

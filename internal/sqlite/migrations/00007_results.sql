-- +goose Up

-- A registry is what was seen, of a user, a channel or a namespace. Rows are never used again: lists that are shown refer to
-- them.
CREATE TABLE result_registries (
    row           INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace     TEXT    NOT NULL,
    kind          TEXT    NOT NULL, -- results.Kind
    channel_kind  TEXT    NOT NULL, -- as for member, for the export
    channel_id    TEXT    NOT NULL, -- of a channel's registry, or of a group's part of a user's
    visibility    TEXT    NOT NULL, -- Channel.VisibilityKey; empty for a namespace's
    member        TEXT    NOT NULL, -- the user whose it is; empty when it is everybody's
    list          TEXT    NOT NULL,
    last_check_at INTEGER,
    UNIQUE (namespace, kind, member, list, visibility, channel_id)
) STRICT;

CREATE INDEX result_registries_by_member ON result_registries (namespace, member, row) WHERE member <> '';

CREATE TABLE result_items (
    row          INTEGER PRIMARY KEY,
    registry_row INTEGER NOT NULL REFERENCES result_registries (row) ON DELETE CASCADE,
    key          TEXT    NOT NULL,
    title        TEXT    NOT NULL,
    attributes   TEXT    NOT NULL, -- a JSON object as it was sent, or empty
    first_seen   INTEGER NOT NULL,
    notified     INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX result_items_by_key ON result_items (registry_row, key);
CREATE INDEX result_items_by_time ON result_items (registry_row, first_seen, row);
CREATE INDEX result_items_by_age ON result_items (first_seen);

-- The numbered list that was shown last in a place, one for each name. Rows are never used again: somebody may be reading one.
CREATE TABLE result_lists (
    row           INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace     TEXT    NOT NULL,
    place         TEXT    NOT NULL, -- results.PlaceKind
    place_id      TEXT    NOT NULL, -- of the session or the channel
    channel_kind  TEXT    NOT NULL,
    channel_id    TEXT    NOT NULL,
    visibility    TEXT    NOT NULL,
    member        TEXT    NOT NULL, -- who sees it; empty for everybody in a group, and where nobody is named
    user_id       TEXT    NOT NULL, -- with whom it is forgotten; empty for nobody
    list          TEXT    NOT NULL,
    registry_kind TEXT    NOT NULL,
    registry_row  INTEGER REFERENCES result_registries (row) ON DELETE SET NULL,
    shown_at      INTEGER NOT NULL,
    UNIQUE (namespace, place, place_id, member, visibility, list)
) STRICT;

CREATE INDEX result_lists_by_registry ON result_lists (registry_row) WHERE registry_row IS NOT NULL;
CREATE INDEX result_lists_by_user ON result_lists (namespace, user_id, row) WHERE user_id <> '';
CREATE INDEX result_lists_by_time ON result_lists (shown_at);

-- Titles and attributes are kept as they were shown, too: the registry may lose the item when its list is deleted.
CREATE TABLE result_list_items (
    list_row   INTEGER NOT NULL REFERENCES result_lists (row) ON DELETE CASCADE,
    number     INTEGER NOT NULL, -- from 1
    key        TEXT    NOT NULL,
    title      TEXT    NOT NULL,
    attributes TEXT    NOT NULL,
    first_seen INTEGER NOT NULL,
    notified   INTEGER NOT NULL,
    PRIMARY KEY (list_row, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX result_list_items_by_key ON result_list_items (key, list_row);

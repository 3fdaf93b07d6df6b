-- +goose Up

ALTER TABLE memories ADD COLUMN valid_from    INTEGER;                  -- null: observed_at
ALTER TABLE memories ADD COLUMN valid_to      INTEGER;
ALTER TABLE memories ADD COLUMN superseded_by TEXT NOT NULL DEFAULT ''; -- a memory's id
ALTER TABLE memories ADD COLUMN quarantine    TEXT NOT NULL DEFAULT ''; -- why, in words
ALTER TABLE memories ADD COLUMN withdrawn_at  INTEGER;

CREATE INDEX memories_superseded ON memories (user_row, superseded_by) WHERE superseded_by <> '';

-- What was done to memories after they were stored. That they were stored is told by the memories themselves.
CREATE TABLE memory_revisions (
    row              INTEGER PRIMARY KEY,
    user_row         INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    id               TEXT    NOT NULL,
    change           TEXT    NOT NULL,
    memory_row       INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE, -- the one that was changed
    other_id         TEXT    NOT NULL, -- the memory that took its place, or empty
    before           TEXT    NOT NULL, -- JSON: what the change overwrote of that memory
    reason           TEXT    NOT NULL,
    consideration_id TEXT    NOT NULL,
    at               INTEGER NOT NULL,
    reverted         INTEGER NOT NULL,
    UNIQUE (user_row, id)
) STRICT;

CREATE INDEX memory_revisions_by_memory ON memory_revisions (memory_row, row);
CREATE INDEX memory_revisions_by_other ON memory_revisions (user_row, other_id) WHERE other_id <> '';

ALTER TABLE applied_statements ADD COLUMN related TEXT NOT NULL DEFAULT ''; -- JSON: ids of other memories it concerned

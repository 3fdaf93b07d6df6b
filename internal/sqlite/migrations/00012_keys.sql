-- +goose Up

-- Random keys of this database, by what they are for: "page_tokens" seals the tokens of pages.
CREATE TABLE keys (
    name TEXT PRIMARY KEY,
    key  BLOB NOT NULL
) STRICT, WITHOUT ROWID;

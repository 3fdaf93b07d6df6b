-- +goose Up

-- The keyword index of past messages, one a user, derived from session_messages: what a user said and was answered.
-- Messages after indexed_upto are the tail, which a search reads itself.
CREATE TABLE message_indexes (
    user_row     INTEGER PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    indexed_upto INTEGER NOT NULL, -- row of the last message that is in the postings
    messages     INTEGER NOT NULL, -- in the postings
    length       INTEGER NOT NULL  -- their terms
) STRICT;

-- A block is a part of a term's postings, in order of rows. Without a rowid, so that a term's blocks lie side by side;
-- they are kept short enough for four to fit a page.
CREATE TABLE message_postings (
    user_row  INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    term      TEXT    NOT NULL,
    first_row INTEGER NOT NULL, -- of the block's first message
    total     INTEGER NOT NULL, -- in the last block of a term: postings in all its blocks
    data      BLOB    NOT NULL, -- see internal/sqlite/postings.go
    PRIMARY KEY (user_row, term, first_row)
) STRICT, WITHOUT ROWID;

-- Vectors of each user's newest messages, of one model at a time.
CREATE TABLE message_embeddings (
    message_row INTEGER PRIMARY KEY REFERENCES session_messages (row) ON DELETE CASCADE,
    user_row    INTEGER NOT NULL,
    fingerprint TEXT    NOT NULL,
    vector      BLOB    NOT NULL -- little-endian float32
) STRICT;

CREATE INDEX message_embeddings_by_user ON message_embeddings (user_row, message_row);

-- How far the background work has come: a message up to this row needs no more of it.
CREATE TABLE message_progress (
    part        TEXT PRIMARY KEY, -- postings or vectors
    fingerprint TEXT    NOT NULL, -- of the vectors
    row         INTEGER NOT NULL,
    leftovers   INTEGER NOT NULL  -- 1: there may be vectors of another fingerprint to delete
) STRICT;

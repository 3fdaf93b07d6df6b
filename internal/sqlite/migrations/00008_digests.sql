-- +goose Up

-- Whether a digest has looked at a message: null is yes, or that none is to; 0 is not yet; 1 is not yet, and only when
-- somebody asks for the digest of the day.
ALTER TABLE session_messages ADD COLUMN digest INTEGER;
CREATE INDEX session_messages_undigested ON session_messages (owner_row, digest, row) WHERE digest IS NOT NULL;

-- What digests are made of. Findings of one contribution have its id and a number each.
CREATE TABLE digest_findings (
    row          INTEGER PRIMARY KEY,
    user_row     INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    contribution TEXT    NOT NULL,
    number       INTEGER NOT NULL,
    session_row  INTEGER,          -- whose messages it rests on
    session_id   TEXT    NOT NULL,
    agent_id     TEXT    NOT NULL,
    channel_kind TEXT    NOT NULL,
    channel_id   TEXT    NOT NULL,
    visibility   TEXT    NOT NULL, -- Channel.VisibilityKey
    made_by      TEXT    NOT NULL,
    made_at      INTEGER NOT NULL,
    said_at      INTEGER NOT NULL,
    remember     INTEGER NOT NULL, -- 1: it is to become a memory and has not
    memory_id    TEXT    NOT NULL, -- the memory that it is, or empty
    finding      TEXT    NOT NULL, -- JSON of digest.Finding
    UNIQUE (user_row, contribution, number)
) STRICT;

CREATE INDEX digest_findings_by_time ON digest_findings (user_row, said_at, row);
CREATE INDEX digest_findings_by_session ON digest_findings (session_row) WHERE session_row IS NOT NULL;
CREATE INDEX digest_findings_to_remember ON digest_findings (user_row) WHERE remember = 1;

-- When the next digest of a user is due, and how many messages of the user wait for it.
CREATE TABLE digest_progress (
    user_row INTEGER PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    waiting  INTEGER NOT NULL,
    due_at   INTEGER
) STRICT;

CREATE INDEX digest_progress_due ON digest_progress (due_at) WHERE due_at IS NOT NULL;

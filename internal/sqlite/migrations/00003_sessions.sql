-- +goose Up

-- A session is one running conversation. Its counters are kept with every message, so that nothing needs to be counted.
-- Rows are never used again: dialogues that came from a session refer to it also when it is gone.
CREATE TABLE sessions (
    row             INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace       TEXT    NOT NULL,
    id              TEXT,             -- null while it is being deleted: then the id is free
    channel_kind    TEXT    NOT NULL,
    channel_id      TEXT    NOT NULL,
    visibility      TEXT    NOT NULL, -- Channel.VisibilityKey
    title           TEXT    NOT NULL,
    metadata        TEXT    NOT NULL, -- as it was sent, or empty
    memorize_every  INTEGER,
    messages        INTEGER NOT NULL,
    user_messages   INTEGER NOT NULL,
    unconsidered    INTEGER NOT NULL, -- of people, not withheld
    first_said_at   INTEGER,
    last_said_at    INTEGER,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    active_at       INTEGER,          -- when the last message was received
    oldest_at       INTEGER NOT NULL, -- when the oldest message that is left was received, or the session was made
    window_start    INTEGER NOT NULL, -- position
    last_position   INTEGER NOT NULL,
    revision        INTEGER NOT NULL, -- rises when words are taken out or the window expires: a summary read before is void
    default_every   INTEGER NOT NULL, -- Rules.MemorizeEvery when the last message came
    idle            INTEGER NOT NULL, -- microseconds without a message after which what waits is considered; 0 is never
    consider_at     INTEGER,          -- when what waits is to be considered
    consider_after  INTEGER,          -- considering was put off until then
    summarize_at    INTEGER,
    participants    INTEGER NOT NULL, -- how many
    UNIQUE (namespace, id)
) STRICT;

CREATE INDEX sessions_by_channel ON sessions (namespace, visibility, updated_at, row);
CREATE INDEX sessions_anonymous ON sessions (namespace, updated_at, row) WHERE participants = 0;
CREATE INDEX sessions_consider ON sessions (consider_at) WHERE consider_at IS NOT NULL;
CREATE INDEX sessions_summarize ON sessions (summarize_at) WHERE summarize_at IS NOT NULL;
CREATE INDEX sessions_deleting ON sessions (row) WHERE id IS NULL;
CREATE INDEX sessions_by_age ON sessions (namespace, oldest_at) WHERE id IS NOT NULL;

CREATE TABLE session_participants (
    session_row INTEGER NOT NULL REFERENCES sessions (row) ON DELETE CASCADE,
    number      INTEGER NOT NULL, -- in the order in which they came in
    user_row    INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    PRIMARY KEY (session_row, number)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX session_participants_by_user ON session_participants (user_row, session_row);

CREATE TABLE session_agents (
    session_row INTEGER NOT NULL REFERENCES sessions (row) ON DELETE CASCADE,
    number      INTEGER NOT NULL,
    agent_id    TEXT    NOT NULL,
    messages    INTEGER NOT NULL, -- said with this agent
    PRIMARY KEY (session_row, agent_id)
) STRICT, WITHOUT ROWID;

-- Rows of messages are never used again: what is derived from them refers to them by row.
CREATE TABLE session_messages (
    row           INTEGER PRIMARY KEY AUTOINCREMENT,
    session_row   INTEGER NOT NULL REFERENCES sessions (row) ON DELETE CASCADE,
    position      INTEGER NOT NULL,
    owner_row     INTEGER REFERENCES users (id), -- session.Owner; null when nobody is named
    id            TEXT,             -- null when the caller gave none
    hash          BLOB    NOT NULL, -- of the message as it was sent
    role          TEXT    NOT NULL,
    agent_id      TEXT    NOT NULL,
    withheld      INTEGER NOT NULL,
    settled       INTEGER NOT NULL, -- 1: considered, or never to be
    consideration TEXT,             -- that took it
    said_at       INTEGER NOT NULL,
    received_at   INTEGER NOT NULL,
    message       TEXT    NOT NULL  -- JSON of memory.Message; last, so that what filters is read without it
) STRICT;

CREATE UNIQUE INDEX session_messages_by_place ON session_messages (session_row, position);
CREATE UNIQUE INDEX session_messages_by_id ON session_messages (session_row, id) WHERE id IS NOT NULL;
CREATE INDEX session_messages_unsettled ON session_messages (session_row, position) WHERE settled = 0;
CREATE INDEX session_messages_by_owner ON session_messages (owner_row, row) WHERE owner_row IS NOT NULL;
CREATE INDEX session_messages_by_agent ON session_messages (session_row, agent_id, position);

CREATE TABLE session_summaries (
    session_row   INTEGER NOT NULL REFERENCES sessions (row) ON DELETE CASCADE,
    agent_id      TEXT    NOT NULL, -- empty: of all
    text          TEXT    NOT NULL,
    last_position INTEGER NOT NULL,
    messages      INTEGER NOT NULL,
    made_by       TEXT    NOT NULL,
    updated_at    INTEGER NOT NULL,
    PRIMARY KEY (session_row, agent_id)
) STRICT, WITHOUT ROWID;

-- The session that is meant when a request names none. user_row 0 is everybody in a group who has none of their own.
CREATE TABLE current_sessions (
    row         INTEGER PRIMARY KEY,
    namespace   TEXT    NOT NULL,
    user_row    INTEGER NOT NULL,
    channel     TEXT    NOT NULL, -- kind and id: two direct chats of a user have a current session each
    session_row INTEGER NOT NULL REFERENCES sessions (row) ON DELETE CASCADE,
    UNIQUE (namespace, user_row, channel)
) STRICT;

CREATE INDEX current_sessions_by_session ON current_sessions (session_row);

-- Which session a dialogue was taken from: session_id is a label that callers may give to any dialogue.
ALTER TABLE dialogues ADD COLUMN session_row INTEGER;
CREATE INDEX dialogues_by_session ON dialogues (session_row) WHERE session_row IS NOT NULL;

ALTER TABLE considerations ADD COLUMN session_row INTEGER; -- the dialogue's
CREATE INDEX considerations_by_session ON considerations (session_row)
    WHERE session_row IS NOT NULL AND state IN ('pending', 'running');

ALTER TABLE settings ADD COLUMN memorize_every INTEGER;

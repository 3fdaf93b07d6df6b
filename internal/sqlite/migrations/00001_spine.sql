-- +goose Up

-- Times are microseconds since 1970 UTC. Texts that callers chose are kept as sent.

CREATE TABLE users (
    id        INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    user_id   TEXT NOT NULL,
    UNIQUE (namespace, user_id)
) STRICT;

CREATE TABLE settings (
    user_row   INTEGER PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    time_zone  TEXT    NOT NULL,
    language   TEXT    NOT NULL,
    paused     INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE memories (
    row          INTEGER PRIMARY KEY,
    user_row     INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    id           TEXT    NOT NULL,
    agent_id     TEXT    NOT NULL,
    channel_kind TEXT    NOT NULL,
    channel_id   TEXT    NOT NULL,
    session_id   TEXT    NOT NULL,
    visibility   TEXT    NOT NULL, -- Channel.VisibilityKey
    text         TEXT    NOT NULL,
    text_key     BLOB    NOT NULL, -- hash of the normalised text, to recognise what is already known
    language     TEXT    NOT NULL,
    kind         TEXT    NOT NULL,
    importance   REAL    NOT NULL,
    explicit     INTEGER NOT NULL,
    provenance   TEXT    NOT NULL, -- JSON
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    observed_at  INTEGER NOT NULL,
    mentions     INTEGER NOT NULL,
    last_said_at INTEGER NOT NULL,
    use_count    INTEGER NOT NULL DEFAULT 0,
    last_used_at INTEGER,
    UNIQUE (user_row, id)
) STRICT;

CREATE INDEX memories_by_time ON memories (user_row, created_at, row);
CREATE INDEX memories_by_text ON memories (user_row, text_key);

-- What was applied once is not applied again, also when the memory it made was merged, changed or deleted since.
CREATE TABLE applied_statements (
    row          INTEGER PRIMARY KEY,
    user_row     INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    statement_id TEXT    NOT NULL,
    memory_id    TEXT    NOT NULL,
    action       TEXT    NOT NULL,
    payload_hash BLOB    NOT NULL, -- of a request that carried a request_id, else empty
    UNIQUE (user_row, statement_id)
) STRICT;

CREATE TABLE fingerprints (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE embeddings (
    row         INTEGER PRIMARY KEY,
    memory_row  INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
    fingerprint INTEGER NOT NULL REFERENCES fingerprints (id),
    chunk       INTEGER NOT NULL, -- 0 for a text that was embedded whole
    vector      BLOB    NOT NULL, -- little-endian float32
    UNIQUE (memory_row, fingerprint, chunk)
) STRICT;

-- A dialogue is what one call of ConsiderMemorizing handed over.
CREATE TABLE dialogues (
    row           INTEGER PRIMARY KEY,
    id            TEXT    NOT NULL UNIQUE,
    namespace     TEXT    NOT NULL,
    user_id       TEXT    NOT NULL, -- the scope's; empty once that user was forgotten
    agent_id      TEXT    NOT NULL,
    channel_kind  TEXT    NOT NULL,
    channel_id    TEXT    NOT NULL,
    session_id    TEXT    NOT NULL,
    visibility    TEXT    NOT NULL,
    request_id    TEXT,             -- null when the caller gave none
    payload_hash  BLOB    NOT NULL, -- of scope and messages, when there is a request_id
    messages      TEXT    NOT NULL, -- JSON
    message_count INTEGER NOT NULL,
    created_at    INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX dialogues_by_request ON dialogues (namespace, user_id, request_id) WHERE request_id IS NOT NULL;

-- A consideration is a dialogue as one of its speakers sees it, and the job of considering that speaker's words.
-- Of a user's unfinished ones only the first has a due time: a line is served in order, and finding the jobs that are
-- due costs what is due, however much waits behind.
CREATE TABLE considerations (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    dialogue_row INTEGER NOT NULL REFERENCES dialogues (row) ON DELETE CASCADE,
    namespace    TEXT    NOT NULL,
    user_id      TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    due_at       INTEGER,
    attempts     INTEGER NOT NULL,
    checkpoint   TEXT,             -- JSON: what was decided and not yet applied
    outcome      TEXT    NOT NULL, -- JSON
    accepted_at  INTEGER NOT NULL, -- start of the age limit: accepted, or last retried
    updated_at   INTEGER NOT NULL,
    UNIQUE (dialogue_row, user_id)
) STRICT;

CREATE INDEX considerations_due ON considerations (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX considerations_line ON considerations (namespace, user_id, seq) WHERE state IN ('pending', 'running');
CREATE INDEX considerations_by_user ON considerations (namespace, user_id, seq);
CREATE INDEX considerations_failed ON considerations (namespace, seq) WHERE state = 'failed';
CREATE INDEX considerations_running ON considerations (seq) WHERE state = 'running';

CREATE TABLE traces (
    row        INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    namespace  TEXT    NOT NULL,
    user_id    TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    record     TEXT    NOT NULL, -- JSON
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX traces_by_user ON traces (namespace, user_id, row);
CREATE INDEX traces_by_time ON traces (created_at);

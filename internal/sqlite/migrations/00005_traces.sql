-- +goose Up

-- What was recorded before could not be read by any call.
DROP TABLE traces;

CREATE TABLE traces (
    row          INTEGER PRIMARY KEY,
    id           TEXT    NOT NULL UNIQUE,
    namespace    TEXT    NOT NULL,
    user_id      TEXT    NOT NULL, -- empty: the call named nobody
    agent_id     TEXT    NOT NULL,
    channel_kind TEXT    NOT NULL,
    channel_id   TEXT    NOT NULL,
    visibility   TEXT    NOT NULL, -- Channel.VisibilityKey
    session_id   TEXT    NOT NULL,
    turn_id      TEXT    NOT NULL,
    kind         TEXT    NOT NULL,
    created_at   INTEGER NOT NULL, -- when the call began
    record       TEXT    NOT NULL  -- JSON of trace.Record; last, so that what filters is read without it
) STRICT;

CREATE INDEX traces_by_user ON traces (namespace, user_id, created_at);
CREATE INDEX traces_by_session ON traces (namespace, session_id, created_at) WHERE session_id <> '';
CREATE INDEX traces_by_turn ON traces (namespace, turn_id, created_at) WHERE turn_id <> '';
CREATE INDEX traces_by_time ON traces (created_at);

-- A consideration runs later than the call that asked for it: what the call was a part of stays with its dialogue.
ALTER TABLE dialogues ADD COLUMN turn_id TEXT NOT NULL DEFAULT '';
ALTER TABLE dialogues ADD COLUMN otel_trace_id TEXT NOT NULL DEFAULT '';

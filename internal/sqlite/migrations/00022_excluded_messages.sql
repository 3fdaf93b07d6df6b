-- +goose Up

-- The messages on which memories rest, and those that past messages, summaries, topics and digests leave out: because a memory was withdrawn
-- (cause is its id) or because they were not to be kept (cause is the id of the consideration that found the request).
CREATE TABLE memory_messages (
    message_row INTEGER NOT NULL REFERENCES session_messages (row) ON DELETE CASCADE,
    user_row    INTEGER NOT NULL, -- whose memory or consideration it is; 0: of a user who was forgotten
    cause       TEXT    NOT NULL,
    rests       INTEGER NOT NULL, -- 1: the memory rests on the message; 0: the message is only left out with it
    excluded    INTEGER NOT NULL,
    PRIMARY KEY (message_row, user_row, cause)
) STRICT, WITHOUT ROWID;

CREATE INDEX memory_messages_by_cause ON memory_messages (user_row, cause);

ALTER TABLE sessions ADD COLUMN exclusions INTEGER NOT NULL DEFAULT 0; -- rises when messages are excluded or restored, as revision does
ALTER TABLE sessions ADD COLUMN read_at INTEGER; -- when its context was first asked for

-- +goose Up

-- What a list of users shows of each: how many messages are stored, counted with message_bytes (see 00015_tail.sql), and when something
-- was last stored for the user, to within ten minutes, so that a conversation does not write to this table with every message.
ALTER TABLE users ADD COLUMN message_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN active_at INTEGER NOT NULL DEFAULT 0; -- 0: no message and no memory was stored yet

UPDATE users SET message_count = counted.messages
    FROM (SELECT owner_row, count(*) AS messages FROM session_messages
        WHERE owner_row IS NOT NULL AND row <= (SELECT counted_upto FROM usage_progress) GROUP BY owner_row) AS counted
    WHERE counted.owner_row = users.id;

UPDATE users SET active_at = latest.at
    FROM (SELECT user_row, max(at) AS at FROM (
            SELECT user_row, max(created_at) AS at FROM memories GROUP BY user_row
            UNION ALL SELECT owner_row, max(received_at) FROM session_messages WHERE owner_row IS NOT NULL GROUP BY owner_row
        ) GROUP BY user_row) AS latest
    WHERE latest.user_row = users.id;

CREATE INDEX users_by_activity ON users (namespace, active_at, user_id);

DROP TRIGGER messages_deleted;

-- +goose StatementBegin
CREATE TRIGGER messages_deleted AFTER DELETE ON session_messages WHEN OLD.row <= (SELECT counted_upto FROM usage_progress) BEGIN
    UPDATE users SET message_bytes = message_bytes - octet_length(OLD.message), message_count = message_count - 1 WHERE id = OLD.owner_row;
    UPDATE namespace_usage SET message_bytes = message_bytes - octet_length(OLD.message)
        WHERE namespace = (SELECT namespace FROM sessions WHERE row = OLD.session_row);
END;
-- +goose StatementEnd

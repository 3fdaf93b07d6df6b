-- +goose Up

-- Counting the bytes of messages wrote two more pages with each message, whether anybody had set a quota or not. Now the messages after
-- counted_upto, some hundred of all users together, are the tail: who asks adds what is in it, and now and then it is counted and begins
-- anew (internal/sqlite/quotas.go). Rows of messages only rise, so what is counted and what is in the tail is never in doubt, whoever
-- writes. There is no trigger on inserts: with one, SQLite keeps a copy of each page that the insert changes.
CREATE TABLE usage_progress (
    one          INTEGER PRIMARY KEY CHECK (one = 1),
    counted_upto INTEGER NOT NULL -- row of the last message that users.message_bytes and namespace_usage have counted
) STRICT;

INSERT INTO usage_progress SELECT 1, coalesce(max(row), 0) FROM session_messages;

DROP TRIGGER messages_added;
DROP TRIGGER messages_deleted;
DROP TRIGGER messages_rewritten;

-- +goose StatementBegin
CREATE TRIGGER messages_deleted AFTER DELETE ON session_messages WHEN OLD.row <= (SELECT counted_upto FROM usage_progress) BEGIN
    UPDATE users SET message_bytes = message_bytes - octet_length(OLD.message) WHERE id = OLD.owner_row;
    UPDATE namespace_usage SET message_bytes = message_bytes - octet_length(OLD.message)
        WHERE namespace = (SELECT namespace FROM sessions WHERE row = OLD.session_row);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER messages_rewritten AFTER UPDATE OF message ON session_messages
    WHEN octet_length(OLD.message) <> octet_length(NEW.message) AND NEW.row <= (SELECT counted_upto FROM usage_progress) BEGIN
    UPDATE users SET message_bytes = message_bytes + octet_length(NEW.message) - octet_length(OLD.message) WHERE id = NEW.owner_row;
    UPDATE namespace_usage SET message_bytes = message_bytes + octet_length(NEW.message) - octet_length(OLD.message)
        WHERE namespace = (SELECT namespace FROM sessions WHERE row = NEW.session_row);
END;
-- +goose StatementEnd

-- These indexes answer for groups and for agents alone. Direct chats and bots that name no agent pay for them no longer.
DROP INDEX sessions_by_channel;
CREATE INDEX sessions_by_channel ON sessions (namespace, visibility, updated_at, row) WHERE channel_kind = 'group';
DROP INDEX session_messages_by_agent;
CREATE INDEX session_messages_by_agent ON session_messages (session_row, agent_id, position) WHERE agent_id <> '';

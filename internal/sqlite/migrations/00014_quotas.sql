-- +goose Up

-- How much is stored of each user and each namespace, kept with every row, so that a quota costs the same however much there is.
-- Bytes are those of messages as they are kept: their embeddings and the keyword index over them come on top.
ALTER TABLE users ADD COLUMN message_bytes INTEGER NOT NULL DEFAULT 0; -- of the messages that the user owns

CREATE TABLE namespace_usage (
    namespace     TEXT    PRIMARY KEY,
    memories      INTEGER NOT NULL, -- of all users, history included
    message_bytes INTEGER NOT NULL  -- of all sessions, nobody's messages included
) STRICT, WITHOUT ROWID;

UPDATE users SET message_bytes = counted.bytes
    FROM (SELECT owner_row, sum(octet_length(message)) AS bytes FROM session_messages WHERE owner_row IS NOT NULL GROUP BY owner_row) AS counted
    WHERE counted.owner_row = users.id;

INSERT INTO namespace_usage (namespace, memories, message_bytes)
    SELECT namespace, sum(memories), sum(bytes) FROM (
        SELECT namespace, memories, 0 AS bytes FROM users
        UNION ALL
        SELECT s.namespace, 0, octet_length(m.message) FROM session_messages m JOIN sessions s ON s.row = m.session_row
    ) GROUP BY namespace;

-- +goose StatementBegin
CREATE TRIGGER users_memories_counted AFTER UPDATE OF memories ON users WHEN OLD.memories <> NEW.memories BEGIN
    INSERT INTO namespace_usage (namespace, memories, message_bytes) VALUES (NEW.namespace, NEW.memories - OLD.memories, 0)
        ON CONFLICT (namespace) DO UPDATE SET memories = memories + excluded.memories;
END;
-- +goose StatementEnd

-- What a user's row takes along is counted nowhere else any more.
-- +goose StatementBegin
CREATE TRIGGER users_deleted AFTER DELETE ON users WHEN OLD.memories <> 0 BEGIN
    UPDATE namespace_usage SET memories = memories - OLD.memories WHERE namespace = OLD.namespace;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER messages_added AFTER INSERT ON session_messages BEGIN
    UPDATE users SET message_bytes = message_bytes + octet_length(NEW.message) WHERE id = NEW.owner_row;
    INSERT INTO namespace_usage (namespace, memories, message_bytes)
        SELECT namespace, 0, octet_length(NEW.message) FROM sessions WHERE row = NEW.session_row
        ON CONFLICT (namespace) DO UPDATE SET message_bytes = message_bytes + excluded.message_bytes;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER messages_deleted AFTER DELETE ON session_messages BEGIN
    UPDATE users SET message_bytes = message_bytes - octet_length(OLD.message) WHERE id = OLD.owner_row;
    UPDATE namespace_usage SET message_bytes = message_bytes - octet_length(OLD.message)
        WHERE namespace = (SELECT namespace FROM sessions WHERE row = OLD.session_row);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER messages_rewritten AFTER UPDATE OF message ON session_messages
    WHEN octet_length(OLD.message) <> octet_length(NEW.message) BEGIN
    UPDATE users SET message_bytes = message_bytes + octet_length(NEW.message) - octet_length(OLD.message) WHERE id = NEW.owner_row;
    UPDATE namespace_usage SET message_bytes = message_bytes + octet_length(NEW.message) - octet_length(OLD.message)
        WHERE namespace = (SELECT namespace FROM sessions WHERE row = NEW.session_row);
END;
-- +goose StatementEnd

-- +goose Up

-- How many memories each user has, history included, so that those who have too many are found without counting.
ALTER TABLE users ADD COLUMN memories INTEGER NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN explicit_memories INTEGER NOT NULL DEFAULT 0; -- of them; never evicted

UPDATE users SET memories = counted.memories, explicit_memories = counted.explicit
    FROM (SELECT user_row, count(*) AS memories, sum(explicit) AS explicit FROM memories GROUP BY user_row) AS counted
    WHERE counted.user_row = users.id;

-- +goose StatementBegin
CREATE TRIGGER memories_added AFTER INSERT ON memories BEGIN
    UPDATE users SET memories = memories + 1, explicit_memories = explicit_memories + NEW.explicit WHERE id = NEW.user_row;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER memories_deleted AFTER DELETE ON memories BEGIN
    UPDATE users SET memories = memories - 1, explicit_memories = explicit_memories - OLD.explicit WHERE id = OLD.user_row;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER memories_made_explicit AFTER UPDATE OF explicit ON memories WHEN OLD.explicit <> NEW.explicit BEGIN
    UPDATE users SET explicit_memories = explicit_memories + NEW.explicit - OLD.explicit WHERE id = NEW.user_row;
END;
-- +goose StatementEnd

CREATE INDEX users_crowded ON users (memories) WHERE memories > explicit_memories;
CREATE INDEX users_full ON users (explicit_memories) WHERE explicit_memories > 0;

-- What has ended, by when: each is deleted after a time of its own.
CREATE INDEX memories_withdrawn ON memories (withdrawn_at) WHERE withdrawn_at IS NOT NULL;
CREATE INDEX memories_expired ON memories (valid_to)
    WHERE valid_to IS NOT NULL AND superseded_by = '' AND withdrawn_at IS NULL;
CREATE INDEX memories_outdated ON memories (valid_to)
    WHERE valid_to IS NOT NULL AND superseded_by <> '' AND withdrawn_at IS NULL;

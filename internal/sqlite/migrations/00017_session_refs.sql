-- +goose Up

-- A session_id is unique for a user, in a group for the group, and no longer for the namespace. What is unique is ref: whose it is,
-- a separator that no id can hold, and the id. "g" is followed by the group's id, "u" by the id of the user who began it (empty for
-- nobody), "r" by the session's row when that user was forgotten and others still take part.
ALTER TABLE sessions RENAME COLUMN id TO ref;
ALTER TABLE sessions ADD COLUMN id TEXT; -- null while it is being deleted, as ref is

DROP INDEX sessions_deleting;
DROP INDEX sessions_by_age;

UPDATE sessions SET id = ref, ref = CASE
    WHEN channel_kind = 'group' THEN 'g' || channel_id
    WHEN participants = 0 THEN 'u'
    ELSE 'u' || coalesce((SELECT u.user_id FROM session_participants p JOIN users u ON u.id = p.user_row
        WHERE p.session_row = sessions.row ORDER BY p.number LIMIT 1), '')
    END || char(31) || ref WHERE ref IS NOT NULL;

CREATE INDEX sessions_deleting ON sessions (row) WHERE id IS NULL;
CREATE INDEX sessions_by_age ON sessions (namespace, oldest_at) WHERE id IS NOT NULL;
CREATE INDEX sessions_by_id ON sessions (namespace, id) WHERE id IS NOT NULL;

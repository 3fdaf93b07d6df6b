-- +goose Up

-- What people said in a session, by when they said it: for the statistic of topics, which asks for a period. Times need
-- not rise with positions: a history may be imported late. It has what is needed to choose messages without reading them.
CREATE INDEX session_messages_by_time ON session_messages (session_row, said_at, owner_row) WHERE role = 'user' AND withheld = 0;

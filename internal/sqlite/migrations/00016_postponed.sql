-- +goose Up

-- A digest is due at the end of the user's day, or later because it failed. Which it is, is needed when a postponed one is to be made due.
ALTER TABLE digest_progress ADD COLUMN postponed INTEGER NOT NULL DEFAULT 0;

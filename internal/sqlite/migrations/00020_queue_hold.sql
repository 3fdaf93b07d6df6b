-- +goose Up

-- Until when a consideration that was accepted with a delay is held back. NULL when it is not, or not any more.
ALTER TABLE considerations ADD COLUMN hold_until INTEGER;

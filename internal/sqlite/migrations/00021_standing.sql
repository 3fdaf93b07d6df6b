-- +goose Up

-- Why a memory belongs in every answer: address, style or safety; empty: it does not. Memories of before have no mark until they are said
-- again or changed.
ALTER TABLE memories ADD COLUMN standing TEXT NOT NULL DEFAULT '';

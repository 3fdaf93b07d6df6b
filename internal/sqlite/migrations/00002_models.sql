-- +goose Up

-- Which model does a part's work, once chosen: "auto" goes on with it, so that a key that appears or is missing for a day
-- neither embeds everything anew nor sends dialogues somewhere else.
CREATE TABLE model_choices (
    part   TEXT PRIMARY KEY, -- embedding, decision or summary
    choice TEXT NOT NULL     -- a fingerprint, "rules", or "provider/model"
) STRICT;

-- A database from before this table worked with what is built in.
INSERT INTO model_choices SELECT 'embedding', name FROM fingerprints ORDER BY id DESC LIMIT 1;
INSERT INTO model_choices SELECT part, 'rules' FROM (SELECT 'decision' AS part UNION SELECT 'summary')
    WHERE EXISTS (SELECT 1 FROM dialogues) OR EXISTS (SELECT 1 FROM memories);

-- A fingerprint is complete when every memory has its vectors. While it is not, the missing ones are made in the
-- background.
ALTER TABLE fingerprints ADD COLUMN complete INTEGER NOT NULL DEFAULT 1;

-- What calls of models cost, a row a day.
CREATE TABLE model_usage (
    day           TEXT    NOT NULL, -- YYYY-MM-DD, UTC
    namespace     TEXT    NOT NULL,
    part          TEXT    NOT NULL,
    model         TEXT    NOT NULL,
    calls         INTEGER NOT NULL,
    failures      INTEGER NOT NULL,
    input_tokens  INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    latency_us    INTEGER NOT NULL, -- of all calls together
    PRIMARY KEY (day, namespace, part, model)
) STRICT;

-- +goose Up

-- How many tokens models took in a day, for budgets: a namespace as a whole (user_id empty), and each of its users. What was
-- counted on earlier days is deleted with the first write of a new one; model_usage has what models cost in all.
CREATE TABLE token_counts (
    day       TEXT    NOT NULL, -- YYYY-MM-DD, UTC
    namespace TEXT    NOT NULL,
    user_id   TEXT    NOT NULL,
    tokens    INTEGER NOT NULL,
    refused   INTEGER NOT NULL, -- calls that were refused because of this budget
    PRIMARY KEY (day, namespace, user_id)
) STRICT;

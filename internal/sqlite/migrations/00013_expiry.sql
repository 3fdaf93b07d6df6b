-- +goose Up

-- What ended longest ago, for its retention.
CREATE INDEX considerations_ended ON considerations (updated_at) WHERE state IN ('remembered', 'skipped');
CREATE INDEX considerations_given_up ON considerations (updated_at) WHERE state = 'failed';

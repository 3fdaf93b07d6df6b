package retry_test

import (
	"errors"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/retry"
)

func TestDueMakesAllDueAtStartAndAfterResume(t *testing.T) {
	due := retry.Due{Every: time.Hour}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	fails := errors.New("storage is full")
	for _, step := range []struct {
		after  time.Duration
		resume bool
		fails  error
		want   string
	}{
		{0, false, nil, "all"},
		{time.Minute, false, nil, "nothing"},
		{time.Hour, false, nil, "far"},
		{0, true, fails, "all"},
		{0, false, nil, "all"},
		{0, false, nil, "nothing"},
		{time.Hour, false, fails, "far"},
		{0, false, nil, "far"},
		{0, false, nil, "nothing"},
	} {
		now = now.Add(step.after)
		if step.resume {
			due.Resume()
		}
		made := "nothing"
		err := due.Run(now, func(all bool) error {
			if made = "far"; all {
				made = "all"
			}
			return step.fails
		})
		if made != step.want || !errors.Is(err, step.fails) {
			t.Errorf("%+v: made %s due, %v", step, made, err)
		}
	}
}

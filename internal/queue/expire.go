package queue

import (
	"context"
	"errors"
	"time"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/memory"
)

const (
	// expireEvery is the interval of deletions of old considerations.
	expireEvery = time.Hour
	// expireStep is the number of dialogues deleted in one write: other writes wait for it.
	expireStep = 200
)

// expireRegularly deletes old considerations, at the start and then every hour.
func (p *Pool) expireRegularly() {
	if p.options.Retention <= 0 && p.options.FailedRetention <= 0 {
		return
	}
	background.Every(p.ctx, expireEvery, func() {
		if err := p.expire(p.ctx); err != nil && !errors.Is(err, memory.ErrUnavailable) && p.ctx.Err() == nil {
			p.options.Log.Error("deleting old considerations", "error", err)
		}
	})
}

func (p *Pool) expire(ctx context.Context) error {
	now := p.options.Now()
	e := Expiry{Limit: expireStep}
	if p.options.Retention > 0 {
		e.EndedBefore = now.Add(-p.options.Retention)
	}
	if p.options.FailedRetention > 0 {
		e.FailedBefore = now.Add(-p.options.FailedRetention)
	}
	for {
		deleted, err := p.store.Expire(ctx, e)
		if err != nil || deleted == 0 {
			return err
		}
	}
}

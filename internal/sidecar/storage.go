package sidecar

import (
	"context"
	"fmt"
	"time"

	storelocal "github.com/memsidecar/memsidecar/internal/vectorstore/local"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/config"
	"github.com/memsidecar/memsidecar/internal/secret/seal"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
)

// openStorage opens the database and the stores in it.
func (p *components) openStorage(ctx context.Context) (err error) {
	p.storage, err = sqlite.Open(ctx, sqlite.Options{
		Dir:          p.cfg.DataDir,
		Key:          EncryptionKey(p.cfg.Encryption),
		OnCommit:     p.counts.Committed,
		OnChange:     func(breaker.Status) { p.changed.Notify() },
		OnUnreadable: p.counts.Unreadable,
		Log:          p.Log,
	})
	if err != nil {
		return fmt.Errorf("%s: %w", p.cfg.DataDir, err)
	}
	p.onStop(func(context.Context) {
		if err := p.storage.Close(); err != nil {
			p.Log.Warn("closing storage", "error", err)
		}
	})
	p.quotas = &sqlstore.Quotas{Limit: p.cfg.Quota, Refused: p.counts.Refused}
	p.store = storelocal.New(p.storage, storelocal.Options{
		IndexBudget: int64(p.cfg.Index.BudgetMiB) << 20,
		Quotas:      p.quotas,
	})
	p.jobs = sqlstore.NewQueue(p.storage)
	p.jobs.Unquoted = p.store.DropIndex
	p.settings = sqlstore.NewSettings(p.storage)
	p.sessions = sqlstore.NewSessions(p.storage, p.jobs)
	p.sessions.Quotas = p.quotas
	p.past = sqlstore.NewRecall(p.storage)
	p.lists = sqlstore.NewNumberedLists(p.storage)
	p.lists.Quotas = p.quotas
	return nil
}

// EncryptionKey returns a function that reads the configured key of the database. It reads the key on each call: an operator may add or
// correct the file while the sidecar runs without storage. Without a key it returns the zero key.
func EncryptionKey(cfg config.Encryption) func() (seal.Key, error) {
	return func() (seal.Key, error) {
		switch {
		case cfg.KeyFile != "":
			key, err := seal.ReadKeyFile(cfg.KeyFile)
			if err != nil {
				return key, fmt.Errorf("encryption.key_file: %w", err)
			}
			return key, nil
		case cfg.Key != "":
			return seal.ParseKey(cfg.Key.Reveal())
		}
		return seal.Key{}, nil
	}
}

// storageState reports whether the database is available. It implements memory.Storage.
type storageState struct{ storage *sqlite.Storage }

// Problem implements memory.Storage.
func (s storageState) Problem() string {
	if status := s.storage.Status(); status.State != breaker.Closed {
		return status.Reason
	}
	return ""
}

// WriteProblem implements memory.Storage.
func (s storageState) WriteProblem() string {
	if status := s.storage.WriteStatus(); status.State != breaker.Closed && s.Problem() == "" {
		return readOnly + status.Reason
	}
	return ""
}

const readOnly = "what is stored can be read, and nothing can be written: "

// status returns the state of reads while they fail, else that of writes. Damaged pages are a reason, too.
func (s storageState) status() breaker.Status {
	status := s.storage.Status()
	if status.State != breaker.Closed {
		return status
	}
	if writes := s.storage.WriteStatus(); writes.State != breaker.Closed {
		status = writes
		status.Reason = readOnly + status.Reason
	}
	if status.Reason == "" {
		status.Reason = s.storage.Damaged()
	}
	return status
}

// state reports whether the database is available.
func (p *components) state() storageState { return storageState{p.storage} }

// watchStorage reports the state of storage to health checks, and calls recovered when it accepts writes again. It runs in the background,
// because the breaker's callback must not block.
func (p *components) watchStorage(ctx context.Context, recovered func()) {
	background.Run(ctx, time.Now, p.changed, func() (again time.Time) {
		readable := p.state().Problem() == ""
		writable := readable && p.state().WriteProblem() == ""
		p.server.SetStorageServing(readable, writable)
		if writable {
			recovered()
		}
		return again
	})
}

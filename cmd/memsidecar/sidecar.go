package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/budget"
	"github.com/memsidecar/memsidecar/internal/config"
	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/decide/rules"
	"github.com/memsidecar/memsidecar/internal/embed"
	"github.com/memsidecar/memsidecar/internal/memories"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/results"
	"github.com/memsidecar/memsidecar/internal/retrieve"
	"github.com/memsidecar/memsidecar/internal/server"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/topics"
	"github.com/memsidecar/memsidecar/internal/trace"
	"github.com/memsidecar/memsidecar/internal/usage"
	"github.com/memsidecar/memsidecar/internal/vectorize"
	storelocal "github.com/memsidecar/memsidecar/internal/vectorstore/local"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// Sidecar is the running program: every part, and how they are put together.
type Sidecar struct {
	// Addr is where it listens.
	Addr net.Addr

	server    *server.Server
	retriever *retrieve.Retriever
	talks     *conversations
	failed    chan error // the listener's end, when it was not asked to stop
	closers   []func(context.Context)
}

// Start opens the storage, starts the workers and answers calls until Stop. The environment is where providers' keys are.
func Start(ctx context.Context, cfg config.Config, environ []string, log *slog.Logger) (_ *Sidecar, err error) {
	s := &Sidecar{failed: make(chan error, 1)}
	defer func() {
		if err != nil {
			s.Stop(ctx)
		}
	}()
	location, err := time.LoadLocation(cfg.TimeZone)
	if err != nil {
		return nil, err
	}
	// The listener comes first: a second sidecar on the same port should say so, and not that the folder is locked.
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w; choose another address with --listen", cfg.Listen, err)
	}
	s.Addr = listener.Addr()
	s.onStop(func(context.Context) { _ = listener.Close() }) // closed already, unless something below failed

	changed := make(chan struct{}, 1)
	storage, err := sqlite.Open(ctx, sqlite.Options{Dir: cfg.DataDir, Log: log, OnChange: func(breaker.Status) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.DataDir, err)
	}
	s.onStop(func(context.Context) {
		if err := storage.Close(); err != nil {
			log.Warn("closing storage", "error", err)
		}
	})
	storageProblem := func() string {
		if status := storage.Status(); status.State != breaker.Closed {
			return status.Reason
		}
		return ""
	}

	ruleset, err := rules.New(cfg.Rules)
	if err != nil {
		return nil, err
	}
	store := storelocal.New(storage, storelocal.Options{IndexBudget: int64(cfg.Index.BudgetMiB) << 20})
	records := sqlite.NewModels(storage)
	calls := usage.NewRecorder(records, log)
	s.onStop(func(context.Context) { calls.Close() })
	meter := budget.NewMeter(sqlite.NewTokens(storage), budget.Options{Limits: tokenLimits(cfg), Log: log})
	s.onStop(func(context.Context) { meter.Close() })
	models, err := newModels(cfg, environ, ruleset, records, store, calls, meter, log)
	if err != nil {
		return nil, err
	}
	vectorizer := vectorize.New(&models.embedder, store, vectorize.Options{
		ChunkSize: cfg.Embedding.ChunkSize, BackoffMin: cfg.Queue.BackoffMin, BackoffMax: cfg.Queue.BackoffMax, Log: log,
	})
	models.incomplete = vectorizer.Wake
	vectorizer.Start()
	s.onStop(func(context.Context) { vectorizer.Stop() })
	jobs := sqlite.NewQueue(storage)
	settings := sqlite.NewSettings(storage)
	sessions := sqlite.NewSessions(storage)
	past := sqlite.NewRecall(storage)

	traces := trace.NewRecorder(sqlite.NewTraces(storage), trace.Options{
		Retention: cfg.Trace.Retention, MaxRecords: cfg.Trace.MaxRecords, Log: log,
	})
	s.onStop(func(context.Context) { traces.Close() })

	retriever := retrieve.New(retrieve.Parts{
		Store: store, Messages: past, Settings: settings, Traces: traces,
		Embedder: embed.WithCache(&models.embedder, cfg.Embedding.CacheEntries), StorageProblem: storageProblem,
	}, retrieve.Options{
		Budget: cfg.Retrieval.Budget, VectorWeight: cfg.Retrieval.VectorWeight, RecencyHalfLife: cfg.Retrieval.RecencyHalfLife,
		Prompts: cfg.Retrieval.Prompts, Labels: cfg.Session.Labels, Location: location, Log: log,
	})
	s.retriever = retriever
	s.onStop(func(context.Context) { retriever.Close() })

	days := newDigests(cfg, digestParts{
		db: storage, memories: store, settings: settings, vectors: vectorizer, models: models,
	}, location, log)
	considerer := decide.NewConsiderer(decide.Parts{
		Queue: jobs, Sessions: sessions, Memories: store, Settings: settings, Vectors: vectorizer,
		Decider: models.deciding.Decider(), Summarizer: models.deciding.Summarizer(), Rules: ruleset, Traces: traces,
		Digests: days.keeper,
	}, decide.Options{
		MaxPending: cfg.Queue.MaxPendingPerUser, MaxWait: cfg.Queue.MaxWait, Location: location,
		Pool: queue.Options{
			Workers: cfg.Queue.Workers, MaxAge: cfg.Queue.MaxAge,
			BackoffMin: cfg.Queue.BackoffMin, BackoffMax: cfg.Queue.BackoffMax, Log: log,
		},
	})
	storage.OnOpen(func() {
		store.Reset()
		settings.Reset()
		past.Reset()
		meter.Reset()
	})
	considerer.Start()
	s.onStop(considerer.Stop)
	talks := startConversations(cfg, conversationParts{
		sessions: sessions, past: past, settings: settings, considerer: considerer, models: models, traces: traces, digests: days,
		storageProblem: storageProblem,
	}, log)
	s.talks = talks
	s.onStop(talks.stop)
	days.keeper.Start()
	s.onStop(func(context.Context) { days.keeper.Stop() })

	lists := sqlite.NewResults(storage)
	numbered := results.NewKeeper(lists, results.Options{
		MaxItems: cfg.Results.MaxItems, MaxAge: cfg.Results.MaxAge, ListTTL: cfg.Results.ListTTL, Log: log,
	})
	numbered.Start()
	s.onStop(func(context.Context) { numbered.Stop() })

	s.server = server.New(server.Parts{
		Retriever: retriever, Considerer: considerer, Store: store, Queue: jobs, Settings: settings,
		Sessions: sessions, Conversations: talks.keeper, Topics: topics.NewCounter(sqlite.NewTopics(storage)), Traces: traces,
		Results: numbered,
		Keeper: memories.NewKeeper(memories.Parts{
			Store: store, Vectors: vectorizer, Considerations: considerer, Queue: jobs, Sessions: sessions,
			Settings: settings, Traces: traces, Tokens: meter, Results: lists,
			Purger: storage, Digests: days.store, DigestJobs: days.keeper, DigestFiles: days.forgetFiles,
		}),
		Digests: days.keeper, Notebook: days.notebook,
		StorageProblem: storageProblem,
		Fingerprint:    models.fingerprint,
		Vectorizing:    vectorizer.Progress,
		Usage:          records.Usage,
		Prices:         cfg.LLM.Prices,
		Budgets:        meter.Standings,
		Components: func() []server.Component {
			return append([]server.Component{breakerComponent("storage", "sqlite", storage.Status())}, models.components()...)
		},
	}, server.Options{
		Version: version(), MaxRequestBytes: cfg.MaxRequestBytes, Visibility: cfg.Visibility,
		RecordConsidered: cfg.Session.RecordConsidered, Window: window(cfg), TopK: cfg.Retrieval.TopK, MinScore: cfg.Retrieval.MinScore,
		MaxContextChars: cfg.Retrieval.MaxContextChars, NotebookEntries: cfg.Notebook.MaxEntries, Log: log,
	})
	unsettled := models.settleAtStart(ctx)
	go func() { s.failed <- s.server.Serve(listener) }()
	s.onStop(s.server.Stop)
	s.onStop(func(context.Context) { considerer.EndWaits() })

	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	s.onStop(func(context.Context) { stopWatching() })
	again := make(chan struct{}, 1)
	go s.watchStorage(watching, changed, storageProblem, func() {
		considerer.Wake()
		vectorizer.Wake()
		talks.wake()
		days.keeper.Wake()
		select {
		case again <- struct{}{}:
		default:
		}
	})
	settling := make(chan struct{})
	s.onStop(func(context.Context) {
		stopWatching()
		<-settling
	})
	go func() {
		defer close(settling)
		models.settleEventually(watching, unsettled, again, func() {
			considerer.Wake()
			talks.wake()
			days.keeper.Wake()
		})
	}()
	return s, nil
}

// watchStorage tells health checks how storage is, and those that wait for it when it is back. The breaker's own callback
// must not wait, so it only signals.
func (s *Sidecar) watchStorage(ctx context.Context, changed <-chan struct{}, problem func() string, back func()) {
	for {
		select {
		case <-changed:
			up := problem() == ""
			s.server.SetStorageServing(up)
			if up {
				back()
			}
		case <-ctx.Done():
			return
		}
	}
}

func breakerComponent(name, implementation string, status breaker.Status) server.Component {
	states := map[breaker.State]memsidecarv1.BreakerState{
		breaker.Closed:   memsidecarv1.BreakerState_BREAKER_STATE_CLOSED,
		breaker.Open:     memsidecarv1.BreakerState_BREAKER_STATE_OPEN,
		breaker.HalfOpen: memsidecarv1.BreakerState_BREAKER_STATE_HALF_OPEN,
	}
	return server.Component{
		Name: name, Implementation: implementation, Breaker: states[status.State], Reason: status.Reason, Since: status.Since,
	}
}

func (s *Sidecar) onStop(closer func(context.Context)) { s.closers = append(s.closers, closer) }

// Wait returns when the context ends, or with an error when the sidecar ended by itself.
func (s *Sidecar) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.failed:
		return errors.Join(errors.New("the server stopped"), err)
	}
}

// Stop closes everything in reverse order of opening: gracefully until the context ends, then hard.
func (s *Sidecar) Stop(ctx context.Context) {
	for _, closer := range slices.Backward(s.closers) {
		closer(ctx)
	}
	s.closers = nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/audit"
	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/budget"
	"github.com/memsidecar/memsidecar/internal/config"
	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/decide/reconcile"
	"github.com/memsidecar/memsidecar/internal/decide/rules"
	"github.com/memsidecar/memsidecar/internal/embed"
	"github.com/memsidecar/memsidecar/internal/memories"
	"github.com/memsidecar/memsidecar/internal/metrics"
	"github.com/memsidecar/memsidecar/internal/ops"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/results"
	"github.com/memsidecar/memsidecar/internal/retention"
	"github.com/memsidecar/memsidecar/internal/retrieve"
	"github.com/memsidecar/memsidecar/internal/server"
	"github.com/memsidecar/memsidecar/internal/span"
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
	// HTTPAddr is where it serves metrics and health checks over HTTP; nil if it does not.
	HTTPAddr net.Addr
	// APIAddr is where it answers calls as JSON over HTTP; nil if it does not.
	APIAddr net.Addr

	server    *server.Server
	entrance  *entrance
	retriever *retrieve.Retriever
	talks     *conversations
	failed    chan error // a listener's end, when it was not asked to stop
	closers   []func(context.Context)
}

// Start opens the storage, starts the workers and answers calls until Stop. The environment is where providers' keys are.
func Start(ctx context.Context, cfg config.Config, environ []string, log *slog.Logger) (*Sidecar, error) {
	return startListening(ctx, cfg, environ, listen, log)
}

// startListening listens as it is told.
func startListening(ctx context.Context, cfg config.Config, environ []string, listen func(context.Context, *config.Config) (net.Listener, error), log *slog.Logger) (_ *Sidecar, err error) {
	s := &Sidecar{failed: make(chan error, 3)}
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
	s.entrance, err = openEntrance(&cfg, log)
	if err != nil {
		return nil, err
	}
	listener, err := listen(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	s.Addr = listener.Addr()
	s.onStop(func(context.Context) { _ = listener.Close() }) // closed already, unless something below failed

	redactor := cfg.Redact.Redactor()
	tracing, stopTracing, err := startTracing(ctx, cfg, environ, log)
	if err != nil {
		return nil, err
	}
	s.onStop(stopTracing)
	counts := metrics.New(version(), cfg.LLM.Prices)

	changed := make(chan struct{}, 1)
	storage, err := sqlite.Open(ctx, sqlite.Options{Dir: cfg.DataDir, Log: log, Key: encryptionKey(cfg.Encryption), OnCommit: counts.Committed, OnChange: func(breaker.Status) {
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
	quotas := &sqlite.Quotas{Limit: cfg.Quota, Refused: counts.Refused}
	store := storelocal.New(storage, storelocal.Options{IndexBudget: int64(cfg.Index.BudgetMiB) << 20, Quotas: quotas})
	records := sqlite.NewModels(storage)
	calls := usage.NewRecorder(records, log)
	s.onStop(func(context.Context) { calls.Close() })
	meter := budget.NewMeter(sqlite.NewTokens(storage), budget.Options{Limits: tokenLimits(cfg), Log: log})
	s.onStop(func(context.Context) { meter.Close() })
	models, err := newModels(cfg, environ, redactor, ruleset, records, store, calls, meter, counts, span.Tracer(tracing), log)
	if err != nil {
		return nil, err
	}
	vectorizer := vectorize.New(&models.embedder, store, vectorize.Options{
		ChunkSize: cfg.Embedding.ChunkSize, BackoffMin: cfg.Queue.BackoffMin, BackoffMax: cfg.Queue.BackoffMax, Log: log,
		Pulse: counts.Loop(loopVectors),
	})
	models.incomplete = vectorizer.Wake
	vectorizer.Start()
	s.onStop(func(context.Context) { vectorizer.Stop() })
	jobs := sqlite.NewQueue(storage)
	jobs.Unquoted = store.DropIndex
	settings := sqlite.NewSettings(storage)
	sessions := sqlite.NewSessions(storage)
	sessions.Quotas = quotas
	past := sqlite.NewRecall(storage)

	traces := trace.NewRecorder(sqlite.NewTraces(storage), trace.Options{
		Retention: cfg.Trace.Retention, MaxRecords: cfg.Trace.MaxRecords, Redact: redactor, Log: log, Pulse: counts.Loop(loopTraces),
	})
	s.onStop(func(context.Context) { traces.Close() })

	retriever := retrieve.New(retrieve.Parts{
		Store: store, Messages: past, Settings: settings, Traces: traces,
		Embedder: embed.WithCache(&models.embedder, cfg.Embedding.CacheEntries, counts.LookedUp), StorageProblem: storageProblem,
	}, retrieve.Options{
		Budget: cfg.Retrieval.Budget, VectorWeight: cfg.Retrieval.VectorWeight, NeighborWeight: cfg.Retrieval.NeighborWeight,
		RecencyHalfLife: cfg.Retrieval.RecencyHalfLife, Prompts: cfg.Retrieval.Prompts, Labels: cfg.Session.Labels, Location: location, Log: log,
		Answered: counts.Retrieved,
	})
	s.retriever = retriever
	s.onStop(func(context.Context) { retriever.Close() })

	echoes := newEchoes(cfg, store)
	days := newDigests(cfg, digestParts{
		db: storage, memories: store, settings: settings, vectors: vectorizer, models: models, echoes: echoes,
		redactor: redactor,
	}, location, counts, log)
	considerer := decide.NewConsiderer(decide.Parts{
		Queue: jobs, Sessions: sessions, Memories: store, Settings: settings, Vectors: vectorizer,
		Decider: models.deciding.Decider(), Summarizer: models.deciding.Summarizer(), Rules: ruleset, Traces: traces,
		Digests: days.keeper, Reconciler: models.deciding.Reconciler(), ReconcileRules: reconcile.New(), Echoes: echoes,
		Redactor: redactor,
	}, decide.Options{
		MaxPending: cfg.Queue.MaxPendingPerUser, MaxPendingNamespace: cfg.Queue.MaxPendingPerNamespace,
		MaxPendingTotal: cfg.Queue.MaxPending, MaxPendingBytes: int64(cfg.Queue.MaxPendingBytes),
		MaxWait: cfg.Queue.MaxWait, Location: location, Tracing: tracing,
		Pool: queue.Options{
			Workers: cfg.Queue.Workers, MaxAge: cfg.Queue.MaxAge,
			BackoffMin: cfg.Queue.BackoffMin, BackoffMax: cfg.Queue.BackoffMax,
			Retention: cfg.Queue.Retention, FailedRetention: cfg.Queue.FailedRetention, Log: log,
			Pulse: counts.Loop(loopConsiderations), Ended: counts.Considered, Away: models.away,
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
		redactor:       redactor,
		storageProblem: storageProblem,
	}, counts, log)
	s.talks = talks
	s.onStop(talks.stop)
	days.keeper.Start()
	s.onStop(func(context.Context) { days.keeper.Stop() })

	curve := retention.NewCurve(cfg.Memories.HalfLives)
	sweeper := retention.NewSweeper(store, storage, retention.Options{
		Curve: curve, MaxPerUser: cfg.Memories.MaxPerUser, WithdrawnGrace: cfg.Memories.WithdrawnGrace,
		ExpiredKeep: cfg.Memories.ExpiredKeep, HistoryKeep: cfg.Memories.HistoryKeep, Log: log,
	})
	sweeper.Start()
	s.onStop(func(context.Context) { sweeper.Stop() })

	lists := sqlite.NewResults(storage)
	lists.Quotas = quotas
	numbered := results.NewKeeper(lists, results.Options{
		MaxItems: cfg.Results.MaxItems, MaxAge: cfg.Results.MaxAge, ListTTL: cfg.Results.ListTTL, Log: log,
		Pulse: counts.Loop(loopResults),
	})
	numbered.Start()
	s.onStop(func(context.Context) { numbered.Stop() })

	s.server = server.New(server.Parts{
		Retriever: retriever, Considerer: considerer, Store: store, Queue: jobs, Settings: settings,
		Sessions: sessions, Conversations: talks.keeper, Topics: topics.NewCounter(redactedSource{sqlite.NewTopics(storage), redactor}), Traces: traces,
		Results: numbered,
		Tokens:  s.entrance.authenticator(), Limiter: limiter(&cfg),
		PageKey: func(ctx context.Context) ([]byte, error) { return sqlite.NewKeys(storage).Get(ctx, "page_tokens") },
		Keeper: memories.NewKeeper(memories.Parts{
			Store: store, Backfill: store, Vectors: vectorizer, Considerations: considerer, Queue: jobs, Sessions: sessions,
			Settings: settings, Traces: traces, Tokens: meter, Results: lists,
			Purger: storage, Digests: days.store, DigestJobs: days.keeper, DigestFiles: days.forgetFiles, Rewrite: days.rewriteFiles,
			Uncache: reconcile.DropReadings,
		}),
		Digests: days.keeper, Notebook: days.notebook,
		Auditor:        audit.New(store, audit.Options{Fingerprint: models.fingerprint, Retention: curve.Score}),
		StorageProblem: storageProblem,
		PurgeWaiting:   storage.PurgeWaiting,
		Process:        func() server.Process { return server.Process(counts.Process()) },
		Fingerprint:    models.fingerprint,
		Vectorizing:    vectorizer.Progress,
		Usage:          records.Usage,
		Prices:         cfg.LLM.Prices,
		Budgets:        meter.Standings,
		Quotas:         sqlite.NewUsage(storage, quotas).Standings,
		Curve:          curve,
		FullUsers:      sweeper.Full,
		Components: func() []server.Component {
			return append([]server.Component{breakerComponent("storage", "sqlite", storage.Status())}, models.components()...)
		},
	}, server.Options{
		Version: version(), TLS: s.entrance.config(), MaxRequestBytes: cfg.MaxRequestBytes, Visibility: cfg.Policy(), OwnAgent: cfg.Retrieval.Agent == "this",
		RecordConsidered: cfg.Session.RecordConsidered, Window: window(cfg), TopK: cfg.Retrieval.TopK, MaxPerUser: cfg.Memories.MaxPerUser, MinScore: cfg.Retrieval.MinScore,
		MaxContextChars: cfg.Retrieval.MaxContextChars, NotebookEntries: cfg.Notebook.MaxEntries, RedactHistory: historyRedactor(cfg, redactor), Log: log,
		Answered: counts.Call, Tracing: tracing,
	})
	counts.Watch(watched{storage, jobs, store, models}.sources())
	err = s.startHTTP(ctx, cfg, ops.Parts{
		Problems: func() []string {
			if problem := storageProblem(); problem != "" {
				return []string{"storage: " + problem}
			}
			return nil
		},
		Metrics: counts.Handler(log), Pprof: cfg.HTTP.Pprof, Guard: operatorsOnly(s.entrance.authenticator()),
	}, log)
	if err != nil {
		return nil, err
	}
	unsettled := models.settleAtStart(ctx)
	go func() { s.failed <- s.server.Serve(listener) }()
	s.onStop(s.server.Stop)
	if err := s.startAPI(ctx, cfg, log); err != nil {
		return nil, err
	}
	s.onStop(func(context.Context) {
		considerer.EndWaits()
		s.server.EndWatches()
	})

	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	s.onStop(func(context.Context) { stopWatching() })
	again := make(chan struct{}, 1)
	go s.watchStorage(watching, changed, storageProblem, func() {
		considerer.Wake()
		vectorizer.Wake()
		talks.wake()
		days.keeper.Wake()
		sweeper.Wake()
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

// Reload reads tokens and certificates again, as SIGHUP does. They are also read again when they change.
func (s *Sidecar) Reload() { s.entrance.reload() }

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

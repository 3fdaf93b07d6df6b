package sidecar

import (
	"context"
	"fmt"
	"net"
	"time"

	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/config"
	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/decide/reconcile"
	"github.com/memsidecar/memsidecar/internal/decide/rules"
	"github.com/memsidecar/memsidecar/internal/embed"
	"github.com/memsidecar/memsidecar/internal/lang/redact"
	"github.com/memsidecar/memsidecar/internal/lang/topics"
	"github.com/memsidecar/memsidecar/internal/lists"
	"github.com/memsidecar/memsidecar/internal/manage/audit"
	"github.com/memsidecar/memsidecar/internal/manage/retention"
	"github.com/memsidecar/memsidecar/internal/observe/metrics"
	"github.com/memsidecar/memsidecar/internal/observe/ops"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/retrieve"
	"github.com/memsidecar/memsidecar/internal/server"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/trace"
	"github.com/memsidecar/memsidecar/internal/usage"
	"github.com/memsidecar/memsidecar/internal/usage/budget"
	"github.com/memsidecar/memsidecar/internal/vectorstore/backfill"
	storelocal "github.com/memsidecar/memsidecar/internal/vectorstore/local"
)

// components are the components of a sidecar while it starts. Each step uses those of the steps before it. What a step opened or
// started is stopped in reverse order.
type components struct {
	*Sidecar
	Options
	cfg      config.Config
	location *time.Location
	redactor *redact.Redactor // nil: nothing is redacted

	tracing oteltrace.TracerProvider
	counts  *metrics.Metrics

	storage  *sqlite.Storage
	changed  background.Notifier // storage changed its state
	quotas   *sqlstore.Quotas
	store    *storelocal.Store
	jobs     *sqlstore.Queue
	settings *sqlstore.Settings
	sessions *sqlstore.Sessions
	past     *sqlstore.Recall
	lists    *sqlstore.Results

	rules      *rules.Rules
	records    *sqlstore.Models
	calls      *usage.Recorder
	meter      *budget.Meter
	models     *models
	vectorizer *backfill.Vectorizer

	traces     *trace.Recorder
	echoes     *decide.Echoes
	days       *digests
	writer     *session.Writer
	considerer *decide.Considerer
	curve      retention.Curve
	sweeper    *retention.Sweeper
	numbered   *lists.Keeper
}

// state reports whether the database is available.
func (p *components) state() storageState { return storageState{p.storage} }

// startMetrics is for what tells operators how it goes.
func (p *components) startMetrics(ctx context.Context) error {
	tracing, stop, err := startTracing(ctx, p.cfg, p.Environ, p.Log)
	if err != nil {
		return err
	}
	p.onStop(stop)
	p.tracing, p.counts = tracing, metrics.New(Version(), p.cfg.LLM.Prices)
	return nil
}

// openStorage opens the database and the stores in it.
func (p *components) openStorage(ctx context.Context) (err error) {
	p.storage, err = sqlite.Open(ctx, sqlite.Options{
		Dir: p.cfg.DataDir, Log: p.Log, Key: EncryptionKey(p.cfg.Encryption), OnCommit: p.counts.Committed,
		OnChange: func(breaker.Status) { p.changed.Notify() }, OnUnreadable: p.counts.Unreadable,
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
	p.store = storelocal.New(p.storage, storelocal.Options{IndexBudget: int64(p.cfg.Index.BudgetMiB) << 20, Quotas: p.quotas})
	p.jobs = sqlstore.NewQueue(p.storage)
	p.jobs.Unquoted = p.store.DropIndex
	p.settings = sqlstore.NewSettings(p.storage)
	p.sessions = sqlstore.NewSessions(p.storage, p.jobs)
	p.sessions.Quotas = p.quotas
	p.past = sqlstore.NewRecall(p.storage)
	p.lists = sqlstore.NewResults(p.storage)
	p.lists.Quotas = p.quotas
	return nil
}

// startModels prepares the models, their cost accounting, and the embedding of memories without a vector. Which models are used is
// chosen later, because asking them takes time.
func (p *components) startModels(context.Context) (err error) {
	if p.rules, err = rules.New(p.cfg.Rules); err != nil {
		return err
	}
	p.records = sqlstore.NewModels(p.storage)
	p.calls = usage.NewRecorder(p.records, p.Log)
	p.onStop(func(context.Context) { p.calls.Close() })
	p.meter = budget.NewMeter(sqlstore.NewTokens(p.storage), budget.Options{Limits: tokenLimits(p.cfg), Log: p.Log})
	p.onStop(func(context.Context) { p.meter.Close() })
	if p.models, err = newModels(p); err != nil {
		return err
	}
	p.vectorizer = backfill.New(&p.models.embedder, p.store, backfill.Options{
		ChunkSize: p.cfg.Embedding.ChunkSize, BackoffMin: p.cfg.Queue.BackoffMin, BackoffMax: p.cfg.Queue.BackoffMax, Log: p.Log,
		Heartbeat: p.counts.Loop(loopVectors),
	})
	p.models.incomplete = p.vectorizer.Wake
	p.vectorizer.Start()
	p.onStop(func(context.Context) { p.vectorizer.Stop() })
	return nil
}

// startReading starts the read path.
func (p *components) startReading(context.Context) error {
	cfg := &p.cfg
	p.traces = trace.NewRecorder(sqlstore.NewTraces(p.storage), trace.Options{
		Retention: cfg.Trace.Retention, MaxRecords: cfg.Trace.MaxRecords, Redact: p.redactor, Log: p.Log, Heartbeat: p.counts.Loop(loopTraces),
	})
	p.onStop(func(context.Context) { p.traces.Close() })
	p.Retriever = retrieve.New(retrieve.Parts{
		Store: p.store, Messages: p.past, Settings: p.settings, Traces: p.traces,
		Embedder: embed.WithCache(&p.models.embedder, cfg.Embedding.CacheEntries, p.counts.LookedUp), StorageProblem: p.state().Problem, WriteProblem: p.state().WriteProblem,
	}, retrieve.Options{
		Budget: cfg.Retrieval.Budget, VectorWeight: cfg.Retrieval.VectorWeight, NeighborWeight: cfg.Retrieval.NeighborWeight,
		RecencyHalfLife: cfg.Retrieval.RecencyHalfLife, Prompts: cfg.Retrieval.Prompts, Labels: cfg.Session.Labels, Location: p.location, Log: p.Log,
		Answered: p.counts.Retrieved,
	})
	p.onStop(func(context.Context) { p.Retriever.Close() })
	return nil
}

// startWriting starts the write path: considering, sessions and digests.
func (p *components) startWriting(context.Context) error {
	cfg := &p.cfg
	p.echoes = newEchoes(p.cfg, p.store)
	p.days = newDigests(p)
	p.indexing = p.newIndexing()
	p.writer = p.newWriter()
	p.considerer = decide.NewConsiderer(decide.Parts{
		Queue: p.jobs, Sessions: p.sessions, Recorder: p.writer, Memories: p.store, Settings: p.settings, Vectors: p.vectorizer,
		Decider: p.models.deciding.Decider(), Summarizer: p.models.deciding.Summarizer(), Rules: p.models.rules, Traces: p.traces,
		Digests: p.days.keeper, Reconciler: p.models.deciding.Reconciler(), ReconcileRules: reconcile.New(), Echoes: p.echoes,
		Redactor: p.redactor,
	}, decide.Options{
		Record: cfg.Session.RecordConsidered, Visibility: cfg.Policy(),
		MaxPending: cfg.Queue.MaxPendingPerUser, MaxPendingNamespace: cfg.Queue.MaxPendingPerNamespace,
		MaxPendingTotal: cfg.Queue.MaxPending, MaxPendingBytes: int64(cfg.Queue.MaxPendingBytes),
		MaxWait: cfg.Queue.MaxWait, Location: p.location, Tracing: p.tracing,
		Pool: queue.Options{
			Workers: cfg.Queue.Workers, MaxAge: cfg.Queue.MaxAge,
			BackoffMin: cfg.Queue.BackoffMin, BackoffMax: cfg.Queue.BackoffMax,
			Retention: cfg.Queue.Retention, FailedRetention: cfg.Queue.FailedRetention, Log: p.Log,
			Heartbeat: p.counts.Loop(loopConsiderations), Ended: p.counts.Considered,
			Unavailable: p.models.unavailable(partsOfConsidering()...),
		},
	})
	p.storage.OnOpen(func() {
		p.store.Reset()
		p.settings.Reset()
		p.past.Reset()
		p.meter.Reset()
	})
	p.considerer.Start()
	p.onStop(p.considerer.Stop)
	p.startSessions()
	p.days.keeper.Start()
	p.onStop(func(context.Context) { p.days.keeper.Stop() })
	return nil
}

// startCleanup starts the deletion of expired data.
func (p *components) startCleanup(context.Context) error {
	cfg := &p.cfg
	p.curve = retention.NewCurve(cfg.Memories.HalfLives)
	p.sweeper = retention.NewSweeper(p.store, p.storage, retention.Options{
		Curve: p.curve, MaxPerUser: cfg.Memories.MaxPerUser, WithdrawnGrace: cfg.Memories.WithdrawnGrace,
		ExpiredKeep: cfg.Memories.ExpiredKeep, HistoryKeep: cfg.Memories.HistoryKeep, Log: p.Log,
	})
	p.sweeper.Start()
	p.onStop(func(context.Context) { p.sweeper.Stop() })
	p.numbered = lists.NewKeeper(p.lists, lists.Options{
		MaxItems: cfg.NumberedLists.MaxItems, MaxAge: cfg.NumberedLists.MaxAge, ListTTL: cfg.NumberedLists.ListTTL, Log: p.Log,
		Heartbeat: p.counts.Loop(loopNumberedLists),
	})
	p.numbered.Start()
	p.onStop(func(context.Context) { p.numbered.Stop() })
	return nil
}

// newServer creates the gRPC server. It does not serve yet.
func (p *components) newServer(context.Context) error {
	cfg := &p.cfg
	memories, eraser, exporter := p.newManage()
	p.server = server.New(server.Parts{
		Memories: server.MemoryParts{
			Considerer:    p.considerer,
			Queue:         p.jobs,
			Retriever:     p.Retriever,
			Memories:      memories,
			Store:         p.store,
			Curve:         p.curve,
			Conversations: p.Sessions,
		},
		Users: server.UserParts{
			Eraser:        eraser,
			Exporter:      exporter,
			Settings:      p.settings,
			Conversations: p.Sessions,
			Lists:         p.numbered,
		},
		Sessions: server.SessionParts{
			Conversations: p.Sessions,
			Eraser:        eraser,
			Topics:        topics.NewCounter(redactedSource{sqlstore.NewTopics(p.storage), p.redactor}),
		},
		Lists: p.numbered,
		Digests: server.DigestParts{
			Considerer: p.considerer,
			Digests:    p.days.keeper,
			Notebook:   p.days.notebook,
		},
		Traces: p.traces,
		Admin: server.AdminParts{
			Status:  status{p},
			Queue:   p.jobs,
			Auditor: audit.New(p.store, audit.Options{Fingerprint: p.models.fingerprint, Retention: p.curve.Score}),
			Prices:  cfg.LLM.Prices,
		},
		Storage: p.state(),
		Calls:   eraser,
		Tokens:  p.entrance.authenticator(),
		Limiter: limiter(cfg),
		PageKey: func(ctx context.Context) ([]byte, error) { return sqlstore.NewKeys(p.storage).Get(ctx, "page_tokens") },
	}, server.Options{
		Version:         Version(),
		TLS:             p.entrance.config(),
		MaxRequestBytes: cfg.MaxRequestBytes,
		Bytes:           p.bytes,
		Visibility:      cfg.Policy(),
		OwnAgent:        cfg.Retrieval.Agent == "this",
		Window:          window(p.cfg),
		MaxPerUser:      cfg.Memories.MaxPerUser,
		MaxPending:      int64(cfg.Queue.MaxPending),
		MaxPendingBytes: int64(cfg.Queue.MaxPendingBytes),
		TopK:            cfg.Retrieval.TopK,
		MinRelevance:    cfg.Retrieval.MinRelevance,
		MaxContextChars: cfg.Retrieval.MaxContextChars,
		NotebookEntries: cfg.Notebook.MaxEntries,
		RedactHistory:   historyRedactor(p.cfg, p.redactor),
		RedactWrites:    writesRedactor(p.cfg, p.redactor),
		Answered:        p.counts.Call,
		Tracing:         p.tracing,
		Log:             p.Log,
	})
	return nil
}

// startOps starts the operators' HTTP port.
func (p *components) startOps(ctx context.Context) error {
	p.counts.Watch(watched{p.storage, p.jobs, p.store, p.models}.sources())
	return p.startHTTP(ctx, p.cfg, ops.Parts{
		Problems: func() []string {
			if problem := p.state().Problem(); problem != "" {
				return []string{"storage: " + problem}
			}
			return nil
		},
		Remarks: func() []string {
			if problem := p.state().WriteProblem(); problem != "" {
				return []string{"storage: " + problem}
			}
			return nil
		},
		Metrics: p.counts.Handler(p.Log), Pprof: p.cfg.HTTP.Pprof, Guard: operatorsOnly(p.entrance.authenticator()),
	}, p.Log)
}

// serve answers calls, and resumes postponed work whenever storage or a model recovers.
func (p *components) serve(ctx context.Context, listener net.Listener) error {
	unsettled := p.models.settleAtStart(ctx)
	go func() { p.failed <- p.server.Serve(listener) }()
	p.onStop(p.server.Stop)
	if err := p.startAPI(ctx, p.cfg, p.Log); err != nil {
		return err
	}
	p.onStop(func(context.Context) {
		p.considerer.EndWaits()
		p.server.EndWatches()
	})

	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	p.onStop(func(context.Context) { stopWatching() })
	again := background.NewNotifier()
	go p.watchStorage(watching, func() {
		p.considerer.Wake()
		p.vectorizer.Wake()
		p.Sessions.Wake()
		p.indexing.Wake()
		p.days.keeper.Wake()
		p.sweeper.Wake()
		again.Notify()
	})
	settling := make(chan struct{})
	p.onStop(func(context.Context) {
		stopWatching()
		<-settling
	})
	go func() {
		defer close(settling)
		p.models.settleEventually(watching, unsettled, again, p.models.recovered.Notify)
	}()
	go background.Run(watching, p.models.recovered, func() (again time.Time) {
		p.considerer.Resume()
		p.vectorizer.Resume()
		p.Sessions.Resume()
		p.indexing.Resume()
		p.indexing.Wake()
		p.days.keeper.Resume()
		return again
	})
	return nil
}

// watchStorage reports the state of storage to health checks, and calls recovered when it accepts writes again. It runs in the background,
// because the breaker's callback must not block.
func (p *components) watchStorage(ctx context.Context, recovered func()) {
	background.Run(ctx, p.changed, func() (again time.Time) {
		readable := p.state().Problem() == ""
		writable := readable && p.state().WriteProblem() == ""
		p.server.SetStorageServing(readable, writable)
		if writable {
			recovered()
		}
		return again
	})
}

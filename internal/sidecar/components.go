package sidecar

import (
	"context"
	"net"
	"time"

	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/config"
	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/decide/classify"
	"github.com/memsidecar/memsidecar/internal/decide/local"
	"github.com/memsidecar/memsidecar/internal/embed"
	"github.com/memsidecar/memsidecar/internal/lang/redact"
	"github.com/memsidecar/memsidecar/internal/lists"
	"github.com/memsidecar/memsidecar/internal/manage/retention"
	"github.com/memsidecar/memsidecar/internal/observe/metrics"
	"github.com/memsidecar/memsidecar/internal/observe/ops"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/retrieve"
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
	lists    *sqlstore.NumberedLists

	local      *local.Extractor
	records    *sqlstore.Models
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
	numbered   *lists.Service
}

// startMetrics starts tracing and creates the metrics.
func (p *components) startMetrics(ctx context.Context) error {
	tracing, stop, err := startTracing(ctx, p.cfg, p.Environ, p.Log)
	if err != nil {
		return err
	}
	p.onStop(stop)
	p.tracing, p.counts = tracing, metrics.New(Version(), p.cfg.LLM.Prices)
	return nil
}

// startModels prepares the models, their cost accounting, and the embedding of memories without a vector. Which models are used is
// chosen later, because asking them takes time.
func (p *components) startModels(context.Context) (err error) {
	extracting := p.cfg.Rules.Options()
	extracting.OnlyForget = !p.cfg.Reconcile.Enabled
	p.local = local.New(classify.Default(), extracting)
	p.records = sqlstore.NewModels(p.storage)
	p.calls = usage.NewRecorder(p.records, p.Log)
	p.onStop(func(context.Context) { p.calls.Close() })
	p.meter = budget.NewMeter(sqlstore.NewTokens(p.storage), budget.Options{Limits: tokenLimits(p.cfg), Now: p.Now, Log: p.Log})
	p.onStop(func(context.Context) { p.meter.Close() })
	if p.models, err = newModels(p); err != nil {
		return err
	}
	p.vectorizer = backfill.New(&p.models.embedder, p.store, backfill.Options{
		ChunkSize:  p.cfg.Embedding.ChunkSize,
		BackoffMin: p.cfg.Queue.BackoffMin,
		BackoffMax: p.cfg.Queue.BackoffMax,
		Heartbeat:  p.counts.Loop(loopVectors),
		Log:        p.Log,
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
		Retention:  cfg.Trace.Retention,
		MaxRecords: cfg.Trace.MaxRecords,
		Redact:     p.redactor,
		Heartbeat:  p.counts.Loop(loopTraces),
		Log:        p.Log,
	})
	p.onStop(func(context.Context) { p.traces.Close() })
	p.Retriever = retrieve.New(retrieve.Deps{
		Store:    p.store,
		Messages: p.past,
		Sessions: namespacePolicies(*cfg),
		Settings: p.settings,
		Traces:   p.traces,
		Embedder: embed.WithCache(&p.models.embedder, cfg.Embedding.CacheEntries, p.counts.EmbeddingLookups),
		Storage:  p.state(),
	}, retrieve.Options{
		Budget:          cfg.Retrieval.Budget,
		VectorWeight:    cfg.Retrieval.VectorWeight,
		NeighborWeight:  cfg.Retrieval.NeighborWeight,
		RecencyHalfLife: cfg.Retrieval.RecencyHalfLife,
		StandingRunes:   cfg.Retrieval.StandingMaxChars,
		Contradicts:     local.Contradicts(classify.Default()),
		Prompts:         cfg.Retrieval.Prompts,
		Labels:          cfg.Session.Labels,
		Location:        p.location,
		Answered:        p.counts.Retrieved,
		Now:             p.Now,
		Log:             p.Log,
	})
	p.onStop(func(context.Context) { p.Retriever.Close() })
	return nil
}

// startWriting starts the write path: considering, sessions and digests.
func (p *components) startWriting(context.Context) error {
	p.echoes = newEchoes(p.cfg, p.store)
	p.days = newDigests(p)
	p.indexing = p.newIndexing()
	p.writer = p.newWriter()
	p.models.local = p.local
	p.considerer = p.newConsiderer()
	p.storage.OnOpen(p.meter.Reset)
	p.considerer.Start()
	p.onStop(p.considerer.Stop)
	p.startSessions()
	p.days.service.Start()
	p.onStop(func(context.Context) { p.days.service.Stop() })
	return nil
}

// newConsiderer returns what considers dialogues.
func (p *components) newConsiderer() *decide.Considerer {
	cfg := &p.cfg
	return decide.NewConsiderer(decide.Deps{
		Queue:           p.jobs,
		Sessions:        p.sessions,
		Recorder:        p.writer,
		Memories:        p.store,
		Settings:        p.settings,
		Vectors:         p.vectorizer,
		Gate:            p.models.deciding.Gate(),
		Extractor:       p.models.deciding,
		Local:           p.models.local,
		Excluded:        p.sessions,
		Digests:         p.days.service,
		Echoes:          p.echoes,
		Redactor:        p.redactor,
		Traces:          p.traces,
		HistoryRedactor: historyRedactor(p.cfg, p.redactor),
	}, decide.Options{
		Record:              cfg.Session.RecordConsidered,
		Visibility:          cfg.Policy(),
		MaxPending:          cfg.Queue.MaxPendingPerUser,
		MaxPendingNamespace: cfg.Queue.MaxPendingPerNamespace,
		MaxPendingTotal:     cfg.Queue.MaxPending,
		MaxPendingBytes:     int64(cfg.Queue.MaxPendingBytes),
		MaxWait:             cfg.Queue.MaxWait,
		Debounce:            debounce(namespacePolicies(*cfg)),
		AsksModel:           p.models.deciding.AsksModel,
		Urgent:              p.local.Urgent,
		Batched:             p.counts.Batched,
		Location:            p.location,
		Now:                 p.Now,
		Tracing:             p.tracing,
		Pool: queue.Options{
			Workers:         cfg.Queue.Workers,
			MaxAge:          cfg.Queue.MaxAge,
			BackoffMin:      cfg.Queue.BackoffMin,
			BackoffMax:      cfg.Queue.BackoffMax,
			Retention:       cfg.Queue.Retention,
			FailedRetention: cfg.Queue.FailedRetention,
			Heartbeat:       p.counts.Loop(loopConsiderations),
			Ended:           p.counts.Considered,
			Unavailable:     p.models.unavailable(considerParts()...),
			Log:             p.Log,
		},
	})
}

// startCleanup starts the deletion of expired data.
func (p *components) startCleanup(context.Context) error {
	cfg := &p.cfg
	p.curve = retention.NewCurve(cfg.Memories.HalfLives)
	p.sweeper = retention.NewSweeper(p.store, p.storage, retention.Options{
		Curve:          p.curve,
		MaxPerUser:     cfg.Memories.MaxPerUser,
		WithdrawnGrace: cfg.Memories.WithdrawnGrace,
		ExpiredKeep:    cfg.Memories.ExpiredKeep,
		HistoryKeep:    cfg.Memories.HistoryKeep,
		Now:            p.Now,
		Log:            p.Log,
	})
	p.sweeper.Start()
	p.onStop(func(context.Context) { p.sweeper.Stop() })
	p.numbered = lists.NewService(p.lists, lists.Options{
		MaxItems:  cfg.NumberedLists.MaxItems,
		MaxAge:    cfg.NumberedLists.MaxAge,
		ListTTL:   cfg.NumberedLists.ListTTL,
		Now:       p.Now,
		Heartbeat: p.counts.Loop(loopNumberedLists),
		Log:       p.Log,
	})
	p.numbered.Start()
	p.onStop(func(context.Context) { p.numbered.Stop() })
	return nil
}

// startOps starts the operators' HTTP port.
func (p *components) startOps(ctx context.Context) error {
	p.counts.AddSources(watched{p.storage, p.jobs, p.store, p.models}.sources())
	return p.startHTTP(ctx, p.cfg, ops.Config{
		Problems: func() []string { return storageRemarks(p.state().Problem()) },
		Remarks:  func() []string { return storageRemarks(p.state().WriteProblem()) },
		Metrics:  p.counts.Handler(p.Log),
		Pprof:    p.cfg.HTTP.Pprof,
		Guard:    operatorsOnly(p.security.authenticator()),
	}, p.Log)
}

// storageRemarks lists the problem of storage, if any.
func storageRemarks(problem string) []string {
	if problem == "" {
		return nil
	}
	return []string{"storage: " + problem}
}

// serve answers calls, and resumes postponed work whenever storage or a model recovers.
func (p *components) serve(ctx context.Context, listener net.Listener) error {
	modelErr := p.models.chooseAtStart(ctx)
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
	storageRecovered := background.NewNotifier()
	go p.watchStorage(watching, func() {
		p.considerer.Wake()
		p.vectorizer.Wake()
		p.Sessions.Wake()
		p.indexing.Wake()
		p.days.service.Wake()
		p.sweeper.Wake()
		storageRecovered.Notify()
	})
	settling := make(chan struct{})
	p.onStop(func(context.Context) {
		stopWatching()
		<-settling
	})
	go func() {
		defer close(settling)
		p.models.chooseInBackground(watching, modelErr, storageRecovered, p.models.recovered.Notify)
	}()
	go background.Run(watching, time.Now, p.models.recovered, func() (again time.Time) {
		p.considerer.Resume()
		p.vectorizer.Resume()
		p.Sessions.Resume()
		p.indexing.Resume()
		p.indexing.Wake()
		p.days.service.Resume()
		return again
	})
	return nil
}

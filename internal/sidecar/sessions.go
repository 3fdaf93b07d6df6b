package sidecar

import (
	"context"
	"errors"

	"github.com/memsidecar/memsidecar/internal/config"
	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/lang/topics"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve/recall"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/session/summary/extract"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
)

// newIndexing returns the worker that indexes messages for search.
func (p *components) newIndexing() *recall.Worker {
	cfg := &p.cfg
	policy := namespacePolicies(p.cfg)
	return recall.NewWorker(p.past, &p.models.embedder, recall.Options{
		Vectors:    cfg.History.Vectors,
		ChunkSize:  cfg.Embedding.ChunkSize,
		Enabled:    func(namespace string) bool { return policy(namespace).Enabled },
		BackoffMin: cfg.Queue.BackoffMin,
		BackoffMax: cfg.Queue.BackoffMax,
		Log:        p.Log,
		Heartbeat:  p.counts.Loop(loopMessages),
	})
}

// newWriter returns the writer of sessions.
func (p *components) newWriter() *session.Writer {
	cfg := &p.cfg
	config := session.WriterConfig{
		Store:    p.sessions,
		Settings: p.settings,
		Policies: namespacePolicies(p.cfg),
		Redactor: historyRedactor(p.cfg, p.redactor),
		Digest:   p.days.rule,
		Lists:    p.shownLists,
		Appended: func() {
			p.indexing.Wake()
			p.days.service.Wake()
		},
		FailureMaxRunes: cfg.Session.FailureMaxChars,
		FailurePhrases:  cfg.Session.FailurePhrases,
		ClaimMaxRunes:   cfg.Session.ClaimMaxChars,
		Now:             p.Now,
	}
	if cfg.Session.SummaryMaxChars > 0 {
		config.SummaryWindow = cfg.Session.MaxMessages
	}
	return session.NewWriter(config)
}

// startSessions starts the background work on conversations, and the indexing of their messages.
func (p *components) startSessions() {
	cfg := &p.cfg
	parts := session.Deps{
		Considerer: p.considerer,
		Topics:     topics.NewCounter(redactedSource{sqlstore.NewTopics(p.storage), p.redactor}),
		Traces:     p.traces,
		Storage:    p.state(),
	}
	if cfg.Session.SummaryMaxChars > 0 {
		parts.Summarizer = redactedSummaries{chosenSummarizer{p.models}, p.redactor}
		parts.Extract = redactedSummaries{extract.New(cfg.Session.SummaryMaxChars), p.redactor}
	}
	p.Sessions = session.NewService(p.writer, parts, session.Options{
		Window:      window(p.cfg),
		Budget:      cfg.Retrieval.Budget,
		Labels:      cfg.Session.Labels,
		Wordings:    cfg.Session.Wordings,
		Workers:     cfg.Queue.Workers,
		BackoffMin:  cfg.Queue.BackoffMin,
		BackoffMax:  cfg.Queue.BackoffMax,
		Log:         p.Log,
		Heartbeat:   p.counts.Loop(loopSessions),
		Fallback:    p.counts.Extracted,
		Unavailable: p.models.unavailable(partSummary),
	})
	p.indexing.Start()
	p.Sessions.Start()
	p.onStop(func(ctx context.Context) {
		p.Sessions.Stop(ctx)
		p.indexing.Stop()
	})
}

// shownLists are the numbered lists that replies of a conversation are compared with.
func (p *components) shownLists(ctx context.Context, scope memory.Scope, audience memory.Audience) ([]session.ShownList, error) {
	shown, err := p.numbered.Around(ctx, scope, audience)
	lists := make([]session.ShownList, len(shown))
	for i := range shown {
		lists[i].ShownAt = shown[i].ShownAt
		for _, n := range shown[i].Items {
			item := session.ShownItem{Number: n.Number, Key: n.Key, Title: n.Title, Attributes: n.Attributes}
			lists[i].Items = append(lists[i].Items, item)
		}
	}
	return lists, err
}

func window(cfg config.Config) session.Limits {
	return session.Limits{MaxMessages: cfg.Session.MaxMessages, MaxTurns: cfg.Session.MaxTurns, MaxRunes: cfg.Session.MaxChars}
}

// namespacePolicies returns the policy of each namespace: the general configuration, changed by the first matching entry.
func namespacePolicies(cfg config.Config) session.Policies {
	general := session.Policy{
		Enabled: cfg.Session.Enabled, MemorizeEvery: cfg.Session.MemorizeEvery, Idle: cfg.Session.Idle, TTL: cfg.Session.TTL,
		Retention: cfg.History.Retention,
	}
	return func(namespace string) session.Policy {
		policy := general
		for _, n := range cfg.Namespaces {
			if !n.Matches(namespace) {
				continue
			}
			if n.SessionEnabled != nil {
				policy.Enabled = *n.SessionEnabled
			}
			if n.MemorizeEvery != nil {
				policy.MemorizeEvery = *n.MemorizeEvery
			}
			if n.HistoryRetention != nil {
				policy.Retention = *n.HistoryRetention
			}
			break
		}
		return policy
	}
}

// debounce returns how long dialogues that are handed over wait for each other: as appended messages do.
func debounce(policies session.Policies) func(namespace string) decide.Debounce {
	return func(namespace string) decide.Debounce {
		p := policies(namespace)
		if p.MemorizeEvery == 0 { // appended messages are not considered by themselves, so that there is nothing to wait for
			return decide.Debounce{}
		}
		return decide.Debounce{Pause: p.Idle, Messages: p.MemorizeEvery}
	}
}

// chosenSummarizer is the summariser of conversations that the models' choice brings; until then summaries wait.
type chosenSummarizer struct{ models *models }

// Name implements session.Summarizer.
func (c chosenSummarizer) Name() string {
	if s := c.models.conversations.Load(); s != nil {
		return (*s).Name()
	}
	return ""
}

// Summarize implements session.Summarizer.
func (c chosenSummarizer) Summarize(ctx context.Context, what session.Summarizing) (string, error) {
	if s := c.models.conversations.Load(); s != nil {
		return (*s).Summarize(ctx, what)
	}
	return "", &memory.TransientError{Err: errors.New("no model is chosen yet; the log says why")}
}

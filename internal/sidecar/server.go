package sidecar

import (
	"context"

	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/manage"
	"github.com/memsidecar/memsidecar/internal/manage/audit"
	"github.com/memsidecar/memsidecar/internal/server"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
)

// newServer creates the gRPC server. It does not serve yet.
func (p *components) newServer(context.Context) error {
	cfg := &p.cfg
	memories, eraser, exporter := p.newManage()
	p.server = server.New(server.Deps{
		Memories: server.MemoryDeps{
			Considerer: p.considerer,
			Queue:      p.jobs,
			Retriever:  p.Retriever,
			Memories:   memories,
			Store:      p.store,
			Curve:      p.curve,
		},
		Users: server.UserDeps{
			List:          sqlstore.NewUsers(p.storage).List,
			Eraser:        eraser,
			Exporter:      exporter,
			Settings:      &manage.Settings{Store: p.settings},
			Conversations: p.Sessions,
			Lists:         p.numbered,
		},
		Sessions: server.SessionDeps{
			Conversations: p.Sessions,
			Eraser:        eraser,
		},
		Lists: p.numbered,
		Digests: server.DigestDeps{
			Summarizer: &digest.Summarizer{Digests: p.days.service, Considerer: p.considerer},
			Digests:    p.days.service,
			Notebook:   p.days.notebook,
		},
		Traces: p.traces,
		Admin: server.AdminDeps{
			Status:  status{p},
			Queue:   p.jobs,
			Auditor: audit.New(p.store, audit.Options{Fingerprint: p.models.fingerprint, Retention: p.curve.Score, Now: p.Now}),
			Prices:  cfg.LLM.Prices,
		},
		Storage: p.state(),
		Calls:   eraser,
		Tokens:  p.security.authenticator(),
		Limiter: limiter(cfg),
		PageKey: func(ctx context.Context) ([]byte, error) { return sqlstore.NewKeys(p.storage).Get(ctx, "page_tokens") },
	}, server.Options{
		Version:         Version(),
		TLS:             p.security.config(),
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
		Now:             p.Now,
		Answered:        p.counts.Call,
		Tracing:         p.tracing,
		Log:             p.Log,
	})
	return nil
}

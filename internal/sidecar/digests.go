package sidecar

import (
	"context"
	"errors"
	"log/slog"

	"github.com/memsidecar/memsidecar/internal/digest"
	digestmodel "github.com/memsidecar/memsidecar/internal/digest/model"
	"github.com/memsidecar/memsidecar/internal/digest/notebook"
	digestrules "github.com/memsidecar/memsidecar/internal/digest/rules"
	"github.com/memsidecar/memsidecar/internal/lang/topics"
	"github.com/memsidecar/memsidecar/internal/llm"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
)

// chooseDigest chooses what extracts the findings of digests: the configured model, else the model that summarises, else the rules.
func (m *models) chooseDigest(summarizer llm.Model) error {
	c := m.cfg.Digest
	extractor := digest.Extractor(digestrules.New(m.rules))
	chosen := options(c.Text()).Generation
	switch {
	case c.Provider == ruleBased:
		m.recordChoice(partDigest, ruleBased, "the configuration says so", false)
	case namesModel(c.Provider, c.Model, ruleBased):
		target, key, err := m.locate(partDigest, configuredProvider(c.Provider), c.Model)
		if err != nil {
			return err
		}
		text, err := m.stackText(partDigest, target, key, c.Timeout)
		if err != nil {
			return err
		}
		extractor = digestmodel.New(text, digestmodel.Options{Prompt: c.Prompt, Generation: chosen})
		m.recordChoice(partDigest, text.Name(), "the configuration says so", target.Remote())
	case summarizer == nil:
		m.recordChoice(partDigest, ruleBased, "auto: as summary", false)
	default:
		extractor = digestmodel.New(summarizer, digestmodel.Options{Prompt: c.Prompt, Generation: chosen})
		m.mu.Lock()
		as := m.chosen[partSummary]
		m.mu.Unlock()
		m.recordChoice(partDigest, summarizer.Name(), "auto: as summary", as.Remote)
	}
	m.digests.Store(&extractor)
	return nil
}

// chosenExtractor is the extractor that chooseDigest chooses. Until then its calls fail, and digests are made later.
type chosenExtractor struct{ models *models }

// Name implements digest.Extractor.
func (c chosenExtractor) Name() string {
	if x := c.models.digests.Load(); x != nil {
		return (*x).Name()
	}
	return ""
}

// Extract implements digest.Extractor.
func (c chosenExtractor) Extract(ctx context.Context, p digest.Piece) ([]digest.Finding, error) {
	if x := c.models.digests.Load(); x != nil {
		return (*x).Extract(ctx, p)
	}
	return nil, &memory.TransientError{Err: errors.New("no model is chosen yet; the log says why")}
}

// digests makes digests and notebooks.
type digests struct {
	service  *digest.Service
	notebook *notebook.Service
	files    *notebook.Files // nil when none are written
	store    *sqlstore.Digests
	log      *slog.Logger
}

// newDigests returns the digest service. The service is not started.
func newDigests(p *components) *digests {
	cfg := &p.cfg
	d := &digests{
		store:    sqlstore.NewDigests(p.storage),
		notebook: &notebook.Service{Memories: p.store, Settings: p.settings, Location: p.location},
		log:      p.Log,
	}
	parts := digest.Deps{
		Store:     d.store,
		Settings:  p.settings,
		Memories:  p.store,
		Vectors:   p.vectorizer,
		Topics:    topics.NewCounter(redactedSource{sqlstore.NewTopics(p.storage), p.redactor}),
		Extractor: redactedFindings{chosenExtractor{p.models}, p.redactor},
		Rules:     redactedFindings{digestrules.New(p.local), p.redactor},
		Scorer:    p.local,
		Echoes:    p.echoes,
	}
	if cfg.Digest.ExportDir != "" {
		d.files = &notebook.Files{
			Dir:        cfg.Digest.ExportDir,
			MaxEntries: cfg.Notebook.MaxEntries,
			Memories:   p.store,
			Vectors:    p.vectorizer,
			Settings:   p.settings,
			Location:   p.location,
			Log:        p.Log,
		}
		d.notebook.Files = d.files
		parts.Changed = func(ctx context.Context, user memory.User, days []string) {
			if err := d.files.Write(ctx, user, days); err != nil && ctx.Err() == nil {
				p.Log.Warn("digests could not be written to files; they are with the next digest", "folder", cfg.Digest.ExportDir, "error", err)
			}
		}
	}
	d.service = digest.NewService(parts, digest.Options{
		Enabled:     cfg.Digest.Enabled,
		Every:       cfg.Digest.Interval,
		MaxTokens:   cfg.Digest.MaxTokens,
		Templates:   cfg.Digest.Templates,
		Location:    p.location,
		Now:         p.Now,
		Workers:     cfg.Queue.Workers,
		BackoffMin:  cfg.Queue.BackoffMin,
		BackoffMax:  cfg.Queue.BackoffMax,
		Heartbeat:   p.counts.Loop(loopDigests),
		Unavailable: p.models.unavailable(p.models.digestParts()...),
		Log:         p.Log,
	})
	if d.files != nil {
		d.files.Digests = d.service
	}
	return d
}

// rule returns when a digest of a user with these settings is due.
func (d *digests) rule(settings memory.Settings) (session.DigestRule, bool) {
	rule, ok := d.service.Rule(settings)
	return session.DigestRule{Every: rule.Every, DayEnd: rule.DayEnd}, ok
}

// rewriteFiles writes the files of a user again.
func (d *digests) rewriteFiles(ctx context.Context, user memory.User) {
	if d.files == nil {
		return
	}
	if err := d.files.Rewrite(ctx, user); err != nil {
		d.log.Warn("digests could not be written to files after a deletion; the files may still contain what was deleted",
			"folder", d.files.Dir, "error", err)
	}
}

// forgetFiles deletes the files of a user.
func (d *digests) forgetFiles(_ context.Context, user memory.User) (int, error) {
	if d.files == nil {
		return 0, nil
	}
	return d.files.Forget(user)
}

package manage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/lang/lexical"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// maxReasonBytes limits the reason of a quarantine.
const maxReasonBytes = 2000

// Importer imports memories, in batches.
type Importer struct {
	service        *Service
	scope          memory.Scope
	batch          []vectorstore.Entry
	count          int // memories given to Add
	Added, Skipped int64
}

// Import starts an import. Memories without a channel get the scope's.
func (k *Service) Import(scope memory.Scope) *Importer { return &Importer{service: k, scope: scope} }

// Add adds a memory; one that consists only of a secret is skipped. The error names its fields by its position; wrong are the violations found before.
func (i *Importer) Add(ctx context.Context, m memory.Memory, wrong memory.Violations) error {
	position := fmt.Sprintf("memory[%d]", i.count)
	i.count++
	if i.service.redactImported(&m) {
		i.Skipped++
		return nil
	}
	if err := i.complete(&m, position, wrong); err != nil {
		return errors.Join(err, i.Flush(ctx)) // the memories before it are valid
	}
	if !m.WithdrawnAt.IsZero() {
		i.Skipped++ // the user asked for it to be forgotten
		return nil
	}
	i.batch = append(i.batch, vectorstore.Entry{Memory: m, Restore: true})
	if len(i.batch) == pageSize {
		return i.Flush(ctx)
	}
	return nil
}

// complete fills in missing fields and validates the memory.
func (i *Importer) complete(m *memory.Memory, position string, v memory.Violations) error {
	now := i.service.Now()
	m.Text = memory.CleanText(m.Text)
	d := Draft{Text: m.Text, Kind: m.Kind, Importance: m.Importance, Standing: m.Standing, ObservedAt: m.ObservedAt}
	v = append(v, d.Validate(position)...)
	v.Check(position+".id", memory.IDProblem(m.ID))
	v.Check(position+".superseded_by_id", memory.IDProblem(m.SupersededBy))
	if len(m.Quarantine) > maxReasonBytes {
		v.Add(position+".quarantine_reason", "is longer than %d bytes", maxReasonBytes)
	}
	v.Check(position+".language", memory.IDProblem(m.Language))
	v = append(v, provenanceProblems(&m.Provenance, position+".provenance")...)
	if m.Channel.Kind == memory.ChannelUnspecified && m.Channel.ID == "" {
		m.Channel = i.scope.Channel
	}
	scope := memory.Scope{Namespace: i.scope.Namespace, UserID: i.scope.UserID, AgentID: m.AgentID, Channel: m.Channel, SessionID: m.SessionID}
	v = append(v, scope.Validate(position+".scope", true)...)
	for _, t := range []struct {
		name string
		time *time.Time
	}{
		{"create_time", &m.CreatedAt},
		{"update_time", &m.UpdatedAt},
		{"last_mention_time", &m.LastSaidAt},
		{"valid_start_time", &m.ValidFrom},
		{"valid_end_time", &m.ValidTo},
	} {
		if !t.time.IsZero() {
			v.Check(position+"."+t.name, memory.TimeProblem(*t.time))
		}
	}
	if err := v.Err(); err != nil {
		return err
	}
	if m.ID == "" {
		m.ID = decide.MemoryID("import", i.scope.Namespace, i.scope.UserID, m.Channel.VisibilityKey(), vectorstore.TextKey(m.Text))
	}
	if m.Language == "" {
		m.Language = lexical.Language(m.Text)
	}
	if m.Provenance.Source == "" {
		m.Provenance.Source = memory.SourceImport
	}
	orElse(&m.CreatedAt, now)
	orElse(&m.UpdatedAt, m.CreatedAt)
	orElse(&m.ObservedAt, m.CreatedAt)
	orElse(&m.LastSaidAt, m.ObservedAt)
	if m.SupersededBy != "" {
		orElse(&m.ValidTo, m.LastSaidAt)
	}
	m.Mentions = max(1, m.Mentions)
	return nil
}

// provenanceProblems validates the size of provenance: no part can be longer than its source.
func provenanceProblems(p *memory.Provenance, at string) (v memory.Violations) {
	v.Check(at+".consideration_id", memory.IDProblem(p.ConsiderationID))
	v.Check(at+".speaker_id", memory.IDProblem(p.SpeakerID))
	v.Check(at+".decided_by", memory.IDProblem(p.DecidedBy))
	for _, text := range []struct{ field, text string }{{".quote", p.Quote}, {".reason", p.Reason}} {
		if len(text.text) > memory.MaxContentBytes {
			v.Add(at+text.field, "is longer than %d bytes", memory.MaxContentBytes)
		}
	}
	if len(p.MessageIDs) > memory.MaxMessages {
		v.Add(at+".message_ids", "has more than %d ids", memory.MaxMessages)
		return v
	}
	for n, id := range p.MessageIDs {
		v.Check(fmt.Sprintf("%s.message_ids[%d]", at, n), memory.IDProblem(id))
	}
	return v
}

func orElse(t *time.Time, other time.Time) {
	if t.IsZero() {
		*t = other
	}
}

// Flush stores the pending memories.
func (i *Importer) Flush(ctx context.Context) error {
	if len(i.batch) == 0 {
		return nil
	}
	applied, err := i.service.apply(ctx, i.scope.User(), i.batch)
	if err != nil {
		return err
	}
	i.batch = nil
	for _, a := range applied {
		if a.Action == memory.ActionAdded {
			i.Added++
		} else {
			i.Skipped++
		}
	}
	return nil
}

package digest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/decide/echo"
	"github.com/memsidecar/memsidecar/internal/lang/compare"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// candidates is the number of memories, the most similar by keywords and by meaning, with which a finding is compared.
const candidates = 10

// remember makes memories of important findings; existing memories are reinforced. Repeating it for the same findings changes nothing.
func (k *Service) remember(ctx context.Context, user memory.User) error {
	entries, err := k.Store.Unremembered(ctx, user)
	if err != nil || len(entries) == 0 {
		return err
	}
	texts := make([]string, len(entries))
	for i := range entries {
		texts[i] = entries[i].remembered()
	}
	embeddings, err := k.Vectors.Embeddings(ctx, texts)
	if err != nil {
		return err
	}
	became := map[string]string{}
	for i := range entries { // in sequence: a later one may repeat an earlier one
		e := &entries[i]
		m := newMemory(user, e, k.options.Now())
		embedding := embeddings[i]
		known, err := k.existing(ctx, user, &m, embedding)
		if err != nil {
			return err
		}
		if known != nil { // the store reinforces a memory with the same text
			m.Text, m.Channel, embedding = known.Text, known.Channel, vectorstore.Embedding{}
		}
		applied, err := k.Memories.Apply(ctx, user, []vectorstore.Entry{{
			StatementID: e.ID, Memory: m, Embedding: embedding, Reinforce: true,
		}})
		if over := (*memory.QuotaError)(nil); errors.As(err, &over) {
			continue // the digest has it anyway, and the next digest retries
		}
		if err != nil {
			return err
		}
		became[e.ID] = applied[0].Memory.ID
	}
	return k.Store.Remembered(ctx, user, became)
}

// existing returns a memory of the same visibility that says the same, or nil.
func (k *Service) existing(ctx context.Context, user memory.User, m *memory.Memory, embedding vectorstore.Embedding) (*memory.Memory, error) {
	filter := vectorstore.Filter{Audience: memory.VisibilityChannel.AudienceOf(m.Channel)}
	hits, err := k.Memories.SearchKeyword(ctx, user, m.Text, filter, candidates)
	if err != nil {
		return nil, err
	}
	for _, h := range hits {
		if h.Memory.Channel.VisibilityKey() == m.Channel.VisibilityKey() && (compare.Same(h.Memory.Text, m.Text) || echo.Told(m.Text, h.Memory.Text)) {
			return h.Memory, nil
		}
	}
	if len(embedding.Chunks) != 1 { // no vector, or a text too long to be a repetition
		return nil, nil //nolint:nilnil // no match is not an error
	}
	hits, err = k.Memories.SearchVector(ctx, user, embedding.Fingerprint, embedding.Chunks[0], filter, candidates)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // the vectors are being rebuilt: only keywords work then
	}
	for _, h := range hits {
		if h.Memory.Channel.VisibilityKey() == m.Channel.VisibilityKey() && compare.Near(h.Memory.Text, m.Text, h.Score) {
			return h.Memory, nil
		}
	}
	return nil, nil //nolint:nilnil // no match is not an error
}

func newMemory(user memory.User, e *Entry, now time.Time) memory.Memory {
	return memory.Memory{
		ID: decide.MemoryID(user.Namespace, user.ID, e.ID), AgentID: e.AgentID, Channel: e.Channel, SessionID: e.SessionID,
		Text: e.remembered(), Language: e.Language, Kind: e.Kind, Importance: e.Importance,
		Provenance: memory.Provenance{
			Source: memory.SourceDialogue, SpeakerID: user.ID, MessageIDs: e.MessageIDs, Quote: e.Quote, Reason: e.Reason, DecidedBy: e.MadeBy,
		},
		CreatedAt: now, UpdatedAt: now, ObservedAt: e.SaidAt, Mentions: 1, LastSaidAt: e.SaidAt,
	}
}

// FromStatement converts a statement about the user to a finding.
func FromStatement(s memory.Statement) Finding {
	f := Finding{
		Category: categories[s.Kind], Text: shortened(s.Text, MaxTextRunes), Language: s.Language, Kind: s.Kind,
		Importance: s.Importance, MessageIDs: s.MessageIDs, Quote: s.Quote, Reason: s.Reason, SaidAt: s.ObservedAt,
	}
	if f.Category == Preference {
		f.Statement = f.Text
		f.Key, f.Text = KeyValue(f.Text, f.Language)
	}
	return f
}

// unknown are the actions that leave no memory of a statement.
var unknown = []memory.Action{memory.ActionLeftDeleted, memory.ActionWithdrawn, memory.ActionQuarantined}

// Remembered contributes the results of considering, so that a digest need not find them again. Repeating it changes nothing.
func (k *Service) Remembered(ctx context.Context, r decide.Remembered) error {
	c := Contribution{
		ID: r.ConsiderationID, Scope: r.Scope, ConsiderationID: r.ConsiderationID, MadeBy: r.DecidedBy, At: k.options.Now(),
	}
	for i, s := range r.Statements {
		if s.Quarantine != "" || slices.Contains(unknown, r.Changes[i].Action) {
			continue
		}
		f := FromStatement(s)
		f.MemoryID = r.Changes[i].MemoryID
		c.Findings = append(c.Findings, f)
	}
	return k.Store.Save(ctx, c)
}

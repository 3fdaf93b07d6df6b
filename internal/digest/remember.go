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

// candidates is how many memories a finding is compared with: those that resemble it most, by words and by meaning.
const candidates = 10

// remember makes memories of what is important. What is known already is reinforced. It may be called again for the same
// findings and then changes nothing.
func (k *Keeper) remember(ctx context.Context, user memory.User) error {
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
	for i := range entries { // one after the other: a later one may say the same as an earlier one
		e := &entries[i]
		m := newMemory(user, e)
		embedding := embeddings[i]
		known, err := k.known(ctx, user, &m, embedding)
		if err != nil {
			return err
		}
		if known != nil { // the same text is what the store reinforces
			m.Text, m.Channel, embedding = known.Text, known.Channel, vectorstore.Embedding{}
		}
		applied, err := k.Memories.Apply(ctx, user, []vectorstore.Entry{{
			StatementID: e.ID, Memory: m, Embedding: embedding, Reinforce: true,
		}})
		if over := (*memory.QuotaError)(nil); errors.As(err, &over) {
			continue // the digest tells it all the same, and the next one tries again
		}
		if err != nil {
			return err
		}
		became[e.ID] = applied[0].Memory.ID
	}
	return k.Store.Remembered(ctx, user, became)
}

// known is a memory of the same visibility that says the same, or nil.
func (k *Keeper) known(ctx context.Context, user memory.User, m *memory.Memory, embedding vectorstore.Embedding) (*memory.Memory, error) {
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
	if len(embedding.Chunks) != 1 { // none, or a text too long to be a repetition
		return nil, nil //nolint:nilnil // nothing known is no error
	}
	hits, err = k.Memories.SearchVector(ctx, user, embedding.Fingerprint, embedding.Chunks[0], filter, candidates)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // the vectors are being made anew: keywords have to do
	}
	for _, h := range hits {
		if h.Memory.Channel.VisibilityKey() == m.Channel.VisibilityKey() && compare.Near(h.Memory.Text, m.Text, h.Score) {
			return h.Memory, nil
		}
	}
	return nil, nil //nolint:nilnil // nothing known is no error
}

func newMemory(user memory.User, e *Entry) memory.Memory {
	now := time.Now()
	return memory.Memory{
		ID: decide.MemoryID(user.Namespace, user.ID, e.ID), AgentID: e.AgentID, Channel: e.Channel, SessionID: e.SessionID,
		Text: e.remembered(), Language: e.Language, Kind: e.Kind, Importance: e.Importance,
		Provenance: memory.Provenance{
			Source: memory.SourceDialogue, SpeakerID: user.ID, MessageIDs: e.MessageIDs, Quote: e.Quote, Reason: e.Reason, DecidedBy: e.MadeBy,
		},
		CreatedAt: now, UpdatedAt: now, ObservedAt: e.SaidAt, Mentions: 1, LastSaidAt: e.SaidAt,
	}
}

// FromStatement is a statement about the user as a digest tells it.
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

// unknown are the actions after which what was said is nothing that is known of the user.
var unknown = []memory.Action{memory.ActionLeftDeleted, memory.ActionWithdrawn, memory.ActionQuarantined}

// Remembered contributes what considering has yielded, so that a digest need not find it out again. Doing it twice does it once.
func (k *Keeper) Remembered(ctx context.Context, r decide.Remembered) error {
	c := Contribution{
		ID: r.ConsiderationID, Scope: r.Scope, ConsiderationID: r.ConsiderationID, MadeBy: r.DecidedBy, At: time.Now(),
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

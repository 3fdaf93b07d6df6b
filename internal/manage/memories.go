// Package manage holds the commands on stored data: creating and changing memories without considering, importing and exporting,
// deleting sessions, and forgetting users.
package manage

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/lang/lexical"
	"github.com/memsidecar/memsidecar/internal/lang/redact"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/usage"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// Backfill is the part of vectorstore.Backfill that undoing a change needs.
type Backfill interface {
	SetEmbeddings(ctx context.Context, user memory.User, embeddings []vectorstore.TextEmbedding) error
}

// Deps is what a Service works with.
type Deps struct {
	Store    vectorstore.Store
	Backfill Backfill
	Vectors  decide.Vectors
	// Considerations holds considerations, whose outcomes contain the texts of memories.
	Considerations interface {
		ForgetMemory(ctx context.Context, user memory.User, id string) error
	}
	// Traces flushes pending traces, so that they can be changed.
	Traces interface{ Flush(ctx context.Context) }
	Purger Purger
	// Rewrite writes the user's digest files again, after a deletion of something that they may contain.
	Rewrite func(ctx context.Context, user memory.User)
	// Redactor removes secrets from the memories that callers write; nil: they are stored as they were sent.
	Redactor *redact.Redactor
	// Now is the clock; by default time.Now.
	Now func() time.Time
}

// Service carries out the commands on single memories.
type Service struct {
	Deps
	turns turns
}

// NewService returns a Service.
func NewService(parts Deps) *Service {
	if parts.Now == nil {
		parts.Now = time.Now
	}
	return &Service{Deps: parts}
}

// Draft is a memory as a caller states it.
type Draft struct {
	Text       string
	Kind       memory.Kind
	Importance float64
	Standing   memory.StandingClass `json:",omitempty"` // keeps older payload hashes valid
	ObservedAt time.Time            // zero: now
	// ForceNew stores the draft even if a memory says the same.
	ForceNew bool `json:",omitempty"` // keeps older payload hashes valid
}

// Validate returns what is wrong with a draft; field names get the prefix.
func (d Draft) Validate(prefix string) memory.Violations {
	var v memory.Violations
	v.Check(prefix+".text", memory.TextProblem(d.Text))
	v.Check(prefix+".importance", importanceProblem(d.Importance))
	if !d.Kind.Valid() {
		v.Add(prefix+".kind", "is not a known kind")
	}
	if !d.Standing.Valid() {
		v.Add(prefix+".standing", "is not a known standing")
	}
	if !d.ObservedAt.IsZero() {
		v.Check(prefix+".observe_time", memory.TimeProblem(d.ObservedAt))
	}
	return v
}

func importanceProblem(importance float64) string {
	if math.IsNaN(importance) || importance < 0 || importance > 1 {
		return "is not between 0 and 1"
	}
	return ""
}

// Create stores a draft. If an active memory of the same visibility says the same, that one is reinforced instead and merged is true.
// With a request id the call can be repeated with the same draft. wrong are the violations found before.
func (k *Service) Create(
	ctx context.Context, scope memory.Scope, d Draft, requestID string, wrong memory.Violations,
) (m memory.Memory, merged bool, err error) {
	d.Text = k.written(d.Text, &wrong)
	if err := append(wrong, d.Validate("memory")...).Err(); err != nil {
		return memory.Memory{}, false, err
	}
	payloadHash, err := memory.PayloadHash(struct {
		Scope memory.Scope
		Draft Draft
	}{scope, d})
	if err != nil {
		return memory.Memory{}, false, err
	}
	now := k.Now()
	if d.ObservedAt.IsZero() {
		d.ObservedAt = now
	}
	entry := vectorstore.Entry{Reinforce: true, ForceNew: d.ForceNew, Memory: memory.Memory{
		AgentID: scope.AgentID, Channel: scope.Channel, SessionID: scope.SessionID,
		Text: d.Text, Language: lexical.Language(d.Text), Kind: d.Kind, Importance: d.Importance, Standing: d.Standing, Explicit: true,
		Provenance: memory.Provenance{Source: memory.SourceAPI, SpeakerID: scope.UserID, Reason: "stored with CreateMemory"},
		CreatedAt:  now, UpdatedAt: now, ObservedAt: d.ObservedAt, Mentions: 1, LastSaidAt: d.ObservedAt,
	}}
	if requestID == "" {
		entry.Memory.ID = decide.MemoryID(uuid.NewString())
	} else {
		entry.StatementID, entry.PayloadHash = "request:"+requestID, payloadHash
		entry.Memory.ID = decide.MemoryID(scope.Namespace, scope.UserID, requestID)
	}
	entries := []vectorstore.Entry{entry}
	if err := k.embed(ctx, scope.User(), entries); err != nil {
		return memory.Memory{}, false, err
	}
	if !d.ForceNew {
		release, err := k.turns.take(ctx, scope.User())
		if err != nil {
			return memory.Memory{}, false, err
		}
		defer release()
		if entries[0].SameAs, err = k.sayingTheSame(ctx, scope, d.Text); err != nil {
			return memory.Memory{}, false, err
		}
	}
	applied, err := k.Store.Apply(ctx, scope.User(), entries)
	if err != nil {
		return memory.Memory{}, false, err
	}
	if applied[0].Action == memory.ActionLeftDeleted {
		return memory.Memory{}, false, fmt.Errorf("the memory that request_id %q created has been deleted: %w", requestID, memory.ErrNotFound)
	}
	return applied[0].Memory, applied[0].Action != memory.ActionAdded, nil
}

// apply embeds the entries and stores them.
func (k *Service) apply(ctx context.Context, user memory.User, entries []vectorstore.Entry) ([]vectorstore.Applied, error) {
	if err := k.embed(ctx, user, entries); err != nil {
		return nil, err
	}
	return k.Store.Apply(ctx, user, entries)
}

// embed sets the embeddings of the entries.
func (k *Service) embed(ctx context.Context, user memory.User, entries []vectorstore.Entry) error {
	texts := make([]string, len(entries))
	for i := range entries {
		texts[i] = entries[i].Memory.Text
	}
	embeddings, err := k.Vectors.Embeddings(usage.WithUser(ctx, user), texts)
	if err != nil {
		return err
	}
	for i := range entries {
		entries[i].Embedding = embeddings[i]
	}
	return nil
}

// Revert undoes the newest change of a memory that can be undone, see vectorstore.Store.
func (k *Service) Revert(ctx context.Context, user memory.User, id, revisionID string, audience memory.Audience) (memory.Memory, vectorstore.Revision, error) {
	m, undone, err := k.Store.Revert(ctx, user, id, revisionID, audience, k.Now())
	if err != nil || undone.Change != vectorstore.ChangeEdited && undone.Change != vectorstore.ChangeWithdrawn {
		return m, undone, err
	}
	// The old text may have no vectors. If this fails, the backfill adds them later. The change is reverted in any case: after an error
	// the caller would call again and revert the change before it, too.
	embeddings, err := k.Vectors.Embeddings(usage.WithUser(ctx, user), []string{m.Text})
	if err == nil && embeddings[0].Fingerprint != "" {
		_ = k.Backfill.SetEmbeddings(ctx, user, []vectorstore.TextEmbedding{{MemoryID: m.ID, Text: m.Text, Embedding: embeddings[0]}})
	}
	return m, undone, nil
}

// Release ends a memory's quarantine.
func (k *Service) Release(ctx context.Context, user memory.User, id string, audience memory.Audience) (memory.Memory, error) {
	return k.Store.Release(ctx, user, id, audience, k.Now())
}

// Edit is a change of a memory. Nil fields stay unchanged, and are not checked.
type Edit struct {
	Text       *string
	Kind       *memory.Kind
	Importance *float64
	Standing   *memory.StandingClass
}

// check replaces secrets in the text, and adds what is wrong with the edit to the violations found before.
func (k *Service) check(e *Edit, wrong memory.Violations) error {
	d := Draft{Text: "unchanged", Kind: memory.KindFact}
	if e.Text != nil {
		d.Text = k.written(*e.Text, &wrong)
		e.Text = &d.Text
	}
	if e.Kind != nil {
		d.Kind = *e.Kind
	}
	if e.Importance != nil {
		d.Importance = *e.Importance
	}
	if e.Standing != nil {
		d.Standing = *e.Standing
	}
	return append(wrong, d.Validate("memory")...).Err()
}

// Update changes a memory. wrong are the violations found before.
func (k *Service) Update(
	ctx context.Context, user memory.User, id string, audience memory.Audience, e Edit, wrong memory.Violations,
) (memory.Memory, error) {
	if err := k.check(&e, wrong); err != nil {
		return memory.Memory{}, err
	}
	patch := vectorstore.Patch{Text: e.Text, Kind: e.Kind, Importance: e.Importance, Standing: e.Standing, At: k.Now()}
	if e.Text != nil {
		embeddings, err := k.Vectors.Embeddings(usage.WithUser(ctx, user), []string{*e.Text})
		if err != nil {
			return memory.Memory{}, err
		}
		language := lexical.Language(*e.Text)
		patch.Language, patch.Embedding = &language, embeddings[0]
	}
	return k.Store.Update(ctx, user, id, audience, patch)
}

// Delete deletes a memory, and its text in considerations, traces and digest files. The purge of the bytes runs in the background.
func (k *Service) Delete(ctx context.Context, user memory.User, id string, audience memory.Audience) error {
	err := k.remove(ctx, user, id, audience)
	if err == nil {
		k.Rewrite(context.WithoutCancel(ctx), user)
	}
	return err
}

// remove is Delete without the files.
func (k *Service) remove(ctx context.Context, user memory.User, id string, audience memory.Audience) error {
	if err := k.Store.Delete(ctx, user, id, audience); err != nil {
		return err
	}
	k.Traces.Flush(ctx)
	// The memory cannot be deleted again, so this must run even if the caller has gone.
	err := k.Considerations.ForgetMemory(context.WithoutCancel(ctx), user, id)
	k.Purger.PurgeLater()
	return err
}

// Get returns a memory, unless it was withdrawn.
func (k *Service) Get(ctx context.Context, user memory.User, id string, audience memory.Audience) (memory.Memory, error) {
	m, err := k.Store.Get(ctx, user, id, audience)
	if err == nil && !m.WithdrawnAt.IsZero() {
		return memory.Memory{}, fmt.Errorf(
			"memory %q was withdrawn: list the withdrawn memories to see it, or revert that: %w", m.ID, memory.ErrNotFound)
	}
	return m, err
}

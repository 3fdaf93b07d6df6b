// Package manage holds the commands on stored memories that need no considering: storing one as it is, changing it,
// moving a user's memories in and out, and forgetting a user.
package manage

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/lang/lexical"
	"github.com/memsidecar/memsidecar/internal/lists"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/trace"
	"github.com/memsidecar/memsidecar/internal/usage"
	"github.com/memsidecar/memsidecar/internal/usage/budget"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// Considerations is what must be stopped and deleted to forget a user.
type Considerations interface {
	// Bar keeps jobs that hold the user's words from running until release is called.
	Bar(ctx context.Context, user memory.User) (release func(), err error)
}

// Queue is the part of queue.Store that moving out and forgetting need.
type Queue interface {
	List(ctx context.Context, user memory.User, q queue.ListQuery) (jobs []queue.Job, next string, err error)
	Forget(ctx context.Context, user memory.User) (queue.Forgotten, error)
	ForgetMemory(ctx context.Context, user memory.User, id string) error
}

// Settings is the part of the settings' storage that moving out and forgetting need.
type Settings interface {
	Get(ctx context.Context, user memory.User) (memory.Settings, error)
	Forget(ctx context.Context, user memory.User) (bool, error)
}

// Sessions is the part of session.Store that moving out, deleting and forgetting need.
type Sessions interface {
	Get(ctx context.Context, v session.Viewer, sessionID string) (session.Session, error)
	Participants(ctx context.Context, namespace, sessionID string) ([]string, error)
	Delete(ctx context.Context, v session.Viewer, sessionID string) (session.Deleted, error)
	Sessions(ctx context.Context, user memory.User, after string, limit int) (sessions []session.Session, next string, err error)
	OwnMessages(ctx context.Context, user memory.User, sessionID string, after int64, limit int) ([]session.Message, error)
	Window(ctx context.Context, v session.Viewer, sessionID string, q session.WindowQuery) (session.Window, error)
	Forget(ctx context.Context, user memory.User) (session.Forgotten, error)
}

// Traces is the part of the traces that moving out and forgetting need.
type Traces interface {
	List(ctx context.Context, q trace.ListQuery) (records []trace.Record, next string, err error)
	Forget(ctx context.Context, user memory.User) (int64, error)
	ForgetSession(ctx context.Context, namespace, sessionID string, channel memory.Channel, users ...string) (int64, error)
	// Flush writes what waits to be written.
	Flush(ctx context.Context)
}

// Results is the part of results.Store that moving out, deleting and forgetting need.
type Results interface {
	Registries(ctx context.Context, user memory.User, after string, limit int) (all []lists.Exported, next string, err error)
	Items(ctx context.Context, v lists.View, after string, limit int) (lists.Page, error)
	Lists(ctx context.Context, user memory.User, after string, limit int) (all []lists.Shown, next string, err error)
	Forget(ctx context.Context, user memory.User) (lists.Forgotten, error)
	ForgetSession(ctx context.Context, namespace, sessionID string, channel memory.Channel, users ...string) error
}

// Digests is the part of digest.Store that moving out and forgetting need.
type Digests interface {
	List(ctx context.Context, user memory.User, after string, limit int) (entries []digest.Entry, next string, err error)
	Forget(ctx context.Context, user memory.User) (int64, error)
}

// Purger removes deleted bytes from the disk, see sqlite.Access.
type Purger interface {
	Purge(ctx context.Context) (bool, error)
	PurgeLater()
}

// Tokens is the part of the counting of tokens that moving out and forgetting need.
type Tokens interface {
	Today(ctx context.Context, user memory.User) (budget.Entry, error)
	Forget(ctx context.Context, user memory.User) (bool, error)
}

// Backfill is the part of vectorstore.Backfill that undoing a change needs.
type Backfill interface {
	SetEmbeddings(ctx context.Context, user memory.User, embeddings []vectorstore.TextEmbedding) error
}

// Parts is what a Keeper works with.
type Parts struct {
	Store          vectorstore.Store
	Backfill       Backfill
	Vectors        decide.Vectors
	Considerations Considerations
	Queue          Queue
	Sessions       Sessions
	Settings       Settings
	Traces         Traces
	Tokens         Tokens
	Results        Results
	Purger         Purger
	Digests        Digests
	DigestJobs     Considerations // what makes digests
	// DigestFiles deletes the user's files of digests and returns how many there were.
	DigestFiles func(user memory.User) (int, error)
	// Rewrite writes the user's files of digests anew, after something was deleted that they may tell.
	Rewrite func(ctx context.Context, user memory.User)
	// Uncache drops what is held in memory of anybody's words, after somebody's were deleted.
	Uncache func()
}

// Keeper carries out the commands.
type Keeper struct {
	Parts
	calls calls
	turns turns
}

// NewKeeper returns a Keeper.
func NewKeeper(parts Parts) *Keeper { return &Keeper{Parts: parts} }

// Draft is a memory as a caller states it.
type Draft struct {
	Text       string
	Kind       memory.Kind
	Importance float64
	ObservedAt time.Time // zero: now
	// ForceNew stores the draft also when a memory says the same.
	ForceNew bool `json:",omitempty"` // payload hashes of before there was such a field stay valid
}

// Validate reports what is wrong with a draft; fields are named below prefix.
func (d Draft) Validate(prefix string) memory.Violations {
	var v memory.Violations
	v.Check(prefix+".text", memory.TextProblem(d.Text))
	v.Check(prefix+".importance", importanceProblem(d.Importance))
	if !d.Kind.Valid() {
		v.Add(prefix+".kind", "is not a known kind")
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

// Create stores a valid draft. An active memory of the same visibility that says the same is reinforced instead; merged says
// so. With a request id the call is repeatable: payloadHash must then be the same.
func (k *Keeper) Create(ctx context.Context, scope memory.Scope, d Draft, requestID string, payloadHash []byte) (m memory.Memory, merged bool, err error) {
	now := time.Now()
	if d.ObservedAt.IsZero() {
		d.ObservedAt = now
	}
	entry := vectorstore.Entry{Reinforce: true, ForceNew: d.ForceNew, Memory: memory.Memory{
		AgentID: scope.AgentID, Channel: scope.Channel, SessionID: scope.SessionID,
		Text: d.Text, Language: lexical.Language(d.Text), Kind: d.Kind, Importance: d.Importance, Explicit: true,
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
		return memory.Memory{}, false, fmt.Errorf("the memory that request_id %q created was deleted since: %w", requestID, memory.ErrNotFound)
	}
	return applied[0].Memory, applied[0].Action != memory.ActionAdded, nil
}

// apply embeds the entries and stores them.
func (k *Keeper) apply(ctx context.Context, user memory.User, entries []vectorstore.Entry) ([]vectorstore.Applied, error) {
	if err := k.embed(ctx, user, entries); err != nil {
		return nil, err
	}
	return k.Store.Apply(ctx, user, entries)
}

// embed gives the entries their embeddings.
func (k *Keeper) embed(ctx context.Context, user memory.User, entries []vectorstore.Entry) error {
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
func (k *Keeper) Revert(ctx context.Context, user memory.User, id, revisionID string, audience memory.Audience) (memory.Memory, vectorstore.Revision, error) {
	m, undone, err := k.Store.Revert(ctx, user, id, revisionID, audience, time.Now())
	if err != nil || undone.Change != vectorstore.ChangeEdited && undone.Change != vectorstore.ChangeWithdrawn {
		return m, undone, err
	}
	// Its words may have no vectors, which the backfill makes if this fails. It is undone whatever happens now, and who was
	// told otherwise would call again and undo what came before.
	embeddings, err := k.Vectors.Embeddings(usage.WithUser(ctx, user), []string{m.Text})
	if err == nil && embeddings[0].Fingerprint != "" {
		_ = k.Backfill.SetEmbeddings(ctx, user, []vectorstore.TextEmbedding{{MemoryID: m.ID, Text: m.Text, Embedding: embeddings[0]}})
	}
	return m, undone, nil
}

// Release ends a memory's quarantine.
func (k *Keeper) Release(ctx context.Context, user memory.User, id string, audience memory.Audience) (memory.Memory, error) {
	return k.Store.Release(ctx, user, id, audience, time.Now())
}

// Edit is what somebody changes of a memory. Nil fields stay as they are, the others are valid.
type Edit struct {
	Text       *string
	Kind       *memory.Kind
	Importance *float64
}

// Update changes a memory.
func (k *Keeper) Update(ctx context.Context, user memory.User, id string, audience memory.Audience, e Edit) (memory.Memory, error) {
	patch := vectorstore.Patch{Text: e.Text, Kind: e.Kind, Importance: e.Importance, At: time.Now()}
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

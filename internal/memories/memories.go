// Package memories holds the commands on stored memories that need no considering: storing one as it is, changing it,
// moving a user's memories in and out, and forgetting a user.
package memories

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/memsidecar/memsidecar/internal/budget"
	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/lexical"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/results"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/trace"
	"github.com/memsidecar/memsidecar/internal/usage"
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
}

// Settings is the part of the settings' storage that moving out and forgetting need.
type Settings interface {
	Get(ctx context.Context, user memory.User) (memory.Settings, error)
	Forget(ctx context.Context, user memory.User) (bool, error)
}

// Sessions is the part of session.Store that moving out, deleting and forgetting need.
type Sessions interface {
	Get(ctx context.Context, v session.Viewer, sessionID string) (session.Session, error)
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
	ForgetSession(ctx context.Context, namespace, sessionID string, channel memory.Channel) (int64, error)
}

// Results is the part of results.Store that moving out, deleting and forgetting need.
type Results interface {
	Registries(ctx context.Context, user memory.User, after string, limit int) (all []results.Exported, next string, err error)
	Items(ctx context.Context, v results.View, after string, limit int) (results.Page, error)
	Lists(ctx context.Context, user memory.User, after string, limit int) (all []results.Shown, next string, err error)
	Forget(ctx context.Context, user memory.User) (results.Forgotten, error)
	ForgetSession(ctx context.Context, namespace, sessionID string, channel memory.Channel) error
}

// Digests is the part of digest.Store that moving out and forgetting need.
type Digests interface {
	List(ctx context.Context, user memory.User, after string, limit int) (entries []digest.Entry, next string, err error)
	Forget(ctx context.Context, user memory.User) (int64, error)
}

// Purger removes deleted bytes from the disk, see sqlite.Access.
type Purger interface {
	Purge(ctx context.Context) (bool, error)
}

// Tokens is the part of the counting of tokens that moving out and forgetting need.
type Tokens interface {
	Today(ctx context.Context, user memory.User) (budget.Entry, error)
	Forget(ctx context.Context, user memory.User) (bool, error)
}

// Parts is what a Keeper works with.
type Parts struct {
	Store          vectorstore.Store
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
}

// Keeper carries out the commands.
type Keeper struct{ Parts }

// NewKeeper returns a Keeper.
func NewKeeper(parts Parts) *Keeper { return &Keeper{parts} }

// Draft is a memory as a caller states it.
type Draft struct {
	Text       string
	Kind       memory.Kind
	Importance float64
	ObservedAt time.Time // zero: now
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

// Create stores a valid draft. With a request id the call is repeatable: payloadHash must then be the same.
func (k *Keeper) Create(ctx context.Context, scope memory.Scope, d Draft, requestID string, payloadHash []byte) (memory.Memory, error) {
	now := time.Now()
	if d.ObservedAt.IsZero() {
		d.ObservedAt = now
	}
	entry := vectorstore.Entry{Reinforce: true, Memory: memory.Memory{
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
	applied, err := k.apply(ctx, scope.User(), []vectorstore.Entry{entry})
	if err != nil {
		return memory.Memory{}, err
	}
	if applied[0].Action == memory.ActionLeftDeleted {
		return memory.Memory{}, fmt.Errorf("the memory that request_id %q created was deleted since: %w", requestID, memory.ErrNotFound)
	}
	return applied[0].Memory, nil
}

// apply embeds the entries and stores them.
func (k *Keeper) apply(ctx context.Context, user memory.User, entries []vectorstore.Entry) ([]vectorstore.Applied, error) {
	texts := make([]string, len(entries))
	for i := range entries {
		texts[i] = entries[i].Memory.Text
	}
	embeddings, err := k.Vectors.Embeddings(usage.WithUser(ctx, user), texts)
	if err != nil {
		return nil, err
	}
	for i := range entries {
		entries[i].Embedding = embeddings[i]
	}
	return k.Store.Apply(ctx, user, entries)
}

// Update changes a memory; nil fields stay as they are, the others are valid.
func (k *Keeper) Update(ctx context.Context, user memory.User, id string, audience memory.Audience, text *string, kind *memory.Kind, importance *float64) (memory.Memory, error) {
	patch := vectorstore.Patch{Text: text, Kind: kind, Importance: importance, At: time.Now()}
	if text != nil {
		embeddings, err := k.Vectors.Embeddings(usage.WithUser(ctx, user), []string{*text})
		if err != nil {
			return memory.Memory{}, err
		}
		language := lexical.Language(*text)
		patch.Language, patch.Embedding = &language, embeddings[0]
	}
	return k.Store.Update(ctx, user, id, audience, patch)
}

// Receipt says what forgetting a user deleted.
type Receipt struct {
	Memories        int64
	Considerations  int64
	Messages        int64 // of the user, in other people's dialogues
	SessionMessages int64 // of the user, and to the user, in sessions
	Sessions        int64 // in which nobody else takes part
	Traces          int64
	Settings        bool
	Tokens          bool // a count of the tokens that models took for the user
	Results         results.Forgotten
	Digests         int64 // findings
	Files           int
	Purged          bool // the bytes are gone from the files
}

// Forget deletes everything of a user. Jobs are barred meanwhile, so that none stores anything after the deletion. Sessions
// come before them: of what waits in a session a job may be made until it is gone. When it fails in the middle, what was
// deleted stays deleted, and calling it again completes it.
func (k *Keeper) Forget(ctx context.Context, user memory.User) (r Receipt, err error) {
	release, err := k.barAll(ctx, user.Namespace, []string{user.ID})
	if err != nil {
		return r, err
	}
	defer release()
	if r.Digests, err = k.Digests.Forget(ctx, user); err != nil {
		return r, err
	}
	said, err := k.Sessions.Forget(ctx, user)
	if err != nil {
		return r, err
	}
	r.SessionMessages, r.Sessions = said.Messages, said.Sessions
	forgotten, err := k.Queue.Forget(ctx, user)
	if err != nil {
		return r, err
	}
	r.Considerations, r.Messages = forgotten.Considerations, forgotten.Messages
	rest, err := k.Digests.Forget(ctx, user) // what somebody's messages to this user have added meanwhile
	if err != nil {
		return r, err
	}
	r.Digests += rest
	if r.Files, err = k.DigestFiles(user); err != nil {
		return r, err
	}
	if r.Traces, err = k.Traces.Forget(ctx, user); err != nil {
		return r, err
	}
	if r.Results, err = k.Results.Forget(ctx, user); err != nil {
		return r, err
	}
	if r.Settings, err = k.Settings.Forget(ctx, user); err != nil {
		return r, err
	}
	if r.Tokens, err = k.Tokens.Forget(ctx, user); err != nil {
		return r, err
	}
	if r.Memories, err = k.Store.Forget(ctx, user); err != nil {
		return r, err
	}
	r.Purged, err = k.Purger.Purge(ctx)
	return r, err
}

package decide

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/trace"
)

// Sessions knows what of the conversations was not considered yet.
type Sessions interface {
	Unconsidered(ctx context.Context, namespace, sessionID string) (session.Pending, error)
	Take(ctx context.Context, t session.Take) (c memory.Consideration, ok bool, err error)
}

const notByItselfReason = "this user's words are not considered by themselves (memorize_every is 0)"

// ConsiderPending accepts what waits in a session for considering. Nothing is accepted twice, whoever else does the same.
func (c *Considerer) ConsiderPending(ctx context.Context, namespace, sessionID string) error {
	for {
		pending, err := c.Sessions.Unconsidered(ctx, namespace, sessionID)
		if errors.Is(err, memory.ErrNotFound) {
			return nil // deleted meanwhile
		}
		if err != nil {
			return err
		}
		if len(pending.Speakers) == 0 {
			return nil
		}
		skip := map[string]string{}
		// What is said for a session goes before what its user has set; a group's is not for one of them to say.
		ownNumber := pending.Session.MemorizeEvery != nil && pending.Session.Channel.Kind != memory.ChannelGroup
		for _, speaker := range pending.Speakers {
			settings, err := c.Settings.Get(ctx, memory.User{Namespace: namespace, ID: speaker})
			switch every := settings.MemorizeEvery; {
			case err != nil:
				return err
			case settings.Paused:
				skip[speaker] = pausedReason
			case every != nil && *every == 0 && !ownNumber:
				skip[speaker] = notByItselfReason
			}
		}
		_, taken, err := c.take(ctx, pending, pending.Scope, pending.Speakers, skip, "", nil)
		if err != nil || !taken {
			return err
		}
		c.pool.Wake()
	}
}

// SessionRequest asks to consider what waits in a session.
type SessionRequest struct {
	Scope       memory.Scope // with a user and a session that the caller may write to
	Ref         string       // Session.Ref of it
	RequestID   string
	PayloadHash []byte
	Wait        time.Duration
}

// ConsiderSession accepts what waits in a session and returns the consideration of the scope's user, as Consider does. When
// nothing waits, that is skipped.
func (c *Considerer) ConsiderSession(ctx context.Context, r SessionRequest) (memory.Consideration, error) {
	pending, err := c.Sessions.Unconsidered(ctx, r.Scope.Namespace, cmp.Or(r.Ref, r.Scope.SessionID))
	if err != nil {
		return memory.Consideration{}, err
	}
	speakers := []string{r.Scope.UserID}
	for _, speaker := range pending.Speakers {
		if !slices.Contains(speakers, speaker) {
			speakers = append(speakers, speaker)
		}
	}
	skip, err := c.paused(ctx, r.Scope.Namespace, speakers)
	if err != nil {
		return memory.Consideration{}, err
	}
	accepted, taken, err := c.take(ctx, pending, r.Scope, speakers, skip, r.RequestID, r.PayloadHash)
	if err == nil && !taken {
		accepted, err = c.Queue.Accept(ctx, queue.Acceptance{
			ID: newConsiderationID(), Dialogue: memory.Dialogue{Scope: r.Scope}, Speakers: speakers[:1], At: time.Now(),
			Call: trace.CallOf(ctx), RequestID: r.RequestID, PayloadHash: r.PayloadHash,
			Skip: map[string]string{r.Scope.UserID: "nothing in this session waits to be considered"}, MaxPending: c.options.MaxPending,
		})
	}
	if err != nil {
		return accepted, err
	}
	return c.settled(ctx, accepted, r.Wait)
}

func (c *Considerer) take(ctx context.Context, pending session.Pending, scope memory.Scope, speakers []string, skip map[string]string, requestID string, payloadHash []byte) (memory.Consideration, bool, error) {
	scope.Channel, scope.SessionID = pending.Session.Channel, pending.Session.ID
	return c.Sessions.Take(ctx, session.Take{
		Namespace: scope.Namespace, SessionID: cmp.Or(pending.Session.Ref, scope.SessionID), Last: pending.Last,
		Acceptance: queue.Acceptance{
			ID: newConsiderationID(), Dialogue: memory.Dialogue{Scope: scope}, Speakers: speakers, Skip: skip, At: time.Now(),
			Call: trace.CallOf(ctx), RequestID: requestID, PayloadHash: payloadHash, MaxPending: c.options.MaxPending,
			MaxPendingNamespace: c.options.MaxPendingNamespace, MaxPendingTotal: c.options.MaxPendingTotal,
			MaxPendingBytes: c.options.MaxPendingBytes,
		},
	})
}

func newConsiderationID() string { return "con_" + uuid.Must(uuid.NewV7()).String() }

// paused says which of the speakers are not to be remembered for now.
func (c *Considerer) paused(ctx context.Context, namespace string, speakers []string) (map[string]string, error) {
	skip := map[string]string{}
	for _, speaker := range speakers {
		settings, err := c.Settings.Get(ctx, memory.User{Namespace: namespace, ID: speaker})
		if err != nil {
			return nil, err
		}
		if settings.Paused {
			skip[speaker] = pausedReason
		}
	}
	return skip, nil
}

package decide

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/trace"
)

// Sessions finds messages that are not yet considered. Its methods are those of session.Store.
type Sessions interface {
	Current(ctx context.Context, v session.Viewer) (string, error)
	Get(ctx context.Context, v session.Viewer, sessionID string) (session.Session, error)
	Sessions(ctx context.Context, user memory.User, after string, limit int) (sessions []session.Session, next string, err error)
	Unconsidered(ctx context.Context, namespace, sessionID string) (session.Pending, error)
	Take(ctx context.Context, t session.Take) (c memory.Consideration, ok bool, err error)
}

const notByItselfReason = "this user's words are not considered automatically (memorize_every is 0)"

// ConsiderPending accepts a session's pending messages for considering. Concurrent calls accept no message twice.
func (c *Considerer) ConsiderPending(ctx context.Context, namespace, sessionID string) error {
	for {
		pending, err := c.Sessions.Unconsidered(ctx, namespace, sessionID)
		if errors.Is(err, memory.ErrNotFound) {
			return nil // the session was deleted
		}
		if err != nil {
			return err
		}
		if len(pending.Speakers) == 0 {
			return nil
		}
		skip, err := c.skippedByThemselves(ctx, pending)
		if err != nil {
			return err
		}
		_, taken, err := c.take(ctx, pending, sessionRequest{scope: pending.Scope}, pending.Speakers, skip)
		if err != nil || !taken {
			return err
		}
		c.pool.Wake()
	}
}

// skippedByThemselves returns the speakers whose words are considered only on request or not at all at present, each with the reason.
func (c *Considerer) skippedByThemselves(ctx context.Context, pending session.Pending) (map[string]string, error) {
	// The session's own setting takes precedence over its user's. A group's setting does not, because no member decides for the others.
	own := pending.Session.MemorizeEvery != nil && pending.Session.Channel.Kind != memory.ChannelGroup
	skip := map[string]string{}
	for _, speaker := range pending.Speakers {
		settings, err := c.Settings.Get(ctx, memory.User{Namespace: pending.Scope.Namespace, ID: speaker})
		switch every := settings.MemorizeEvery; {
		case err != nil:
			return nil, err
		case settings.Paused:
			skip[speaker] = pausedReason
		case every != nil && *every == 0 && !own:
			skip[speaker] = notByItselfReason
		}
	}
	return skip, nil
}

// considerNamed considers the pending messages of the session named by a request without messages.
func (c *Considerer) considerNamed(ctx context.Context, r Request) (Accepted, error) {
	scope := r.Dialogue.Scope
	if !c.keepsSessions(scope.Namespace) {
		return Accepted{}, r.Dialogue.Validate().Err()
	}
	payload, err := memory.PayloadHash(scope)
	if err != nil {
		return Accepted{}, err
	}
	viewer := session.ViewerOf(scope, c.options.Visibility)
	if scope.SessionID == "" {
		if scope.SessionID, err = c.Sessions.Current(ctx, viewer); err != nil {
			return Accepted{}, err
		}
	}
	if scope.SessionID == "" {
		return Accepted{}, memory.Invalid("messages", "is required: hand over at least one message, or name a session with pending messages")
	}
	s, err := c.Sessions.Get(ctx, viewer, scope.SessionID)
	if err != nil {
		return Accepted{}, err
	}
	if why := viewer.MayWrite(&s); why != "" {
		return Accepted{}, fmt.Errorf("%w: session %q cannot be considered by this request: %s", memory.ErrPrecondition, scope.SessionID, why)
	}
	consideration, err := c.considerSession(ctx, sessionRequest{
		scope:       scope,
		ref:         s.Ref,
		requestID:   r.RequestID,
		payloadHash: payload,
		wait:        r.Wait,
	})
	return Accepted{Consideration: consideration}, err
}

// Limits of ConsiderUser.
const (
	sessionsOfUser = 50
	waitForSession = 20 * time.Second
	sessionsPage   = 1000
)

// ConsiderUser considers the pending messages in the user's sessions that are considered automatically, and waits for the outcomes.
func (c *Considerer) ConsiderUser(ctx context.Context, user memory.User) error {
	settings, err := c.Settings.Get(ctx, user)
	if err != nil {
		return err
	}
	off := settings.MemorizeEvery != nil && *settings.MemorizeEvery == 0
	if off || !c.keepsSessions(user.Namespace) || c.Recorder.Policy(user.Namespace).MemorizeEvery == 0 {
		return nil
	}
	considered, after := 0, ""
	for more := true; more; more = after != "" {
		var page []session.Session
		if page, after, err = c.Sessions.Sessions(ctx, user, after, sessionsPage); err != nil {
			return err
		}
		for i := range page {
			s := &page[i]
			if s.Unconsidered == 0 || s.MemorizeEvery != nil && *s.MemorizeEvery == 0 {
				continue
			}
			if considered++; considered > sessionsOfUser {
				return nil
			}
			_, err := c.considerSession(ctx, sessionRequest{
				scope: memory.Scope{Namespace: user.Namespace, UserID: user.ID, Channel: s.Channel, SessionID: s.ID},
				ref:   s.Ref,
				wait:  waitForSession,
			})
			if err != nil && !errors.Is(err, memory.ErrNotFound) { // the session was deleted
				return err
			}
		}
	}
	return nil
}

// sessionRequest asks to consider the pending messages of a session.
type sessionRequest struct {
	scope       memory.Scope // with a user, and a session that the caller may write to
	ref         string       // Session.Ref of it
	requestID   string
	payloadHash []byte
	wait        time.Duration
}

// considerSession accepts the pending messages of a session and returns the consideration of the scope's user, as Consider does. It
// returns a skipped consideration if there are no such messages.
func (c *Considerer) considerSession(ctx context.Context, r sessionRequest) (memory.Consideration, error) {
	pending, err := c.Sessions.Unconsidered(ctx, r.scope.Namespace, r.ref)
	if err != nil {
		return memory.Consideration{}, err
	}
	speakers := []string{r.scope.UserID}
	for _, speaker := range pending.Speakers {
		if !slices.Contains(speakers, speaker) {
			speakers = append(speakers, speaker)
		}
	}
	skip, err := c.paused(ctx, r.scope.Namespace, speakers)
	if err != nil {
		return memory.Consideration{}, err
	}
	accepted, taken, err := c.take(ctx, pending, r, speakers, skip)
	if err == nil && !taken {
		accepted, err = c.Queue.Accept(ctx, queue.Acceptance{
			ID:          newConsiderationID(),
			Dialogue:    memory.Dialogue{Scope: r.scope},
			Speakers:    speakers[:1],
			RequestID:   r.requestID,
			PayloadHash: r.payloadHash,
			At:          c.options.Now(),
			Call:        trace.CallOf(ctx),
			Skip:        map[string]string{r.scope.UserID: "this session has no pending messages"},
			MaxPending:  c.options.MaxPending,
		})
	}
	if err != nil {
		return accepted, err
	}
	return c.settled(ctx, accepted, r.wait)
}

func (c *Considerer) take(
	ctx context.Context, pending session.Pending, r sessionRequest, speakers []string, skip map[string]string,
) (memory.Consideration, bool, error) {
	scope := r.scope
	scope.Channel, scope.SessionID = pending.Session.Channel, pending.Session.ID
	return c.Sessions.Take(ctx, session.Take{
		Namespace: scope.Namespace,
		SessionID: pending.Session.Ref,
		Last:      pending.Last,
		Acceptance: queue.Acceptance{
			ID:                  newConsiderationID(),
			Dialogue:            memory.Dialogue{Scope: scope},
			Hurry:               r.wait > 0,
			Speakers:            speakers,
			RequestID:           r.requestID,
			PayloadHash:         r.payloadHash,
			At:                  c.options.Now(),
			Call:                trace.CallOf(ctx),
			Skip:                skip,
			MaxPending:          c.options.MaxPending,
			MaxPendingNamespace: c.options.MaxPendingNamespace,
			MaxPendingTotal:     c.options.MaxPendingTotal,
			MaxPendingBytes:     c.options.MaxPendingBytes,
		},
	})
}

package decide

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/trace"
)

// Recorder records dialogues in their sessions. Its methods are those of session.Writer.
type Recorder interface {
	Policy(namespace string) session.Policy
	Record(ctx context.Context, r session.RecordRequest) (memory.Consideration, error)
}

// Request is a dialogue to consider.
type Request struct {
	// Dialogue is valid, as the caller sent it. Without messages it means the pending messages of the scope's session, or of the user's
	// current one.
	Dialogue  memory.Dialogue
	RequestID string        // idempotency key, or empty
	Wait      time.Duration // for the outcome; 0: return once durable
}

// Accepted is the answer to a Request.
type Accepted struct {
	Consideration memory.Consideration // of the scope's user
	// NotRecorded is why the dialogue was not added to its session, nil when it was or when dialogues are not recorded.
	NotRecorded *session.RefusedError
}

const pausedReason = "remembering is paused for this user"

// Consider makes a dialogue durable and returns the consideration of the scope's user: immediately, or when it is final, or after the
// requested wait. Where dialogues are recorded, the dialogue is added to its session in the same step. When the session refuses it, the
// dialogue is considered all the same: it must not be lost because of the session it names.
func (c *Considerer) Consider(ctx context.Context, r Request) (Accepted, error) {
	if len(r.Dialogue.Messages) == 0 {
		return c.considerNamed(ctx, r)
	}
	r.Dialogue.Messages = c.HistoryRedactor.Messages(r.Dialogue.Messages)
	a, hashes, err := c.acceptance(ctx, r)
	if err != nil {
		return Accepted{}, err
	}
	var accepted Accepted
	if c.options.Record && c.keepsSessions(r.Dialogue.Scope.Namespace) {
		accepted.Consideration, err = c.Recorder.Record(ctx, session.RecordRequest{
			AppendRequest: session.AppendRequest{
				Scope:    r.Dialogue.Scope,
				Audience: c.options.Visibility.AudienceOf(r.Dialogue.Scope),
				Messages: r.Dialogue.Complete(a.At).Messages,
				Hashes:   hashes,
			},
			Acceptance: a,
		})
		accepted.NotRecorded, _ = errors.AsType[*session.RefusedError](err)
		if err != nil && accepted.NotRecorded == nil {
			return Accepted{}, err
		}
		if err == nil {
			accepted.Consideration, err = c.settled(ctx, accepted.Consideration, r.Wait)
			return accepted, err
		}
	}
	if accepted.Consideration, err = c.Queue.Accept(ctx, a); err != nil {
		return Accepted{}, err
	}
	accepted.Consideration, err = c.settled(ctx, accepted.Consideration, r.Wait)
	return accepted, err
}

// acceptance returns what the queue is to accept of a request, and the hashes of its messages.
func (c *Considerer) acceptance(ctx context.Context, r Request) (a queue.Acceptance, hashes [][]byte, err error) {
	payload, err := memory.PayloadHash(r.Dialogue)
	if err != nil {
		return a, nil, err
	}
	if hashes, err = memory.Hashes(r.Dialogue.Messages); err != nil {
		return a, nil, err
	}
	now := c.options.Now()
	dialogue := r.Dialogue.Complete(now)
	speakers := dialogue.Speakers()
	skip, err := c.paused(ctx, dialogue.Scope.Namespace, speakers)
	if err != nil {
		return a, nil, err
	}
	for speaker := range skip {
		dialogue, _ = dialogue.Without(speaker) // a paused user's words are not kept either
	}
	hold, hurry := c.debounce(dialogue, speakers, r.Wait)
	return queue.Acceptance{
		ID:                  newConsiderationID(),
		Delay:               hold.Pause,
		DelayMessages:       hold.Messages,
		Hurry:               hurry,
		Dialogue:            dialogue,
		Speakers:            speakers,
		RequestID:           r.RequestID,
		PayloadHash:         payload,
		At:                  now,
		Call:                trace.CallOf(ctx),
		Skip:                skip,
		MaxPending:          c.options.MaxPending,
		MaxPendingNamespace: c.options.MaxPendingNamespace,
		MaxPendingTotal:     c.options.MaxPendingTotal,
		MaxPendingBytes:     c.options.MaxPendingBytes,
	}, hashes, nil
}

// keepsSessions reports whether conversations of the namespace are kept.
func (c *Considerer) keepsSessions(namespace string) bool {
	return c.Recorder != nil && c.Recorder.Policy(namespace).Enabled
}

func newConsiderationID() string { return "con_" + uuid.Must(uuid.NewV7()).String() }

// paused returns those of the speakers who are not to be remembered for now, each with the reason.
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

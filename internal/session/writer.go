package session

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/lang/redact"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
)

// WriterConfig is what a Writer works with.
type WriterConfig struct {
	Store    Store
	Settings Settings
	Policies Policies // asked on every use
	// Redactor removes secrets from messages, titles and metadata before they are stored; nil: they are stored as they were sent.
	Redactor *redact.Redactor
	// Now is the clock; by default time.Now.
	Now func() time.Time
	// SummaryWindow is the number of messages of a default window whose older messages are summarised; 0: nothing is summarised.
	SummaryWindow int
	// Digest returns when a digest of a user with these settings is due. ok is false when digests are made on request only. Optional.
	Digest func(settings memory.Settings) (rule DigestRule, ok bool)
	// Lists returns the numbered lists shown in the place of a scope's conversation. Optional: without it no reply is withheld because
	// of what it claims.
	Lists func(ctx context.Context, scope memory.Scope, audience memory.Audience) ([]ShownList, error)
	// Appended is called after messages were added, to derive data from them. Optional.
	Appended func()
	// FailureMaxRunes is the length of the longest reply without a tool call that is withheld when it looks like a failure; 0
	// withholds none. FailurePhrases are signs of a failure, in addition to the built-in phrases.
	FailureMaxRunes int
	FailurePhrases  []string
	// ClaimMaxRunes is the length of the longest reply without a tool call that is withheld when it claims a result that neither a
	// tool nor a list has; 0 withholds none. Three Latin letters count as one Chinese character, URLs do not count.
	ClaimMaxRunes int
}

// Writer adds messages to sessions.
type Writer struct {
	WriterConfig
	guard    guard
	claims   claims
	notifier background.Notifier // of the Service's loop
}

// NewWriter returns a Writer.
func NewWriter(config WriterConfig) *Writer {
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Writer{
		WriterConfig: config,
		guard:        newGuard(config.FailureMaxRunes, config.FailurePhrases),
		claims:       claims{maxRunes: config.ClaimMaxRunes},
		notifier:     background.NewNotifier(),
	}
}

// Policy returns the policy of a namespace.
func (w *Writer) Policy(namespace string) Policy { return w.Policies(namespace) }

// AppendRequest holds messages to add to a session.
type AppendRequest struct {
	Scope    memory.Scope // SessionID "" is the current session, or a new one
	Audience memory.Audience
	Messages []memory.Message // valid
	// Hashes are memory.Hashes of the messages before they were completed. nil: the messages are as they were sent, and Append removes
	// their secrets and completes them.
	Hashes  [][]byte
	Settled bool    // history only: never considered
	Import  *Import // see Append.Import
}

// Append adds messages at the end of a session, as Store.Append does.
func (w *Writer) Append(ctx context.Context, r AppendRequest) (Appended, error) {
	if err := w.CheckEnabled(r.Scope.Namespace); err != nil {
		return Appended{}, err
	}
	var v memory.Violations
	for i := range r.Messages {
		v.Check(fmt.Sprintf("messages[%d].speaker_id", i), speakerProblem(r.Scope, &r.Messages[i]))
	}
	if err := v.Err(); err != nil {
		return Appended{}, err
	}
	a, err := w.append(ctx, r)
	if err != nil {
		return Appended{}, err
	}
	appended, err := w.Store.Append(ctx, a)
	if err == nil && (appended.Added > 0 || appended.Created) {
		w.added()
	}
	if len(appended.Positions) == len(a.Excluded) {
		for i, why := range a.Excluded {
			if why != NotExcluded {
				appended.Excluded = append(appended.Excluded, ExcludedMessage{Position: appended.Positions[i], Reason: why})
			}
		}
	}
	return appended, err
}

// speakerProblem rejects a speaker when the scope has neither a user nor a group. Speakers become participants, and only participants see
// a session that is not a group's.
func speakerProblem(scope memory.Scope, m *memory.Message) string {
	if m.Speaker == "" || scope.UserID != "" || scope.Channel.Kind == memory.ChannelGroup {
		return ""
	}
	return "names a speaker, but the scope has neither a user nor a group: set scope.user_id, or the group's channel"
}

// RecordRequest is a dialogue to add to a session and to consider.
type RecordRequest struct {
	AppendRequest
	Acceptance queue.Acceptance
}

// Record adds a dialogue to its session and accepts it for considering, as Store.Record does. When the dialogue may not be added to the
// session, the error is a *RefusedError.
func (w *Writer) Record(ctx context.Context, r RecordRequest) (memory.Consideration, error) {
	if err := w.CheckEnabled(r.Scope.Namespace); err != nil {
		return memory.Consideration{}, err
	}
	a, err := w.append(ctx, r.AppendRequest)
	if err != nil {
		return memory.Consideration{}, err
	}
	c, _, err := w.Store.Record(ctx, Record{Append: a, Acceptance: r.Acceptance})
	if err == nil {
		w.added()
	}
	return c, err
}

// added starts what new messages make due.
func (w *Writer) added() {
	w.notifier.Notify()
	if w.Appended != nil {
		w.Appended()
	}
}

// append completes a request from the configuration and from the settings of the speakers.
func (w *Writer) append(ctx context.Context, r AppendRequest) (_ Append, err error) {
	now := w.Now()
	if r.Hashes == nil {
		r.Messages = w.Redactor.Messages(r.Messages)
		if r.Hashes, err = memory.Hashes(r.Messages); err != nil {
			return Append{}, err
		}
		r.Messages = memory.Dialogue{Scope: r.Scope, Messages: r.Messages}.Complete(now).Messages
	}
	policy := w.Policy(r.Scope.Namespace)
	a := Append{
		Scope:    r.Scope,
		Audience: r.Audience,
		NewID:    NewID(),
		Messages: r.Messages,
		Hashes:   r.Hashes,
		At:       now,
		Excluded: w.withheldClaims(ctx, &r, w.guard.withheld(r.Messages)),
		Settled:  r.Settled,
		Import:   r.Import,
		Paused:   map[string]bool{},
		Digests:  map[string]DigestRule{},
		Rules: Rules{
			TTL:            policy.TTL,
			MemorizeEvery:  policy.MemorizeEvery,
			Idle:           policy.Idle,
			SummarizeAfter: w.summarizeAfter(),
		},
	}
	for _, speaker := range (memory.Dialogue{Scope: r.Scope, Messages: r.Messages}).Speakers() {
		if speaker == "" {
			continue
		}
		settings, err := w.Settings.Get(ctx, memory.User{Namespace: r.Scope.Namespace, ID: speaker})
		if err != nil {
			return a, err
		}
		if settings.Paused {
			a.Paused[speaker] = true
		}
		if w.Digest != nil {
			if rule, ok := w.Digest(settings); ok {
				a.Digests[speaker] = rule
			}
		}
		// A group belongs to all its members: one of them cannot decide when the others' messages are considered. A member who
		// wants no consideration is skipped when it is made.
		if speaker == r.Scope.UserID && settings.MemorizeEvery != nil && r.Scope.Channel.Kind != memory.ChannelGroup {
			a.Rules.MemorizeEvery = *settings.MemorizeEvery
		}
	}
	return a, nil
}

// summarizeAfter returns Rules.SummarizeAfter: a third more than a window, so that not every message that leaves the window causes a call
// of a model.
func (w *Writer) summarizeAfter() int64 {
	if w.SummaryWindow == 0 {
		return 0
	}
	return int64(w.SummaryWindow + max(1, w.SummaryWindow/3))
}

// NewID returns an id for a session.
func NewID() string { return "ses_" + uuid.Must(uuid.NewV7()).String() }

package server

import (
	"cmp"
	"context"

	"golang.org/x/text/language"

	"github.com/memsidecar/memsidecar/internal/manage"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// Limits of the requests about sessions.
const (
	maxWindowMessages = 1000
	maxWindowChars    = 1_000_000
	maxRecentMessages = 1000
	recentMessages    = 10
	maxLabels         = 1000
	maxLabelBytes     = 256
)

// SessionDeps are the dependencies of the session service.
type SessionDeps struct {
	Conversations *session.Service
	Eraser        *manage.Eraser // deletes sessions
}

// sessionService implements memsidecarv1.SessionServiceServer, in the files named after its calls.
type sessionService struct {
	memsidecarv1.UnimplementedSessionServiceServer
	SessionDeps
	options Options
}

// sessionScope reads a scope in which the user is optional.
func (s *sessionService) sessionScope(p *memsidecarv1.Scope, v *memory.Violations) (memory.Scope, session.Viewer) {
	scope := scopeOf(p, false, v)
	return scope, s.options.viewer(scope)
}

func (s *sessionService) session(of *session.Session) *memsidecarv1.Session {
	return fromSession(of, s.Conversations.WindowExpiry(of, s.options.Now()))
}

// AppendMessages implements memsidecarv1.SessionServiceServer.
func (s *sessionService) AppendMessages(
	ctx context.Context,
	r *memsidecarv1.AppendMessagesRequest,
) (*memsidecarv1.AppendMessagesResponse, error) {
	var v memory.Violations
	scope, viewer := s.sessionScope(r.GetScope(), &v)
	d := memory.Dialogue{Scope: scope, Messages: toMessages(r.GetMessages(), &v)}
	v = append(v, d.Validate()...)
	if err := v.Err(); err != nil {
		return nil, err
	}
	appended, err := s.Conversations.Append(ctx, session.AppendRequest{Scope: scope, Audience: viewer.Audience, Messages: d.Messages})
	if err != nil {
		return nil, err
	}
	return &memsidecarv1.AppendMessagesResponse{
		Session: s.session(&appended.Session), Created: appended.Created, AddedCount: clamped(appended.Added),
		Positions: appended.Positions, Withheld: fromWithheld(appended.Excluded),
	}, nil
}

// GetContext implements memsidecarv1.SessionServiceServer.
func (s *sessionService) GetContext(ctx context.Context, r *memsidecarv1.GetContextRequest) (*memsidecarv1.GetContextResponse, error) {
	var v memory.Violations
	scope, viewer := s.sessionScope(r.GetScope(), &v)
	v.Check("turn_id", memory.IDProblem(r.GetTurnId()))
	request := session.ContextRequest{
		Scope: scope, Viewer: viewer, AgentID: windowAgent(r.GetAgent(), scope, &v),
		Limits: session.Limits{
			MaxMessages: limit(
				r.MaxMessages != nil,
				r.GetMaxMessages(),
				s.options.Window.MaxMessages,
				1,
				maxWindowMessages,
				"max_messages",
				&v,
			),
			MaxTurns: limit(r.MaxTurns != nil, r.GetMaxTurns(), s.options.Window.MaxTurns, 1, maxWindowMessages, "max_turns", &v),
			MaxRunes: limit(r.MaxChars != nil, r.GetMaxChars(), s.options.Window.MaxRunes, 1, maxWindowChars, "max_chars", &v),
		},
		Tools: r.GetIncludeTools(), System: r.GetIncludeSystem(),
		Language: languageOf(r.GetLanguage(), &v), Labels: labels(r.GetLabels(), &v),
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	window := s.Conversations.Context(ctx, request)
	return &memsidecarv1.GetContextResponse{
		SessionId: window.SessionID, Messages: fromSessionMessages(window.Messages), PromptContext: window.PromptContext,
		Summary: fromSummary(window.Summary), DroppedCount: window.Dropped, NewestTooLong: window.NewestTooLong,
		Expired: window.Expired, Degraded: fromDegraded(window.Degraded), TraceId: window.TraceID,
	}, nil
}

// languageOf reads an optional BCP 47 language.
func languageOf(p string, v *memory.Violations) string {
	if p == "" {
		return ""
	}
	tag, err := language.Parse(p)
	if err != nil {
		v.Add("language", "is not a BCP 47 language such as \"zh\" or \"en\"")
	}
	return tag.String()
}

func labels(p map[string]string, v *memory.Violations) map[string]string {
	if len(p) > maxLabels {
		v.Add("labels", "has more than %d entries", maxLabels)
	}
	for id, label := range p {
		v.Check("labels", memory.IDProblem(id))
		if problem := memory.IDProblem(label); problem != "" || len(label) > maxLabelBytes {
			v.Add("labels", "for %q is longer than %d bytes or holds a control character", id, maxLabelBytes)
		}
	}
	return p
}

// ListMessages implements memsidecarv1.SessionServiceServer.
func (s *sessionService) ListMessages(
	ctx context.Context,
	r *memsidecarv1.ListMessagesRequest,
) (*memsidecarv1.ListMessagesResponse, error) {
	var v memory.Violations
	scope, viewer := s.sessionScope(r.GetScope(), &v)
	q := session.MessageQuery{
		NewestFirst: r.GetNewestFirst(), Start: r.GetStartPosition(), AgentID: agentFilter(r.GetAgent(), scope, &v),
	}
	q.Limit, q.After = page(r, messagePageSize, &v)
	if q.Start < 0 {
		v.Add("start_position", "is negative: 0 starts at the beginning or the end")
	}
	spoken, names := languageOf(r.GetLanguage(), &v), labels(r.GetLabels(), &v)
	if err := v.Err(); err != nil {
		return nil, err
	}
	found, err := s.Conversations.Messages(ctx, viewer, scope.SessionID, q)
	if err != nil {
		return nil, err
	}
	resp := &memsidecarv1.ListMessagesResponse{Messages: fromSessionMessages(found.Messages), TotalSize: found.Total}
	if r.GetRenderText() {
		resp.Text = s.Conversations.RenderText(ctx, session.TextRequest{
			User: scope.User(), Page: found, NewestFirst: q.NewestFirst, Language: spoken, Labels: names,
		})
	}
	resp.NextPageToken = found.Next
	return resp, nil
}

// GetSession implements memsidecarv1.SessionServiceServer.
func (s *sessionService) GetSession(ctx context.Context, r *memsidecarv1.GetSessionRequest) (*memsidecarv1.GetSessionResponse, error) {
	var v memory.Violations
	scope, viewer := s.sessionScope(r.GetScope(), &v)
	recent := limit(r.RecentMessages != nil, r.GetRecentMessages(), recentMessages, 0, maxRecentMessages, "recent_messages", &v)
	if err := v.Err(); err != nil {
		return nil, err
	}
	return s.describe(ctx, viewer, scope.SessionID, recent)
}

// describe returns a session with its newest messages and its summary.
func (s *sessionService) describe(
	ctx context.Context,
	viewer session.Viewer,
	id string,
	recent int,
) (*memsidecarv1.GetSessionResponse, error) {
	d, err := s.Conversations.Describe(ctx, viewer, id, recent)
	if err != nil {
		return nil, err
	}
	return &memsidecarv1.GetSessionResponse{
		Session: s.session(&d.Session), Summary: fromSummary(d.Summary), RecentMessages: fromSessionMessages(d.Newest),
	}, nil
}

// ListSessions implements memsidecarv1.SessionServiceServer.
func (s *sessionService) ListSessions(
	ctx context.Context,
	r *memsidecarv1.ListSessionsRequest,
) (*memsidecarv1.ListSessionsResponse, error) {
	var v memory.Violations
	scope, viewer := s.sessionScope(r.GetScope(), &v)
	if scope.SessionID != "" {
		v.Add("scope.session_id", "must be unset: this call lists sessions")
	}
	size, after := page(r, defaultPageSize, &v)
	if err := v.Err(); err != nil {
		return nil, err
	}
	found, current, next, err := s.Conversations.List(ctx, viewer, after, size)
	if err != nil {
		return nil, err
	}
	resp := &memsidecarv1.ListSessionsResponse{CurrentSessionId: current}
	for i := range found {
		resp.Sessions = append(resp.Sessions, s.session(&found[i]))
	}
	resp.NextPageToken = next
	return resp, nil
}

// UpdateSession implements memsidecarv1.SessionServiceServer.
func (s *sessionService) UpdateSession(
	ctx context.Context,
	r *memsidecarv1.UpdateSessionRequest,
) (*memsidecarv1.UpdateSessionResponse, error) {
	var v memory.Violations
	scope, viewer := s.sessionScope(r.GetScope(), &v)
	p := cmp.Or(r.GetSession(), &memsidecarv1.Session{}) // a mask without values clears fields
	var patch session.Patch
	for _, field := range maskedFields(r.GetUpdateMask(), p, []string{"title", "metadata_json", "memorize_every"}, "session", &v) {
		switch field {
		case "title":
			patch.Title = &p.Title
		case "metadata_json":
			patch.Metadata = &p.MetadataJson
		case "memorize_every":
			every := toEvery(p.MemorizeEvery != nil, p.GetMemorizeEvery())
			patch.MemorizeEvery = &every
		}
	}
	updated, err := s.Conversations.Update(ctx, viewer, scope.SessionID, patch, v)
	if err != nil {
		return nil, err
	}
	return &memsidecarv1.UpdateSessionResponse{Session: s.session(&updated)}, nil
}

// SwitchSession implements memsidecarv1.SessionServiceServer.
func (s *sessionService) SwitchSession(
	ctx context.Context,
	r *memsidecarv1.SwitchSessionRequest,
) (*memsidecarv1.SwitchSessionResponse, error) {
	var v memory.Violations
	scope := scopeOf(r.GetScope(), true, &v)
	if err := v.Err(); err != nil {
		return nil, err
	}
	switched, created, err := s.Conversations.Switch(ctx, s.options.viewer(scope), scope.SessionID)
	if err != nil {
		return nil, err
	}
	resp := &memsidecarv1.SwitchSessionResponse{Created: created}
	if scope.SessionID != "" {
		resp.Session = s.session(&switched)
	}
	return resp, nil
}

// DeleteSession implements memsidecarv1.SessionServiceServer.
func (s *sessionService) DeleteSession(
	ctx context.Context,
	r *memsidecarv1.DeleteSessionRequest,
) (*memsidecarv1.DeleteSessionResponse, error) {
	var v memory.Violations
	scope, viewer := s.sessionScope(r.GetScope(), &v)
	if scope.SessionID == "" {
		v.Add("scope.session_id", "is required: name the session to delete")
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	receipt, err := s.Eraser.DeleteSession(ctx, viewer, scope.SessionID, r.GetDeleteMemories())
	if err != nil {
		return nil, err
	}
	return &memsidecarv1.DeleteSessionResponse{
		MessageCount: receipt.Messages, ConsiderationCount: receipt.Considerations, MemoryCount: receipt.Memories,
	}, nil
}

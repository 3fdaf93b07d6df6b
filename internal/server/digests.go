package server

import (
	"context"

	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/digest/notebook"
	"github.com/memsidecar/memsidecar/internal/memory"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// DigestDeps are the dependencies of the digest service.
type DigestDeps struct {
	Summarizer *digest.Summarizer
	Digests    *digest.Service
	Notebook   *notebook.Service
}

// digestService implements memsidecarv1.DigestServiceServer.
type digestService struct {
	memsidecarv1.UnimplementedDigestServiceServer
	DigestDeps
	options Options
}

// digestRequest is implemented by all requests of this service.
type digestRequest interface {
	GetScope() *memsidecarv1.Scope
	GetAgent() memsidecarv1.AgentFilter
}

// digestViewer reads the user and the audience of a request.
func (s *digestService) digestViewer(r digestRequest, v *memory.Violations) digest.Viewer {
	scope := scopeOf(r.GetScope(), true, v)
	if scope.SessionID != "" {
		v.Add("scope.session_id", "must be unset: a digest covers a day, in all sessions")
	}
	return digest.Viewer{User: scope.User(), Seen: digest.Seen{
		Audience: s.options.audience(scope), AgentID: s.options.learnedBy(r.GetAgent(), scope, v),
	}}
}

// GetDigest implements memsidecarv1.DigestServiceServer.
func (s *digestService) GetDigest(ctx context.Context, r *memsidecarv1.GetDigestRequest) (*memsidecarv1.GetDigestResponse, error) {
	var v memory.Violations
	viewer, spoken := s.digestViewer(r, &v), languageOf(r.GetLanguage(), &v)
	if err := v.Err(); err != nil {
		return nil, err
	}
	day, err := s.Digests.Get(ctx, viewer, r.GetDay(), spoken)
	if err != nil {
		return nil, err
	}
	d, err := s.digest(&day, viewer.User)
	return &memsidecarv1.GetDigestResponse{Digest: d}, err
}

// ListDigests implements memsidecarv1.DigestServiceServer.
func (s *digestService) ListDigests(ctx context.Context, r *memsidecarv1.ListDigestsRequest) (*memsidecarv1.ListDigestsResponse, error) {
	var v memory.Violations
	viewer, spoken := s.digestViewer(r, &v), languageOf(r.GetLanguage(), &v)
	size, before := page(r, defaultPageSize, &v)
	if err := v.Err(); err != nil {
		return nil, err
	}
	days, next, err := s.Digests.List(ctx, viewer, before, spoken, size)
	if err != nil {
		return nil, err
	}
	resp := &memsidecarv1.ListDigestsResponse{}
	for i := range days {
		d, err := s.digest(&days[i], viewer.User)
		if err != nil {
			return nil, err
		}
		resp.Digests = append(resp.Digests, d)
	}
	resp.NextPageToken = next
	return resp, nil
}

// SummarizeDay implements memsidecarv1.DigestServiceServer.
func (s *digestService) SummarizeDay(ctx context.Context, r *memsidecarv1.SummarizeDayRequest) (*memsidecarv1.SummarizeDayResponse, error) {
	var v memory.Violations
	viewer, spoken := s.digestViewer(r, &v), languageOf(r.GetLanguage(), &v)
	if err := v.Err(); err != nil {
		return nil, err
	}
	day, err := s.Summarizer.Summarize(ctx, viewer, r.GetDay(), spoken)
	if err != nil {
		return nil, err
	}
	d, err := s.digest(&day, viewer.User)
	return &memsidecarv1.SummarizeDayResponse{Digest: d}, err
}

// GetNotebook implements memsidecarv1.DigestServiceServer.
func (s *digestService) GetNotebook(ctx context.Context, r *memsidecarv1.GetNotebookRequest) (*memsidecarv1.GetNotebookResponse, error) {
	var v memory.Violations
	viewer, spoken := s.digestViewer(r, &v), languageOf(r.GetLanguage(), &v)
	most := limit(r.MaxEntries != nil, r.GetMaxEntries(), s.options.NotebookEntries, 1, notebook.MaxEntries, "max_entries", &v)
	if err := v.Err(); err != nil {
		return nil, err
	}
	n, err := s.Notebook.Get(ctx, viewer, most, spoken)
	if err != nil {
		return nil, err
	}
	p := &memsidecarv1.Notebook{
		Markdown: n.Markdown(), EntryCount: clamped(n.Entries), Truncated: n.Truncated, Language: n.Language,
	}
	for _, section := range n.Sections {
		of := &memsidecarv1.NotebookSection{Kind: kinds.toProto[section.Kind]}
		for i := range section.Memories {
			of.Memories = append(of.Memories, fromMemory(&section.Memories[i], s.options.Now()))
		}
		p.Sections = append(p.Sections, of)
	}
	return &memsidecarv1.GetNotebookResponse{Notebook: p}, nil
}

// digest converts a digest for callers.
func (s *digestService) digest(d *digest.Day, user memory.User) (*memsidecarv1.Digest, error) {
	text, err := s.Digests.Markdown(d)
	if err != nil {
		return nil, err
	}
	p := &memsidecarv1.Digest{
		Day: d.Date, Language: d.Language, Topics: d.Topics, Markdown: text, WaitingCount: d.Waiting, UpdateTime: fromTime(d.UpdateAt),
		Decisions: fromItems(d.Decisions, user), Tasks: fromItems(d.Tasks, user), KeyInsights: fromItems(d.Insights, user),
	}
	for i := range d.Preferences {
		e := &d.Preferences[i]
		p.Preferences = append(p.Preferences, &memsidecarv1.DigestPreference{Key: e.Key, Value: e.Text, Source: fromSource(e, user)})
	}
	for i := range d.Issues {
		e := &d.Issues[i]
		p.TechnicalIssues = append(p.TechnicalIssues, &memsidecarv1.DigestIssue{Question: e.Text, Solution: e.Solution, Source: fromSource(e, user)})
	}
	return p, nil
}

func fromItems(list []digest.Entry, user memory.User) []*memsidecarv1.DigestItem {
	var items []*memsidecarv1.DigestItem
	for i := range list {
		items = append(items, &memsidecarv1.DigestItem{Text: list[i].Text, Source: fromSource(&list[i], user)})
	}
	return items
}

func fromSource(e *digest.Entry, user memory.User) *memsidecarv1.DigestSource {
	return &memsidecarv1.DigestSource{
		Scope: fromScope(memory.Scope{
			Namespace: user.Namespace, UserID: user.ID, AgentID: e.AgentID, Channel: e.Channel, SessionID: e.SessionID,
		}),
		ObserveTime: fromTime(e.SaidAt), MessageIds: e.MessageIDs, Quote: e.Quote, MadeBy: e.MadeBy, MemoryId: e.MemoryID,
	}
}

func fromFinding(e *digest.Entry, user memory.User) *memsidecarv1.DigestFinding {
	return &memsidecarv1.DigestFinding{
		Category: string(e.Category), Text: e.Text, Key: e.Key, Solution: e.Solution, Source: fromSource(e, user),
	}
}

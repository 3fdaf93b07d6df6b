package manage

import (
	"context"
	"errors"
	"slices"

	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/lists"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/trace"
	"github.com/memsidecar/memsidecar/internal/usage/budget"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// pageSize is how many rows are moved at once.
const pageSize = 100

// Exporter reads out everything of a user.
type Exporter struct {
	Store    vectorstore.Store
	Settings interface {
		Get(ctx context.Context, user memory.User) (memory.Settings, error)
	}
	Queue interface {
		List(ctx context.Context, user memory.User, q queue.ListQuery) (jobs []queue.Job, next string, err error)
	}
	Sessions interface {
		Sessions(ctx context.Context, user memory.User, after string, limit int) (sessions []session.Session, next string, err error)
		OwnMessages(ctx context.Context, user memory.User, sessionID string, after int64, limit int) ([]session.Message, error)
		Window(ctx context.Context, v session.Viewer, sessionID string, q session.WindowQuery) (session.Window, error)
	}
	Traces interface {
		List(ctx context.Context, q trace.ListQuery) (records []trace.Record, next string, err error)
	}
	Tokens interface {
		Today(ctx context.Context, user memory.User) (budget.Entry, error)
	}
	Lists interface {
		Registries(ctx context.Context, user memory.User, after string, limit int) (all []lists.Exported, next string, err error)
		Items(ctx context.Context, v lists.View, after string, limit int) (lists.Page, error)
		Lists(ctx context.Context, user memory.User, after string, limit int) (all []lists.Shown, next string, err error)
	}
	Digests interface {
		List(ctx context.Context, user memory.User, after string, limit int) (entries []digest.Entry, next string, err error)
	}
}

// Visitor receives an export, record by record. An error stops the export.
type Visitor struct {
	Settings      func(memory.Settings) error
	Memory        func(memory.Memory) error
	Revision      func(vectorstore.Revision) error
	Consideration func(queue.Job) error
	// Session receives a session with its summary, if that is about no other user.
	Session func(session.Session, *session.Summary) error
	Message func(session.Message) error // of the session before
	Trace   func(trace.Record) error
	// Tokens is what models took for the user today, if anything.
	Tokens func(budget.Entry) error
	// Registry is followed by its items; then come the lists.
	Registry     func(lists.Exported) error
	RegistryItem func(lists.Item) error
	NumberedList func(lists.Shown) error
	Digest       func(digest.Entry) error
}

// Export visits everything of a user: the settings, then the memories, their revisions, the considerations, the sessions, the traces, the
// findings of digests and the numbered lists, each oldest first, items of registries newest first, and the count of tokens. Of a
// group's dialogue only the user's own messages and the bot's are shown, of a group's session what the
// user said and was answered. What is stored meanwhile may or may not be visited.
func (e *Exporter) Export(ctx context.Context, user memory.User, visit Visitor) error {
	settings, err := e.Settings.Get(ctx, user)
	if err != nil {
		return err
	}
	if err := visit.Settings(settings); err != nil {
		return err
	}
	for _, export := range []func(context.Context, memory.User, Visitor) error{
		e.exportMemories, e.exportRevisions, e.exportConsiderations, e.exportSessions, e.exportTraces, e.exportDigests, e.exportResults, e.exportTokens,
	} {
		if err := export(ctx, user, visit); err != nil {
			return err
		}
	}
	return nil
}

func (e *Exporter) exportTokens(ctx context.Context, user memory.User, visit Visitor) error {
	today, err := e.Tokens.Today(ctx, user)
	if err != nil || today.Count == (budget.Count{}) {
		return err
	}
	return visit.Tokens(today)
}

func (e *Exporter) exportMemories(ctx context.Context, user memory.User, visit Visitor) error {
	return each(ctx, e.Store, user, visit.Memory)
}

// each visits all memories of a user, of any status, oldest first.
func each(ctx context.Context, store vectorstore.Store, user memory.User, visit func(memory.Memory) error) error {
	query := vectorstore.ListQuery{
		Filter:      vectorstore.Filter{Audience: memory.Everything(), Statuses: memory.Statuses()},
		OldestFirst: true, Limit: pageSize,
	}
	for more := true; more; more = query.After != "" {
		page, err := store.List(ctx, user, query)
		if err != nil {
			return err
		}
		for _, m := range page.Memories {
			if err := visit(m); err != nil {
				return err
			}
		}
		query.After = page.Next
	}
	return nil
}

// exportRevisions visits what was done to each memory, and not what others of its history tell.
func (e *Exporter) exportRevisions(ctx context.Context, user memory.User, visit Visitor) error {
	return each(ctx, e.Store, user, func(m memory.Memory) error {
		revisions, err := e.Store.Revisions(ctx, user, m.ID, memory.Everything())
		if err != nil && !errors.Is(err, memory.ErrNotFound) { // deleted meanwhile
			return err
		}
		for _, r := range revisions {
			if r.Previous == nil || r.Previous.ID != m.ID {
				continue
			}
			if err := visit.Revision(r); err != nil {
				return err
			}
		}
		return nil
	})
}

func (e *Exporter) exportConsiderations(ctx context.Context, user memory.User, visit Visitor) error {
	query := queue.ListQuery{Audience: memory.Everything(), OldestFirst: true, Limit: pageSize}
	for more := true; more; more = query.After != "" {
		page, next, err := e.Queue.List(ctx, user, query)
		if err != nil {
			return err
		}
		for _, job := range page {
			job.Dialogue = ownPart(job.Dialogue, user.ID)
			if err := visit.Consideration(job); err != nil {
				return err
			}
		}
		query.After = next
	}
	return nil
}

func (e *Exporter) exportDigests(ctx context.Context, user memory.User, visit Visitor) error {
	for after, more := "", true; more; more = after != "" {
		page, next, err := e.Digests.List(ctx, user, after, pageSize)
		if err != nil {
			return err
		}
		for _, entry := range page {
			if err := visit.Digest(entry); err != nil {
				return err
			}
		}
		after = next
	}
	return nil
}

func (e *Exporter) exportSessions(ctx context.Context, user memory.User, visit Visitor) error {
	for after, more := "", true; more; more = after != "" {
		page, next, err := e.Sessions.Sessions(ctx, user, after, pageSize)
		if err != nil {
			return err
		}
		for _, s := range page {
			if err := e.exportSession(ctx, user, s, visit); err != nil {
				return err
			}
		}
		after = next
	}
	return nil
}

func (e *Exporter) exportSession(ctx context.Context, user memory.User, s session.Session, visit Visitor) error {
	var summary *session.Summary
	if alone := len(s.Participants) == 1; alone && s.Channel.Kind != memory.ChannelGroup {
		viewer := session.Viewer{Namespace: user.Namespace, UserID: user.ID, Channel: s.Channel, Audience: memory.Everything()}
		window, err := e.Sessions.Window(ctx, viewer, s.ID, session.WindowQuery{Limit: 1})
		if errors.Is(err, memory.ErrNotFound) {
			return nil // deleted meanwhile
		}
		if err != nil {
			return err
		}
		summary = window.Summary
	}
	s.Participants = []string{user.ID} // who else takes part is their business
	if err := visit.Session(s, summary); err != nil {
		return err
	}
	for last := int64(0); ; {
		messages, err := e.Sessions.OwnMessages(ctx, user, s.Ref, last, pageSize)
		if errors.Is(err, memory.ErrNotFound) {
			return nil // deleted meanwhile
		}
		if err != nil {
			return err
		}
		for _, m := range messages {
			if err := visit.Message(m); err != nil {
				return err
			}
			last = m.Position
		}
		if len(messages) < pageSize {
			return nil
		}
	}
}

func (e *Exporter) exportTraces(ctx context.Context, user memory.User, visit Visitor) error {
	query := trace.ListQuery{User: user, Audience: memory.Everything(), OldestFirst: true, Limit: pageSize}
	for more := true; more; more = query.After != "" {
		page, next, err := e.Traces.List(ctx, query)
		if err != nil {
			return err
		}
		for _, r := range page {
			if err := visit.Trace(r); err != nil {
				return err
			}
		}
		query.After = next
	}
	return nil
}

// exportResults visits the user's registries, each followed by its items, and what is being shown to the user.
func (e *Exporter) exportResults(ctx context.Context, user memory.User, visit Visitor) error {
	for after, more := "", true; more; more = after != "" {
		registries, next, err := e.Lists.Registries(ctx, user, after, pageSize)
		if err != nil {
			return err
		}
		for _, r := range registries {
			if err := visit.Registry(r); err != nil {
				return err
			}
			if err := e.exportItems(ctx, r.Registry, visit); err != nil {
				return err
			}
		}
		after = next
	}
	for after, more := "", true; more; more = after != "" {
		lists, next, err := e.Lists.Lists(ctx, user, after, listsPage)
		if err != nil {
			return err
		}
		for _, l := range lists {
			if err := visit.NumberedList(l); err != nil {
				return err
			}
		}
		after = next
	}
	return nil
}

// listsPage is less than pageSize, because a list is as long as what one call puts.
const listsPage = 10

func (e *Exporter) exportItems(ctx context.Context, r lists.Registry, visit Visitor) error {
	for after, more := "", true; more; more = after != "" {
		page, err := e.Lists.Items(ctx, lists.View{Registry: r, Part: true}, after, pageSize)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			if err := visit.RegistryItem(item); err != nil {
				return err
			}
		}
		after = page.Next
	}
	return nil
}

// ownPart is what a dialogue shows of one speaker: their own messages and the bot's. In a group the other people's words
// are left out, and with them what the system prompt and the tools may say of those people.
func ownPart(d memory.Dialogue, speaker string) memory.Dialogue {
	group := false
	for _, other := range d.Speakers() {
		if other != speaker {
			group = true
			d, _ = d.Without(other)
		}
	}
	if !group {
		return d
	}
	d.Messages = slices.Clone(d.Messages)
	for i, m := range d.Messages {
		if m.Role == memory.RoleSystem || m.Role == memory.RoleTool {
			d.Messages[i] = memory.Message{ID: m.ID, Role: m.Role, Time: m.Time}
		}
	}
	return d
}

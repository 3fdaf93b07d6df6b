package manage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/lang/lexical"
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

// Visitor receives an export, record by record. An error stops the export.
type Visitor struct {
	Settings      func(memory.Settings) error
	Memory        func(memory.Memory) error
	Revision      func(vectorstore.Revision) error
	Consideration func(queue.Job) error
	// Session is given a session with the summary of it, if there is one that tells of nobody else.
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
func (k *Keeper) Export(ctx context.Context, user memory.User, visit Visitor) error {
	settings, err := k.Settings.Get(ctx, user)
	if err != nil {
		return err
	}
	if err := visit.Settings(settings); err != nil {
		return err
	}
	for _, export := range []func(context.Context, memory.User, Visitor) error{
		k.exportMemories, k.exportRevisions, k.exportConsiderations, k.exportSessions, k.exportTraces, k.exportDigests, k.exportResults, k.exportTokens,
	} {
		if err := export(ctx, user, visit); err != nil {
			return err
		}
	}
	return nil
}

func (k *Keeper) exportTokens(ctx context.Context, user memory.User, visit Visitor) error {
	today, err := k.Tokens.Today(ctx, user)
	if err != nil || today.Count == (budget.Count{}) {
		return err
	}
	return visit.Tokens(today)
}

func (k *Keeper) exportMemories(ctx context.Context, user memory.User, visit Visitor) error {
	return k.each(ctx, user, visit.Memory)
}

// each visits all memories of a user, whatever their status, oldest first.
func (k *Keeper) each(ctx context.Context, user memory.User, visit func(memory.Memory) error) error {
	query := vectorstore.ListQuery{
		Filter:      vectorstore.Filter{Audience: memory.Everything(), Statuses: memory.Statuses()},
		OldestFirst: true, Limit: pageSize,
	}
	for more := true; more; more = query.After != "" {
		page, err := k.Store.List(ctx, user, query)
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
func (k *Keeper) exportRevisions(ctx context.Context, user memory.User, visit Visitor) error {
	return k.each(ctx, user, func(m memory.Memory) error {
		revisions, err := k.Store.Revisions(ctx, user, m.ID, memory.Everything())
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

func (k *Keeper) exportConsiderations(ctx context.Context, user memory.User, visit Visitor) error {
	query := queue.ListQuery{Audience: memory.Everything(), OldestFirst: true, Limit: pageSize}
	for more := true; more; more = query.After != "" {
		page, next, err := k.Queue.List(ctx, user, query)
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

func (k *Keeper) exportDigests(ctx context.Context, user memory.User, visit Visitor) error {
	if k.Digests == nil {
		return nil
	}
	for after, more := "", true; more; more = after != "" {
		page, next, err := k.Digests.List(ctx, user, after, pageSize)
		if err != nil {
			return err
		}
		for _, e := range page {
			if err := visit.Digest(e); err != nil {
				return err
			}
		}
		after = next
	}
	return nil
}

func (k *Keeper) exportSessions(ctx context.Context, user memory.User, visit Visitor) error {
	for after, more := "", true; more; more = after != "" {
		page, next, err := k.Sessions.Sessions(ctx, user, after, pageSize)
		if err != nil {
			return err
		}
		for _, s := range page {
			if err := k.exportSession(ctx, user, s, visit); err != nil {
				return err
			}
		}
		after = next
	}
	return nil
}

func (k *Keeper) exportSession(ctx context.Context, user memory.User, s session.Session, visit Visitor) error {
	var summary *session.Summary
	if alone := len(s.Participants) == 1; alone && s.Channel.Kind != memory.ChannelGroup {
		viewer := session.Viewer{Namespace: user.Namespace, UserID: user.ID, Channel: s.Channel, Audience: memory.Everything()}
		window, err := k.Sessions.Window(ctx, viewer, s.ID, session.WindowQuery{Limit: 1})
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
		messages, err := k.Sessions.OwnMessages(ctx, user, s.Ref, last, pageSize)
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

func (k *Keeper) exportTraces(ctx context.Context, user memory.User, visit Visitor) error {
	query := trace.ListQuery{User: user, Audience: memory.Everything(), OldestFirst: true, Limit: pageSize}
	for more := true; more; more = query.After != "" {
		page, next, err := k.Traces.List(ctx, query)
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

// maxReasonBytes is how long the reason of a quarantine may be.
const maxReasonBytes = 2000

// Importer takes memories in, in batches.
type Importer struct {
	keeper         *Keeper
	scope          memory.Scope
	batch          []vectorstore.Entry
	taken          int // memories given to Add
	Added, Skipped int64
}

// Import begins to take memories in. The scope's channel is used for memories that name none.
func (k *Keeper) Import(scope memory.Scope) *Importer { return &Importer{keeper: k, scope: scope} }

// Add takes a memory. The error names its fields by its position; wrong is what is known to be wrong with them already.
func (i *Importer) Add(ctx context.Context, m memory.Memory, wrong memory.Violations) error {
	position := fmt.Sprintf("memory[%d]", i.taken)
	i.taken++
	if err := i.complete(&m, position, wrong); err != nil {
		return errors.Join(err, i.Flush(ctx)) // what came before is good
	}
	if !m.WithdrawnAt.IsZero() {
		i.Skipped++ // the user asked for it to be forgotten
		return nil
	}
	i.batch = append(i.batch, vectorstore.Entry{Memory: m, Restore: true})
	if len(i.batch) == pageSize {
		return i.Flush(ctx)
	}
	return nil
}

// Skip passes over a memory that is not to be stored.
func (i *Importer) Skip() {
	i.taken++
	i.Skipped++
}

// complete fills in what the memory lacks and checks the rest.
func (i *Importer) complete(m *memory.Memory, position string, v memory.Violations) error {
	now := time.Now()
	m.Text = memory.CleanText(m.Text)
	d := Draft{Text: m.Text, Kind: m.Kind, Importance: m.Importance, ObservedAt: m.ObservedAt}
	v = append(v, d.Validate(position)...)
	v.Check(position+".id", memory.IDProblem(m.ID))
	v.Check(position+".superseded_by_id", memory.IDProblem(m.SupersededBy))
	if len(m.Quarantine) > maxReasonBytes {
		v.Add(position+".quarantine_reason", "is longer than %d bytes", maxReasonBytes)
	}
	v.Check(position+".language", memory.IDProblem(m.Language))
	v = append(v, provenanceProblems(&m.Provenance, position+".provenance")...)
	if m.Channel.Kind == memory.ChannelUnspecified && m.Channel.ID == "" {
		m.Channel = i.scope.Channel
	}
	scope := memory.Scope{Namespace: i.scope.Namespace, UserID: i.scope.UserID, AgentID: m.AgentID, Channel: m.Channel, SessionID: m.SessionID}
	v = append(v, scope.Validate(position+".scope", true)...)
	for _, t := range []struct {
		name string
		time *time.Time
	}{
		{"create_time", &m.CreatedAt},
		{"update_time", &m.UpdatedAt},
		{"last_mention_time", &m.LastSaidAt},
		{"valid_start_time", &m.ValidFrom},
		{"valid_end_time", &m.ValidTo},
	} {
		if !t.time.IsZero() {
			v.Check(position+"."+t.name, memory.TimeProblem(*t.time))
		}
	}
	if err := v.Err(); err != nil {
		return err
	}
	if m.ID == "" {
		m.ID = decide.MemoryID("import", i.scope.Namespace, i.scope.UserID, m.Channel.VisibilityKey(), vectorstore.TextKey(m.Text))
	}
	if m.Language == "" {
		m.Language = lexical.Language(m.Text)
	}
	if m.Provenance.Source == "" {
		m.Provenance.Source = memory.SourceImport
	}
	orElse(&m.CreatedAt, now)
	orElse(&m.UpdatedAt, m.CreatedAt)
	orElse(&m.ObservedAt, m.CreatedAt)
	orElse(&m.LastSaidAt, m.ObservedAt)
	if m.SupersededBy != "" {
		orElse(&m.ValidTo, m.LastSaidAt)
	}
	m.Mentions = max(1, m.Mentions)
	return nil
}

// provenanceProblems: nothing in it can be longer than what it was taken from.
func provenanceProblems(p *memory.Provenance, at string) (v memory.Violations) {
	v.Check(at+".consideration_id", memory.IDProblem(p.ConsiderationID))
	v.Check(at+".speaker_id", memory.IDProblem(p.SpeakerID))
	v.Check(at+".decided_by", memory.IDProblem(p.DecidedBy))
	for _, text := range []struct{ field, text string }{{".quote", p.Quote}, {".reason", p.Reason}} {
		if len(text.text) > memory.MaxContentBytes {
			v.Add(at+text.field, "is longer than %d bytes", memory.MaxContentBytes)
		}
	}
	if len(p.MessageIDs) > memory.MaxMessages {
		v.Add(at+".message_ids", "has more than %d ids", memory.MaxMessages)
		return v
	}
	for n, id := range p.MessageIDs {
		v.Check(fmt.Sprintf("%s.message_ids[%d]", at, n), memory.IDProblem(id))
	}
	return v
}

func orElse(t *time.Time, other time.Time) {
	if t.IsZero() {
		*t = other
	}
}

// Flush stores what was taken.
func (i *Importer) Flush(ctx context.Context) error {
	if len(i.batch) == 0 {
		return nil
	}
	applied, err := i.keeper.apply(ctx, i.scope.User(), i.batch)
	if err != nil {
		return err
	}
	i.batch = nil
	for _, a := range applied {
		if a.Action == memory.ActionAdded {
			i.Added++
		} else {
			i.Skipped++
		}
	}
	return nil
}

package memories

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/lexical"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// pageSize is how many rows are moved at once.
const pageSize = 100

// Visitor receives an export, record by record. An error stops the export.
type Visitor struct {
	Settings      func(memory.Settings) error
	Memory        func(memory.Memory) error
	Consideration func(queue.Job) error
}

// Export visits everything of a user: the settings, then the memories and the considerations, oldest first. Of a group's
// dialogue only the user's own messages and the bot's are shown. Memories stored meanwhile may or may not be visited.
func (k *Keeper) Export(ctx context.Context, user memory.User, visit Visitor) error {
	settings, err := k.Settings.Get(ctx, user)
	if err != nil {
		return err
	}
	if err := visit.Settings(settings); err != nil {
		return err
	}
	query := vectorstore.ListQuery{
		Filter: vectorstore.Filter{Audience: memory.Everything()}, OldestFirst: true, Limit: pageSize,
	}
	for more := true; more; more = query.After != "" {
		page, err := k.Store.List(ctx, user, query)
		if err != nil {
			return err
		}
		for _, m := range page.Memories {
			if err := visit.Memory(m); err != nil {
				return err
			}
		}
		query.After = page.Next
	}
	jobs := queue.ListQuery{Audience: memory.Everything(), OldestFirst: true, Limit: pageSize}
	for more := true; more; more = jobs.After != "" {
		page, next, err := k.Queue.List(ctx, user, jobs)
		if err != nil {
			return err
		}
		for _, job := range page {
			job.Dialogue = ownPart(job.Dialogue, user.ID)
			if err := visit.Consideration(job); err != nil {
				return err
			}
		}
		jobs.After = next
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
	i.batch = append(i.batch, vectorstore.Entry{Memory: m})
	if len(i.batch) == pageSize {
		return i.Flush(ctx)
	}
	return nil
}

// complete fills in what the memory lacks and checks the rest.
func (i *Importer) complete(m *memory.Memory, position string, v memory.Violations) error {
	now := time.Now()
	m.Text = memory.CleanText(m.Text)
	d := Draft{Text: m.Text, Kind: m.Kind, Importance: m.Importance, ObservedAt: m.ObservedAt}
	v = append(v, d.Validate(position)...)
	v.Check(position+".id", memory.IDProblem(m.ID))
	if m.Channel.Kind == memory.ChannelUnspecified && m.Channel.ID == "" {
		m.Channel = i.scope.Channel
	}
	scope := memory.Scope{Namespace: i.scope.Namespace, UserID: i.scope.UserID, AgentID: m.AgentID, Channel: m.Channel, SessionID: m.SessionID}
	v = append(v, scope.Validate(position+".scope", true)...)
	for _, t := range []struct {
		name string
		time *time.Time
	}{{"create_time", &m.CreatedAt}, {"update_time", &m.UpdatedAt}, {"last_mention_time", &m.LastSaidAt}} {
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
	m.Mentions = max(1, m.Mentions)
	return nil
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

package session

import (
	"context"
	"fmt"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Limits of a batch.
const (
	importMessages = 500
	importBytes    = memory.MaxDialogueBytes / 2
)

// Importer adds the messages of an imported session, in batches.
type Importer struct {
	writer         *Writer
	request        AppendRequest // the next batch
	about          Import
	count          int     // messages given to Add
	bytes          int     // of the next batch
	Session        Session // after the last batch; without an id before the first one
	Added, Skipped int64
}

// Import starts an import into the session of the scope. Settled messages are never considered. wrong are the violations found before.
func (w *Writer) Import(
	scope memory.Scope, audience memory.Audience, about Import, settled bool, wrong memory.Violations,
) (*Importer, error) {
	d := description{title: &about.Title, metadata: &about.Metadata, memorizeEvery: about.MemorizeEvery}
	if err := d.check("session.session", wrong); err != nil {
		return nil, err
	}
	about.Title, about.Metadata = w.Redactor.Text(about.Title), w.Redactor.JSON(about.Metadata)
	if err := w.CheckEnabled(scope.Namespace); err != nil {
		return nil, err
	}
	return &Importer{writer: w, about: about, request: AppendRequest{Scope: scope, Audience: audience, Settled: settled}}, nil
}

// Add adds a message. It may be stored with a later call. The error names the message's fields by its position; wrong are the violations
// found before.
func (i *Importer) Add(ctx context.Context, m memory.Message, wrong memory.Violations) error {
	position := i.count
	i.count++
	for _, v := range (memory.Dialogue{Scope: i.request.Scope, Messages: []memory.Message{m}}).Validate() {
		wrong.Add(fmt.Sprintf("stream.message[%d] (%s)", position, v.Field), "%s", v.Problem)
	}
	wrong.Check(fmt.Sprintf("stream.message[%d].speaker_id", position), speakerProblem(i.request.Scope, &m))
	if err := wrong.Err(); err != nil {
		return err
	}
	size := m.Size()
	if n := len(i.request.Messages); n == importMessages || n > 0 && i.bytes+size > importBytes {
		if err := i.Flush(ctx); err != nil {
			return err
		}
	}
	i.request.Messages, i.bytes = append(i.request.Messages, m), i.bytes+size
	return nil
}

// Flush stores the pending messages.
func (i *Importer) Flush(ctx context.Context) error {
	n := int64(len(i.request.Messages))
	if n == 0 {
		return nil
	}
	about := i.about
	i.request.Import = &about
	appended, err := i.writer.Append(ctx, i.request)
	if err != nil {
		return err
	}
	if i.about.From == 0 {
		i.about.Before = appended.Session.Last - int64(appended.Added)
	}
	i.about.From += n
	i.Added += int64(appended.Added)
	i.Skipped += n - int64(appended.Added)
	i.request.Messages, i.bytes = nil, 0
	i.Session, i.request.Scope.SessionID = appended.Session, appended.Session.ID
	return nil
}

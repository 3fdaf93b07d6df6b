package session

import (
	"context"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Limits of a batch of an Importer.
const (
	importMessages = 500
	importBytes    = memory.MaxDialogueBytes / 2
)

// Importer adds the messages of an imported session, in batches.
type Importer struct {
	writer         *Writer
	request        AppendRequest // the next batch
	about          Import
	bytes          int     // of the next batch
	Session        Session // after the last batch; without an id before the first one
	Added, Skipped int64
}

// Import begins an import into the session that the viewer's scope names. Settled messages are never considered.
func (w *Writer) Import(scope memory.Scope, audience memory.Audience, about Import, settled bool) (*Importer, error) {
	if err := w.CheckEnabled(scope.Namespace); err != nil {
		return nil, err
	}
	return &Importer{writer: w, about: about, request: AppendRequest{Scope: scope, Audience: audience, Settled: settled}}, nil
}

// Add adds a valid message. It may be stored with a later call.
func (i *Importer) Add(ctx context.Context, m memory.Message) error {
	size := m.Size()
	if n := len(i.request.Messages); n == importMessages || n > 0 && i.bytes+size > importBytes {
		if err := i.Flush(ctx); err != nil {
			return err
		}
	}
	i.request.Messages, i.bytes = append(i.request.Messages, m), i.bytes+size
	return nil
}

// Flush stores what Add was given.
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

package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// How many messages are moved at once.
const (
	exportBatch      = 500
	importBatch      = 500
	importBatchBytes = memory.MaxDialogueBytes / 2
)

// ExportSession implements memsidecarv1.SessionServiceServer.
func (s *sessionService) ExportSession(r *memsidecarv1.ExportSessionRequest, stream grpc.ServerStreamingServer[memsidecarv1.ExportSessionResponse]) error {
	ctx := stream.Context()
	var v memory.Violations
	scope, viewer := s.sessionScope(r.GetScope(), &v)
	if err := v.Err(); err != nil {
		return err
	}
	id, err := s.here(ctx, scope, viewer, true)
	if err != nil {
		return err
	}
	q := session.MessageQuery{Limit: exportBatch}
	for first := true; first || q.After != ""; first = false {
		found, err := s.Sessions.Messages(ctx, viewer, id, q)
		if err != nil {
			return err
		}
		if first {
			err := stream.Send(&memsidecarv1.ExportSessionResponse{
				Record: &memsidecarv1.ExportSessionResponse_Session{Session: s.session(&found.Session)},
			})
			if err != nil {
				return err
			}
		}
		for i := range found.Messages {
			err := stream.Send(&memsidecarv1.ExportSessionResponse{
				Record: &memsidecarv1.ExportSessionResponse_Message{Message: fromSessionMessage(&found.Messages[i])},
			})
			if err != nil {
				return err
			}
		}
		q.After = found.Next
	}
	return nil
}

// ImportSession implements memsidecarv1.SessionServiceServer.
func (s *sessionService) ImportSession(stream grpc.ClientStreamingServer[memsidecarv1.ImportSessionRequest, memsidecarv1.ImportSessionResponse]) error {
	ctx := stream.Context()
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) || err == nil && first.GetSession() == nil {
		return memory.Invalid("session", "is required in the first message of the stream")
	}
	if err != nil {
		return err
	}
	in, err := s.newImport(first.GetSession())
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		item, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(err, in.flush(ctx)) // what came before is good
		}
		if err := in.add(ctx, i, item.GetMessage()); err != nil {
			return errors.Join(err, in.flush(ctx))
		}
	}
	if err := in.flush(ctx); err != nil {
		return err
	}
	if in.sessionID == "" {
		return memory.Invalid("message", "is missing: an import has at least one message")
	}
	return stream.SendAndClose(&memsidecarv1.ImportSessionResponse{
		Session: s.session(&in.last), AddedCount: in.added, SkippedCount: in.skipped,
	})
}

// sessionImport takes a session in, in batches.
type sessionImport struct {
	service        *sessionService
	scope          memory.Scope
	audience       memory.Audience
	about          session.Import
	settled        bool
	batch          []memory.Message
	hashes         [][]byte
	bytes          int
	sessionID      string // once it is known
	last           session.Session
	added, skipped int64
}

func (s *sessionService) newImport(p *memsidecarv1.ImportedSession) (*sessionImport, error) {
	var v memory.Violations
	scope, viewer := s.sessionScope(p.GetScope(), &v)
	about := cmp.Or(p.GetSession(), &memsidecarv1.Session{}) // optional, and not nil where a field's absence counts
	if scope.SessionID == "" {
		scope.SessionID = about.GetId()
		v.Check("session.session.id", memory.IDProblem(scope.SessionID))
	}
	v.Check("session.session.title", titleProblem(about.GetTitle()))
	v.Check("session.session.metadata_json", metadataProblem(about.GetMetadataJson()))
	in := &sessionImport{
		service: s, scope: scope, audience: viewer.Audience, settled: !p.GetConsider(),
		about: session.Import{
			Title: s.options.RedactHistory.Text(about.GetTitle()), Metadata: s.options.RedactHistory.JSON(about.GetMetadataJson()),
			MemorizeEvery: toEvery(about.MemorizeEvery != nil, about.GetMemorizeEvery(), "session.session.memorize_every", &v),
			CreatedAt:     toTime(about.GetCreateTime(), "session.session.create_time", &v),
			UpdatedAt:     toTime(about.GetUpdateTime(), "session.session.update_time", &v),
		},
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	return in, s.enabled(scope.Namespace)
}

// add takes the i-th message of the stream.
func (in *sessionImport) add(ctx context.Context, i int, p *memsidecarv1.Message) error {
	at := fmt.Sprintf("message[%d]", i)
	if p == nil {
		return memory.Invalid(at, "is missing: each message of the stream after the first has one")
	}
	var v memory.Violations
	d := memory.Dialogue{Scope: in.scope, Messages: []memory.Message{in.service.options.toMessage(p, at, &v)}}
	hashes, err := messageHashes(d.Messages)
	if err != nil {
		return err
	}
	completeTimes(&d)
	for _, wrong := range d.Validate() {
		v = append(v, memory.Violation{Field: fmt.Sprintf("stream.%s (%s)", at, wrong.Field), Problem: wrong.Problem})
	}
	checkSpeakers(d, "stream.message", i, &v)
	if err := v.Err(); err != nil {
		return err
	}
	completeSpeakers(&d)
	size := d.Messages[0].Size()
	if len(in.batch) == importBatch || in.bytes+size > importBatchBytes && len(in.batch) > 0 {
		if err := in.flush(ctx); err != nil {
			return err
		}
	}
	in.batch, in.hashes, in.bytes = append(in.batch, d.Messages[0]), append(in.hashes, hashes[0]), in.bytes+size
	return nil
}

// flush stores what was taken.
func (in *sessionImport) flush(ctx context.Context) error {
	if len(in.batch) == 0 {
		return nil
	}
	about := in.about
	appended, err := in.service.Conversations.Append(ctx, session.AppendRequest{
		Scope: in.scope, Audience: in.audience, Messages: in.batch, Hashes: in.hashes, Settled: in.settled, Import: &about,
	})
	if err != nil {
		return err
	}
	if in.about.From == 0 {
		in.about.Before = appended.Session.Last - int64(appended.Added)
	}
	in.about.From += int64(len(in.batch))
	in.added += int64(appended.Added)
	in.skipped += int64(len(in.batch) - appended.Added)
	in.batch, in.hashes, in.bytes = nil, nil, 0
	in.last, in.sessionID, in.scope.SessionID = appended.Session, appended.Session.ID, appended.Session.ID
	return nil
}

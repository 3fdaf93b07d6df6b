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

// exportBatch is how many messages are read from storage at a time.
const exportBatch = 500

// ExportSession implements memsidecarv1.SessionServiceServer.
func (s *sessionService) ExportSession(r *memsidecarv1.ExportSessionRequest, stream grpc.ServerStreamingServer[memsidecarv1.ExportSessionResponse]) error {
	ctx := stream.Context()
	var v memory.Violations
	scope, viewer := s.sessionScope(r.GetScope(), &v)
	if err := v.Err(); err != nil {
		return err
	}
	id, q := scope.SessionID, session.MessageQuery{Limit: exportBatch}
	for first := true; first || q.After != ""; first = false {
		found, err := s.Conversations.Messages(ctx, viewer, id, q)
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
		id, q.After = found.Session.ID, found.Next
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
	importer, err := s.newImport(first.GetSession())
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		item, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = s.imported(ctx, importer, i, item.GetMessage())
		}
		if err != nil {
			return errors.Join(err, importer.Flush(ctx)) // keep the valid messages before it
		}
	}
	if err := importer.Flush(ctx); err != nil {
		return err
	}
	if importer.Session.ID == "" {
		return memory.Invalid("message", "is missing: an import needs at least one message")
	}
	return stream.SendAndClose(&memsidecarv1.ImportSessionResponse{
		Session: s.session(&importer.Session), AddedCount: importer.Added, SkippedCount: importer.Skipped,
	})
}

// newImport starts the import that the first message of the stream describes.
func (s *sessionService) newImport(p *memsidecarv1.ImportedSession) (*session.Importer, error) {
	var v memory.Violations
	scope, viewer := s.sessionScope(p.GetScope(), &v)
	about := cmp.Or(p.GetSession(), &memsidecarv1.Session{}) // optional; never nil, because unset fields are read from it
	if scope.SessionID == "" {
		scope.SessionID = about.GetId()
		v.Check("session.session.id", memory.IDProblem(scope.SessionID))
	}
	fields := session.Import{
		Title:         about.GetTitle(),
		Metadata:      about.GetMetadataJson(),
		MemorizeEvery: toEvery(about.MemorizeEvery != nil, about.GetMemorizeEvery()),
		CreatedAt:     toTime(about.GetCreateTime(), "session.session.create_time", &v),
		UpdatedAt:     toTime(about.GetUpdateTime(), "session.session.update_time", &v),
	}
	return s.Conversations.Import(scope, viewer.Audience, fields, !p.GetConsider(), v)
}

// imported adds the i-th message of the stream.
func (s *sessionService) imported(ctx context.Context, importer *session.Importer, i int, p *memsidecarv1.Message) error {
	at := fmt.Sprintf("message[%d]", i)
	if p == nil {
		return memory.Invalid(at, "is missing: each message of the stream after the first must have one")
	}
	var v memory.Violations
	m := toMessage(p, at, &v)
	return importer.Add(ctx, m, v)
}

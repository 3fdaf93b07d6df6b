package sidecartest

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// WithoutChannel returns the scope of a bot that sets no channel.
func WithoutChannel(user string) *memsidecarv1.Scope { return &memsidecarv1.Scope{UserId: user} }

// InNamespace returns a scope in another namespace.
func InNamespace(namespace string, scope *memsidecarv1.Scope) *memsidecarv1.Scope {
	clone, _ := proto.Clone(scope).(*memsidecarv1.Scope)
	clone.Namespace = namespace
	return clone
}

// UserScope returns the namespace and user of a scope, without its channel.
func UserScope(scope *memsidecarv1.Scope) *memsidecarv1.Scope {
	return &memsidecarv1.Scope{Namespace: scope.GetNamespace(), UserId: scope.GetUserId()}
}

// Must ends the test on an error: Must(s.GetMemory(…))(t).
func Must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// WantCode checks an error's status code.
func WantCode(t *testing.T, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("answered %s (%v), want %s", got, err, want)
	}
}

// WrongFields returns the fields that an error's BadRequest names, sorted, each once.
func WrongFields(err error) []string {
	var fields []string
	for _, detail := range status.Convert(err).Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			for _, v := range bad.GetFieldViolations() {
				fields = append(fields, v.GetField())
			}
		}
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

// WantInvalid checks that a call was refused because of exactly these fields.
func WantInvalid(t *testing.T, err error, fields ...string) {
	t.Helper()
	WantCode(t, err, codes.InvalidArgument)
	slices.Sort(fields)
	if got := WrongFields(err); !slices.Equal(got, fields) {
		t.Errorf("names %q as wrong, want %q (%v)", got, fields, err)
	}
}

// Create calls CreateMemory.
func (r *Sidecar) Create(t *testing.T, scope *memsidecarv1.Scope, text string) *memsidecarv1.Memory {
	t.Helper()
	return Must(r.CreateMemory(t.Context(), &memsidecarv1.CreateMemoryRequest{
		Scope: scope, Memory: &memsidecarv1.Memory{Text: text},
	}))(t).GetMemory()
}

// Memory calls GetMemory.
func (r *Sidecar) Memory(t *testing.T, scope *memsidecarv1.Scope, id string) *memsidecarv1.Memory {
	t.Helper()
	m := Must(r.GetMemory(t.Context(), &memsidecarv1.GetMemoryRequest{Scope: scope, MemoryId: id}))(t).GetMemory()
	m.Retention = nil // it changes with time, and other calls do not return it
	return m
}

// Memories calls ListMemories.
func (r *Sidecar) Memories(t *testing.T, scope *memsidecarv1.Scope) []*memsidecarv1.Memory {
	t.Helper()
	list := Must(r.ListMemories(t.Context(), &memsidecarv1.ListMemoriesRequest{Scope: scope, PageSize: 1000}))(t).GetMemories()
	for _, m := range list {
		m.Retention = nil // as in Memory
	}
	return list
}

// Considerations calls ListConsiderations.
func (r *Sidecar) Considerations(t *testing.T, scope *memsidecarv1.Scope) []*memsidecarv1.Consideration {
	t.Helper()
	return Must(r.ListConsiderations(t.Context(), &memsidecarv1.ListConsiderationsRequest{Scope: scope, PageSize: 1000}))(t).GetConsiderations()
}

// Mask returns a field mask.
func Mask(paths ...string) *fieldmaskpb.FieldMask { return &fieldmaskpb.FieldMask{Paths: paths} }

// Texts returns the texts of memories, sorted.
func Texts(memories []*memsidecarv1.Memory) []string {
	list := []string{}
	for _, m := range memories {
		list = append(list, m.GetText())
	}
	slices.Sort(list)
	return list
}

// Exported is what ExportUser streams.
type Exported struct {
	Records        []*memsidecarv1.ExportUserResponse
	Settings       *memsidecarv1.UserSettings
	Memories       []*memsidecarv1.Memory
	Considerations []*memsidecarv1.ExportedConsideration
}

// Export calls ExportUser.
func (r *Sidecar) Export(t *testing.T, scope *memsidecarv1.Scope) Exported {
	t.Helper()
	stream := Must(r.ExportUser(t.Context(), &memsidecarv1.ExportUserRequest{Scope: UserScope(scope)}))(t)
	var e Exported
	for {
		record, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return e
		}
		if err != nil {
			t.Fatal(err)
		}
		e.Records = append(e.Records, record)
		switch record.GetRecord().(type) {
		case *memsidecarv1.ExportUserResponse_Settings:
			e.Settings = record.GetSettings()
		case *memsidecarv1.ExportUserResponse_Memory:
			e.Memories = append(e.Memories, record.GetMemory())
		case *memsidecarv1.ExportUserResponse_Consideration:
			e.Considerations = append(e.Considerations, record.GetConsideration())
		}
	}
}

// Holds reports whether any record contains a text.
func (e Exported) Holds(text string) bool {
	return slices.ContainsFunc(e.Records, func(r *memsidecarv1.ExportUserResponse) bool { return strings.Contains(r.String(), text) })
}

// Import calls ImportMemories.
func (r *Sidecar) Import(t *testing.T, scope *memsidecarv1.Scope, memories ...*memsidecarv1.Memory) (*memsidecarv1.ImportMemoriesResponse, error) {
	t.Helper()
	stream := Must(r.ImportMemories(t.Context()))(t)
	requests := []*memsidecarv1.ImportMemoriesRequest{{Item: &memsidecarv1.ImportMemoriesRequest_Scope{Scope: scope}}}
	for _, m := range memories {
		requests = append(requests, &memsidecarv1.ImportMemoriesRequest{Item: &memsidecarv1.ImportMemoriesRequest_Memory{Memory: m}})
	}
	for _, request := range requests {
		if err := stream.Send(request); err != nil {
			break // the server has ended the call; CloseAndRecv says why
		}
	}
	return stream.CloseAndRecv()
}

// The states and actions that tests ask for.
const (
	Pending    = memsidecarv1.ConsiderationState_CONSIDERATION_STATE_PENDING
	Remembered = memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED
	Skipped    = memsidecarv1.ConsiderationState_CONSIDERATION_STATE_SKIPPED
	GivenUp    = memsidecarv1.ConsiderationState_CONSIDERATION_STATE_FAILED

	Added       = memsidecarv1.MemoryAction_MEMORY_ACTION_ADDED
	Reinforced  = memsidecarv1.MemoryAction_MEMORY_ACTION_REINFORCED
	LeftDeleted = memsidecarv1.MemoryAction_MEMORY_ACTION_LEFT_DELETED
)

// Consideration calls GetConsideration.
func (r *Sidecar) Consideration(t *testing.T, scope *memsidecarv1.Scope, id string) *memsidecarv1.Consideration {
	t.Helper()
	return Must(r.GetConsideration(t.Context(), &memsidecarv1.GetConsiderationRequest{Scope: scope, ConsiderationId: id}))(t).GetConsideration()
}

// Digests returns a client of DigestService.
func (r *Sidecar) Digests() memsidecarv1.DigestServiceClient {
	return memsidecarv1.NewDigestServiceClient(r.Conn)
}

// Digest calls GetDigest. An empty day is today.
func (r *Sidecar) Digest(t *testing.T, scope *memsidecarv1.Scope, day string) *memsidecarv1.Digest {
	t.Helper()
	return Must(r.Digests().GetDigest(t.Context(), &memsidecarv1.GetDigestRequest{Scope: scope, Day: day}))(t).GetDigest()
}

// Eventually repeats a check until it succeeds.
func Eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Timeout); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("after %s still not: %s", Timeout, what)
		}
	}
}

// Status calls GetStatus.
func (r *Sidecar) Status(t *testing.T) *memsidecarv1.GetStatusResponse {
	t.Helper()
	return Must(r.GetStatus(t.Context(), &memsidecarv1.GetStatusRequest{}))(t)
}

// Component calls GetStatus and returns a component, which must be there.
func (r *Sidecar) Component(t *testing.T, name string) *memsidecarv1.ComponentStatus {
	t.Helper()
	c := Component(r.Status(t), name)
	if c == nil {
		t.Fatalf("GetStatus does not name %s", name)
	}
	return c
}

// NoError ends the test on an error.
func NoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ComponentsOf returns the components of a status: storage and the models.
func ComponentsOf(status *memsidecarv1.GetStatusResponse) []*memsidecarv1.ComponentStatus {
	return append([]*memsidecarv1.ComponentStatus{status.GetStorage().GetComponent()}, status.GetModels().GetComponents()...)
}

// Component returns a component of a status, or nil.
func Component(status *memsidecarv1.GetStatusResponse, name string) *memsidecarv1.ComponentStatus {
	for _, c := range ComponentsOf(status) {
		if c.GetName() == name {
			return c
		}
	}
	return nil
}

// Recalled calls Retrieve. A degraded answer is an error.
func (r *Sidecar) Recalled(t *testing.T, request *memsidecarv1.RetrieveRequest) *memsidecarv1.RetrieveResponse {
	t.Helper()
	resp := Must(r.Retrieve(t.Context(), request))(t)
	if len(resp.GetDegraded()) > 0 {
		t.Errorf("degraded: %s", resp.GetDegraded())
	}
	return resp
}

// ImportInto calls ImportSession. about may be nil.
func (r *Sidecar) ImportInto(
	t *testing.T,
	scope *memsidecarv1.Scope,
	about *memsidecarv1.Session,
	messages ...*memsidecarv1.Message,
) *memsidecarv1.ImportSessionResponse {
	t.Helper()
	stream, err := r.Sessions().ImportSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = stream.Send(&memsidecarv1.ImportSessionRequest{Item: &memsidecarv1.ImportSessionRequest_Session{
		Session: &memsidecarv1.ImportedSession{Scope: scope, Session: about},
	}})
	for _, m := range messages {
		if err == nil {
			err = stream.Send(&memsidecarv1.ImportSessionRequest{Item: &memsidecarv1.ImportSessionRequest_Message{Message: m}})
		}
	}
	resp, closed := stream.CloseAndRecv()
	if closed != nil {
		t.Fatal(err, closed)
	}
	return resp
}

// Sessions returns a client of SessionService.
func (r *Sidecar) Sessions() memsidecarv1.SessionServiceClient {
	return memsidecarv1.NewSessionServiceClient(r.Conn)
}

// InSession returns a scope in a session.
func InSession(scope *memsidecarv1.Scope, session string) *memsidecarv1.Scope {
	scope = proto.CloneOf(scope)
	scope.SessionId = session
	return scope
}

// AppendTo calls AppendMessages.
func (r *Sidecar) AppendTo(t *testing.T, scope *memsidecarv1.Scope, messages ...*memsidecarv1.Message) *memsidecarv1.AppendMessagesResponse {
	t.Helper()
	resp, err := r.Sessions().AppendMessages(t.Context(), &memsidecarv1.AppendMessagesRequest{Scope: scope, Messages: messages})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// History returns the contents of a session's messages, oldest first.
func (r *Sidecar) History(t *testing.T, scope *memsidecarv1.Scope) []string {
	t.Helper()
	var contents []string
	request := &memsidecarv1.ListMessagesRequest{Scope: scope}
	for {
		page, err := r.Sessions().ListMessages(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page.GetMessages() {
			contents = append(contents, m.GetMessage().GetContent())
		}
		if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
			return contents
		}
	}
}

// ExportSession calls ExportSession and returns the session and its messages.
func (r *Sidecar) ExportSession(t *testing.T, scope *memsidecarv1.Scope) (about *memsidecarv1.Session, messages []*memsidecarv1.SessionMessage) {
	t.Helper()
	stream, err := r.Sessions().ExportSession(t.Context(), &memsidecarv1.ExportSessionRequest{Scope: scope})
	if err != nil {
		t.Fatal(err)
	}
	for {
		record, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return about, messages
		}
		if err != nil {
			t.Fatal(err)
		}
		if m := record.GetMessage(); m != nil {
			messages = append(messages, m)
		} else {
			about = record.GetSession()
		}
	}
}

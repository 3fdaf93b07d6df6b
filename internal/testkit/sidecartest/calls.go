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

// Short forms of what the tests call again and again.

// Anywhere is the scope of a bot that sets no channel.
func Anywhere(user string) *memsidecarv1.Scope { return &memsidecarv1.Scope{UserId: user} }

// InNamespace is the scope in another namespace.
func InNamespace(namespace string, scope *memsidecarv1.Scope) *memsidecarv1.Scope {
	clone, _ := proto.Clone(scope).(*memsidecarv1.Scope)
	clone.Namespace = namespace
	return clone
}

// WholeUser is the namespace and user of a scope.
func WholeUser(scope *memsidecarv1.Scope) *memsidecarv1.Scope {
	return &memsidecarv1.Scope{Namespace: scope.GetNamespace(), UserId: scope.GetUserId()}
}

// Must ends the test on an error: must(r.GetMemory(…))(t).
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

// WrongFields lists the fields that an error's BadRequest names, sorted, each once.
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

func (r *Sidecar) Create(t *testing.T, scope *memsidecarv1.Scope, text string) *memsidecarv1.Memory {
	t.Helper()
	return Must(r.CreateMemory(t.Context(), &memsidecarv1.CreateMemoryRequest{
		Scope: scope, Memory: &memsidecarv1.Memory{Text: text},
	}))(t).GetMemory()
}

func (r *Sidecar) Memory(t *testing.T, scope *memsidecarv1.Scope, id string) *memsidecarv1.Memory {
	t.Helper()
	m := Must(r.GetMemory(t.Context(), &memsidecarv1.GetMemoryRequest{Scope: scope, MemoryId: id}))(t).GetMemory()
	m.Retention = nil // of that moment, and not told by other calls
	return m
}

func (r *Sidecar) Memories(t *testing.T, scope *memsidecarv1.Scope) []*memsidecarv1.Memory {
	t.Helper()
	list := Must(r.ListMemories(t.Context(), &memsidecarv1.ListMemoriesRequest{Scope: scope, PageSize: 1000}))(t).GetMemories()
	for _, m := range list {
		m.Retention = nil // as in get
	}
	return list
}

func (r *Sidecar) Considerations(t *testing.T, scope *memsidecarv1.Scope) []*memsidecarv1.Consideration {
	t.Helper()
	return Must(r.ListConsiderations(t.Context(), &memsidecarv1.ListConsiderationsRequest{Scope: scope, PageSize: 1000}))(t).GetConsiderations()
}

func Mask(paths ...string) *fieldmaskpb.FieldMask { return &fieldmaskpb.FieldMask{Paths: paths} }

// Texts are the memories' texts, sorted.
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

func (r *Sidecar) Export(t *testing.T, scope *memsidecarv1.Scope) Exported {
	t.Helper()
	stream := Must(r.ExportUser(t.Context(), &memsidecarv1.ExportUserRequest{Scope: WholeUser(scope)}))(t)
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

// Holds reports whether a text is anywhere in the export.
func (e Exported) Holds(text string) bool {
	return slices.ContainsFunc(e.Records, func(r *memsidecarv1.ExportUserResponse) bool { return strings.Contains(r.String(), text) })
}

// Import is a call of ImportMemories.
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

const (
	Pending    = memsidecarv1.ConsiderationState_CONSIDERATION_STATE_PENDING
	Remembered = memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED
	Skipped    = memsidecarv1.ConsiderationState_CONSIDERATION_STATE_SKIPPED
	GivenUp    = memsidecarv1.ConsiderationState_CONSIDERATION_STATE_FAILED

	Added       = memsidecarv1.MemoryAction_MEMORY_ACTION_ADDED
	Reinforced  = memsidecarv1.MemoryAction_MEMORY_ACTION_REINFORCED
	LeftDeleted = memsidecarv1.MemoryAction_MEMORY_ACTION_LEFT_DELETED
)

func (r *Sidecar) Consideration(t *testing.T, scope *memsidecarv1.Scope, id string) *memsidecarv1.Consideration {
	t.Helper()
	return Must(r.GetConsideration(t.Context(), &memsidecarv1.GetConsiderationRequest{Scope: scope, ConsiderationId: id}))(t).GetConsideration()
}

func (r *Sidecar) Digests() memsidecarv1.DigestServiceClient {
	return memsidecarv1.NewDigestServiceClient(r.Conn)
}

func (r *Sidecar) Digest(t *testing.T, scope *memsidecarv1.Scope, day string) *memsidecarv1.Digest {
	t.Helper()
	return Must(r.Digests().GetDigest(t.Context(), &memsidecarv1.GetDigestRequest{Scope: scope, Day: day}))(t).GetDigest()
}

// Eventually asks again and again until something is true.
func Eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("after %s still not: %s", Patience, what)
		}
	}
}

func (r *Sidecar) Status(t *testing.T) *memsidecarv1.GetStatusResponse {
	t.Helper()
	return Must(r.GetStatus(t.Context(), &memsidecarv1.GetStatusRequest{}))(t)
}

func (r *Sidecar) Component(t *testing.T, name string) *memsidecarv1.ComponentStatus {
	t.Helper()
	c := Component(r.Status(t), name)
	if c == nil {
		t.Fatalf("GetStatus does not name %s", name)
	}
	return c
}

func NoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ComponentsOf are storage and what models may do.
func ComponentsOf(status *memsidecarv1.GetStatusResponse) []*memsidecarv1.ComponentStatus {
	return append([]*memsidecarv1.ComponentStatus{status.GetStorage().GetComponent()}, status.GetModels().GetComponents()...)
}

func Component(status *memsidecarv1.GetStatusResponse, name string) *memsidecarv1.ComponentStatus {
	for _, c := range ComponentsOf(status) {
		if c.GetName() == name {
			return c
		}
	}
	return nil
}

// Recalled asks and returns the whole answer.
func (r *Sidecar) Recalled(t *testing.T, request *memsidecarv1.RetrieveRequest) *memsidecarv1.RetrieveResponse {
	t.Helper()
	resp := Must(r.Retrieve(t.Context(), request))(t)
	if len(resp.GetDegraded()) > 0 {
		t.Errorf("degraded: %s", resp.GetDegraded())
	}
	return resp
}

// ImportInto hands over a session's messages; about may be nil.
func (r *Sidecar) ImportInto(t *testing.T, scope *memsidecarv1.Scope, about *memsidecarv1.Session, messages ...*memsidecarv1.Message) *memsidecarv1.ImportSessionResponse {
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

// Sessions is the running sidecar's session service.
func (r *Sidecar) Sessions() memsidecarv1.SessionServiceClient {
	return memsidecarv1.NewSessionServiceClient(r.Conn)
}

// Within is the scope in a session.
func Within(scope *memsidecarv1.Scope, session string) *memsidecarv1.Scope {
	scope = proto.CloneOf(scope)
	scope.SessionId = session
	return scope
}

// AppendTo appends messages to a session and returns the answer.
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

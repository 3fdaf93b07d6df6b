package main

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// Short forms of what the tests call again and again.

// anywhere is the scope of a bot that sets no channel.
func anywhere(user string) *memsidecarv1.Scope { return &memsidecarv1.Scope{UserId: user} }

// in is the scope in another namespace.
func in(namespace string, scope *memsidecarv1.Scope) *memsidecarv1.Scope {
	clone, _ := proto.Clone(scope).(*memsidecarv1.Scope)
	clone.Namespace = namespace
	return clone
}

// wholeUser is the namespace and user of a scope.
func wholeUser(scope *memsidecarv1.Scope) *memsidecarv1.Scope {
	return &memsidecarv1.Scope{Namespace: scope.GetNamespace(), UserId: scope.GetUserId()}
}

// must ends the test on an error: must(r.GetMemory(…))(t).
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// wantCode checks an error's status code.
func wantCode(t *testing.T, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("answered %s (%v), want %s", got, err, want)
	}
}

// wrongFields lists the fields that an error's BadRequest names, sorted, each once.
func wrongFields(err error) []string {
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

// wantInvalid checks that a call was refused because of exactly these fields.
func wantInvalid(t *testing.T, err error, fields ...string) {
	t.Helper()
	wantCode(t, err, codes.InvalidArgument)
	slices.Sort(fields)
	if got := wrongFields(err); !slices.Equal(got, fields) {
		t.Errorf("names %q as wrong, want %q (%v)", got, fields, err)
	}
}

func (r *running) create(t *testing.T, scope *memsidecarv1.Scope, text string) *memsidecarv1.Memory {
	t.Helper()
	return must(r.CreateMemory(t.Context(), &memsidecarv1.CreateMemoryRequest{
		Scope: scope, Memory: &memsidecarv1.Memory{Text: text},
	}))(t).GetMemory()
}

func (r *running) get(t *testing.T, scope *memsidecarv1.Scope, id string) *memsidecarv1.Memory {
	t.Helper()
	m := must(r.GetMemory(t.Context(), &memsidecarv1.GetMemoryRequest{Scope: scope, MemoryId: id}))(t).GetMemory()
	m.Retention = nil // of that moment, and not told by other calls
	return m
}

func (r *running) list(t *testing.T, scope *memsidecarv1.Scope) []*memsidecarv1.Memory {
	t.Helper()
	list := must(r.ListMemories(t.Context(), &memsidecarv1.ListMemoriesRequest{Scope: scope, PageSize: 1000}))(t).GetMemories()
	for _, m := range list {
		m.Retention = nil // as in get
	}
	return list
}

func (r *running) considerations(t *testing.T, scope *memsidecarv1.Scope) []*memsidecarv1.Consideration {
	t.Helper()
	return must(r.ListConsiderations(t.Context(), &memsidecarv1.ListConsiderationsRequest{Scope: scope, PageSize: 1000}))(t).GetConsiderations()
}

func mask(paths ...string) *fieldmaskpb.FieldMask { return &fieldmaskpb.FieldMask{Paths: paths} }

// texts are the memories' texts, sorted.
func texts(memories []*memsidecarv1.Memory) []string {
	list := []string{}
	for _, m := range memories {
		list = append(list, m.GetText())
	}
	slices.Sort(list)
	return list
}

// exported is what ExportUser streams.
type exported struct {
	records        []*memsidecarv1.ExportUserResponse
	settings       *memsidecarv1.UserSettings
	memories       []*memsidecarv1.Memory
	considerations []*memsidecarv1.ExportedConsideration
}

func (r *running) export(t *testing.T, scope *memsidecarv1.Scope) exported {
	t.Helper()
	stream := must(r.ExportUser(t.Context(), &memsidecarv1.ExportUserRequest{Scope: wholeUser(scope)}))(t)
	var e exported
	for {
		record, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return e
		}
		if err != nil {
			t.Fatal(err)
		}
		e.records = append(e.records, record)
		switch record.GetRecord().(type) {
		case *memsidecarv1.ExportUserResponse_Settings:
			e.settings = record.GetSettings()
		case *memsidecarv1.ExportUserResponse_Memory:
			e.memories = append(e.memories, record.GetMemory())
		case *memsidecarv1.ExportUserResponse_Consideration:
			e.considerations = append(e.considerations, record.GetConsideration())
		}
	}
}

// holds reports whether a text is anywhere in the export.
func (e exported) holds(text string) bool {
	return slices.ContainsFunc(e.records, func(r *memsidecarv1.ExportUserResponse) bool { return strings.Contains(r.String(), text) })
}

// load is a call of ImportMemories.
func (r *running) load(t *testing.T, scope *memsidecarv1.Scope, memories ...*memsidecarv1.Memory) (*memsidecarv1.ImportMemoriesResponse, error) {
	t.Helper()
	stream := must(r.ImportMemories(t.Context()))(t)
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

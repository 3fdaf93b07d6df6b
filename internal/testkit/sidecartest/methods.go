package sidecartest

import (
	"errors"
	"io"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// AllMethods returns the calls of all services, found by reflection.
func AllMethods(t *testing.T) []protoreflect.MethodDescriptor {
	t.Helper()
	var all []protoreflect.MethodDescriptor
	protoregistry.GlobalFiles.RangeFilesByPackage("memsidecar.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			all = append(all, MethodsIn(file.Services().Get(i).Methods())...)
		}
		return true
	})
	if len(all) < 43 {
		t.Fatalf("only %d calls are found", len(all))
	}
	return all
}

// ScopedRequest returns a request with only its scope: that of ListUsers has no more than the namespace.
func ScopedRequest(t *testing.T, method protoreflect.MethodDescriptor, scope *memsidecarv1.Scope) proto.Message {
	t.Helper()
	if method.Name() == "ImportSession" {
		return &memsidecarv1.ImportSessionRequest{Item: &memsidecarv1.ImportSessionRequest_Session{Session: &memsidecarv1.ImportedSession{Scope: scope}}}
	}
	if method.Name() == "ListUsers" {
		scope = &memsidecarv1.Scope{Namespace: scope.GetNamespace()}
	}
	request := NewMessage(t, method.Input())
	field := method.Input().Fields().ByName("scope")
	if field == nil || field.Message().FullName() != scope.ProtoReflect().Descriptor().FullName() {
		t.Fatalf("%s has no scope: how is it kept to its caller's namespace?", method.Name())
	}
	request.ProtoReflect().Set(field, protoreflect.ValueOfMessage(scope.ProtoReflect()))
	return request
}

// Call makes any call with one message.
func (r *Sidecar) Call(t *testing.T, method protoreflect.MethodDescriptor, request proto.Message) (proto.Message, error) {
	t.Helper()
	return CallOver(t, r.Conn, method, request)
}

// CallOver makes any call with one message over a connection.
func CallOver(t *testing.T, conn grpc.ClientConnInterface, method protoreflect.MethodDescriptor, request proto.Message) (proto.Message, error) {
	t.Helper()
	stream := Must(conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, FullName(method)))(t)
	err := stream.SendMsg(request)
	if err != nil && !errors.Is(err, io.EOF) { // EOF: RecvMsg says why
		t.Fatal(err)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	answer := NewMessage(t, method.Output())
	return answer, stream.RecvMsg(answer)
}

// Methods returns the calls of MemoryService and UserService, and GetStatus.
func Methods() []protoreflect.MethodDescriptor {
	return slices.Concat(
		MethodsIn(memsidecarv1.File_memsidecar_v1_memory_service_proto.Services().ByName("MemoryService").Methods()),
		MethodsIn(memsidecarv1.File_memsidecar_v1_user_service_proto.Services().ByName("UserService").Methods()),
		[]protoreflect.MethodDescriptor{
			memsidecarv1.File_memsidecar_v1_admin_service_proto.Services().ByName("AdminService").Methods().ByName("GetStatus"),
		},
	)
}

// ListMethods returns the calls of NumberedListService.
func ListMethods() []protoreflect.MethodDescriptor {
	return MethodsIn(memsidecarv1.File_memsidecar_v1_numbered_list_service_proto.Services().ByName("NumberedListService").Methods())
}

// MethodsIn returns descriptors as a slice.
func MethodsIn(list protoreflect.MethodDescriptors) []protoreflect.MethodDescriptor {
	var all []protoreflect.MethodDescriptor
	for i := range list.Len() {
		all = append(all, list.Get(i))
	}
	return all
}

// FullName returns the path of a call.
func FullName(m protoreflect.MethodDescriptor) string {
	return "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
}

// NewMessage returns an empty message of a type.
func NewMessage(t *testing.T, d protoreflect.MessageDescriptor) proto.Message {
	t.Helper()
	return Must(protoregistry.GlobalTypes.FindMessageByName(d.FullName()))(t).New().Interface()
}

// RawCodec sends []byte as it is. No other codec would send bytes that are not a message.
type RawCodec struct{}

// Name implements encoding.CodecV2.
func (RawCodec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (RawCodec) Marshal(v any) (mem.BufferSlice, error) {
	if raw, ok := v.([]byte); ok {
		return mem.BufferSlice{mem.SliceBuffer(raw)}, nil
	}
	message, _ := v.(proto.Message)
	data, err := proto.Marshal(message)
	return mem.BufferSlice{mem.SliceBuffer(data)}, err
}

// Unmarshal implements encoding.CodecV2.
func (RawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	message, _ := v.(proto.Message)
	return proto.Unmarshal(data.Materialize(), message)
}

// Send makes any call with raw messages and returns its error.
func (r *Sidecar) Send(t *testing.T, method protoreflect.MethodDescriptor, messages ...any) error {
	t.Helper()
	stream := Must(r.Conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, FullName(method), grpc.ForceCodecV2(RawCodec{})))(t)
	for _, m := range messages {
		if stream.SendMsg(m) != nil {
			break // ended by the server; RecvMsg says why
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	return stream.RecvMsg(NewMessage(t, method.Output()))
}

package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// methods are the calls about memories and users, and GetStatus. AuditMemories is about the namespace as a whole.
func methods() []protoreflect.MethodDescriptor {
	return slices.Concat(
		methodsIn(memsidecarv1.File_memsidecar_v1_memory_service_proto.Services().ByName("MemoryService").Methods()),
		methodsIn(memsidecarv1.File_memsidecar_v1_user_service_proto.Services().ByName("UserService").Methods()),
		[]protoreflect.MethodDescriptor{
			memsidecarv1.File_memsidecar_v1_admin_service_proto.Services().ByName("AdminService").Methods().ByName("GetStatus"),
		},
	)
}

func listMethods() []protoreflect.MethodDescriptor {
	return methodsIn(memsidecarv1.File_memsidecar_v1_numbered_list_service_proto.Services().ByName("NumberedListService").Methods())
}

func methodsIn(list protoreflect.MethodDescriptors) []protoreflect.MethodDescriptor {
	var all []protoreflect.MethodDescriptor
	for i := range list.Len() {
		all = append(all, list.Get(i))
	}
	return all
}

func unaryMethods() []protoreflect.MethodDescriptor {
	var unary []protoreflect.MethodDescriptor
	for _, m := range append(methods(), listMethods()...) {
		if !m.IsStreamingClient() && !m.IsStreamingServer() {
			unary = append(unary, m)
		}
	}
	return unary
}

func fullName(m protoreflect.MethodDescriptor) string {
	return "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
}

func newMessage(t *testing.T, d protoreflect.MessageDescriptor) proto.Message {
	t.Helper()
	return must(protoregistry.GlobalTypes.FindMessageByName(d.FullName()))(t).New().Interface()
}

// rawCodec sends bytes as they are, which a real codec would refuse to make.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	if raw, ok := v.([]byte); ok {
		return mem.BufferSlice{mem.SliceBuffer(raw)}, nil
	}
	message, _ := v.(proto.Message)
	data, err := proto.Marshal(message)
	return mem.BufferSlice{mem.SliceBuffer(data)}, err
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	message, _ := v.(proto.Message)
	return proto.Unmarshal(data.Materialize(), message)
}

// send makes any call of the service with raw messages and returns how it ended.
func (r *running) send(t *testing.T, method protoreflect.MethodDescriptor, messages ...any) error {
	t.Helper()
	stream := must(r.conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, fullName(method), grpc.ForceCodecV2(rawCodec{})))(t)
	for _, m := range messages {
		if stream.SendMsg(m) != nil {
			break // ended by the server; RecvMsg says why
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	return stream.RecvMsg(newMessage(t, method.Output()))
}

// broken is a valid message with a field's text made invalid UTF-8. The text is at least two bytes long.
func broken(t *testing.T, m proto.Message, text string) []byte {
	t.Helper()
	data := must(proto.Marshal(m))(t)
	if !bytes.Contains(data, []byte(text)) {
		t.Fatalf("the message does not hold %q", text)
	}
	return bytes.ReplaceAll(data, []byte(text), append([]byte("\xff\xfe"), text[2:]...))
}

// TestUndecodableRequests: grpc by itself answers INTERNAL and RESOURCE_EXHAUSTED, which blame the server.
func TestUndecodableRequests(t *testing.T) {
	r := serve(t, "max_request_bytes=65536")
	userID := broken(t, &memsidecarv1.GetMemoryRequest{Scope: direct("the user")}, "the user") // the scope is field 1 of every request
	tooLarge := must(proto.Marshal(&memsidecarv1.CreateMemoryRequest{Memory: &memsidecarv1.Memory{Text: strings.Repeat("x", 65536)}}))(t)
	for _, method := range append(methods(), listMethods()...) {
		t.Run(string(method.Name()), func(t *testing.T) {
			wantInvalid(t, r.send(t, method, userID), "scope.user_id")
			wantInvalid(t, r.send(t, method, tooLarge), "request")
			wantInvalid(t, r.send(t, method, []byte("\xff\xff\xff")), "request")
		})
	}
	both := said("the words")
	both.Id = "the words"
	wantInvalid(t, r.send(t, methodOf(t, "ConsiderMemorizing"), broken(t, &memsidecarv1.ConsiderMemorizingRequest{
		Messages: []*memsidecarv1.Message{said("fine"), both},
	}, "the words")), "messages[1].content", "messages[1].id")
	for field, message := range map[string]proto.Message{
		"messages[0].content":                      &memsidecarv1.ConsiderMemorizingRequest{Messages: []*memsidecarv1.Message{said("the words")}},
		"messages[0].metadata_json":                &memsidecarv1.ConsiderMemorizingRequest{Messages: []*memsidecarv1.Message{{MetadataJson: "the words"}}},
		"messages[0].tool_calls[0].arguments_json": &memsidecarv1.ConsiderMemorizingRequest{Messages: []*memsidecarv1.Message{{ToolCalls: []*memsidecarv1.ToolCall{{ArgumentsJson: "the words"}}}}},
	} {
		wantInvalid(t, r.send(t, methodOf(t, "ConsiderMemorizing"), broken(t, message, "the words")), field)
	}
}

func methodOf(t *testing.T, name string) protoreflect.MethodDescriptor {
	t.Helper()
	for _, m := range methods() {
		if string(m.Name()) == name {
			return m
		}
	}
	t.Fatalf("there is no %s", name)
	return nil
}

// TestUndecodableImport: what came before the broken message is stored.
func TestUndecodableImport(t *testing.T) {
	r := serve(t, "max_request_bytes=65536")
	item := func(text string) *memsidecarv1.ImportMemoriesRequest {
		return &memsidecarv1.ImportMemoriesRequest{Item: &memsidecarv1.ImportMemoriesRequest_Memory{Memory: &memsidecarv1.Memory{Text: text}}}
	}
	for user, test := range map[string]struct {
		last  any
		field string
	}{
		"utf8":    {broken(t, item("the words"), "the words"), "memory.text"},
		"large":   {item(strings.Repeat("x", 65536)), "request"},
		"garbage": {[]byte("\xff\xff"), "request"},
		"scope":   {&memsidecarv1.ImportMemoriesRequest{Item: &memsidecarv1.ImportMemoriesRequest_Scope{Scope: direct("v")}}, "memory[1]"},
		"empty":   {&memsidecarv1.ImportMemoriesRequest{}, "memory[1]"},
		"wrong":   {item(""), "memory[1].text"},
	} {
		scope := &memsidecarv1.ImportMemoriesRequest{Item: &memsidecarv1.ImportMemoriesRequest_Scope{Scope: direct(user)}}
		wantInvalid(t, r.send(t, methodOf(t, "ImportMemories"), scope, item("Likes tea"), test.last), test.field)
		if stored := texts(r.list(t, direct(user))); len(stored) != 1 || stored[0] != "Likes tea" {
			t.Errorf("%s: stored %q", user, stored)
		}
	}
	wantInvalid(t, r.send(t, methodOf(t, "ImportMemories")), "scope")
	wantInvalid(t, r.send(t, methodOf(t, "ImportMemories"), item("Likes tea")), "scope")
}

// TestEmptyRequests: no call but GetStatus has a meaning without a scope.
func TestEmptyRequests(t *testing.T) {
	r := serve(t)
	for _, method := range methods() {
		err := r.send(t, method, newMessage(t, method.Input()))
		if method.Name() == "GetStatus" {
			wantCode(t, err, codes.OK)
			continue
		}
		wantCode(t, err, codes.InvalidArgument)
		if fields := wrongFields(err); len(fields) == 0 {
			t.Errorf("%s names no field: %v", method.Name(), err)
		}
	}
}

// TestAnyTextSurvives: what is stored comes back to the byte, whatever it is written in.
func TestAnyTextSurvives(t *testing.T) {
	r := serve(t)
	for _, text := range []string{
		"a\x00b", "\x00", "tab\x01\x7f", "👩‍👩‍👧‍👦 🏳️‍🌈 \U0001F9D1\U0001F3FD", "אני אוהב חתולים \u200fו-RTL", "مرحبا بالعالم", "e\u0301 is not é", "\ufeffmark",
		"𠮷野家", "\u202eevil", "a\u200bb", "\ufffd", "\uffff", "ﷺ", "' OR 1=1; DROP TABLE memories; --", `\u0000 "quoted"`, "用户喜欢吃辣🌶️",
	} {
		stored := r.create(t, direct("u"), text)
		if got := r.get(t, direct("u"), stored.GetId()); got.GetText() != text {
			t.Errorf("%q became %q", text, got.GetText())
		}
		message := said(text)
		message.MetadataJson = `{"n":9007199254740993,"t":1.0}`
		message.ToolCalls = []*memsidecarv1.ToolCall{{Name: "t", ArgumentsJson: `{"big": 123456789012345678901234567890, "x":1.10}`, Result: text}}
		user := "of " + strings.Map(func(c rune) rune {
			if c < ' ' || c >= 0x7f && c < 0xa0 {
				return -1
			}
			return c
		}, text)
		r.consider(t, direct(user), message)
		kept := r.export(t, direct(user)).considerations[0].GetMessages()[0]
		if kept.GetContent() != text || kept.GetMetadataJson() != message.GetMetadataJson() ||
			!proto.Equal(kept.GetToolCalls()[0], message.GetToolCalls()[0]) {
			t.Errorf("%v became %v", message, kept)
		}
	}
}

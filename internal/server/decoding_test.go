package server_test

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

func unaryMethods() []protoreflect.MethodDescriptor {
	var unary []protoreflect.MethodDescriptor
	for _, m := range append(sidecartest.Methods(), sidecartest.ListMethods()...) {
		if !m.IsStreamingClient() && !m.IsStreamingServer() {
			unary = append(unary, m)
		}
	}
	return unary
}

// broken returns a valid message in which one text field is invalid UTF-8. The text must have at least two bytes.
func broken(t *testing.T, m proto.Message, text string) []byte {
	t.Helper()
	data := sidecartest.Must(proto.Marshal(m))(t)
	if !bytes.Contains(data, []byte(text)) {
		t.Fatalf("the message does not hold %q", text)
	}
	return bytes.ReplaceAll(data, []byte(text), append([]byte("\xff\xfe"), text[2:]...))
}

// TestUndecodableRequestIsInvalidArgument: gRPC alone would return INTERNAL or RESOURCE_EXHAUSTED, as if the server were at fault.
func TestUndecodableRequestIsInvalidArgument(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "max_request_bytes=65536")
	userID := broken(
		t,
		&memsidecarv1.GetMemoryRequest{Scope: sidecartest.Direct("the user")},
		"the user",
	) // the scope is field 1 of every request
	tooLarge := sidecartest.Must(
		proto.Marshal(&memsidecarv1.CreateMemoryRequest{Memory: &memsidecarv1.Memory{Text: strings.Repeat("x", 65536)}}),
	)(
		t,
	)
	for _, method := range append(sidecartest.Methods(), sidecartest.ListMethods()...) {
		t.Run(string(method.Name()), func(t *testing.T) {
			sidecartest.WantInvalid(t, r.Send(t, method, userID), "scope.user_id")
			sidecartest.WantInvalid(t, r.Send(t, method, tooLarge), "request")
			sidecartest.WantInvalid(t, r.Send(t, method, []byte("\xff\xff\xff")), "request")
		})
	}
	both := sidecartest.Said("the words")
	both.Id = "the words"
	sidecartest.WantInvalid(t, r.Send(t, methodOf(t, "ConsiderMemorizing"), broken(t, &memsidecarv1.ConsiderMemorizingRequest{
		Messages: []*memsidecarv1.Message{sidecartest.Said("fine"), both},
	}, "the words")), "messages[1].content", "messages[1].id")
	for field, message := range map[string]proto.Message{
		"messages[0].content":       &memsidecarv1.ConsiderMemorizingRequest{Messages: []*memsidecarv1.Message{sidecartest.Said("the words")}},
		"messages[0].metadata_json": &memsidecarv1.ConsiderMemorizingRequest{Messages: []*memsidecarv1.Message{{MetadataJson: "the words"}}},
		"messages[0].tool_calls[0].arguments_json": &memsidecarv1.ConsiderMemorizingRequest{
			Messages: []*memsidecarv1.Message{{ToolCalls: []*memsidecarv1.ToolCall{{ArgumentsJson: "the words"}}}},
		},
	} {
		sidecartest.WantInvalid(t, r.Send(t, methodOf(t, "ConsiderMemorizing"), broken(t, message, "the words")), field)
	}
}

func methodOf(t *testing.T, name string) protoreflect.MethodDescriptor {
	t.Helper()
	for _, m := range sidecartest.Methods() {
		if string(m.Name()) == name {
			return m
		}
	}
	t.Fatalf("there is no %s", name)
	return nil
}

// TestUndecodableImportKeepsEarlierItems: Items before the malformed message are stored.
func TestUndecodableImportKeepsEarlierItems(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "max_request_bytes=65536")
	item := func(text string) *memsidecarv1.ImportMemoriesRequest {
		return &memsidecarv1.ImportMemoriesRequest{
			Item: &memsidecarv1.ImportMemoriesRequest_Memory{Memory: &memsidecarv1.Memory{Text: text}},
		}
	}
	for user, test := range map[string]struct {
		last  any
		field string
	}{
		"utf8":    {broken(t, item("the words"), "the words"), "memory.text"},
		"large":   {item(strings.Repeat("x", 65536)), "request"},
		"garbage": {[]byte("\xff\xff"), "request"},
		"scope":   {&memsidecarv1.ImportMemoriesRequest{Item: &memsidecarv1.ImportMemoriesRequest_Scope{Scope: sidecartest.Direct("v")}}, "memory[1]"},
		"empty":   {&memsidecarv1.ImportMemoriesRequest{}, "memory[1]"},
		"wrong":   {item(""), "memory[1].text"},
	} {
		scope := &memsidecarv1.ImportMemoriesRequest{Item: &memsidecarv1.ImportMemoriesRequest_Scope{Scope: sidecartest.Direct(user)}}
		sidecartest.WantInvalid(t, r.Send(t, methodOf(t, "ImportMemories"), scope, item("Likes tea"), test.last), test.field)
		if stored := sidecartest.Texts(r.Memories(t, sidecartest.Direct(user))); len(stored) != 1 || stored[0] != "Likes tea" {
			t.Errorf("%s: stored %q", user, stored)
		}
	}
	sidecartest.WantInvalid(t, r.Send(t, methodOf(t, "ImportMemories")), "scope")
	sidecartest.WantInvalid(t, r.Send(t, methodOf(t, "ImportMemories"), item("Likes tea")), "scope")
}

// TestEmptyRequestNeedsAScope: Only GetStatus and ListUsers, which are not about a user, accept a request without a scope.
func TestEmptyRequestNeedsAScope(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	for _, method := range sidecartest.Methods() {
		err := r.Send(t, method, sidecartest.NewMessage(t, method.Input()))
		if method.Name() == "GetStatus" || method.Name() == "ListUsers" {
			sidecartest.WantCode(t, err, codes.OK)
			continue
		}
		sidecartest.WantCode(t, err, codes.InvalidArgument)
		if fields := sidecartest.WrongFields(err); len(fields) == 0 {
			t.Errorf("%s names no field: %v", method.Name(), err)
		}
	}
}

// TestTextIsStoredByteForByte: Texts in every script come back unchanged.
func TestTextIsStoredByteForByte(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	for _, text := range []string{
		"a\x00b", "\x00", "tab\x01\x7f", "👩‍👩‍👧‍👦 🏳️‍🌈 \U0001F9D1\U0001F3FD", "אני אוהב חתולים \u200fו-RTL", "مرحبا بالعالم", "e\u0301 is not é", "\ufeffmark",
		"𠮷野家", "\u202eevil", "a\u200bb", "\ufffd", "\uffff", "ﷺ", "' OR 1=1; DROP TABLE memories; --", `\u0000 "quoted"`, "用户喜欢吃辣🌶️",
	} {
		stored := r.Create(t, sidecartest.Direct("u"), text)
		if got := r.Memory(t, sidecartest.Direct("u"), stored.GetId()); got.GetText() != text {
			t.Errorf("%q became %q", text, got.GetText())
		}
		message := sidecartest.Said(text)
		message.MetadataJson = `{"n":9007199254740993,"t":1.0}`
		message.ToolCalls = []*memsidecarv1.ToolCall{
			{Name: "t", ArgumentsJson: `{"big": 123456789012345678901234567890, "x":1.10}`, Result: text},
		}
		user := "of " + strings.Map(func(c rune) rune {
			if c < ' ' || c >= 0x7f && c < 0xa0 {
				return -1
			}
			return c
		}, text)
		r.Consider(t, sidecartest.Direct(user), message)
		kept := r.Export(t, sidecartest.Direct(user)).Considerations[0].GetMessages()[0]
		if kept.GetContent() != text || kept.GetMetadataJson() != message.GetMetadataJson() ||
			!proto.Equal(kept.GetToolCalls()[0], message.GetToolCalls()[0]) {
			t.Errorf("%v became %v", message, kept)
		}
	}
}

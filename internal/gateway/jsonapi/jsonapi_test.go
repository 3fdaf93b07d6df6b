package jsonapi_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/memsidecar/memsidecar/internal/gateway/jsonapi"
	"github.com/memsidecar/memsidecar/internal/memory"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

func TestDecodeReadsShortAndFormerNames(t *testing.T) {
	for name, test := range map[string]struct{ given, same string }{
		"short names of enum values": {
			`{"scope": {"user_id": "u", "channel_kind": "direct"}, "messages": [{"role": "user"}, {"role": "Assistant"}, {"role": "role_tool"}]}`,
			`{"scope": {"user_id": "u", "channel_kind": "CHANNEL_KIND_DIRECT"},
				"messages": [{"role": "ROLE_USER"}, {"role": "ROLE_ASSISTANT"}, {"role": "ROLE_TOOL"}]}`,
		},
		"spaces and hyphens in them": {`{"messages": [{"role": " user "}]}`, `{"messages": [{"role": "ROLE_USER"}]}`},
		"former fields": {
			`{"messages": [{"role": "ROLE_USER", "time": "2026-01-02T03:04:05Z", "toolCalls": [{"time": "2026-01-02T03:04:06Z"}]}]}`,
			`{"messages": [{"role": "ROLE_USER", "send_time": "2026-01-02T03:04:05Z", "tool_calls": [{"start_time": "2026-01-02T03:04:06Z"}]}]}`,
		},
		"texts that look like names": {
			`{"messages": [{"content": "\"role\": \"user\" \u2028 , :", "role": "user"}], "request_id": "role"}`,
			`{"messages": [{"content": "\"role\": \"user\" \u2028 , :", "role": 1}], "request_id": "role"}`,
		},
		"numbers and null": {`{"scope": null, "messages": [{"role": 2}, {"role": "user"}]}`, `{"messages": [{"role": 2}, {"role": 1}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, want := &memsidecarv1.ConsiderMemorizingRequest{}, &memsidecarv1.ConsiderMemorizingRequest{}
			if err := protojson.Unmarshal([]byte(test.same), want); err != nil {
				t.Fatal(err)
			}
			if err := jsonapi.Decode(jsonapi.Request, []byte(test.given), got); err != nil || !proto.Equal(got, want) {
				t.Errorf("it is read as %v, %v; want %v", got, err, want)
			}
		})
	}
}

func TestDecodeReadsEachFormerName(t *testing.T) {
	for name, test := range map[string]struct {
		message     proto.Message
		given, same string
	}{
		"min_score":      {&memsidecarv1.RetrieveRequest{}, `{"min_score": 0.5}`, `{"min_relevance": 0.5}`},
		"minScore":       {&memsidecarv1.RetrieveRequest{}, `{"minScore": 0.5}`, `{"min_relevance": 0.5}`},
		"created_after":  {&memsidecarv1.RetrieveRequest{}, `{"createdAfter": "2026-01-02T03:04:05Z"}`, `{"created_after_time": "2026-01-02T03:04:05Z"}`},
		"created_before": {&memsidecarv1.RetrieveRequest{}, `{"created_before": "2026-01-02T03:04:05Z"}`, `{"created_before_time": "2026-01-02T03:04:05Z"}`},
		"valid_from":     {&memsidecarv1.Memory{}, `{"validFrom": "2026-01-02T03:04:05Z"}`, `{"valid_start_time": "2026-01-02T03:04:05Z"}`},
		"valid_to":       {&memsidecarv1.Memory{}, `{"valid_to": "2026-01-02T03:04:05Z"}`, `{"valid_end_time": "2026-01-02T03:04:05Z"}`},
		"registry kind":  {&memsidecarv1.PutItemsRequest{}, `{"registry_kind": "RESULT_REGISTRY_KIND_USER"}`, `{"registry_kind": "REGISTRY_KIND_USER"}`},
		"part":           {&memsidecarv1.DeleteNumberedListRequest{}, `{"part": "RESULT_LIST_PART_SHOWN"}`, `{"part": "NUMBERED_LIST_PART_SHOWN"}`},
	} {
		t.Run(name, func(t *testing.T) {
			want := proto.Clone(test.message)
			if err := protojson.Unmarshal([]byte(test.same), want); err != nil {
				t.Fatal(err)
			}
			if err := jsonapi.Decode(jsonapi.Request, []byte(test.given), test.message); err != nil || !proto.Equal(test.message, want) {
				t.Errorf("it is read as %v, %v; want %v", test.message, err, want)
			}
		})
	}
}

func TestDecodeErrorsSayWhatToWrite(t *testing.T) {
	for name, test := range map[string]struct{ given, field, says string }{
		"unknown value":           {`{"messages": [{}, {"role": "bot"}]}`, "messages[1].role", `is "bot": use "user", "assistant", "system", "tool"`},
		"user outside the scope":  {`{"user_id": "u"}`, "user_id", `is a field of the scope: write "scope": {"user_id": …}`},
		"camel case outside":      {`{"userId": "u"}`, "userId", `is a field of the scope: write "scope": {"userId": …}`},
		"unknown field":           {`{"mesages": [{"role": "bot"}]}`, "mesages", "is an unknown field: ConsiderMemorizingRequest has scope, messages, request_id, "},
		"unknown field below":     {`{"messages": [{"text": "hi"}]}`, "messages[0].text", "is an unknown field: Message has id, role, speaker_id, "},
		"a key that is no name":   {`{"a b\n": 1}`, `"a b\n"`, "is an unknown field"},
		"wrong type":              {`{"messages": [{"content": 1}]}`, "request", "cannot be decoded: (line 1:27): invalid value for string field content"},
		"wrong type after a name": {`{"messages": [{"role": "user", "content": 1}]}`, "request", "invalid value for string field content"},
		"former and present name": {`{"messages": [{"time": null, "send_time": null, "role": "user"}]}`, "request", "duplicate field"},
		"no JSON":                 {`{"messages": [{"role": "user"`, "request", "cannot be decoded: unexpected EOF"},
		"too deep":                {`{"mesages": ` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`, "request", `unknown field "mesages"`},
		"two values":              {`{"messages": [{"role": "user"}]} {}`, "request", "cannot be decoded"},
		"a list":                  {`[{"role": "user"}]`, "request", "cannot be decoded"},
	} {
		t.Run(name, func(t *testing.T) {
			err := jsonapi.Decode(jsonapi.Request, []byte(test.given), &memsidecarv1.ConsiderMemorizingRequest{})
			invalid, ok := errors.AsType[*memory.InvalidError](err)
			if !ok || len(invalid.Violations) != 1 {
				t.Fatalf("the error is %v", err)
			}
			got := invalid.Violations[0]
			if got.Field != test.field || !strings.Contains(strings.ReplaceAll(got.Problem, "\u00a0", " "), test.says) {
				t.Errorf("the error is %s: %s; want %s: %s", got.Field, got.Problem, test.field, test.says)
			}
		})
	}
}

func TestDecodeNamesAllWrongFieldsUpToALimit(t *testing.T) {
	decode := func(n int) memory.Violations {
		message := strings.Repeat(`{"role": "bot"},`, n)
		err := jsonapi.Decode("request[1]", fmt.Appendf(nil, `{"messages": [%s]}`, strings.TrimSuffix(message, ",")), &memsidecarv1.ConsiderMemorizingRequest{})
		invalid, _ := errors.AsType[*memory.InvalidError](err)
		return invalid.Violations
	}
	if got := decode(3); len(got) != 3 || got[2].Field != "request[1].messages[2].role" {
		t.Errorf("three wrong fields are %v", got)
	}
	if got := decode(1000); len(got) != 20 {
		t.Errorf("of a thousand wrong fields, %d are named", len(got))
	}
}

// TestFormerNamesMapToCurrentNames: The replacement of a former name exists, and no current name is mistaken for a former one.
func TestFormerNamesMapToCurrentNames(t *testing.T) {
	for former, now := range jsonapi.FormerCalls {
		if methodAt(t, now) == nil {
			t.Errorf("%s stands for %s, which does not exist", former, now)
		}
		if methodAt(t, former) != nil {
			t.Errorf("%s exists and is taken for %s", former, now)
		}
	}
}

func methodAt(t *testing.T, path string) protoreflect.Descriptor {
	t.Helper()
	name := strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", ".")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil
	}
	return found
}

package server

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that is wrapped here
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// A request that cannot be decoded is a caller's mistake, but grpc answers INTERNAL before any handler or interceptor runs. So the codec
// never fails. It leaves the message empty and notes the problem in an unknown field; the interceptors check every message for it.

// problemsField is the number of the unknown field in which the codec notes the problem. No message may declare this number.
const problemsField protowire.Number = 19_000

type codec struct {
	encoding.CodecV2
	maxBytes int
}

func newCodec(maxBytes int) codec {
	return codec{CodecV2: encoding.GetCodecV2("proto"), maxBytes: maxBytes}
}

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if done, ok := v.(encodedMessage); ok {
		return done.data, nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal checks the size of a request before it decodes it.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	var wrong memory.Violations
	message, ok := v.(proto.Message)
	switch {
	case !ok:
		return fmt.Errorf("%T is not a protobuf message", v)
	case data.Len() > c.maxBytes:
		wrong.Add("request", "is %d bytes, more than %d: send it in parts", data.Len(), c.maxBytes)
	default:
		err := c.CodecV2.Unmarshal(data, v)
		if err == nil {
			return nil
		}
		if addInvalidTexts(data.Materialize(), message.ProtoReflect().Descriptor(), "", &wrong); len(wrong) == 0 {
			wrong.Add("request", "cannot be decoded: %s", err)
		}
	}
	problems, err := json.Marshal(wrong)
	if err != nil {
		return err
	}
	proto.Reset(message)
	message.ProtoReflect().SetUnknown(problemField(problems))
	return nil
}

// problemField returns the unknown field that describes the problem.
func problemField(text []byte) protoreflect.RawFields {
	return protowire.AppendBytes(protowire.AppendTag(nil, problemsField, protowire.BytesType), text)
}

// decodingProblem returns why a message could not be decoded, or nil.
func decodingProblem(v any) error {
	message, ok := v.(proto.Message)
	if !ok {
		return nil
	}
	for unknown := message.ProtoReflect().GetUnknown(); len(unknown) > 0; {
		number, kind, n := protowire.ConsumeField(unknown)
		if n < 0 {
			return nil
		}
		if number == problemsField && kind == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(unknown)
			problems, _ := protowire.ConsumeBytes(unknown[tag:])
			var wrong memory.Violations
			if err := json.Unmarshal(problems, &wrong); err != nil {
				return memory.Invalid("request", "cannot be decoded: it has the reserved field %d", problemsField) // sent by the caller
			}
			return wrong.Err()
		}
		unknown = unknown[n:]
	}
	return nil
}

// addInvalidTexts reports the fields of an encoded message whose texts are not valid UTF-8. It stops where the encoding is broken. No
// message of this API contains itself, so the recursion is bounded.
func addInvalidTexts(data []byte, d protoreflect.MessageDescriptor, at string, v *memory.Violations) {
	counts := map[protowire.Number]int{}
	for len(data) > 0 {
		number, kind, tag := protowire.ConsumeTag(data)
		if tag < 0 {
			return
		}
		size := protowire.ConsumeFieldValue(number, kind, data[tag:])
		if size < 0 {
			return
		}
		value := data[tag : tag+size]
		data = data[tag+size:]
		field := d.Fields().ByNumber(number)
		if field == nil || kind != protowire.BytesType {
			continue
		}
		name := at + string(field.Name())
		if field.IsList() {
			name = fmt.Sprintf("%s[%d]", name, counts[number])
			counts[number]++
		}
		text, _ := protowire.ConsumeBytes(value)
		switch {
		case field.Kind() == protoreflect.StringKind && !utf8.Valid(text):
			v.Add(name, "is not valid UTF-8")
		case field.Kind() == protoreflect.MessageKind:
			addInvalidTexts(text, field.Message(), name+".", v)
		}
	}
}

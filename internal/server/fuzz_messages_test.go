package server_test

import (
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// choices builds messages from fuzz input: each byte is one choice. When the bytes run out, no more fields are set.
type choices struct {
	data  []byte
	known map[string]string
	wild  int  // how many of 256 values are hostile
	later bool // not the first message of a stream, which sets its scope
}

// startChoices takes the share of hostile values from the first byte. With few of them calls get far, with many they fail early.
func (z *fuzzed) startChoices(data []byte) *choices {
	c := &choices{data: data, known: z.known}
	c.wild = []int{0, 12, 48, 256}[c.below(4)]
	return c
}

func (c *choices) next() int {
	if len(c.data) == 0 {
		return 0
	}
	b := c.data[0]
	c.data = c.data[1:]
	return int(b)
}

func (c *choices) below(n int) int { return c.next() % n }

func newOf(d protoreflect.MessageDescriptor) protoreflect.Message {
	message, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		panic(err) // the generated code registers all
	}
	return message.New()
}

// made builds a message.
func (z *fuzzed) made(d protoreflect.MessageDescriptor, data []byte) proto.Message {
	m := newOf(d)
	z.startChoices(data).fill(m, 0)
	return m.Interface()
}

// fill sets some fields.
func (c *choices) fill(m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if field.Message() != nil && field.Message().FullName() == "memsidecar.v1.Scope" && c.next() >= c.wild/8 {
			m.Set(field, protoreflect.ValueOfMessage(c.scope().ProtoReflect()))
			continue
		}
		if one := field.ContainingOneof(); one != nil && !one.IsSynthetic() && c.next() >= c.wild {
			if (field.Index() == one.Fields().Get(0).Index()) == c.later {
				continue
			}
		} else if skipped := c.next() < 32+c.wild/4; skipped && (!required[string(field.Name())] || c.wild == 256) || depth > 3 {
			continue
		}
		switch {
		case field.IsMap():
			entries := m.Mutable(field).Map()
			for range c.below(4) {
				entries.Set(c.value(field.MapKey(), depth).MapKey(), c.value(field.MapValue(), depth))
			}
		case field.IsList():
			list := m.Mutable(field).List()
			for range 1 + c.below(4) {
				list.Append(c.value(field, depth))
			}
		default:
			m.Set(field, c.value(field, depth))
		}
	}
}

// required are fields without which a call fails at once.
var required = map[string]bool{
	"role": true, "messages": true, "memory": true, "text": true, "query": true, "items": true, "key": true, "content": true,
	"memory_id": true, "consideration_id": true, "id": true, "settings": true, "session": true,
}

// scope returns a valid scope, so that the fields after it are examined.
func (c *choices) scope() *memsidecarv1.Scope {
	s := &memsidecarv1.Scope{UserId: []string{"u0", "u0", "u0", "u0", "u0", "u0", "u1", ""}[c.below(8)]}
	switch c.below(8) {
	case 0:
		s.ChannelKind, s.ChannelId = memsidecarv1.ChannelKind_CHANNEL_KIND_GROUP, "g"
	case 1:
	default:
		s.ChannelKind = memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT
	}
	s.SessionId = []string{"", "", "", "s0", "s0", "s1"}[c.below(6)]
	s.AgentId = []string{"", "", "", "a0"}[c.below(4)]
	return s
}

var (
	numbers = []int64{
		0, 1, 2, -1, 10, 100, 1000, 1001, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64, 999_999_999, 1_000_000_000,
		-62_135_596_800, 253_402_300_799, 253_402_300_800, -62_135_596_801,
	}
	reals   = []float64{0, 0.5, 1, -1, 1.5, 1e308, 5e-324, math.NaN(), math.Inf(1), math.Inf(-1)}
	hostile = []string{
		"tea", "I like tea and I am allergic to nuts.", "我喜欢喝茶", "x", " ", "\x00", "a\x00b", "line\nbreak", "\x1b[31m",
		"\u202eevil\u2066", "a\u200bb\ufeff", "\ufffd",
		strings.Repeat(
			"x",
			257,
		), strings.Repeat("字", 4001), strings.Repeat("w ", 20_000), "' OR 1=1; --", "%s%n", "../../etc/passwd", "a//b", "*",
		`{}`, `[]`, `{"a":1}`, `{"a":`, `{"a":1e999}`, strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200), strings.Repeat("[", 20_000),
		"2026-11-20", "0000-00-00", "9999-12-31", "zh", "en", "und", "x-private", "not a language", "Asia/Shanghai", "Local", "Mars/Olympus",
		`kind = FACT`, `importance > 0.5 AND create_time < "2026-11-20T00:00:00Z"`, `text = "a" OR (`, strings.Repeat("(",
			500), strings.Repeat("NOT ", 500) + "explicit",
		`kind = "` + strings.Repeat(
			"x",
			5000,
		) + `"`, "text", "title", "metadata_json", "kind", "importance", "memory.text", "settings", "time_zone,language",
		"3", "the third one", "第三个", "99999999999999999999", "-1", "最后一个", "k0", "s0", "u0", "u1", "eyJhIjoiIiwicSI6IiJ9", "IyMj",
	}
)

// value returns a valid value, chosen by name and type, or a hostile one.
func (c *choices) value(field protoreflect.FieldDescriptor, depth int) protoreflect.Value {
	if field.Message() == nil && c.next() >= c.wild {
		return c.validValue(field)
	}
	return c.hostile(field, depth)
}

// validValue returns a value that a bot would send. Messages have valid fields.
func (c *choices) validValue(field protoreflect.FieldDescriptor) protoreflect.Value {
	name := string(field.Name())
	switch field.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(c.below(2) == 1)
	case protoreflect.EnumKind:
		values := field.Enum().Values()
		return protoreflect.ValueOfEnum(values.Get(values.Len() - 1 - c.below(values.Len()-1)).Number()) // never the unspecified value
	case protoreflect.Int32Kind:
		if name == "max_context_chars" {
			return protoreflect.ValueOfInt32(int32(200 + c.next()))
		}
		return protoreflect.ValueOfInt32(int32(1 + c.below(20)))
	case protoreflect.Int64Kind:
		n := int64(c.below(4))
		if field.ContainingMessage().Name() == "Timestamp" {
			n += time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC).Unix()
		}
		return protoreflect.ValueOfInt64(n)
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(c.next()) / 255)
	case protoreflect.StringKind:
		if name == "id" && field.ContainingMessage().Name() == "Memory" {
			name = "memory_id"
		}
		if id := c.known[name]; id != "" && (c.below(8) > 0) == (name != "page_token") {
			return protoreflect.ValueOfString(id)
		}
		list := usualTexts[name]
		switch {
		case list != nil:
		case strings.HasSuffix(name, "_json"):
			list = []string{"", "{}", `{"a":[1]}`}
		case strings.HasSuffix(name, "_id"), strings.HasSuffix(name, "_token"):
			list = []string{""}
		default:
			list = []string{"tea", "I like tea and I am allergic to nuts.", "我喜欢喝茶", "My password is hunter2.", "the third one"}
		}
		return protoreflect.ValueOfString(list[c.below(len(list))])
	default:
		return c.hostile(field, 0)
	}
}

// usualTexts are valid texts by field name.
var usualTexts = map[string][]string{
	"day": {"", "2026-11-20"}, "language": {"", "zh", "en"}, "time_zone": {"", "Asia/Shanghai"}, "list": {"", "films"}, "namespace": {""},
	"key": {
		"k0",
		"k1",
		"k2",
	}, "keys": {"k0", "k1", "k2"}, "text": {"2", "第一个", "Likes tea"}, "filter": {"", "importance > 0.5", `kind = "FACT"`},
	"paths":            {"text", "kind", "importance", "title", "metadata_json", "time_zone", "language", "paused", "memorize_every"},
	"superseded_by_id": {""}, "quarantine_reason": {""}, "channel_id": {""}, "id": {""}, "status": {"ok"}, "name": {"search"},
}

func (c *choices) hostile(field protoreflect.FieldDescriptor, depth int) protoreflect.Value {
	switch field.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(c.below(2) == 1)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(c.below(13) - 1))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(numbers[c.below(len(numbers))]))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(numbers[c.below(len(numbers))]))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		n := numbers[c.below(len(numbers))]
		if field.Name() == "seconds" && c.below(2) == 0 {
			n = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC).Unix() + n%1000
		}
		return protoreflect.ValueOfInt64(n)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(uint64(numbers[c.below(len(numbers))]))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(reals[c.below(len(reals))]))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(reals[c.below(len(reals))])
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(c.text(field)))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(c.text(field))
	case protoreflect.MessageKind, protoreflect.GroupKind:
		m := newOf(field.Message())
		c.fill(m, depth+1)
		return protoreflect.ValueOfMessage(m)
	}
	panic(field.Kind())
}

// text returns a usual text for the field, a hostile one, or the raw bytes.
func (c *choices) text(field protoreflect.FieldDescriptor) string {
	how := c.below(8)
	if id := c.known[string(field.Name())]; id != "" && how < 5 {
		return id
	}
	if how < 6 {
		return hostile[c.below(len(hostile))]
	}
	n := min(c.below(32), len(c.data))
	text := string(c.data[:n])
	c.data = c.data[n:]
	return strings.ToValidUTF8(text, "\ufffd")
}

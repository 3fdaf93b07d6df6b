package server_test

import (
	"math"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestHostileInputIsRefusedOrStored: Each input is refused with a helpful error or stored as it is, and the next call works.
func TestHostileInputIsRefusedOrStored(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	r.Create(t, sidecartest.Direct("ann"), "Likes tea")
	r.Create(t, sidecartest.Direct("ann"), "Likes coffee")
	token := sidecartest.Must(r.ListMemories(t.Context(), &memsidecarv1.ListMemoriesRequest{Scope: sidecartest.Direct("ann"), PageSize: 1}))(
		t,
	).GetNextPageToken()
	considering := func(messages ...*memsidecarv1.Message) proto.Message {
		return &memsidecarv1.ConsiderMemorizingRequest{Scope: sidecartest.Direct("bob"), Messages: messages, Wait: durationpb.New(0)}
	}
	at := func(seconds int64, nanos int32) *memsidecarv1.Message {
		m := sidecartest.Said("I like tea.")
		m.SendTime = &timestamppb.Timestamp{Seconds: seconds, Nanos: nanos}
		return m
	}
	with := func(metadata string) *memsidecarv1.Message {
		m := sidecartest.Said("I like tea.")
		m.MetadataJson = metadata
		return m
	}
	many := func(n int) (list []*memsidecarv1.Message) {
		for range n {
			list = append(list, sidecartest.Said("tea"))
		}
		return list
	}
	user := func(id string) proto.Message {
		return &memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct(id), Query: "tea"}
	}
	listing := func(change func(*memsidecarv1.ListMemoriesRequest)) proto.Message {
		q := &memsidecarv1.ListMemoriesRequest{Scope: sidecartest.Direct("bob")}
		change(q)
		return q
	}
	texts := func(request proto.Message, text string) []byte { return broken(t, request, text) }
	nested := strings.Repeat(`{"a":`, 9_000) + "1" + strings.Repeat("}", 9_000)
	tooDeep := strings.Repeat(`{"a":`, 11_000) + "1" + strings.Repeat("}", 11_000)
	for name, test := range map[string]struct {
		method  string
		request any
		code    codes.Code
		says    string
	}{
		"invalid UTF-8": {
			"Retrieve", texts(&memsidecarv1.RetrieveRequest{Query: "the words"}, "the words"),
			codes.InvalidArgument, "query is not valid UTF-8",
		},
		"a lone surrogate":      {"Retrieve", rawQuery("\xed\xa0\x80"), codes.InvalidArgument, "query is not valid UTF-8"},
		"an overlong encoding":  {"Retrieve", rawQuery("\xc0\xaf"), codes.InvalidArgument, "query is not valid UTF-8"},
		"NUL in a text":         {"ConsiderMemorizing", considering(sidecartest.Said("I like\x00 tea.")), codes.OK, ""},
		"NUL in an id":          {"Retrieve", user("u\x00"), codes.InvalidArgument, "scope.user_id holds a control character"},
		"a line break in an id": {"Retrieve", user("u\nv"), codes.InvalidArgument, "scope.user_id holds a control character"},
		"escape codes in an id": {"Retrieve", user("\x1b[31mu"), codes.InvalidArgument, "scope.user_id holds a control character"},
		"bidi in an id":         {"Retrieve", user("u\u202e"), codes.OK, ""},
		"zero width in a text":  {"ConsiderMemorizing", considering(sidecartest.Said("I\u200b like\u2066 tea\ufeff.")), codes.OK, ""},
		"an id of 257 bytes":    {"Retrieve", user(strings.Repeat("x", 257)), codes.InvalidArgument, "scope.user_id is longer than 256 bytes"},
		"an id of a megabyte":   {"Retrieve", user(strings.Repeat("x", 1<<20)), codes.InvalidArgument, "scope.user_id is longer than 256 bytes"},
		"a namespace upwards": {
			"Retrieve",
			&memsidecarv1.RetrieveRequest{Scope: &memsidecarv1.Scope{UserId: "u", Namespace: "a/../b"}, Query: "q"},
			codes.InvalidArgument, "scope.namespace",
		},
		"10 MB of text": {
			"ConsiderMemorizing", considering(sidecartest.Said(strings.Repeat("tea ", 10<<18))),
			codes.InvalidArgument, "send it in parts",
		},
		"1 MB of text": {
			"ConsiderMemorizing", considering(sidecartest.Said(strings.Repeat("tea ", 1<<18))),
			codes.InvalidArgument, "messages[0].content is 1048576 bytes, more than 262144",
		},
		"10,000 messages": {
			"ConsiderMemorizing", considering(many(10_000)...), codes.InvalidArgument,
			"messages has 10000 messages, more than 1000: hand the dialogue over in parts",
		},
		"1,000 messages":       {"ConsiderMemorizing", considering(many(1000)...), codes.OK, ""},
		"the year 0":           {"ConsiderMemorizing", considering(at(-62_167_219_200, 0)), codes.InvalidArgument, "messages[0].send_time is not a valid time"},
		"the year 1":           {"ConsiderMemorizing", considering(at(-62_135_596_800, 0)), codes.InvalidArgument, "messages[0].send_time"},
		"the year 10000":       {"ConsiderMemorizing", considering(at(253_402_300_800, 0)), codes.InvalidArgument, "messages[0].send_time is not a valid time"},
		"the year 9999":        {"ConsiderMemorizing", considering(at(253_402_300_799, 999_999_999)), codes.OK, ""},
		"negative nanoseconds": {"ConsiderMemorizing", considering(at(1_700_000_000, -1)), codes.InvalidArgument, "messages[0].send_time is not a valid time"},
		"the end of time": {
			"ConsiderMemorizing", considering(at(math.MaxInt64, math.MaxInt32)), codes.InvalidArgument,
			"messages[0].send_time is not a valid time",
		},
		"a wait without end": {
			"ConsiderMemorizing",
			&memsidecarv1.ConsiderMemorizingRequest{Scope: sidecartest.Direct("bob"), Messages: many(1), Wait: &durationpb.Duration{Seconds: math.MaxInt64}},
			codes.InvalidArgument, "wait is not a valid duration",
		},
		"deep metadata":            {"ConsiderMemorizing", considering(with(nested)), codes.OK, ""},
		"metadata without a floor": {"ConsiderMemorizing", considering(with(tooDeep)), codes.InvalidArgument, "messages[0].metadata_json is not a JSON object"},
		"metadata cut off":         {"ConsiderMemorizing", considering(with(`{"a":`)), codes.InvalidArgument, "messages[0].metadata_json is not a JSON object"},
		"metadata of one name":     {"ConsiderMemorizing", considering(with(`{"a":1,"a":2}`)), codes.OK, ""},
		"a huge filter": {"ListMemories", listing(func(q *memsidecarv1.ListMemoriesRequest) {
			q.Filter = strings.Repeat("explicit AND ", 100_000) + "explicit"
		}), codes.InvalidArgument, "filter"},
		"a deep filter": {"ListMemories", listing(func(q *memsidecarv1.ListMemoriesRequest) {
			q.Filter = strings.Repeat("(", 300) + "explicit" + strings.Repeat(")", 300)
		}), codes.InvalidArgument, "filter"},
		"a filter that injects": {
			"ListMemories",
			listing(func(q *memsidecarv1.ListMemoriesRequest) { q.Filter = `explicit"; DROP TABLE memories; --` }),
			codes.InvalidArgument, "filter",
		},
		"somebody's page token": {
			"ListMemories", listing(func(q *memsidecarv1.ListMemoriesRequest) { q.PageToken = token }),
			codes.InvalidArgument, "page_token is invalid for this query",
		},
		"a made-up page token": {
			"ListMemories", listing(func(q *memsidecarv1.ListMemoriesRequest) { q.PageToken = "e30" }),
			codes.InvalidArgument, "page_token is invalid for this query",
		},
		"a page token of noise": {
			"ListMemories",
			listing(func(q *memsidecarv1.ListMemoriesRequest) { q.PageToken = strings.Repeat("%", 10_000) }),
			codes.InvalidArgument, "page_token is invalid",
		},
		"the largest page": {"ListMemories", listing(func(q *memsidecarv1.ListMemoriesRequest) { q.PageSize = math.MaxInt32 }), codes.OK, ""},
		"the smallest page": {
			"ListMemories", listing(func(q *memsidecarv1.ListMemoriesRequest) { q.PageSize = math.MinInt32 }),
			codes.InvalidArgument, "page_size is negative",
		},
		"the most memories": {
			"Retrieve",
			&memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct("u"), Query: "q", TopK: proto.Int32(math.MaxInt32)},
			codes.InvalidArgument, "top_k",
		},
		"no number": {
			"Retrieve",
			&memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct("u"), Query: "q", MinRelevance: new(math.NaN())},
			codes.InvalidArgument, "min_relevance",
		},
		"an importance of NaN": {
			"CreateMemory",
			&memsidecarv1.CreateMemoryRequest{Scope: sidecartest.Direct("u"), Memory: &memsidecarv1.Memory{Text: "x", Importance: new(math.NaN())}},
			codes.InvalidArgument, "memory.importance",
		},
		"a query of a megabyte": {
			"Retrieve",
			&memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct("u"), Query: strings.Repeat("tea ", 1<<18)},
			codes.InvalidArgument, "query",
		},
		"a query of nothing": {"Retrieve", &memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct("u"), Query: "\u200b\u2060"}, codes.OK, ""},
		"somebody else's memory": {
			"GetMemory",
			&memsidecarv1.GetMemoryRequest{Scope: sidecartest.Direct("bob"), MemoryId: r.Memories(t, sidecartest.Direct("ann"))[0].GetId()},
			codes.NotFound, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(r.Considerations(t, sidecartest.Direct("bob")))
			err := r.Send(t, methodOf(t, test.method), test.request)
			sidecartest.WantCode(t, err, test.code)
			if !strings.Contains(status.Convert(err).Message(), test.says) {
				t.Errorf("the error is %q, and says nothing of %q", err, test.says)
			}
			if after := len(r.Considerations(t, sidecartest.Direct("bob"))); test.code != codes.OK && after != before {
				t.Errorf("%d considerations became %d", before, after)
			}
			if got := r.Texts(t, sidecartest.Direct("ann"), "tea"); len(got) == 0 || got[0] != "Likes tea" {
				t.Errorf("the next good call returns %q", got)
			}
		})
	}
}

// rawQuery is a RetrieveRequest with arbitrary bytes as its query.
func rawQuery(query string) []byte { return append([]byte{0x12, byte(len(query))}, query...) }

// TestHostileImportIsBounded: Imported memories obey the same limits as memories from dialogues.
func TestHostileImportIsBounded(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	many := make([]string, 1001)
	for field, source := range map[string]*memsidecarv1.Provenance{
		"memory[0].provenance.quote":            {Quote: strings.Repeat("x", 256<<10+1)},
		"memory[0].provenance.reason":           {Reason: strings.Repeat("x", 256<<10+1)},
		"memory[0].provenance.decided_by":       {DecidedBy: "a\nb"},
		"memory[0].provenance.speaker_id":       {SpeakerId: strings.Repeat("x", 257)},
		"memory[0].provenance.consideration_id": {ConsiderationId: "\x00"},
		"memory[0].provenance.message_ids":      {MessageIds: many},
		"memory[0].provenance.message_ids[1]":   {MessageIds: []string{"a", "\x1b"}},
	} {
		_, err := r.Import(t, sidecartest.Direct("u"), &memsidecarv1.Memory{Text: "Likes tea", Provenance: source})
		sidecartest.WantInvalid(t, err, field)
	}
	_, err := r.Import(t, sidecartest.Direct("u"), &memsidecarv1.Memory{Text: "Likes tea", Language: strings.Repeat("x", 1<<20)})
	sidecartest.WantInvalid(t, err, "memory[0].language")
	if stored := r.Memories(t, sidecartest.Direct("u")); len(stored) != 0 {
		t.Errorf("stored %v", stored)
	}
}

package server_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// corner is a place with everything that vera said and was shown there. All of it contains the corner's fruit, which occurs nowhere else:
// an answer with the fruit shows data of this corner.
type corner struct {
	name, fruit   string
	scope         *memsidecarv1.Scope
	memory        string // ids
	consideration string
	session       string
	traces        []string
}

func corners() []*corner {
	alone, plain := sidecartest.Direct("vera"), sidecartest.WithoutChannel("vera")
	alone.ChannelId, plain.ChannelId = "chat", "a"
	return []*corner{
		{name: "direct", fruit: "kumquat", scope: alone, session: "s1"},
		{name: "a", fruit: "榴莲", scope: sidecartest.Group("vera", "a"), session: "s2"},
		{name: "b", fruit: "papaya", scope: sidecartest.Group("vera", "b"), session: "s3"},
		{name: "c", fruit: "山竹", scope: sidecartest.Group("vera", "c"), session: "s4"},
		{name: "unspecified", fruit: "lychee", scope: plain, session: "s5"},
	}
}

// From each place, the places whose data is visible. Scopes without a channel are never shared.
var (
	everyCorner = []string{"direct", "a", "b", "c", "unspecified"}
	unshared    = map[string][]string{"direct": everyCorner, "a": {"a"}, "b": {"b"}, "c": {"c"}, "unspecified": {"unspecified"}}
	// b shares with a and c, which do not share with each other.
	sharedByB = map[string][]string{
		"direct": everyCorner, "a": {"a", "b"}, "b": {"a", "b", "c"}, "c": {"b", "c"}, "unspecified": {"unspecified"},
	}
	ofTheUser = map[string][]string{"direct": everyCorner, "a": everyCorner, "b": everyCorner, "c": everyCorner, "unspecified": everyCorner}
)

// fill stores something of every kind as vera.
func (c *corner) fill(t *testing.T, r *sidecartest.Sidecar) {
	t.Helper()
	text := "My favourite fruit is " + c.fruit + "."
	if c.fruit[0] > 0x7f {
		text = "我每天早上吃" + c.fruit + "。"
	}
	scope := sidecartest.InSession(c.scope, c.session)
	r.AppendTo(
		t,
		scope,
		sidecartest.Said("What about "+c.fruit+"? 说说"+c.fruit),
		sidecartest.Said(text),
		sidecartest.Answered("Fine: "+c.fruit),
	)
	made := r.Consider(t, scope)
	if len(made.GetChanges()) != 1 {
		t.Fatalf("%q is %v", text, made)
	}
	c.consideration, c.memory = made.GetId(), made.GetChanges()[0].GetMemoryId()
	sidecartest.Must(r.Sessions().UpdateSession(t.Context(), &memsidecarv1.UpdateSessionRequest{
		Scope: scope, Session: &memsidecarv1.Session{Title: "about " + c.fruit},
	}))(t)
	putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: c.scope, Items: []*memsidecarv1.RegistryItem{film("/"+c.fruit, c.fruit)}})
	found := r.Recalled(t, &memsidecarv1.RetrieveRequest{Scope: scope, Query: "fruit " + c.fruit, TurnId: "turn"})
	window := sidecartest.Must(
		r.Sessions().GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: scope, TurnId: "turn of " + c.fruit}),
	)(
		t,
	)
	c.traces = []string{found.GetTraceId(), window.GetTraceId()}
}

// answers collects answers. NOT_FOUND counts as an empty answer.
type answers struct {
	t    *testing.T
	call string
	text string
}

func (a *answers) add(m proto.Message, err error) {
	a.t.Helper()
	switch status.Code(err) {
	case codes.OK:
		a.text += protojson.Format(m)
	case codes.NotFound, codes.FailedPrecondition: // FailedPrecondition: no list is shown
	default:
		a.t.Errorf("%s: %v", a.call, err)
	}
}

// calls are calls made from one place.
type calls struct {
	*sidecartest.Sidecar
	from *memsidecarv1.Scope
	all  []*corner
}

// readCalls are all read calls, with every known id.
func readCalls() map[string]func(t *testing.T, r calls, a *answers) {
	top, neighbors, zero := proto.Int32(100), proto.Int32(20), proto.Float64(0)
	return map[string]func(t *testing.T, r calls, a *answers){
		"Retrieve": func(t *testing.T, r calls, a *answers) {
			for _, source := range []memsidecarv1.RetrieveSource{
				memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MEMORIES,
				memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MESSAGES,
			} {
				found, err := r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{
					Scope: r.from, Query: "favourite fruit, 每天早上吃", TopK: top, MinRelevance: zero, NeighborCount: neighbors, Sources: []memsidecarv1.RetrieveSource{source},
				})
				// The prompt block shows the same items as the list.
				for _, c := range r.all {
					listed := strings.Contains(fmt.Sprint(found.GetMemories(), found.GetMessages()), c.fruit)
					if listed != strings.Contains(found.GetPromptContext(), c.fruit) {
						t.Errorf("%v shows of %s:\n%s", source, c.name, found.GetPromptContext())
					}
				}
				a.add(found, err)
			}
		},
		"GetConsideration": func(t *testing.T, r calls, a *answers) {
			for _, c := range r.all {
				a.add(
					r.GetConsideration(t.Context(), &memsidecarv1.GetConsiderationRequest{Scope: r.from, ConsiderationId: c.consideration}),
				)
			}
		},
		"ListConsiderations": func(t *testing.T, r calls, a *answers) {
			a.add(r.ListConsiderations(t.Context(), &memsidecarv1.ListConsiderationsRequest{Scope: r.from}))
		},
		"GetMemory": func(t *testing.T, r calls, a *answers) {
			for _, c := range r.all {
				a.add(r.GetMemory(t.Context(), &memsidecarv1.GetMemoryRequest{Scope: r.from, MemoryId: c.memory}))
			}
		},
		"ListMemoryRevisions": func(t *testing.T, r calls, a *answers) {
			for _, c := range r.all {
				a.add(r.ListMemoryRevisions(t.Context(), &memsidecarv1.ListMemoryRevisionsRequest{Scope: r.from, MemoryId: c.memory}))
			}
		},
		"ListMemories": func(t *testing.T, r calls, a *answers) {
			a.add(r.ListMemories(t.Context(), &memsidecarv1.ListMemoriesRequest{Scope: r.from}))
		},
		"GetDigest": func(t *testing.T, r calls, a *answers) {
			a.add(r.Digests().GetDigest(t.Context(), &memsidecarv1.GetDigestRequest{Scope: r.from}))
		},
		"ListDigests": func(t *testing.T, r calls, a *answers) {
			a.add(r.Digests().ListDigests(t.Context(), &memsidecarv1.ListDigestsRequest{Scope: r.from}))
		},
		"SummarizeDay": func(t *testing.T, r calls, a *answers) {
			a.add(r.Digests().SummarizeDay(t.Context(), &memsidecarv1.SummarizeDayRequest{Scope: r.from}))
		},
		"GetNotebook": func(t *testing.T, r calls, a *answers) {
			a.add(r.Digests().GetNotebook(t.Context(), &memsidecarv1.GetNotebookRequest{Scope: r.from}))
		},
		"GetContext": func(t *testing.T, r calls, a *answers) {
			for _, c := range r.all {
				a.add(r.Sessions().GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: sidecartest.InSession(r.from, c.session)}))
			}
		},
		"ListMessages": func(t *testing.T, r calls, a *answers) {
			for _, c := range r.all {
				a.add(
					r.Sessions().ListMessages(t.Context(), &memsidecarv1.ListMessagesRequest{Scope: sidecartest.InSession(r.from, c.session)}),
				)
			}
		},
		"GetTopics": func(t *testing.T, r calls, a *answers) {
			a.add(r.Sessions().GetTopics(t.Context(), &memsidecarv1.GetTopicsRequest{Scope: r.from}))
			for _, c := range r.all {
				a.add(r.Sessions().GetTopics(t.Context(), &memsidecarv1.GetTopicsRequest{Scope: sidecartest.InSession(r.from, c.session)}))
			}
		},
		"GetSession": func(t *testing.T, r calls, a *answers) {
			for _, c := range r.all {
				a.add(r.Sessions().GetSession(t.Context(), &memsidecarv1.GetSessionRequest{Scope: sidecartest.InSession(r.from, c.session)}))
			}
		},
		"ListSessions": func(t *testing.T, r calls, a *answers) {
			a.add(r.Sessions().ListSessions(t.Context(), &memsidecarv1.ListSessionsRequest{Scope: r.from}))
		},
		"ExportSession": func(t *testing.T, r calls, a *answers) {
			for _, c := range r.all {
				stream := sidecartest.Must(
					r.Sessions().
						ExportSession(t.Context(), &memsidecarv1.ExportSessionRequest{Scope: sidecartest.InSession(r.from, c.session)}),
				)(
					t,
				)
				for {
					record, err := stream.Recv()
					if errors.Is(err, io.EOF) {
						break
					}
					if a.add(record, err); err != nil {
						break
					}
				}
			}
		},
		"GetTrace": func(t *testing.T, r calls, a *answers) {
			for _, c := range r.all {
				for _, id := range c.traces {
					a.add(
						memsidecarv1.NewTraceServiceClient(r.Conn).
							GetTrace(t.Context(), &memsidecarv1.GetTraceRequest{Scope: r.from, TraceId: id, IncludeSession: true}),
					)
				}
			}
		},
		"ListTraces": func(t *testing.T, r calls, a *answers) {
			a.add(memsidecarv1.NewTraceServiceClient(r.Conn).ListTraces(t.Context(), &memsidecarv1.ListTracesRequest{Scope: r.from}))
		},
		"FilterUnseen": func(t *testing.T, r calls, a *answers) { // omitted items are the answer
			var keys []string
			for _, c := range r.all {
				keys = append(keys, "/"+c.fruit)
			}
			resp := sidecartest.Must(
				lists(r.Sidecar).FilterUnseen(t.Context(), &memsidecarv1.FilterUnseenRequest{Scope: r.from, Keys: keys}),
			)(
				t,
			)
			for _, key := range keys {
				if !slices.Contains(resp.GetUnseenKeys(), key) {
					a.text += key
				}
			}
		},
		"ListItems": func(t *testing.T, r calls, a *answers) {
			a.add(lists(r.Sidecar).ListItems(t.Context(), &memsidecarv1.ListItemsRequest{Scope: r.from}))
		},
	}
}

// strictCalls only see lists shown in the same place: "3" must not select from another group's list.
func strictCalls() map[string]func(t *testing.T, r calls, a *answers) {
	return map[string]func(t *testing.T, r calls, a *answers){
		"SelectItems": func(t *testing.T, r calls, a *answers) {
			a.add(lists(r.Sidecar).SelectItems(t.Context(), choice(r.from, "1")))
		},
		"GetNumberedList": func(t *testing.T, r calls, a *answers) {
			a.add(lists(r.Sidecar).GetNumberedList(t.Context(), &memsidecarv1.GetNumberedListRequest{Scope: r.from}))
		},
	}
}

// otherCalls write, or concern a whole user or the sidecar. TestSharedGroupsWriteSeparately, TestVisibilityLevels and
// TestCallsAboutWholeUsersRefuseAChannel test them.
var otherCalls = []string{
	"ConsiderMemorizing", "RetryConsideration", "CreateMemory", "UpdateMemory", "DeleteMemory", "RevertMemory", "ReleaseMemory", "ForgetUser", "ExportUser",
	"ImportMemories", "GetUserSettings", "UpdateUserSettings", "GetStatus", "AppendMessages", "UpdateSession", "SwitchSession",
	"DeleteSession", "ImportSession", "PutItems", "DeleteNumberedList", "ImportNumberedList",
	"AuditMemories", // for operators
}

// TestVisibilityOfEveryReadCall makes every read call from every place with all known ids.
func TestVisibilityOfEveryReadCall(t *testing.T) {
	t.Parallel()
	reads, strict := readCalls(), strictCalls()
	for _, service := range []*grpc.ServiceDesc{
		&memsidecarv1.MemoryService_ServiceDesc, &memsidecarv1.SessionService_ServiceDesc, &memsidecarv1.DigestService_ServiceDesc,
		&memsidecarv1.NumberedListService_ServiceDesc, &memsidecarv1.TraceService_ServiceDesc, &memsidecarv1.AdminService_ServiceDesc,
	} {
		for _, method := range sidecartest.MethodNames(service) {
			if reads[method] == nil && strict[method] == nil && !slices.Contains(otherCalls, method) {
				t.Errorf("%s is not tested: add it to readCalls, strictCalls or otherCalls", method)
			}
		}
	}
	const share = "share_groups=[{channels: [a, b]}, {channels: [b, c]}, {namespace: other, channels: [a, c]}]"
	for _, test := range []struct {
		name     string
		settings []string
		visible  map[string][]string
	}{
		{"channel", nil, unshared},
		{"share_groups", []string{share}, sharedByB},
		{"user", []string{"visibility=user", share}, ofTheUser},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := sidecartest.Serve(t, append(test.settings, "digest.interval=0")...)
			all := corners()
			for _, c := range all {
				c.fill(t, r)
			}
			for _, from := range all {
				of := calls{r, from.scope, all}
				for name, call := range reads {
					wantCorners(t, name, of, call, test.visible[from.name])
				}
				for name, call := range strict {
					wantCorners(t, name, of, call, []string{from.name})
				}
			}
		})
	}
}

// wantCorners checks which places' data a call shows.
func wantCorners(t *testing.T, name string, r calls, call func(t *testing.T, r calls, a *answers), want []string) {
	t.Helper()
	a := &answers{t: t, call: name}
	call(t, r, a)
	for _, c := range r.all {
		if got, may := strings.Contains(a.text, c.fruit), slices.Contains(want, c.name); got != may {
			t.Errorf("%s from %v shows data of %s: %v, want %v:\n%.2000s", name, r.from, c.name, got, may, a.text)
		}
	}
}

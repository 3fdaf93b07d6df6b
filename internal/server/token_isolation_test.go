package server_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// marker is in all data of one namespace, in addition to its corners' fruits.
const marker = "zyzzyva"

// fillers store data with the marker through every writing call, for the first corner's user. Deleting calls get an object to delete.
func fillers(r *sidecartest.Sidecar, c *corner) map[string]func(ctx context.Context) error {
	const agent = "agent of " + marker
	scope := proto.CloneOf(c.scope)
	scope.AgentId = agent
	memories, sessions, results := r.Stubs, r.Sessions(), lists(r)
	items := []*memsidecarv1.RegistryItem{
		{Key: "/" + marker, Title: marker, AttributesJson: `{"m":"` + marker + `"}`},
		{Key: "/2" + marker},
	}
	last := func(_ any, err error) error { return err }
	create := func(ctx context.Context, text string) (*memsidecarv1.Memory, error) {
		resp, err := memories.CreateMemory(ctx, &memsidecarv1.CreateMemoryRequest{
			Scope: scope, RequestId: "the-victims-request", Memory: &memsidecarv1.Memory{Text: text},
		})
		return resp.GetMemory(), err
	}
	refused := func(err error) error { // calls cannot create this kind of data
		if status.Code(err) != codes.FailedPrecondition {
			return errors.Join(errors.New("is not refused"), err)
		}
		return nil
	}
	return map[string]func(ctx context.Context) error{
		"AppendMessages":     func(context.Context) error { return nil }, // done by the corners, like the next ones
		"ConsiderMemorizing": func(context.Context) error { return nil },
		"UpdateSession":      func(context.Context) error { return nil },
		"PutItems": func(ctx context.Context) error {
			return last(results.PutItems(ctx, &memsidecarv1.PutItemsRequest{
				Scope: scope, List: "films", Items: items, Mode: scheduled, RegistryKind: memsidecarv1.RegistryKind_REGISTRY_KIND_NAMESPACE,
			}))
		},
		"ImportNumberedList": func(ctx context.Context) error {
			return last(
				results.ImportNumberedList(
					ctx,
					&memsidecarv1.ImportNumberedListRequest{Scope: scope, List: "songs", Items: items, ShownKeys: []string{"/" + marker}},
				),
			)
		},
		"DeleteNumberedList": func(ctx context.Context) error {
			if _, err := results.PutItems(ctx, &memsidecarv1.PutItemsRequest{Scope: scope, List: "gone", Items: items}); err != nil {
				return err
			}
			return last(results.DeleteNumberedList(ctx, &memsidecarv1.DeleteNumberedListRequest{Scope: scope, List: "gone"}))
		},
		"CreateMemory": func(ctx context.Context) error { return last(create(ctx, marker+" is a weevil")) },
		"UpdateMemory": func(ctx context.Context) error {
			return last(memories.UpdateMemory(ctx, &memsidecarv1.UpdateMemoryRequest{
				Scope: scope, Memory: &memsidecarv1.Memory{Id: c.memory, Importance: new(0.9)},
			}))
		},
		"RevertMemory": func(ctx context.Context) error {
			return last(memories.RevertMemory(ctx, &memsidecarv1.RevertMemoryRequest{Scope: scope, MemoryId: c.memory}))
		},
		"ReleaseMemory": func(ctx context.Context) error {
			return refused(last(memories.ReleaseMemory(ctx, &memsidecarv1.ReleaseMemoryRequest{Scope: scope, MemoryId: c.memory})))
		},
		"RetryConsideration": func(ctx context.Context) error {
			return refused(
				last(
					memories.RetryConsideration(
						ctx,
						&memsidecarv1.RetryConsiderationRequest{Scope: scope, ConsiderationId: c.consideration},
					),
				),
			)
		},
		"ImportMemories": func(ctx context.Context) error {
			return last(importAll(ctx, r, scope, &memsidecarv1.Memory{Id: "mem_of_" + marker, Text: "A second " + marker}))
		},
		"DeleteMemory": func(ctx context.Context) error {
			made, err := memories.CreateMemory(
				ctx,
				&memsidecarv1.CreateMemoryRequest{Scope: scope, Memory: &memsidecarv1.Memory{Text: "not for long"}},
			)
			if err != nil {
				return err
			}
			return last(memories.DeleteMemory(ctx, &memsidecarv1.DeleteMemoryRequest{Scope: scope, MemoryId: made.GetMemory().GetId()}))
		},
		"UpdateUserSettings": func(ctx context.Context) error {
			return last(memories.UpdateUserSettings(ctx, &memsidecarv1.UpdateUserSettingsRequest{
				Scope: scope, Settings: &memsidecarv1.UserSettings{TimeZone: "Antarctica/Troll"},
			}))
		},
		"ForgetUser": func(ctx context.Context) error {
			return last(memories.ForgetUser(ctx, &memsidecarv1.ForgetUserRequest{Scope: &memsidecarv1.Scope{UserId: "somebody"}}))
		},
		"SwitchSession": func(ctx context.Context) error {
			return last(sessions.SwitchSession(ctx, &memsidecarv1.SwitchSessionRequest{Scope: sidecartest.InSession(scope, c.session)}))
		},
		"ImportSession": func(ctx context.Context) error {
			stream, err := sessions.ImportSession(ctx)
			for _, request := range []*memsidecarv1.ImportSessionRequest{
				{
					Item: &memsidecarv1.ImportSessionRequest_Session{
						Session: &memsidecarv1.ImportedSession{Scope: scope, Session: &memsidecarv1.Session{Id: "imported", Title: marker}},
					},
				},
				{Item: &memsidecarv1.ImportSessionRequest_Message{Message: sidecartest.Said("What is a " + marker + "?")}},
			} {
				if err == nil {
					err = stream.Send(request)
				}
			}
			if err != nil {
				return err
			}
			return last(stream.CloseAndRecv())
		},
		"DeleteSession": func(ctx context.Context) error {
			gone := sidecartest.InSession(scope, "not for long")
			if _, err := sessions.AppendMessages(
				ctx,
				&memsidecarv1.AppendMessagesRequest{Scope: gone, Messages: []*memsidecarv1.Message{sidecartest.Said("hi")}},
			); err != nil {
				return err
			}
			return last(sessions.DeleteSession(ctx, &memsidecarv1.DeleteSessionRequest{Scope: gone}))
		},
		"SummarizeDay": func(ctx context.Context) error {
			return last(r.Digests().SummarizeDay(ctx, &memsidecarv1.SummarizeDayRequest{Scope: c.scope}))
		},
	}
}

// moreReads are the read calls that the visibility test does not make.
func moreReads(r *sidecartest.Sidecar) map[string]func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
	ofAll := memsidecarv1.RegistryKind_REGISTRY_KIND_NAMESPACE
	return map[string]func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error){
		"ListItems": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return lists(r).ListItems(ctx, &memsidecarv1.ListItemsRequest{Scope: as, RegistryKind: ofAll, List: "films"})
		},
		"SelectItems": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return lists(
				r,
			).SelectItems(ctx, &memsidecarv1.SelectItemsRequest{Scope: as, List: "songs", Selector: &memsidecarv1.SelectItemsRequest_Ordinal{Ordinal: 1}})
		},
		"GetNumberedList": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return lists(r).GetNumberedList(ctx, &memsidecarv1.GetNumberedListRequest{Scope: as, List: "songs"})
		},
		"FilterUnseen": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			keys := []string{"/" + marker}
			resp, err := lists(
				r,
			).FilterUnseen(ctx, &memsidecarv1.FilterUnseenRequest{Scope: as, RegistryKind: ofAll, List: "films", Keys: keys})
			if err == nil && !slices.Equal(resp.GetUnseenKeys(), keys) {
				err = errors.New("it tells what another namespace has seen")
			}
			return nil, err
		},
		"ListMemories": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return r.ListMemories(ctx, &memsidecarv1.ListMemoriesRequest{Scope: as, Filter: `agent_id = "agent of ` + marker + `"`})
		},
		"GetMemory": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return r.GetMemory(ctx, &memsidecarv1.GetMemoryRequest{Scope: as, MemoryId: "mem_of_" + marker})
		},
		"GetUserSettings": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return r.GetUserSettings(ctx, &memsidecarv1.GetUserSettingsRequest{Scope: as})
		},
		"ListSessions": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return r.Sessions().
				ListSessions(ctx, &memsidecarv1.ListSessionsRequest{Scope: &memsidecarv1.Scope{Namespace: as.GetNamespace()}})
		},
		"ListMessages": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return r.Sessions().ListMessages(ctx, &memsidecarv1.ListMessagesRequest{Scope: sidecartest.InSession(as, "imported")})
		},
		"GetStatus": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return r.GetStatus(ctx, &memsidecarv1.GetStatusRequest{Scope: as, UsageDays: 31})
		},
		"ListTraces": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return memsidecarv1.NewTraceServiceClient(r.Conn).ListTraces(ctx, &memsidecarv1.ListTracesRequest{Scope: as, TurnId: "turn"})
		},
	}
}

// snapshot returns all data of a namespace except times of use.
func snapshot(t *testing.T, r *sidecartest.Sidecar, namespace string) []string {
	t.Helper()
	var all []string
	keep := func(m proto.Message) {
		all = append(
			all,
			string(m.ProtoReflect().Descriptor().Name())+string(sidecartest.Must(proto.MarshalOptions{Deterministic: true}.Marshal(m))(t)),
		)
	}
	for _, record := range r.Export(t, &memsidecarv1.Scope{Namespace: namespace, UserId: "vera"}).Records {
		for _, m := range []*memsidecarv1.Memory{record.GetMemory(), record.GetMemoryRevision().GetMemory(), record.GetMemoryRevision().GetPrevious()} {
			if m != nil { // the owner's use counts are written later
				m.UseCount, m.LastUseTime = 0, nil
			}
		}
		if record.GetTrace() == nil {
			keep(record)
		}
	}
	for _, list := range []string{"films", "default"} {
		items := sidecartest.Must(lists(r).ListItems(t.Context(), &memsidecarv1.ListItemsRequest{
			Scope: &memsidecarv1.Scope{Namespace: namespace}, List: list, RegistryKind: memsidecarv1.RegistryKind_REGISTRY_KIND_NAMESPACE,
		}))(t)
		keep(items)
	}
	return all
}

// TestTokenReachesOnlyItsNamespace fills two namespaces through every writing call, with the same users, channels and sessions. A token
// of one namespace then tries every call with every identifier of the other.
func TestTokenReachesOnlyItsNamespace(t *testing.T) {
	t.Parallel()
	r, tokens := sidecartest.ServeGuarded(t, "digest.interval=0", "session.memorize_every=0")
	a, b, admin := r.As(t, tokens["head"]), r.As(t, tokens["b"]), r.As(t, tokens["admin"])
	places := func(fruits ...string) []*corner {
		all := slices.DeleteFunc(corners(), func(c *corner) bool { return c.name == "b" || c.name == "c" })
		for i, fruit := range fruits {
			all[i].fruit = fruit
		}
		return all
	}
	own, others := places("apple", "苹果", "plum"), places()
	for i := range others {
		own[i].fill(t, a)
		others[i].fill(t, b)
	}
	stores := fillers(b, others[0])
	for _, name := range []string{"UpdateMemory", "CreateMemory"} { // before objects that depend on them
		if err := stores[name](t.Context()); err != nil {
			t.Fatal(name, err)
		}
	}
	methods := sidecartest.AllMethods(t)
	for _, method := range methods {
		name := string(method.Name())
		if slices.Contains([]string{"UpdateMemory", "CreateMemory", "ExportUser", "GetUserSettings", "GetStatus"}, name) ||
			slices.Contains(operatorCalls, name) ||
			!slices.Contains(otherCalls, name) && name != "SummarizeDay" {
			continue
		}
		if stores[name] == nil {
			t.Fatalf("%s stores nothing in the other namespace: add how it does", name)
		}
		if err := stores[name](t.Context()); err != nil {
			t.Fatal(name, err)
		}
	}
	pages := otherPages(t, b, others[0])
	before := snapshot(t, admin, "b")
	for _, text := range []string{marker, "kumquat", "Antarctica"} {
		if !strings.Contains(strings.Join(before, ""), text) {
			t.Fatalf("the other namespace has no %s", text)
		}
	}
	var secrets []string
	for _, c := range others {
		secrets = append(secrets, c.fruit)
	}
	secrets = append(secrets, marker+" is", "second "+marker, "a "+marker, "/"+marker, `"`+marker+`"`, "agent of", "Antarctica")
	wantNothing := func(call, answer string, err error) {
		t.Helper()
		for _, secret := range secrets {
			if strings.Contains(answer, secret) || err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("%s shows %q of another namespace: %.2000s, %v", call, secret, answer, err)
			}
		}
	}

	// Naming the other namespace is refused by every call.
	for _, method := range methods {
		for _, namespace := range []string{"b", "b/c", "default", "A", " a", "a/", "a/b", "*", strings.Repeat("x", 10_000)} {
			answer, err := a.Call(t, method, sidecartest.ScopedRequest(t, method, sidecartest.InNamespace(namespace, others[0].scope)))
			if status.Code(err) != codes.PermissionDenied {
				t.Errorf("%s in the namespace %.20q is answered %v", method.Name(), namespace, err)
			}
			wantNothing(string(method.Name()), protojson.Format(answer), err)
		}
	}

	// With its own namespace, or none, the token finds nothing of the other, by any id.
	reads, strict := readCalls(), strictCalls()
	tables := []map[string]func(context.Context, *memsidecarv1.Scope) (proto.Message, error){moreReads(a)}
	attacker := victim{scope: others[0].scope, memoryID: others[0].memory, considerationID: others[0].consideration}
	attacker.pageToken = pages["ListMemories"]
	results := resultAttempts(a)
	delete(results, "FilterUnseen") // it would find items that PutItems stores
	tables = append(tables, attempts(a, attacker), results, sessionAttempts(a, knownIDs{
		session: "imported", traces: others[0].traces, pages: map[string]string{"messages": pages["ListMessages"], "sessions": pages["ListSessions"]},
	}))
	tried := map[string]bool{}
	for i, mine := range own {
		for name, call := range joined(reads, strict) {
			tried[name] = true
			wantCorners(
				t,
				name,
				calls{a, mine.scope, own},
				call,
				map[bool][]string{true: unshared[mine.name], false: {mine.name}}[reads[name] != nil],
			)
			for _, namespace := range []string{"", "a"} {
				found := &answers{t: t, call: name}
				call(t, calls{a, sidecartest.InNamespace(namespace, others[i].scope), others}, found)
				wantNothing(name, found.text, nil)
			}
		}
	}
	for _, table := range tables {
		for name, try := range table {
			tried[name] = true
			for _, namespace := range []string{"", "a"} {
				answer, err := try(t.Context(), sidecartest.InNamespace(namespace, others[0].scope))
				if code := status.Code(err); code != codes.OK && code != codes.NotFound && code != codes.FailedPrecondition {
					t.Errorf("%s: %v", name, err)
				}
				text := ""
				if err == nil && answer != nil {
					text = protojson.Format(answer)
				}
				wantNothing(name, text, err)
			}
		}
	}
	for _, method := range methods {
		if slices.Contains(operatorCalls, string(method.Name())) {
			tried[string(method.Name())] = true
			for _, scope := range []*memsidecarv1.Scope{{}, {Namespace: "a"}, {UserId: "vera"}} {
				answer, err := a.Call(t, method, sidecartest.ScopedRequest(t, method, scope))
				sidecartest.WantCode(t, err, codes.OK)
				wantNothing(string(method.Name()), protojson.Format(answer), nil)
			}
		}
		if name := string(method.Name()); !tried[name] {
			t.Errorf("%s is not tried: add an attempt with the other namespace's identifiers", name)
		}
	}
	for _, method := range methods { // page tokens give no access either
		for list, token := range pages {
			if field := method.Input().Fields().ByName("page_token"); field != nil {
				request := sidecartest.ScopedRequest(t, method, proto.CloneOf(others[0].scope))
				request.ProtoReflect().Set(field, protoreflect.ValueOfString(token))
				_, err := a.Call(t, method, request)
				if got := sidecartest.WrongFields(err); !slices.Equal(got, []string{"page_token"}) {
					t.Errorf("%s takes the page token of the other namespace's %s: %v", method.Name(), list, err)
				}
			}
		}
	}

	after := snapshot(t, admin, "b")
	for _, is := range after {
		if !slices.Contains(before, is) {
			t.Errorf("the other namespace has now %q", is)
		}
	}
	for _, was := range before {
		if !slices.Contains(after, was) {
			t.Errorf("the other namespace had %q", was)
		}
	}
}

// otherPages are page tokens of every list by call.
func otherPages(t *testing.T, r *sidecartest.Sidecar, c *corner) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for _, method := range sidecartest.AllMethods(t) {
		size := method.Input().Fields().ByName("page_size")
		if size == nil {
			continue
		}
		scope := c.scope
		if method.Name() == "ListMessages" {
			scope = sidecartest.InSession(scope, c.session)
		}
		if method.Name() == "ListUsers" {
			sidecartest.Must(r.CreateMemory(t.Context(), &memsidecarv1.CreateMemoryRequest{
				Scope:  sidecartest.InNamespace(scope.GetNamespace(), sidecartest.Direct("another")),
				Memory: &memsidecarv1.Memory{Text: "Likes tea"},
			}))(t)
		}
		request := sidecartest.ScopedRequest(t, method, proto.CloneOf(scope))
		request.ProtoReflect().Set(size, protoreflect.ValueOfInt32(1))
		if method.Name() == "ListItems" {
			putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: c.scope, Items: listing(3)})
		}
		answer, err := r.Call(t, method, request)
		next, ok := answer.(interface{ GetNextPageToken() string })
		if err != nil || !ok || next.GetNextPageToken() == "" && method.Name() != "ListDigests" {
			t.Fatalf("%s has no second page: %v, %v", method.Name(), answer, err)
		}
		if next.GetNextPageToken() != "" {
			pages[string(method.Name())] = next.GetNextPageToken()
		}
	}
	return pages
}

func joined[K comparable, V any](of ...map[K]V) map[K]V {
	all := map[K]V{}
	for _, m := range of {
		maps.Copy(all, m)
	}
	return all
}

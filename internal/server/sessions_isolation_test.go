package server_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// knownIDs is what an attacker knows about the victim's session.
type knownIDs struct {
	session string
	traces  []string
	pages   map[string]string // page tokens of the victim by call
}

// sessionAttempts has, for every call about sessions and traces, an attempt with the victim's identifiers.
func sessionAttempts(r *sidecartest.Sidecar, v knownIDs) map[string]func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
	sessions, traces := r.Sessions(), memsidecarv1.NewTraceServiceClient(r.Conn)
	in := func(as *memsidecarv1.Scope) *memsidecarv1.Scope { return sidecartest.InSession(as, v.session) }
	return map[string]func(context.Context, *memsidecarv1.Scope) (proto.Message, error){
		"AppendMessages": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return sessions.AppendMessages(ctx, &memsidecarv1.AppendMessagesRequest{Scope: in(as), Messages: []*memsidecarv1.Message{sidecartest.Said("forged")}})
		},
		"GetContext": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return sessions.GetContext(ctx, &memsidecarv1.GetContextRequest{Scope: in(as)})
		},
		"ListMessages": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			_, err := sessions.ListMessages(ctx, &memsidecarv1.ListMessagesRequest{Scope: in(as), PageSize: 1, PageToken: v.pages["messages"]})
			if status.Code(err) != codes.InvalidArgument {
				return nil, errors.New("the page token of somebody else's messages is taken")
			}
			return sessions.ListMessages(ctx, &memsidecarv1.ListMessagesRequest{Scope: in(as), NewestFirst: true, StartPosition: 1, RenderText: true})
		},
		"GetTopics": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return sessions.GetTopics(ctx, &memsidecarv1.GetTopicsRequest{Scope: in(as)})
		},
		"GetSession": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return sessions.GetSession(ctx, &memsidecarv1.GetSessionRequest{Scope: in(as)})
		},
		"ListSessions": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			_, err := sessions.ListSessions(ctx, &memsidecarv1.ListSessionsRequest{Scope: as, PageSize: 1, PageToken: v.pages["sessions"]})
			if status.Code(err) != codes.InvalidArgument {
				return nil, errors.New("the page token of somebody else's sessions is taken")
			}
			return sessions.ListSessions(ctx, &memsidecarv1.ListSessionsRequest{Scope: as})
		},
		"UpdateSession": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return sessions.UpdateSession(ctx, &memsidecarv1.UpdateSessionRequest{Scope: in(as), Session: &memsidecarv1.Session{Title: "forged"}})
		},
		"SwitchSession": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			as = in(as)
			if as.GetUserId() == "" {
				as.UserId = "nobody"
			}
			return sessions.SwitchSession(ctx, &memsidecarv1.SwitchSessionRequest{Scope: as})
		},
		"DeleteSession": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return sessions.DeleteSession(ctx, &memsidecarv1.DeleteSessionRequest{Scope: in(as), DeleteMemories: true})
		},
		"ExportSession": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			stream, err := sessions.ExportSession(ctx, &memsidecarv1.ExportSessionRequest{Scope: in(as)})
			if err != nil {
				return nil, err
			}
			all := &memsidecarv1.ListMessagesResponse{}
			for {
				record, err := stream.Recv()
				if errors.Is(err, io.EOF) {
					return all, nil
				}
				if err != nil {
					return nil, err
				}
				all.Text += protojson.Format(record)
			}
		},
		"ImportSession": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			stream, err := sessions.ImportSession(ctx)
			if err != nil {
				return nil, err
			}
			for _, request := range []*memsidecarv1.ImportSessionRequest{
				{Item: &memsidecarv1.ImportSessionRequest_Session{Session: &memsidecarv1.ImportedSession{Scope: as, Session: &memsidecarv1.Session{Id: v.session}}}},
				{Item: &memsidecarv1.ImportSessionRequest_Message{Message: sidecartest.Said("forged")}},
			} {
				if err := stream.Send(request); err != nil && !errors.Is(err, io.EOF) {
					return nil, err
				}
			}
			return stream.CloseAndRecv()
		},
		"GetTrace": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			var err error
			for _, id := range v.traces {
				var resp *memsidecarv1.GetTraceResponse
				if resp, err = traces.GetTrace(ctx, &memsidecarv1.GetTraceRequest{Scope: in(as), TraceId: id, IncludeSession: true}); err == nil {
					return resp, errors.New("a trace of somebody else is shown")
				}
			}
			return nil, err
		},
		"ListTraces": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return traces.ListTraces(ctx, &memsidecarv1.ListTracesRequest{Scope: in(as), TurnId: "turn"})
		},
		"ConsiderMemorizing": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return r.ConsiderMemorizing(ctx, &memsidecarv1.ConsiderMemorizingRequest{Scope: in(as)})
		},
		"Retrieve": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			zero, all := 0.0, int32(100)
			return r.Retrieve(ctx, &memsidecarv1.RetrieveRequest{
				Scope: in(as), Query: secretText, MinRelevance: &zero, TopK: &all,
				Sources: []memsidecarv1.RetrieveSource{memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MEMORIES, memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MESSAGES},
			})
		},
	}
}

// TestUsersCannotReachEachOthersSessions lets other users, the victim's namesake, and the victim in a group try every call with the
// identifiers of a direct chat of the victim.
func TestUsersCannotReachEachOthersSessions(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	scope := sidecartest.InSession(sidecartest.Direct("alice"), "main")
	r.AppendTo(t, sidecartest.InSession(sidecartest.Direct("alice"), "other"), sidecartest.Said("hello"))
	for range 3 {
		r.AppendTo(t, scope, sidecartest.Said("请记住：我的"+secretText), sidecartest.Answered("好的，"+secretText))
	}
	v := knownIDs{session: "main", pages: map[string]string{}}
	r.Consider(t, scope)
	window, err := r.Sessions().GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: scope, TurnId: "turn"})
	if err != nil {
		t.Fatal(err)
	}
	found, err := r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: scope, Query: secretText, TurnId: "turn"})
	if err != nil {
		t.Fatal(err)
	}
	v.traces = []string{window.GetTraceId(), found.GetTraceId()}
	messages, err := r.Sessions().ListMessages(t.Context(), &memsidecarv1.ListMessagesRequest{Scope: scope, PageSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	list, err := r.Sessions().ListSessions(t.Context(), &memsidecarv1.ListSessionsRequest{Scope: sidecartest.Direct("alice"), PageSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	v.pages["messages"], v.pages["sessions"] = messages.GetNextPageToken(), list.GetNextPageToken()
	before, said := r.ExportSession(t, scope)

	named := slices.Concat(sidecartest.MethodNames(&memsidecarv1.SessionService_ServiceDesc), sidecartest.MethodNames(&memsidecarv1.TraceService_ServiceDesc),
		[]string{"ConsiderMemorizing", "Retrieve"})
	tried := sessionAttempts(r, v)
	for _, method := range []string{"GetContext", "GetSession", "Retrieve", "GetTopics"} {
		if resp, err := tried[method](t.Context(), sidecartest.Direct("alice")); err != nil || !strings.Contains(protojson.Format(resp), "紫色河马") {
			t.Errorf("the victim is not shown the secret by %s: %v, %v", method, resp, err)
		}
	}
	for name, attacker := range map[string]*memsidecarv1.Scope{
		"another user":              sidecartest.Direct("mallory"),
		"another namespace":         {Namespace: "other", UserId: "alice", ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT},
		"the victim in a group":     sidecartest.Group("alice", "g"),
		"the victim without a kind": {UserId: "alice"},
		"nobody":                    {},
		"nobody in a direct chat":   {ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT},
	} {
		for _, method := range named {
			try := tried[method]
			if try == nil {
				t.Errorf("%s is not tried: add an attempt by another user", method)
				continue
			}
			resp, err := try(t.Context(), attacker)
			switch code := status.Code(err); {
			case err != nil && code != codes.NotFound && code != codes.FailedPrecondition && code != codes.InvalidArgument:
				t.Errorf("%s: %s: %v", name, method, err)
			case err == nil && strings.Contains(protojson.Format(resp), "紫色河马"):
				t.Errorf("%s: %s shows the victim's data: %s", name, method, protojson.Format(resp))
			}
		}
	}
	if after, still := r.ExportSession(t, scope); !proto.Equal(before, after) || len(still) != len(said) {
		t.Errorf("the session became %v, was %v", after, before)
	}
}

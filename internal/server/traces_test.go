package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/trace"
	"github.com/memsidecar/memsidecar/internal/usage"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// traced is the trace service on its own database.
type traced struct {
	memsidecarv1.TraceServiceClient
	recorder *trace.Recorder
	// session answers requests for the session of a trace.
	session func(viewer session.Viewer, id string) (*memsidecarv1.GetSessionResponse, error)
}

func startTraced(t *testing.T) *traced {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: t.TempDir(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	const forEver = 100 * 365 * 24 * time.Hour // older traces are deleted in the background
	s := &traced{recorder: trace.NewRecorder(sqlstore.NewTraces(db), trace.Options{Retention: forEver, Log: log})}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(mapUnary(log), callUnary()))
	memsidecarv1.RegisterTraceServiceServer(server, &traceService{
		Traces: s.recorder, options: Options{Visibility: memory.NewVisibility(memory.VisibilityChannel, nil)},
		describe: func(_ context.Context, viewer session.Viewer, id string, _ int) (*memsidecarv1.GetSessionResponse, error) {
			return s.session(viewer, id)
		},
	})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	s.TraceServiceClient = memsidecarv1.NewTraceServiceClient(conn)
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		s.recorder.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

var annDirect = memory.Scope{
	Namespace: "n", UserID: "ann", AgentID: "nora", Channel: memory.Channel{Kind: memory.ChannelDirect, ID: "dm"}, SessionID: "s",
}

func TestGetTrace(t *testing.T) {
	s := startTraced(t)
	at := time.Date(2026, 11, 20, 8, 30, 0, 123_456_000, time.UTC)
	took := 250 * time.Millisecond
	s.recorder.Record(trace.Record{
		ID: "trc_1", Scope: annDirect, TurnID: "turn", OTelTraceID: "0af7651916cd43dd8448eb211c80319c", At: at, Duration: time.Second,
		Degraded: []trace.Degradation{{Component: "storage", Reason: "away"}},
		ModelCalls: []usage.Call{
			{At: at, Part: "embedding", Model: "p/m", Latency: took, Error: "HTTP 500", InputTokens: 1, OutputTokens: 2},
		},
		Retrieve: &trace.RetrieveDetail{Query: "茶?", TopK: 6, MinRelevance: 0.25, Memories: 1, Messages: 2, Candidates: []trace.Candidate{
			{MemoryID: "mem_1", Score: 0.1, Relevance: 0.2, Similarity: 0.3, Keyword: 0.4, Recency: 0.5, Importance: 0.6, Returned: true},
			{SessionID: "s", Position: 7, Score: 0.1},
		}},
	})
	s.recorder.Record(trace.Record{
		ID: "trc_2", Scope: annDirect, At: at, Error: "no", ToolCalls: []memory.ToolCall{{Name: "search", Arguments: "{}", Result: "r"}},
		Consider: &trace.ConsiderDetail{
			ConsiderationID: "con_1", Attempt: 2, Messages: 3, State: memory.StateFailed, Reason: "why", DecidedBy: "rules",
			Changes: []memory.MemoryChange{{MemoryID: "mem_1", Action: memory.ActionReinforced, Text: "Ann drinks tea."}},
			Prompts: []trace.Prompt{{Part: "summary", Version: "0123456789ab", Known: 2, Earlier: 4}},
		},
	})
	s.recorder.Record(trace.Record{
		ID: "trc_3", Scope: annDirect, At: at,
		Context: &trace.ContextDetail{
			MaxMessages: 10,
			MaxTurns:    5,
			MaxRunes:    4000,
			First:       3,
			Last:        9,
			Messages:    5,
			Dropped:     2,
			SummaryLast: 1,
		},
	})
	for id, want := range map[string]string{
		"trc_1": `id:"trc_1" kind:TRACE_KIND_RETRIEVE ` +
			`scope:{namespace:"n" user_id:"ann" agent_id:"nora" channel_id:"dm" channel_kind:CHANNEL_KIND_DIRECT session_id:"s"} ` +
			`turn_id:"turn" otel_trace_id:"0af7651916cd43dd8448eb211c80319c" start_time:{seconds:1795163400 nanos:123456000} ` +
			`duration:{seconds:1} degraded:{component:DEGRADED_COMPONENT_STORAGE reason:"away"} ` +
			`model_calls:{part:"embedding" model:"p/m" start_time:{seconds:1795163400 nanos:123456000} latency:{nanos:250000000} ` +
			`input_token_count:1 output_token_count:2 error:"HTTP 500"} ` +
			`retrieve:{query:"茶?" top_k:6 min_relevance:0.25 candidates:{memory_id:"mem_1" score:0.1 ` +
			`parts:{relevance:0.2 similarity:0.3 keyword:0.4 recency:0.5 importance:0.6} returned:true} ` +
			`candidates:{session_id:"s" position:7 score:0.1 parts:{}} memory_count:1 message_count:2}`,
		"trc_2": `id:"trc_2" kind:TRACE_KIND_CONSIDER ` +
			`scope:{namespace:"n" user_id:"ann" agent_id:"nora" channel_id:"dm" channel_kind:CHANNEL_KIND_DIRECT session_id:"s"} ` +
			`start_time:{seconds:1795163400 nanos:123456000} error:"no" tool_calls:{name:"search" arguments_json:"{}" result:"r"} ` +
			`consider:{consideration_id:"con_1" attempt:2 message_count:3 state:CONSIDERATION_STATE_FAILED reason:"why" ` +
			`decided_by:"rules" changes:{memory_id:"mem_1" action:MEMORY_ACTION_REINFORCED text:"Ann drinks tea."} ` +
			`prompts:{part:"summary" version:"0123456789ab" known_memory_count:2 earlier_message_count:4}}`,
		"trc_3": `id:"trc_3" kind:TRACE_KIND_CONTEXT ` +
			`scope:{namespace:"n" user_id:"ann" agent_id:"nora" channel_id:"dm" channel_kind:CHANNEL_KIND_DIRECT session_id:"s"} ` +
			`start_time:{seconds:1795163400 nanos:123456000} context:{max_messages:10 max_turns:5 max_chars:4000 ` +
			`first_position:3 last_position:9 message_count:5 dropped_count:2 summary_last_position:1}`,
	} {
		resp, err := s.GetTrace(t.Context(), &memsidecarv1.GetTraceRequest{Scope: fromScope(annDirect), TraceId: id})
		// The text format has one or two spaces at random, so that programs do not depend on it.
		if got := strings.ReplaceAll(fmt.Sprint(resp.GetTrace()), "  ", " "); err != nil || got != want || resp.GetSession() != nil {
			t.Errorf("%s, %v, session %v; want\n%s", got, err, resp.GetSession(), want)
		}
	}
}

// TestGetTraceWithSession: The answer includes the session if the caller may see it. The trace does not depend on that.
func TestGetTraceWithSession(t *testing.T) {
	s := startTraced(t)
	s.recorder.Record(trace.Record{ID: "1", Scope: annDirect, At: time.Now(), Context: &trace.ContextDetail{}})
	alone := annDirect
	alone.SessionID = ""
	s.recorder.Record(trace.Record{ID: "2", Scope: alone, At: time.Now(), Context: &trace.ContextDetail{}})
	for name, test := range map[string]struct {
		id   string
		err  error
		with bool
		code codes.Code
	}{
		"seen":       {"1", nil, true, codes.OK},
		"not seen":   {"1", memory.ErrNotFound, false, codes.OK},
		"off":        {"1", memory.ErrPrecondition, false, codes.OK},
		"broken":     {"1", memory.ErrUnavailable, false, codes.Unavailable},
		"no session": {"2", nil, false, codes.OK},
	} {
		s.session = func(viewer session.Viewer, id string) (*memsidecarv1.GetSessionResponse, error) {
			if viewer.UserID != "ann" || viewer.Namespace != "n" || viewer.Channel != annDirect.Channel {
				t.Errorf("%s: asked by %+v", name, viewer)
			}
			if test.err != nil {
				return nil, fmt.Errorf("session %q: %w", id, test.err)
			}
			return &memsidecarv1.GetSessionResponse{Session: &memsidecarv1.Session{Id: id}}, nil
		}
		// The trace's session is returned, not the request's.
		asked := fromScope(annDirect)
		asked.SessionId = "another"
		resp, err := s.GetTrace(t.Context(), &memsidecarv1.GetTraceRequest{Scope: asked, TraceId: test.id, IncludeSession: true})
		if status.Code(err) != test.code || err == nil && resp.GetTrace().GetId() != test.id {
			t.Errorf("%s: %v, %v", name, resp, err)
		}
		if with := resp.GetSession().GetSession().GetId() == "s"; with != test.with {
			t.Errorf("%s: session %v", name, resp.GetSession())
		}
	}
}

// TestTracesOfOtherScopesAreNotFound: Traces outside of the scope are not found.
func TestTracesOfOtherScopesAreNotFound(t *testing.T) {
	s := startTraced(t)
	s.recorder.Record(trace.Record{ID: "1", Scope: annDirect, At: time.Now(), Context: &trace.ContextDetail{}})
	for name, change := range map[string]func(*memsidecarv1.Scope){
		"another user":      func(p *memsidecarv1.Scope) { p.UserId = "ben" },
		"no user":           func(p *memsidecarv1.Scope) { p.UserId = "" },
		"another namespace": func(p *memsidecarv1.Scope) { p.Namespace = "" },
		"a group":           func(p *memsidecarv1.Scope) { p.ChannelKind = memsidecarv1.ChannelKind_CHANNEL_KIND_GROUP },
		"unspecified":       func(p *memsidecarv1.Scope) { p.ChannelKind = memsidecarv1.ChannelKind_CHANNEL_KIND_UNSPECIFIED },
	} {
		scope := fromScope(annDirect)
		change(scope)
		if _, err := s.GetTrace(t.Context(), &memsidecarv1.GetTraceRequest{Scope: scope, TraceId: "1"}); status.Code(
			err,
		) != codes.NotFound {
			t.Errorf("%s gets it: %v", name, err)
		}
		listed, err := s.ListTraces(t.Context(), &memsidecarv1.ListTracesRequest{Scope: scope})
		if err != nil || len(listed.GetTraces()) != 0 {
			t.Errorf("%s lists %v, %v", name, listed, err)
		}
	}
}

func TestListTraces(t *testing.T) {
	s := startTraced(t)
	begin := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	for i := range 6 {
		r := trace.Record{
			ID:      fmt.Sprint(i),
			Scope:   annDirect,
			At:      begin.Add(time.Duration(i) * time.Minute),
			Context: &trace.ContextDetail{},
		}
		if i%2 == 0 {
			r.Context, r.Retrieve, r.TurnID = nil, &trace.RetrieveDetail{}, "turn"
		}
		if i >= 4 {
			r.Scope.SessionID = "other"
		}
		s.recorder.Record(r)
	}
	all := fromScope(annDirect)
	all.SessionId = ""
	lists := (&pages{key: make([]byte, 32)}).unary()
	for want, r := range map[string]*memsidecarv1.ListTracesRequest{
		"5 4 3 2 1 0": {Scope: all},
		"3 2 1 0":     {Scope: fromScope(annDirect)},
		"4 2 0":       {Scope: all, TurnId: "turn"},
		"5 3 1":       {Scope: all, Kind: memsidecarv1.TraceKind_TRACE_KIND_CONTEXT},
		"3 2": {
			Scope: all, AfterTime: timestamppb.New(begin.Add(2 * time.Minute)), BeforeTime: timestamppb.New(begin.Add(4 * time.Minute)),
		},
	} {
		for _, size := range []int32{0, 1, 2} {
			r.PageSize, r.PageToken = size, ""
			var got []string
			for more := true; more; more = r.GetPageToken() != "" {
				answer, err := lists(t.Context(), proto.CloneOf(r), nil, func(ctx context.Context, req any) (any, error) {
					return s.ListTraces(ctx, req.(*memsidecarv1.ListTracesRequest)) //nolint:errcheck // it is one
				})
				if err != nil {
					t.Fatal(err)
				}
				resp := answer.(*memsidecarv1.ListTracesResponse) //nolint:errcheck // it is one
				for _, p := range resp.GetTraces() {
					got = append(got, p.GetId())
				}
				r.PageToken = resp.GetNextPageToken()
			}
			if !slices.Equal(got, strings.Fields(want)) {
				t.Errorf("%v: %q, want %q", r, got, want)
			}
		}
	}
}

func TestTraceRequestsAreValidated(t *testing.T) {
	s := startTraced(t)
	wrong := func(err error, fields ...string) {
		t.Helper()
		if status.Code(err) != codes.InvalidArgument {
			t.Fatalf("got %v", err)
		}
		for _, field := range fields {
			if !strings.Contains(err.Error(), field) {
				t.Errorf("%v does not name %s", err, field)
			}
		}
	}
	_, err := s.GetTrace(t.Context(), &memsidecarv1.GetTraceRequest{Scope: &memsidecarv1.Scope{Namespace: "/"}})
	wrong(err, "scope.namespace", "trace_id")
	_, err = s.ListTraces(t.Context(), &memsidecarv1.ListTracesRequest{
		PageSize: -1, PageToken: "x", Kind: 9, TurnId: strings.Repeat("x", 257), AfterTime: &timestamppb.Timestamp{Nanos: -1},
		BeforeTime: &timestamppb.Timestamp{Nanos: -1},
	})
	wrong(err, "page_size", "page_token", "kind", "turn_id", "after_time", "before_time")
}

// TestCallHasTurnAndTrace: A call has its turn and its caller's trace.
func TestCallHasTurnAndTrace(t *testing.T) {
	const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for name, test := range map[string]struct {
		request any
		headers []string
		want    trace.Call
	}{
		"nothing": {&memsidecarv1.GetTraceRequest{}, nil, trace.Call{}},
		"turn":    {&memsidecarv1.RetrieveRequest{TurnId: "t"}, nil, trace.Call{TurnID: "t"}},
		"trace": {
			&memsidecarv1.GetContextRequest{},
			[]string{traceparent},
			trace.Call{OTelTraceID: "0af7651916cd43dd8448eb211c80319c", OTelSpanID: "b7ad6b7169203331"},
		},
		"unsampled": {nil, []string{traceparent[:53] + "00"}, trace.Call{OTelTraceID: "0af7651916cd43dd8448eb211c80319c", OTelSpanID: "b7ad6b7169203331"}},
		"nonsense":  {nil, []string{"00-xyz"}, trace.Call{}},
		"zero":      {nil, []string{"00-00000000000000000000000000000000-b7ad6b7169203331-01"}, trace.Call{}},
		"two":       {nil, []string{traceparent, traceparent}, trace.Call{}},
	} {
		ctx := metadata.NewIncomingContext(t.Context(), metadata.MD{"traceparent": test.headers})
		_, err := callUnary()(ctx, test.request, nil, func(ctx context.Context, _ any) (any, error) {
			if got := trace.CallOf(ctx); got != test.want {
				t.Errorf("%s: %+v", name, got)
			}
			return nil, nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

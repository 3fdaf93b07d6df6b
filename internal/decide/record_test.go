package decide_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/llm"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/trace"
	"github.com/memsidecar/memsidecar/internal/usage"
)

// scripted is a model that fails as a test says, call after call, and then answers.
type scripted struct {
	mu       sync.Mutex
	failures []error
}

func (*scripted) Name() string { return "test/scripted" }

func (m *scripted) Generate(context.Context, llm.Request) (llm.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.failures) > 0 {
		err := m.failures[0]
		m.failures = m.failures[1:]
		return llm.Response{}, err
	}
	return llm.Response{Text: "yes", Usage: llm.Usage{InputTokens: 11, OutputTokens: 3}}, nil
}

// uncounted takes the sums of what models cost.
type uncounted struct{}

func (uncounted) AddUsage(context.Context, []usage.Call) error { return nil }

// asking is a judge that asks the model before it decides.
func asking(t *testing.T, m llm.Model) *judge {
	t.Helper()
	calls := usage.NewRecorder(uncounted{}, slog.New(slog.DiscardHandler))
	t.Cleanup(calls.Close)
	m = llm.WithObserver(m, func(ctx context.Context, started time.Time, u llm.Usage, err error) {
		c := usage.Call{At: started, Part: "decision", Model: m.Name(), InputTokens: u.InputTokens, OutputTokens: u.OutputTokens}
		if err != nil {
			c.Error = err.Error()
		}
		calls.Record(ctx, c)
	})
	return &judge{decide: func(ctx context.Context, tr decide.Transcript) (decide.Verdict, error) {
		if _, err := m.Generate(ctx, llm.Request{Prompt: "?"}); err != nil {
			return decide.Verdict{}, err
		}
		return decide.Verdict{Remember: !strings.Contains(tr.Dialogue.Messages[0].Content, "nothing"), Reason: "as told"}, nil
	}}
}

func (s *system) traced(t *testing.T, id string) []trace.Record {
	t.Helper()
	records, _, err := s.traces.List(t.Context(), trace.ListQuery{
		User: user(id), Audience: memory.Everything(), OldestFirst: true, Limit: 100,
	})
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// withTools gives the bot's answer, after having called a tool.
func withTools(r decide.Request) decide.Request {
	r.Dialogue.Messages = append(r.Dialogue.Messages, memory.Message{
		Role: memory.RoleAssistant, Content: "words of the bot", Time: time.Now(), Tools: []memory.ToolCall{
			{Name: "look_up", Arguments: `{"who":"everybody"}`, Result: "what everybody said", Status: "success"},
		},
	})
	return r
}

// TestTraceOfEachAttempt: a model that fails at first leaves a record of that, and one of the attempt that followed.
func TestTraceOfEachAttempt(t *testing.T) {
	s := newSystem(t, asking(t, &scripted{failures: []error{&memory.TransientError{Err: errors.New("test/scripted: HTTP 503")}}}))
	r := withTools(request(time.Minute, "ann"))
	r.Dialogue.Scope.Channel = memory.Channel{Kind: memory.ChannelDirect, ID: "dm"}
	call := trace.Call{TurnID: "turn-1", OTelTraceID: "0af7651916cd43dd8448eb211c80319c"}
	c, err := s.Consider(trace.WithCall(t.Context(), call), r)
	if err != nil || c.State != memory.StateRemembered {
		t.Fatalf("%+v, %v", c, err)
	}
	records := s.traced(t, "ann")
	if len(records) != 2 {
		t.Fatalf("%d records: %+v", len(records), records)
	}
	for i, record := range records {
		d := record.Consider
		if record.Kind() != trace.KindConsider || record.Scope != c.Scope || record.TurnID != call.TurnID ||
			record.OTelTraceID != call.OTelTraceID || d.ConsiderationID != c.ID || d.Attempt != i+1 || d.Messages != 2 {
			t.Errorf("attempt %d: %+v of %+v", i+1, record, d)
		}
		if len(record.ToolCalls) != 1 || record.ToolCalls[0].Result != "what everybody said" {
			t.Errorf("attempt %d: tool calls %+v", i+1, record.ToolCalls)
		}
		if len(record.ModelCalls) != 1 || record.ModelCalls[0].Model != "test/scripted" || record.ModelCalls[0].Part != "decision" {
			t.Fatalf("attempt %d: model calls %+v", i+1, record.ModelCalls)
		}
	}
	first, second := records[0], records[1]
	if first.Consider.State != memory.StatePending || !strings.Contains(first.Error, "HTTP 503") ||
		first.ModelCalls[0].Error != "test/scripted: HTTP 503" || first.Consider.Changes != nil {
		t.Errorf("the first attempt: %+v of %+v", first, first.Consider)
	}
	if d := second.Consider; d.State != memory.StateRemembered || second.Error != "" || d.Reason != c.Outcome.Reason ||
		d.DecidedBy != "test/judge" || !reflect.DeepEqual(d.Changes, c.Outcome.Changes) || len(d.Changes) != 1 {
		t.Errorf("the second attempt: %+v of %+v", second, d)
	}
	if m := second.ModelCalls[0]; m.Error != "" || m.InputTokens != 11 || m.OutputTokens != 3 {
		t.Errorf("its model call: %+v", m)
	}
}

// TestTraceOfWhatEndsOtherwise: nothing to remember, a refusal and a bug leave a record each.
func TestTraceOfWhatEndsOtherwise(t *testing.T) {
	refused := &memory.RefusedError{Err: errors.New("test/scripted: HTTP 400")}
	nothing := request(time.Minute, "ann")
	nothing.Dialogue.Messages[0].Content = "nothing"
	for name, test := range map[string]struct {
		judge   *judge
		request decide.Request
		state   memory.State
		err     string
	}{
		"nothing": {asking(t, &scripted{}), nothing, memory.StateSkipped, ""},
		"refused": {asking(t, &scripted{failures: []error{refused}}), request(time.Minute, "ann"), memory.StateFailed, "HTTP 400"},
		"panic": {&judge{decide: func(context.Context, decide.Transcript) (decide.Verdict, error) {
			panic("on purpose")
		}}, request(time.Minute, "ann"), memory.StateFailed, "internal error while considering"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSystem(t, test.judge)
			c := s.consider(t, test.request)
			records := s.traced(t, "ann")
			if len(records) != 1 {
				t.Fatalf("%d records", len(records))
			}
			if r := records[0]; c.State != test.state || r.Consider.State != test.state || !strings.Contains(r.Error, test.err) ||
				(r.Error == "") != (test.err == "") {
				t.Errorf("the consideration is %s; recorded %+v of %+v", c.State, r, r.Consider)
			}
		})
	}
}

// TestTraceOfGroup: each speaker has a record of their own, and nobody's holds others' words.
func TestTraceOfGroup(t *testing.T) {
	s := newSystem(t, new(judge))
	s.consider(t, withTools(request(time.Minute, "ann", "ben")))
	for {
		if c := s.list(t, "ben"); c[0].State.Final() {
			break
		}
	}
	for who, other := range map[string]string{"ann": "ben", "ben": "ann"} {
		records := s.traced(t, who)
		text, err := json.Marshal(records)
		if err != nil || len(records) != 1 || !strings.Contains(string(text), "words of "+who) {
			t.Errorf("%s has %s, %v", who, text, err)
		}
		for _, words := range []string{"words of " + other, "everybody"} {
			if strings.Contains(string(text), words) {
				t.Errorf("%s is told %q: %s", who, words, text)
			}
		}
		if !strings.Contains(string(text), "look_up") {
			t.Errorf("%s is not told of the tool: %s", who, text)
		}
	}
}

// list is a user's considerations, newest first.
func (s *system) list(t *testing.T, id string) (all []memory.Consideration) {
	t.Helper()
	jobs, _, err := s.queue.List(t.Context(), user(id), queue.ListQuery{Audience: memory.Everything(), Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range jobs {
		all = append(all, job.Consideration)
	}
	return all
}

// TestNoTraceOfWhatWasCancelled: a job that ends because its user is being forgotten writes nothing about them.
func TestNoTraceOfWhatWasCancelled(t *testing.T) {
	deciding := make(chan struct{})
	s := newSystem(t, &judge{decide: func(ctx context.Context, _ decide.Transcript) (decide.Verdict, error) {
		close(deciding)
		<-ctx.Done()
		return decide.Verdict{Reason: "late"}, nil
	}})
	s.consider(t, request(0, "ann"))
	<-deciding
	if _, err := s.Bar(t.Context(), user("ann")); err != nil {
		t.Fatal(err)
	}
	if records := s.traced(t, "ann"); len(records) != 0 {
		t.Errorf("recorded %+v", records)
	}
}

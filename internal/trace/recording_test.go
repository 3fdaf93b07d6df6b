package trace_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/trace"
	"github.com/memsidecar/memsidecar/internal/usage"
)

// sums discards calls.
type sums struct{}

func (sums) AddUsage(context.Context, []usage.Call) error { return nil }

func TestRecording(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := usage.NewRecorder(sums{}, slog.New(slog.DiscardHandler))
		defer calls.Close()
		scope := memory.Scope{Namespace: "n", UserID: "u", SessionID: "s"}
		call := trace.Call{TurnID: "turn", OTelTraceID: "0af7651916cd43dd8448eb211c80319c"}
		ctx, recording := trace.Begin(trace.WithCall(t.Context(), call), scope)
		begun := time.Now()
		calls.Record(ctx, usage.Call{Part: "embedding"})
		other, inner := trace.Begin(ctx, scope)
		calls.Record(other, usage.Call{Part: "summary"})
		time.Sleep(time.Second)
		r := recording.End(errors.New("broken"))
		calls.Record(ctx, usage.Call{Part: "too late"})
		if r.ID != recording.ID() || r.Scope != scope || r.TurnID != call.TurnID || r.OTelTraceID != call.OTelTraceID ||
			!r.At.Equal(begun) || r.Duration != time.Second || r.Error != "broken" {
			t.Errorf("recorded %+v", r)
		}
		if len(r.ModelCalls) != 1 || r.ModelCalls[0].Part != "embedding" || r.ModelCalls[0].Namespace != "n" {
			t.Errorf("calls %+v", r.ModelCalls)
		}
		if in := inner.End(nil); in.ID == r.ID || len(in.ModelCalls) != 1 || in.Error != "" || in.TurnID != "turn" {
			t.Errorf("inside the recording %+v", in)
		}
		if _, plain := trace.Begin(t.Context(), scope); plain.End(nil).TurnID != "" {
			t.Error("without a turn a turn is found")
		}
	})
}

func TestNewID(t *testing.T) {
	if a, b := trace.NewID(), trace.NewID(); a == b || len(a) < 20 || a[:4] != "trc_" {
		t.Errorf("%q and %q", a, b)
	}
}

func TestToolCalls(t *testing.T) {
	took := time.Second
	long := strings.Repeat("茶", trace.MaxToolRunes+1)
	messages := []memory.Message{
		{Tools: []memory.ToolCall{{Name: "a", Arguments: long, Result: long[:len(long)-len("茶")], Status: "ok", Duration: &took}}},
		{},
		{Tools: []memory.ToolCall{{Name: "b", Arguments: "{}"}, {Name: "c", Result: "r"}}},
	}
	calls := trace.ToolCalls(messages, true)
	if len(calls) != 3 || calls[0].Name+calls[1].Name+calls[2].Name != "abc" || calls[1].Arguments != "{}" || calls[2].Result != "r" {
		t.Fatalf("got %+v", calls)
	}
	for _, s := range []string{calls[0].Arguments, calls[0].Result} {
		if n := utf8.RuneCountInString(s); n != trace.MaxToolRunes || !utf8.ValidString(s) {
			t.Errorf("%d characters are stored", n)
		}
	}
	for i, c := range trace.ToolCalls(messages, false) {
		if c.Arguments != "" || c.Result != "" || c.Name != calls[i].Name || c.Status != calls[i].Status || c.Duration != calls[i].Duration {
			t.Errorf("without payloads %+v", c)
		}
	}
	if messages[0].Tools[0].Arguments != long {
		t.Error("the original messages were changed")
	}
}

func TestAloneMeansOneUserInADirectChat(t *testing.T) {
	says := func(who string) memory.Message {
		return memory.Message{Role: memory.RoleUser, Speaker: who, Content: "words"}
	}
	answer := memory.Message{Role: memory.RoleAssistant, Content: "words"}
	for name, test := range map[string]struct {
		kind     memory.ChannelKind
		messages []memory.Message
		want     bool
	}{
		"one":              {memory.ChannelDirect, []memory.Message{says("ann"), answer}, true},
		"unspecified":      {"", []memory.Message{says("ann"), answer, {Role: memory.RoleSystem, Content: "rules"}}, true},
		"two":              {"", []memory.Message{says("ann"), says("ben"), answer}, false},
		"another":          {"", []memory.Message{says("ben"), answer}, false},
		"group":            {memory.ChannelGroup, []memory.Message{says("ann"), answer}, false},
		"another, removed": {"", []memory.Message{says("ann"), {Role: memory.RoleSystem}, answer}, false},
	} {
		d := memory.Dialogue{Scope: memory.Scope{UserID: "ann", Channel: memory.Channel{Kind: test.kind, ID: "c"}}, Messages: test.messages}
		if got := trace.Alone(d); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

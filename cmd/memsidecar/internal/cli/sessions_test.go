package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// interruptingSidecar is a sidecar that calls halt in the middle of an import or export.
type interruptingSidecar struct {
	memsidecarv1.UnimplementedSessionServiceServer
	halt func()
	err  error
}

func (h interruptingSidecar) ImportSession(
	stream grpc.ClientStreamingServer[memsidecarv1.ImportSessionRequest, memsidecarv1.ImportSessionResponse],
) error {
	resp := &memsidecarv1.ImportSessionResponse{Session: &memsidecarv1.Session{Id: "s"}}
	for n := -1; ; n++ {
		switch _, err := stream.Recv(); {
		case errors.Is(err, io.EOF):
			return stream.SendAndClose(resp)
		case err != nil:
			return err
		}
		resp.AddedCount = int64(n + 1)
		if n == 3 {
			if h.err != nil {
				return h.err
			}
			h.halt()
		}
	}
}

func (h interruptingSidecar) ExportSession(
	_ *memsidecarv1.ExportSessionRequest,
	stream grpc.ServerStreamingServer[memsidecarv1.ExportSessionResponse],
) error {
	err := stream.Send(
		&memsidecarv1.ExportSessionResponse{Record: &memsidecarv1.ExportSessionResponse_Session{Session: &memsidecarv1.Session{Id: "s"}}},
	)
	if err != nil {
		return err
	}
	h.halt()
	<-stream.Context().Done()
	return stream.Context().Err()
}

func (h interruptingSidecar) serve(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	memsidecarv1.RegisterSessionServiceServer(server, h)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// long writes a file that exceeds the connection's buffers, so that sending blocks until the server reads.
func long(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "long.jsonl")
	text := strings.Repeat(`{"role": "user", "content": "`+strings.Repeat("x", 10_000)+"\"}\n", 2000)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestInterruptedImportReportsProgress(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	command := sessionsImport{File: long(t), Session: "s"}
	command.Addr, command.TimeZone = interruptingSidecar{halt: cancel}.serve(t), "UTC"
	var out bytes.Buffer
	err := command.Run(ctx, &Program{Stdout: &out, Stderr: io.Discard})
	if ExitCode(err) != ExitInterrupted || !strings.Contains(err.Error(), "run it again to complete it, nothing is stored twice") {
		t.Errorf("%d, %v", ExitCode(err), err)
	}
	// The sidecar's count is shown: more than at the interruption, but not everything.
	if !strings.Contains(out.String(), "added") || strings.Contains(out.String(), " 2000") {
		t.Errorf("%s", &out)
	}
}

func TestImportRefused(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		code int
		says string
	}{
		"a message": {
			status.Error(codes.InvalidArgument, "stream.message[3] (messages[0].content) is too long"), ExitUsage,
			"long.jsonl: line 4: content is too long; what was stored before stays: correct this and run it again",
		},
		"storage": {
			status.Error(codes.Unavailable, "storage is unavailable"), ExitUnavailable,
			"storage is unavailable; what was stored before stays: run it again to complete it, nothing is stored twice",
		},
	} {
		command := sessionsImport{File: long(t), Session: "s"}
		command.Addr, command.TimeZone = interruptingSidecar{err: test.err}.serve(t), "UTC"
		err := command.Run(t.Context(), &Program{Stdout: io.Discard, Stderr: io.Discard})
		if ExitCode(err) != test.code || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %d, %v", name, ExitCode(err), err)
		}
	}
}

// TestInterruptedExportKeepsTheFile: The file is unchanged, and no temporary file is left.
func TestInterruptedExportKeepsTheFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "s.json")
	if err := os.WriteFile(file, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	command := sessionsExport{File: file, Session: "s"}
	command.Addr, command.TimeZone = interruptingSidecar{halt: cancel}.serve(t), "UTC"
	err := command.Run(ctx, &Program{Stdout: io.Discard, Stderr: io.Discard})
	if ExitCode(err) != ExitInterrupted {
		t.Errorf("%d, %v", ExitCode(err), err)
	}
	left, err := os.ReadDir(dir)
	if data, readErr := os.ReadFile(file); err != nil || readErr != nil || string(data) != "before" || len(left) != 1 {
		t.Errorf("%q, %v, %v, %v", data, readErr, left, err)
	}
}

func TestFileName(t *testing.T) {
	for id, want := range map[string]string{
		"abc123-def456": "abc123-def456", "群 1": "群 1", "../x/y:z": "..%2Fx%2Fy%3Az", `a\b*?"<>|%`: "a%5Cb%2A%3F%22%3C%3E%7C%25", "\u202ea": "%E2%80%AEa",
	} {
		if got := fileName(id); got != want {
			t.Errorf("%q is %q, want %q", id, got, want)
		}
	}
}

// TestTraceShowsModelCalls has data that a sidecar without models does not produce: model calls, tools, an error, a degradation.
func TestTraceShowsModelCalls(t *testing.T) {
	began := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	(&screen{w: &out}).trace(&memsidecarv1.Trace{
		Id: "trc_1", Kind: memsidecarv1.TraceKind_TRACE_KIND_CONSIDER, OtelTraceId: "4bf92f3577b34da6a3ce929d0e0e4736", Error: "the model refused",
		StartTime: timestamppb.New(began), Duration: durationpb.New(1234567 * time.Microsecond),
		Degraded: []*memsidecarv1.Degradation{{Component: memsidecarv1.DegradedComponent_DEGRADED_COMPONENT_EMBEDDING, Reason: "too slow"}},
		ModelCalls: []*memsidecarv1.ModelCall{{
			Part: "decision", Model: "gemini/flash", StartTime: timestamppb.New(began.Add(2 * time.Millisecond)), Latency: durationpb.New(812 * time.Millisecond),
			InputTokenCount: 321, OutputTokenCount: 45,
		}, {
			Part: "embedding", Model: "gemini/embedding",
			StartTime: timestamppb.New(began.Add(time.Second)),
			Latency:   durationpb.New(340 * time.Microsecond), Error: "429",
		}},
		ToolCalls: []*memsidecarv1.ToolCall{
			{
				Name:          "sys_monitor",
				ArgumentsJson: `{"metric": "cpu"}`,
				Result:        "3.0%\x1b[2J",
				Status:        "success",
				Duration:      durationpb.New(time.Second / 2),
			},
		},
		Detail: &memsidecarv1.Trace_Consider{
			Consider: &memsidecarv1.ConsiderTrace{
				ConsiderationId: "con_1",
				Attempt:         2,
				MessageCount:    3,
				State:           memsidecarv1.ConsiderationState_CONSIDERATION_STATE_PENDING,
				Prompts: []*memsidecarv1.TracePrompt{
					{Part: "decision", Version: "0123456789ab", KnownMemoryCount: 1},
					{Part: "summary", Version: "ba9876543210", KnownMemoryCount: 2, EarlierMessageCount: 1},
				},
			},
		},
	}, nil)
	for _, want := range []string{
		"OpenTelemetry  4bf92f3577b34da6a3ce929d0e0e4736\n", "took           1.23s\n", "error          the model refused\n",
		"degraded       embedding: too slow\n", "user           none\n", "attempt        2\n", "outcome        pending\n",
		"decision prompt  0123456789ab, with 1 known memory and 0 earlier messages\n",
		"summary prompt  ba9876543210, with 2 known memories and 1 earlier message\n",
		"  2ms  decision   gemini/flash      812ms        321          45  ok\n", "   1s  embedding  gemini/embedding  340µs          0   " +
			"        0  429\n",
		`sys_monitor  {"metric": "cpu"}  3.0%\u{1b}[2J  success  500ms`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
}

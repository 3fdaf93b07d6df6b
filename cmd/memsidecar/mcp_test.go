package main

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestMCPCommandReconnects: Without a sidecar the tools say so. They work as soon as one is running.
func TestMCPCommandReconnects(t *testing.T) {
	addr := "unix:" + filepath.Join(sidecartest.ShortFolder(t), "s")
	m := mcpCommand(t, addr, "-u", "u")
	m.Refuses(t, "recall", map[string]any{"query": "q"}, "no sidecar", addr)

	runServe(t, nil, "--listen", addr)
	sidecartest.Eventually(t, "it is connected", func() bool {
		_, failed := m.Call(t, "remember", map[string]any{"text": "Likes tea"})
		return !failed
	})
	if got := m.Remembered(t); got != "Likes tea" {
		t.Errorf("it has %q", got)
	}
}

// mcpCommand starts `memsidecar mcp` with these flags.
func mcpCommand(t *testing.T, addr string, flags ...string) *sidecartest.Model {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	errs := &sidecartest.Log{}
	done := make(chan int, 1)
	go func() {
		done <- Main{Args: append([]string{"mcp", "--addr", addr}, flags...), Stdin: in, Stdout: out, Stderr: errs}.Run(context.WithoutCancel(t.Context()))
		_ = out.Close()
	}()
	m := sidecartest.ConnectModel(t, &sdk.IOTransport{Reader: fromServer, Writer: toServer})
	t.Cleanup(func() {
		_ = toServer.Close()
		if code := <-done; code != 0 || errs.String() != "" {
			t.Errorf("memsidecar mcp ended with %d: %s", code, errs)
		}
	})
	return m
}

// TestInvalidMCPLinesAreAnswered: An invalid message gets an error answer, and the session continues.
func TestInvalidMCPLinesAreAnswered(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	lines := []string{
		"\ufeff" + `{"jsonrpc":"2.0","id":"first","method":"ping"}`,
		``, `garbage`, `{"jsonrpc":"2.0","id":1,"method":"ping"`, `{"jsonrpc":"2.0","id":2,"method":"p` + "\xb0\xa1" + `"}`,
		`{"id":3,"method":"ping"}`, `[]`, `[{"jsonrpc":"2.0","id":4,"method":"ping"},{"id":"five"},6]`,
		`"` + strings.Repeat("x", sdk.DefaultMaxLineLength) + `"`,
		`{"jsonrpc":"2.0","id":"last","method":"ping"}`,
	}
	for _, end := range []string{"\n", "\r\n"} {
		var out, errs sidecartest.Log
		code := Main{
			Args: []string{"mcp", "-u", "u", "--addr", r.Addr}, Stdin: strings.NewReader(strings.Join(lines, end)), Stdout: &out, Stderr: &errs,
		}.Run(context.WithoutCancel(t.Context()))
		if code != 0 || errs.String() != "" {
			t.Errorf("it ends with %d: %s", code, errs.String())
		}
		var got []string
		for line := range strings.Lines(out.String()) {
			var answer struct {
				ID     any
				Result any
				Error  struct{ Code int }
			}
			sidecartest.NoError(t, json.Unmarshal([]byte(line), &answer))
			text := sidecartest.Must(json.Marshal([]any{answer.ID, answer.Error.Code}))(t)
			got = append(got, string(text))
		}
		slices.Sort(got)
		want := []string{
			`["first",0]`, `["five",-32600]`, `["last",0]`, `[3,-32600]`, `[4,0]`, `[null,-32600]`, `[null,-32600]`, `[null,-32600]`,
			`[null,-32700]`, `[null,-32700]`, `[null,-32700]`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("answered %q, want %q", got, want)
		}
	}
}

package sidecartest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// MCPListen are the settings of a sidecar that speaks MCP over HTTP.
var MCPListen = []string{JSONListen, "api.mcp=true"}

// Model is an MCP client: a program that runs a model.
type Model struct{ *sdk.ClientSession }

// ConnectModel connects an MCP client until the test ends.
func ConnectModel(t *testing.T, transport sdk.Transport) *Model {
	t.Helper()
	session := Must(sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, nil))(t)
	t.Cleanup(func() { _ = session.Close() })
	return &Model{session}
}

// Model connects an MCP client over HTTP. Its requests have the headers, which are names and values in turn.
func (r *Sidecar) Model(t *testing.T, headers ...string) *Model {
	t.Helper()
	return ConnectModel(t, &sdk.StreamableClientTransport{
		Endpoint: "http://" + r.API + "/mcp", HTTPClient: &http.Client{Transport: withHeaders(headers)}, DisableStandaloneSSE: true, MaxRetries: -1,
	})
}

// withHeaders are names and values in turn.
type withHeaders []string

func (h withHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for pair := range slices.Chunk(h, 2) {
		r.Header.Add(pair[0], pair[1])
	}
	return http.DefaultTransport.RoundTrip(r)
}

// Call calls a tool. It returns the answer, which is JSON, or the error.
func (m *Model) Call(t *testing.T, tool string, arguments map[string]any) (answer map[string]any, failed bool) {
	t.Helper()
	result := Must(m.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments}))(t)
	text, _ := result.Content[0].(*sdk.TextContent)
	if result.IsError {
		return map[string]any{"error": text.Text}, true
	}
	NoError(t, json.Unmarshal([]byte(text.Text), &answer))
	return answer, false
}

// Must calls a tool that must succeed.
func (m *Model) Must(t *testing.T, tool string, arguments map[string]any) map[string]any {
	t.Helper()
	answer, failed := m.Call(t, tool, arguments)
	if failed {
		t.Fatalf("%s: %v", tool, answer)
	}
	return answer
}

// Refuses calls a tool that must fail with an error that contains the words.
func (m *Model) Refuses(t *testing.T, tool string, arguments map[string]any, words ...string) {
	t.Helper()
	answer, failed := m.Call(t, tool, arguments)
	text, _ := answer["error"].(string)
	for _, word := range words {
		if !failed || !strings.Contains(text, word) {
			t.Errorf("%s %v: %v does not say %q", tool, arguments, answer, word)
		}
	}
}

// Read returns the text of a resource.
func (m *Model) Read(t *testing.T, uri string) string {
	t.Helper()
	got := Must(m.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}))(t).Contents[0]
	if got.MIMEType != "text/markdown" || got.URI != uri {
		t.Errorf("%s is %v", uri, got)
	}
	return got.Text
}

// Remembered returns the texts of the memories that list_memories answers, one a line.
func (m *Model) Remembered(t *testing.T) string {
	t.Helper()
	return strings.Join(FieldValues(m.Must(t, "list_memories", nil), "text"), "\n")
}

// FieldValues returns a field of each memory of an answer.
func FieldValues(answer map[string]any, field string) (values []string) {
	memories, _ := answer["memories"].([]any)
	for _, m := range memories {
		fields, _ := m.(map[string]any)
		value, _ := fields[field].(string)
		values = append(values, value)
	}
	return values
}

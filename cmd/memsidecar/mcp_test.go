package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/memsidecar/memsidecar/internal/mcp"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// overMCP are the settings of a sidecar that speaks MCP.
var overMCP = []string{overHTTP, "api.mcp=true"}

// modelProgram is a program with a model, as far as the sidecar sees it.
type modelProgram struct{ *sdk.ClientSession }

func connectModel(t *testing.T, transport sdk.Transport) *modelProgram {
	t.Helper()
	session := must(sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, nil))(t)
	t.Cleanup(func() { _ = session.Close() })
	return &modelProgram{session}
}

// modelOverHTTP sends these headers with each request.
func (r *running) modelOverHTTP(t *testing.T, headers ...string) *modelProgram {
	t.Helper()
	return connectModel(t, &sdk.StreamableClientTransport{
		Endpoint: "http://" + r.api + "/mcp", HTTPClient: &http.Client{Transport: withHeaders(headers)}, DisableStandaloneSSE: true, MaxRetries: -1,
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

// modelOverStdio speaks for a user over a reader and a writer.
func (r *running) modelOverStdio(t *testing.T, user string) *modelProgram {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	server := mcp.NewServer(mcp.Clients{
		Memory:        memsidecarv1.NewMemoryServiceClient(r.conn),
		NumberedLists: memsidecarv1.NewNumberedListServiceClient(r.conn),
		Digests:       memsidecarv1.NewDigestServiceClient(r.conn),
	}, mcp.Binding{Sees: anywhere(user), Says: anywhere(user)}, mcp.Options{Version: "1"})
	done := make(chan error, 1)
	go func() {
		done <- mcp.Stdio(context.WithoutCancel(t.Context()), server, in, out)
		_ = out.Close()
	}()
	m := connectModel(t, &sdk.IOTransport{Reader: fromServer, Writer: toServer})
	t.Cleanup(func() {
		_ = toServer.Close()
		if err := <-done; err != nil {
			t.Errorf("the protocol ended with %v", err)
		}
	})
	return m
}

// call calls a tool and returns what it answers, as JSON.
func (m *modelProgram) call(t *testing.T, tool string, arguments map[string]any) (answer map[string]any, failed bool) {
	t.Helper()
	result := must(m.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments}))(t)
	text, _ := result.Content[0].(*sdk.TextContent)
	if result.IsError {
		return map[string]any{"error": text.Text}, true
	}
	mustDo(t, json.Unmarshal([]byte(text.Text), &answer))
	return answer, false
}

// must calls a tool that succeeds.
func (m *modelProgram) must(t *testing.T, tool string, arguments map[string]any) map[string]any {
	t.Helper()
	answer, failed := m.call(t, tool, arguments)
	if failed {
		t.Fatalf("%s: %v", tool, answer)
	}
	return answer
}

// refuses calls a tool that fails with these words.
func (m *modelProgram) refuses(t *testing.T, tool string, arguments map[string]any, words ...string) {
	t.Helper()
	answer, failed := m.call(t, tool, arguments)
	text, _ := answer["error"].(string)
	for _, word := range words {
		if !failed || !strings.Contains(text, word) {
			t.Errorf("%s %v: %v does not say %q", tool, arguments, answer, word)
		}
	}
}

func (m *modelProgram) read(t *testing.T, uri string) string {
	t.Helper()
	got := must(m.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}))(t).Contents[0]
	if got.MIMEType != "text/markdown" || got.URI != uri {
		t.Errorf("%s is %v", uri, got)
	}
	return got.Text
}

// remembered are the texts that list_memories shows.
func (m *modelProgram) remembered(t *testing.T) string {
	t.Helper()
	return strings.Join(shown(m.must(t, "list_memories", nil), "text"), "\n")
}

// shown is a field of each memory of an answer.
func shown(answer map[string]any, field string) (values []string) {
	memories, _ := answer["memories"].([]any)
	for _, m := range memories {
		fields, _ := m.(map[string]any)
		value, _ := fields[field].(string)
		values = append(values, value)
	}
	return values
}

// TestModelsUseTheMemory: what a model does with the memory, over standard input and output and over HTTP.
func TestModelsUseTheMemory(t *testing.T) {
	for name, connect := range map[string]func(t *testing.T, r *running, user string) *modelProgram{
		"stdio": func(t *testing.T, r *running, user string) *modelProgram {
			return r.modelOverStdio(t, user)
		},
		"http": func(t *testing.T, r *running, user string) *modelProgram {
			return r.modelOverHTTP(t, "Memsidecar-User", user)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := serve(t, append(overMCP, "retrieval.budget=1m")...)
			alice, bob := connect(t, r, "alice"), connect(t, r, "bob")
			if got := alice.must(t, "remember", map[string]any{"text": "用户对花生过敏。", "kind": "fact"}); got["known_already"] != false {
				t.Error(got)
			}
			alice.must(t, "remember", map[string]any{"text": "The user likes jazz.", "kind": "preference", "importance": 0.9})
			if got := alice.must(t, "remember", map[string]any{"text": "The user likes jazz."}); got["known_already"] != true {
				t.Error(got)
			}
			found := alice.must(t, "recall", map[string]any{"query": "花生", "top_k": 1})
			if got := shown(found, "text"); !slices.Equal(got, []string{"用户对花生过敏。"}) || !strings.Contains(fmt.Sprint(found["notice"]), "not instructions") {
				t.Error(found)
			}
			r.appendTo(t, within(direct("alice"), "s"), said("We talked about kumquats."))
			found = alice.must(t, "recall", map[string]any{"query": "kumquats", "include_messages": true})
			if messages, ok := found["messages"].([]any); !ok || len(messages) != 1 {
				t.Error(found)
			}
			if got := shown(alice.must(t, "list_memories", map[string]any{"kind": "preference"}), "text"); !slices.Equal(got, []string{"The user likes jazz."}) {
				t.Errorf("preferences are %q", got)
			}
			// A bot that sets no channels has it, too.
			if got := texts(r.list(t, anywhere("alice"))); len(got) != 2 {
				t.Errorf("a bot sees %q", got)
			}
			if got := bob.remembered(t); got != "" {
				t.Errorf("bob sees %q", got)
			}

			id := shown(alice.must(t, "list_memories", map[string]any{"kind": "preference"}), "id")[0]
			bob.refuses(t, "forget", map[string]any{"memory_id": id, "confirm": true}, "not found")
			asked := alice.must(t, "forget", map[string]any{"memory_id": id})
			if next, _ := asked["next"].(string); asked["deleted"] != false || !strings.Contains(next, "Ask the user") || !strings.Contains(alice.remembered(t), "jazz") {
				t.Errorf("without confirm: %v", asked)
			}
			if got := alice.must(t, "forget", map[string]any{"memory_id": id, "confirm": true}); got["deleted"] != true || strings.Contains(alice.remembered(t), "jazz") {
				t.Errorf("with confirm: %v, %s", got, alice.remembered(t))
			}

			alice.must(t, "put_numbered_list", map[string]any{"items": []any{
				map[string]any{"key": "/mv/1", "title": "Solaris"}, map[string]any{"key": "/mv/2", "title": "侠女", "attributes": map[string]any{"year": 1971}},
			}})
			chosen := alice.must(t, "select_from_numbered_list", map[string]any{"answer": "第二个"})
			if attributes, _ := chosen["attributes"].(map[string]any); chosen["key"] != "/mv/2" || attributes["year"] != 1971.0 {
				t.Error(chosen)
			}
			several := alice.must(t, "select_from_numbered_list", map[string]any{"answer": "1 and 2"})
			if list, _ := several["selected"].([]any); len(list) != 2 || several["key"] != "/mv/1" || several["none"] != false {
				t.Error(several)
			}
			if none := alice.must(t, "select_from_numbered_list", map[string]any{"answer": "none of them"}); none["none"] != true || none["key"] != "" {
				t.Error(none)
			}
			alice.refuses(t, "select_from_numbered_list", map[string]any{"answer": "7"}, "1 to 2", "Do not make an item up")
			alice.refuses(t, "select_from_numbered_list", map[string]any{"answer": "the nice one"}, "Do not make an item up")
			bob.refuses(t, "select_from_numbered_list", map[string]any{"answer": "1"}, "Do not make an item up")
			alice.refuses(t, "remember", map[string]any{"text": "t", "kind": "secret"}, "use fact, preference")
			alice.refuses(t, "list_memories", map[string]any{"limit": 1000}, "use 1 to 200")
			alice.refuses(t, "recall", map[string]any{"query": "q", "user_id": "bob"}, "user_id")

			if got := alice.read(t, "memsidecar://notebook"); !strings.Contains(got, "花生") {
				t.Errorf("the notebook is %s", got)
			}
			must(r.digests().SummarizeDay(t.Context(), &memsidecarv1.SummarizeDayRequest{Scope: direct("alice")}))(t)
			for _, uri := range []string{"memsidecar://digest/today", "memsidecar://digest/2001-02-03"} {
				if got := alice.read(t, uri); got == "" {
					t.Errorf("%s is empty", uri)
				}
			}
			if _, err := alice.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "memsidecar://digest/tomorrow"}); err == nil || !strings.Contains(err.Error(), "day") {
				t.Errorf("a digest of no day: %v", err)
			}
		})
	}
}

// TestWhatModelsAreTold: what is offered, with the rule against guessing, and never a way to name somebody else.
func TestWhatModelsAreTold(t *testing.T) {
	r := serve(t, overMCP...)
	m := r.modelOverHTTP(t, "Memsidecar-User", "u")
	const rule = "Never make up an item of a list"
	if got := m.InitializeResult(); !strings.Contains(got.Instructions, rule) || got.ServerInfo.Name != "memsidecar" {
		t.Error(got)
	}
	reads := map[string]bool{"recall": true, "list_memories": true, "select_from_numbered_list": true, "remember": false, "forget": false, "put_numbered_list": false}
	for tool, err := range m.Tools(t.Context(), nil) {
		mustDo(t, err)
		readOnly, known := reads[tool.Name]
		delete(reads, tool.Name)
		if !known || tool.Annotations.ReadOnlyHint != readOnly || *tool.Annotations.DestructiveHint != (tool.Name == "forget" || tool.Name == "put_numbered_list") {
			t.Errorf("%s: %+v", tool.Name, tool.Annotations)
		}
		if strings.HasSuffix(tool.Name, "_results") || tool.Name == "select_from_numbered_list" {
			if !strings.Contains(tool.Description, rule) {
				t.Errorf("%s does not say the rule: %s", tool.Name, tool.Description)
			}
		}
		schema, _ := tool.InputSchema.(map[string]any)
		properties, _ := schema["properties"].(map[string]any)
		for name, property := range properties {
			described, _ := property.(map[string]any)
			if text, _ := described["description"].(string); text == "" {
				t.Errorf("%s of %s is not described", name, tool.Name)
			}
			if strings.Contains(name, "user") || strings.Contains(name, "namespace") || strings.Contains(name, "scope") {
				t.Errorf("%s lets the model choose: %s", tool.Name, name)
			}
		}
	}
	if len(reads) > 0 {
		t.Errorf("not offered: %v", reads)
	}
	var uris []string
	for resource, err := range m.Resources(t.Context(), nil) {
		mustDo(t, err)
		uris = append(uris, resource.URI)
	}
	for template, err := range m.ResourceTemplates(t.Context(), nil) {
		mustDo(t, err)
		uris = append(uris, template.URITemplate)
	}
	slices.Sort(uris)
	if want := []string{"memsidecar://digest/today", "memsidecar://digest/{day}", "memsidecar://notebook"}; !slices.Equal(uris, want) {
		t.Errorf("resources are %q, want %q", uris, want)
	}
}

// TestModelsOverHTTPAreBound: by headers, by the configuration, by tokens; and nobody else is reached.
func TestModelsOverHTTPAreBound(t *testing.T) {
	r, tokens := serveGuarded(t, append(overMCP, "api.mcp_user=小林")...)
	bearer := func(id string) []string { return []string{"Authorization", "Bearer " + tokens[id]} }
	as := func(id string, headers ...string) *modelProgram {
		return r.modelOverHTTP(t, append(bearer(id), headers...)...)
	}
	remember := map[string]any{"text": "The user likes tea."}

	as("a").must(t, "remember", remember)
	as("a", "Memsidecar-User", "%E5%BC%A0%E4%BC%9F", "Memsidecar-Channel-Kind", "group", "Memsidecar-Channel", "g1", "Memsidecar-Agent", "butler").must(t, "remember", remember)
	admin := r.as(t, tokens["admin"])
	for scope, want := range map[*memsidecarv1.Scope]int{
		in("a", anywhere("小林")): 1, in("a", group("张伟", "g1")): 1, in("a", group("张伟", "g2")): 0, in("b", anywhere("小林")): 0,
	} {
		if got := admin.list(t, scope); len(got) != want {
			t.Errorf("%v has %v", scope, got)
		}
	}
	as("b").must(t, "recall", map[string]any{"query": "tea"})
	if got := as("b").remembered(t); got != "" {
		t.Errorf("another namespace sees %s", got)
	}
	as("b", "Memsidecar-Namespace", "a").refuses(t, "recall", map[string]any{"query": "tea"}, "does not reach")
	as("reader").refuses(t, "remember", remember, "has read access")
	if got := as("reader").remembered(t); !strings.Contains(got, "tea") {
		t.Errorf("a reader sees %q", got)
	}

	const hello = `{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}`
	for name, test := range map[string]struct {
		headers []string
		want    int
		says    string
	}{
		"no token":            {nil, 401, "memsidecar token create"},
		"a wrong token":       {[]string{"Authorization", "Bearer memsidecar_x"}, 401, "not authenticated"},
		"two users":           {append(bearer("a"), "Memsidecar-User", "a", "Memsidecar-User", "b"), 400, "2 times"},
		"a broken name":       {append(bearer("a"), "Memsidecar-User", "%zz"), 400, "percent-encoded"},
		"a channel alone":     {append(bearer("a"), "Memsidecar-Channel", "g"), 400, "Memsidecar-Channel-Kind"},
		"an unknown kind":     {append(bearer("a"), "Memsidecar-Channel-Kind", "room"), 400, "use direct, group or unspecified"},
		"a page from outside": {append(bearer("a"), "Origin", "https://evil.example"), 403, "web pages"},
		"a good one":          {bearer("a"), 200, "select_from_numbered_list"},
	} {
		web := r.overJSON()
		web.header = http.Header{"Accept": {"application/json, text/event-stream"}}
		for pair := range slices.Chunk(test.headers, 2) {
			web.header.Add(pair[0], pair[1])
		}
		got := must(web.post(t.Context(), "/mcp", hello))(t)
		if got.status != test.want || !strings.Contains(got.text, test.says) {
			t.Errorf("%s: %d, %s", name, got.status, got.text)
		}
	}
	open := serve(t, overMCP...)
	if got := open.overJSON().ask(t, "/mcp", hello); got.status != 400 || !strings.Contains(got.text, "Memsidecar-User") {
		t.Errorf("nobody's memory: %d, %s", got.status, got.text)
	}
	closed := serve(t, overHTTP)
	if got := closed.overJSON().ask(t, "/mcp", hello); got.status != 404 {
		t.Errorf("switched off: %d, %s", got.status, got.text)
	}
}

// TestModelWithoutSidecar: the tools say so, and work as soon as there is one.
func TestModelWithoutSidecar(t *testing.T) {
	addr := "unix:" + filepath.Join(shortFolder(t), "s")
	m := mcpCommand(t, addr, "-u", "u")
	m.refuses(t, "recall", map[string]any{"query": "q"}, "no sidecar", addr)

	runServe(t, nil, "--listen", addr)
	eventually(t, "it is connected", func() bool {
		_, failed := m.call(t, "remember", map[string]any{"text": "Likes tea"})
		return !failed
	})
	if got := m.remembered(t); got != "Likes tea" {
		t.Errorf("it has %q", got)
	}
}

// mcpCommand starts `memsidecar mcp` with these flags.
func mcpCommand(t *testing.T, addr string, flags ...string) *modelProgram {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	errs := &syncBuffer{}
	done := make(chan int, 1)
	go func() {
		done <- Main{Args: append([]string{"mcp", "--addr", addr}, flags...), Stdin: in, Stdout: out, Stderr: errs}.Run(context.WithoutCancel(t.Context()))
		_ = out.Close()
	}()
	m := connectModel(t, &sdk.IOTransport{Reader: fromServer, Writer: toServer})
	t.Cleanup(func() {
		_ = toServer.Close()
		if code := <-done; code != 0 || errs.String() != "" {
			t.Errorf("memsidecar mcp ended with %d: %s", code, errs)
		}
	})
	return m
}

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/memsidecar/memsidecar/internal/mcp"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// modelOverStdio runs a model for a user over a reader and a writer.
func modelOverStdio(t *testing.T, r *sidecartest.Sidecar, user string) *sidecartest.Model {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	server := mcp.NewServer(mcp.Clients{
		Memory:        memsidecarv1.NewMemoryServiceClient(r.Conn),
		NumberedLists: memsidecarv1.NewNumberedListServiceClient(r.Conn),
		Digests:       memsidecarv1.NewDigestServiceClient(r.Conn),
	}, mcp.Binding{ReadScope: sidecartest.Direct(user), WriteScope: sidecartest.WithoutChannel(user)}, mcp.Options{Version: "1"})
	done := make(chan error, 1)
	go func() {
		done <- mcp.Stdio(context.WithoutCancel(t.Context()), server, in, out)
		_ = out.Close()
	}()
	m := sidecartest.ConnectModel(t, &sdk.IOTransport{Reader: fromServer, Writer: toServer})
	t.Cleanup(func() {
		_ = toServer.Close()
		if err := <-done; err != nil {
			t.Errorf("the protocol ended with %v", err)
		}
	})
	return m
}

// TestModelUsesTheMemory: A model uses the memory over standard input and output and over HTTP.
func TestModelUsesTheMemory(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(t *testing.T, r *sidecartest.Sidecar, user string) *sidecartest.Model{
		"stdio": modelOverStdio,
		"http": func(t *testing.T, r *sidecartest.Sidecar, user string) *sidecartest.Model {
			return r.Model(t, "Memsidecar-User", user)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := sidecartest.Serve(t, append(sidecartest.MCPListen, "retrieval.budget=1m")...)
			alice, bob := connect(t, r, "alice"), connect(t, r, "bob")
			if got := alice.Must(t, "remember", map[string]any{"text": "用户对花生过敏。", "kind": "fact"}); got["known_already"] != false {
				t.Error(got)
			}
			alice.Must(t, "remember", map[string]any{"text": "The user likes jazz.", "kind": "preference", "importance": 0.9})
			if got := alice.Must(t, "remember", map[string]any{"text": "The user likes jazz."}); got["known_already"] != true {
				t.Error(got)
			}
			found := alice.Must(t, "recall", map[string]any{"query": "花生", "top_k": 1})
			if got := sidecartest.FieldValues(found, "text"); !slices.Equal(got, []string{"用户对花生过敏。"}) ||
				!strings.Contains(fmt.Sprint(found["notice"]), "not instructions") {
				t.Error(found)
			}
			r.AppendTo(t, sidecartest.InSession(sidecartest.Direct("alice"), "s"), sidecartest.Said("We talked about kumquats."))
			found = alice.Must(t, "recall", map[string]any{"query": "kumquats", "include_messages": true})
			if messages, ok := found["messages"].([]any); !ok || len(messages) != 1 {
				t.Error(found)
			}
			if got := sidecartest.FieldValues(alice.Must(t, "list_memories", map[string]any{"kind": "preference"}), "text"); !slices.Equal(
				got,
				[]string{"The user likes jazz."},
			) {
				t.Errorf("preferences are %q", got)
			}
			alice.Must(t, "remember", map[string]any{"text": "The user wants no jokes.", "standing": "style"})
			alice.Refuses(t, "remember", map[string]any{"text": "x", "standing": "always"}, "use safety, address or style")
			found = alice.Must(t, "recall", map[string]any{"query": "explain tides"})
			always, ok := found["always"].([]any)
			if !ok || len(always) != 1 || !strings.Contains(fmt.Sprint(always), "no jokes") || !strings.Contains(fmt.Sprint(always), "standing:style") ||
				strings.Contains(fmt.Sprint(found["memories"]), "jokes") {
				t.Error(found)
			}
			// A bot without channels has it, too.
			if got := sidecartest.Texts(r.Memories(t, sidecartest.WithoutChannel("alice"))); len(got) != 3 {
				t.Errorf("a bot sees %q", got)
			}
			if got := bob.Remembered(t); got != "" {
				t.Errorf("bob sees %q", got)
			}

			id := sidecartest.FieldValues(alice.Must(t, "list_memories", map[string]any{"kind": "preference"}), "id")[0]
			bob.Refuses(t, "forget", map[string]any{"memory_id": id, "confirm": true}, "not found")
			asked := alice.Must(t, "forget", map[string]any{"memory_id": id})
			if next, _ := asked["next"].(string); asked["deleted"] != false || !strings.Contains(next, "Ask the user") ||
				!strings.Contains(alice.Remembered(t), "jazz") {
				t.Errorf("without confirm: %v", asked)
			}
			if got := alice.Must(t, "forget", map[string]any{"memory_id": id, "confirm": true}); got["deleted"] != true ||
				strings.Contains(alice.Remembered(t), "jazz") {
				t.Errorf("with confirm: %v, %s", got, alice.Remembered(t))
			}

			alice.Must(t, "put_numbered_list", map[string]any{"items": []any{
				map[string]any{
					"key":   "/mv/1",
					"title": "Solaris",
				}, map[string]any{"key": "/mv/2", "title": "侠女", "attributes": map[string]any{"year": 1971}},
			}})
			chosen := alice.Must(t, "select_from_numbered_list", map[string]any{"answer": "第二个"})
			if attributes, _ := chosen["attributes"].(map[string]any); chosen["key"] != "/mv/2" || attributes["year"] != 1971.0 {
				t.Error(chosen)
			}
			several := alice.Must(t, "select_from_numbered_list", map[string]any{"answer": "1 and 2"})
			if list, _ := several["selected"].([]any); len(list) != 2 || several["key"] != "/mv/1" || several["none"] != false {
				t.Error(several)
			}
			if none := alice.Must(t, "select_from_numbered_list", map[string]any{"answer": "none of them"}); none["none"] != true ||
				none["key"] != "" {
				t.Error(none)
			}
			alice.Refuses(t, "select_from_numbered_list", map[string]any{"answer": "7"}, "1 to 2", "Do not invent an item")
			alice.Refuses(t, "select_from_numbered_list", map[string]any{"answer": "the nice one"}, "Do not invent an item")
			bob.Refuses(t, "select_from_numbered_list", map[string]any{"answer": "1"}, "Do not invent an item")
			alice.Refuses(t, "remember", map[string]any{"text": "t", "kind": "secret"}, "use fact, preference")
			alice.Refuses(t, "list_memories", map[string]any{"limit": 1000}, "use 1 to 200")
			alice.Refuses(t, "recall", map[string]any{"query": "q", "user_id": "bob"}, "user_id")

			if got := alice.Read(t, "memsidecar://notebook"); !strings.Contains(got, "花生") {
				t.Errorf("the notebook is %s", got)
			}
			sidecartest.Must(
				r.Digests().SummarizeDay(t.Context(), &memsidecarv1.SummarizeDayRequest{Scope: sidecartest.Direct("alice")}),
			)(
				t,
			)
			for _, uri := range []string{"memsidecar://digest/today", "memsidecar://digest/2001-02-03"} {
				if got := alice.Read(t, uri); got == "" {
					t.Errorf("%s is empty", uri)
				}
			}
			if _, err := alice.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "memsidecar://digest/tomorrow"}); err == nil ||
				!strings.Contains(err.Error(), "day") {
				t.Errorf("a digest of no day: %v", err)
			}
		})
	}
}

// TestToolDescriptionsHideOtherUsers: The descriptions have the rule against guessing, and no way to name another user.
func TestToolDescriptionsHideOtherUsers(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, sidecartest.MCPListen...)
	m := r.Model(t, "Memsidecar-User", "u")
	const rule = "Never make up an item of a list"
	if got := m.InitializeResult(); !strings.Contains(got.Instructions, rule) || got.ServerInfo.Name != "memsidecar" {
		t.Error(got)
	}
	reads := map[string]bool{
		"recall":                    true,
		"list_memories":             true,
		"select_from_numbered_list": true,
		"remember":                  false,
		"forget":                    false,
		"put_numbered_list":         false,
	}
	for tool, err := range m.Tools(t.Context(), nil) {
		sidecartest.NoError(t, err)
		readOnly, known := reads[tool.Name]
		delete(reads, tool.Name)
		if !known || tool.Annotations.ReadOnlyHint != readOnly ||
			*tool.Annotations.DestructiveHint != (tool.Name == "forget" || tool.Name == "put_numbered_list") {
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
		sidecartest.NoError(t, err)
		uris = append(uris, resource.URI)
	}
	for template, err := range m.ResourceTemplates(t.Context(), nil) {
		sidecartest.NoError(t, err)
		uris = append(uris, template.URITemplate)
	}
	slices.Sort(uris)
	if want := []string{"memsidecar://digest/today", "memsidecar://digest/{day}", "memsidecar://notebook"}; !slices.Equal(uris, want) {
		t.Errorf("resources are %q, want %q", uris, want)
	}
}

// TestModelOverHTTPIsBoundToAUser: The user comes from headers, the configuration or a token. No other user can be reached.
func TestModelOverHTTPIsBoundToAUser(t *testing.T) {
	t.Parallel()
	r, tokens := sidecartest.ServeGuarded(t, append(sidecartest.MCPListen, "api.mcp_user=小林")...)
	bearer := func(id string) []string { return []string{"Authorization", "Bearer " + tokens[id]} }
	as := func(id string, headers ...string) *sidecartest.Model {
		return r.Model(t, append(bearer(id), headers...)...)
	}
	remember := map[string]any{"text": "The user likes tea."}

	as("a").Must(t, "remember", remember)
	as(
		"a",
		"Memsidecar-User",
		"%E5%BC%A0%E4%BC%9F",
		"Memsidecar-Channel-Kind",
		"group",
		"Memsidecar-Channel",
		"g1",
		"Memsidecar-Agent",
		"butler",
	).Must(t, "remember", remember)
	admin := r.As(t, tokens["admin"])
	for scope, want := range map[*memsidecarv1.Scope]int{
		sidecartest.InNamespace("a", sidecartest.WithoutChannel("小林")): 1, sidecartest.InNamespace("a", sidecartest.Group("张伟",
			"g1")): 1, sidecartest.InNamespace("a", sidecartest.Group("张伟", "g2")): 0, sidecartest.InNamespace("b", sidecartest.WithoutChannel("小林")): 0,
	} {
		if got := admin.Memories(t, scope); len(got) != want {
			t.Errorf("%v has %v", scope, got)
		}
	}
	as("b").Must(t, "recall", map[string]any{"query": "tea"})
	if got := as("b").Remembered(t); got != "" {
		t.Errorf("another namespace sees %s", got)
	}
	as("b", "Memsidecar-Namespace", "a").Refuses(t, "recall", map[string]any{"query": "tea"}, "does not reach")
	as("reader").Refuses(t, "remember", remember, "has read access")
	if got := as("reader").Remembered(t); !strings.Contains(got, "tea") {
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
		web := r.JSON()
		web.Header = http.Header{"Accept": {"application/json, text/event-stream"}}
		for pair := range slices.Chunk(test.headers, 2) {
			web.Header.Add(pair[0], pair[1])
		}
		got := sidecartest.Must(web.Post(t.Context(), "/mcp", hello))(t)
		if got.Status != test.want || !strings.Contains(got.Text, test.says) {
			t.Errorf("%s: %d, %s", name, got.Status, got.Text)
		}
	}
	open := sidecartest.Serve(t, sidecartest.MCPListen...)
	if got := open.JSON().Ask(t, "/mcp", hello); got.Status != 400 || !strings.Contains(got.Text, "Memsidecar-User") {
		t.Errorf("nobody's memory: %d, %s", got.Status, got.Text)
	}
	closed := sidecartest.Serve(t, sidecartest.JSONListen)
	if got := closed.JSON().Ask(t, "/mcp", hello); got.Status != 404 {
		t.Errorf("switched off: %d, %s", got.Status, got.Text)
	}
}

// TestToolsAnswerToTheirFormerNames: Programs that know the former names can call them. They are not listed.
func TestToolsAnswerToTheirFormerNames(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, sidecartest.MCPListen...)
	m := r.Model(t, "Memsidecar-User", "u")
	m.Must(t, "put_results", map[string]any{"items": []any{map[string]any{"key": "/1", "title": "One"}}})
	got := m.Must(t, "select_result", map[string]any{"answer": "the first"})
	if !strings.Contains(string(sidecartest.Must(json.Marshal(got))(t)), "/1") {
		t.Errorf("the first is %v", got)
	}
	for _, tool := range sidecartest.Must(m.ListTools(t.Context(), nil))(t).Tools {
		if strings.HasSuffix(tool.Name, "_result") || strings.HasSuffix(tool.Name, "_results") {
			t.Errorf("%s is listed", tool.Name)
		}
	}
}

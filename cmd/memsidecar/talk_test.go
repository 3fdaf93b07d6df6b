package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// talk is a conversation in the format of external evaluations: messages, expected memories, and expected recall.
type talk struct {
	User     string
	TimeZone string `json:"time_zone"`
	Steps    []struct {
		At   string
		Call []struct{ Role, Speaker, Content string }
		// Keep must match a memory at the end, and Drop none. Nothing: the call must add no memory.
		Keep, Drop []string
		Nothing    bool
		Channel    struct{ Kind, ID string }
		// Want must match what is recalled for Ask, and Avoid must not. An empty Want: nothing should be recalled.
		Ask         string
		Want, Avoid []string
	}
}

// TestTalksArePlayedWithFormerNames plays a conversation with the requests that evaluations send. They use names from before version 0.1:
// Message.time, and MemoryService's call for settings.
func TestTalksArePlayedWithFormerNames(t *testing.T) {
	script := talk{}
	sidecartest.NoError(t, json.Unmarshal(sidecartest.Must(os.ReadFile("testdata/talk/mina.jsonl"))(t), &script))
	r := sidecartest.Serve(t, sidecartest.JSONListen)
	web := r.JSON()
	call := func(code int, path string, body map[string]any) map[string]any {
		t.Helper()
		got := sidecartest.Must(web.Post(t.Context(), "/memsidecar.v1."+path, string(sidecartest.Must(json.Marshal(body))(t))))(t)
		if got.Status != code {
			t.Fatalf("%s answers %d, want %d: %s", path, got.Status, code, got.Text)
		}
		return sidecartest.Must(decodeObject(got.Text))(t)
	}
	scope := func(kind, channel string) map[string]any {
		s := map[string]any{"namespace": "talk/mina", "user_id": script.User, "channel_kind": "CHANNEL_KIND_DIRECT", "channel_id": "dm-" + script.User}
		if kind == "group" {
			s["channel_kind"], s["channel_id"] = "CHANNEL_KIND_GROUP", channel
		}
		return s
	}
	memories := func() []string {
		t.Helper()
		page := call(http.StatusOK, "MemoryService/ListMemories", map[string]any{"scope": scope("", ""), "page_size": 1000, "page_token": ""})
		var all []string
		for _, m := range objects(page["memories"]) {
			if m["state"] == "MEMORY_STATE_ACTIVE" {
				all = append(all, textOf(m["text"]))
			}
		}
		return all
	}

	settings := map[string]any{"scope": scope("", ""), "settings": map[string]any{"time_zone": script.TimeZone}, "update_mask": "timeZone"}
	for _, path := range []string{"UserService/UpdateUserSettings", "MemoryService/UpdateUserSettings"} {
		if got := call(http.StatusOK, path, settings)["settings"]; object(got)["timeZone"] != script.TimeZone {
			t.Errorf("%s answers %v", path, got)
		}
	}
	var keep, drop []string
	for _, step := range script.Steps {
		if step.Ask != "" {
			answer := call(http.StatusOK, "MemoryService/Retrieve", map[string]any{
				"scope": scope(step.Channel.Kind, step.Channel.ID), "query": step.Ask, "top_k": 3,
			})
			block, _ := answer["promptContext"].(string)
			lines := strings.Split(block, "\n")
			for _, hit := range objects(answer["memories"]) {
				lines = append(lines, textOf(object(hit["memory"])["text"]))
			}
			wantMatches(t, step.Ask, lines, step.Want, step.Avoid)
			if len(step.Want) == 0 && answer["memories"] != nil {
				t.Errorf("%q recalls %v", step.Ask, answer["memories"])
			}
			continue
		}
		before := memories()
		var messages []map[string]any
		for _, m := range step.Call {
			message := map[string]any{"role": "ROLE_" + strings.ToUpper(m.Role), "content": m.Content, "time": step.At}
			if m.Speaker != "" {
				message["speaker_id"] = m.Speaker
			}
			messages = append(messages, message)
		}
		place := scope(step.Channel.Kind, step.Channel.ID)
		considered := call(http.StatusOK, "MemoryService/ConsiderMemorizing", map[string]any{"scope": place, "messages": messages, "wait": "60s"})
		id := object(considered["consideration"])["id"]
		got := call(http.StatusOK, "MemoryService/GetConsideration", map[string]any{"scope": place, "consideration_id": id})
		state := object(got["consideration"])["state"]
		if want := map[bool]string{true: "CONSIDERATION_STATE_SKIPPED", false: "CONSIDERATION_STATE_REMEMBERED"}[step.Nothing]; state != want {
			t.Errorf("%v is %v, want %s", step.Call, state, want)
		}
		if after := memories(); step.Nothing && !slices.Equal(after, before) {
			t.Errorf("%v changes the memories to %q", step.Call, after)
		}
		keep, drop = append(keep, step.Keep...), append(drop, step.Drop...)
	}
	wantMatches(t, "in the end", memories(), keep, drop)

	// Messages have their send time under either name.
	page := call(http.StatusOK, "MemoryService/ListMemories", map[string]any{"scope": scope("", ""), "filter": `observe_time = "` + script.Steps[0].At + `"`})
	if len(objects(page["memories"])) != 1 {
		t.Errorf("memories of %s: %v", script.Steps[0].At, page)
	}
}

// TestFormerNamesOverHTTP: Former names call today's methods, which answer with today's names.
func TestFormerNamesOverHTTP(t *testing.T) {
	r := sidecartest.Serve(t, sidecartest.JSONListen)
	web := r.JSON()
	r.Create(t, sidecartest.WithoutChannel("u"), "Likes tea")
	scope := `"scope": {"user_id": "u"}`
	for _, test := range []struct{ call, body, says string }{
		{"MemoryService/Retrieve", `{` + scope + `, "query": "Is there tea or coffee?", "min_score": 0.999}`, `{"traceId":"`},
		{"MemoryService/Retrieve", `{` + scope + `, "query": "tea", "minScore": 0, "createdAfter": "2020-01-01T00:00:00Z"}`, "Likes tea"},
		{"ResultService/PutResults", `{` + scope + `, "registry_kind": "RESULT_REGISTRY_KIND_USER", "items": [{"key": "/1", "title": "One"}]}`, `"newCount":1`},
		{"ResultService/SelectResult", `{` + scope + `, "text": "the first one"}`, `"key":"/1"`},
		{"ResultService/FilterUnseen", `{` + scope + `, "keys": ["/1", "/2"]}`, `"unseenKeys":["/2"]`},
		{"ResultService/ListItems", `{` + scope + `}`, `"totalSize":"1"`},
		{"ResultService/GetResultList", `{` + scope + `}`, `{"numberedList":{`},
		{"ResultService/ImportResults", `{` + scope + `, "items": [{"key": "/1", "title": "One"}]}`, `"skippedCount":1`},
		{"ResultService/DeleteResultList", `{` + scope + `, "part": "RESULT_LIST_PART_SHOWN"}`, `"shownDeleted":true`},
		{"MemoryService/GetUserSettings", `{` + scope + `}`, `{"settings":{`},
		{"MemoryService/GetStatus", `{}`, `"storage":{"component":{"name":"storage"`},
		{"AuditService/AuditMemories", `{}`, `{"result":{"total":{`},
		{"MemoryService/ExportUser", `{` + scope + `}`, `{"result":{"memory":{`},
		{"MemoryService/ForgetUser", `{` + scope + `}`, `"memoryCount":"1"`},
	} {
		got := sidecartest.Must(web.Post(t.Context(), "/memsidecar.v1."+test.call, test.body))(t)
		if got.Status != http.StatusOK || !strings.Contains(got.Text, test.says) {
			t.Errorf("%s %s answers %d, want %s in:\n%s", test.call, test.body, got.Status, test.says, got.Text)
		}
	}
}

func wantMatches(t *testing.T, when string, lines, want, avoid []string) {
	t.Helper()
	for _, pattern := range append(slices.Clone(want), avoid...) {
		if found := slices.ContainsFunc(lines, regexp.MustCompile(pattern).MatchString); found != slices.Contains(want, pattern) {
			t.Errorf("%s: %s matches one of %q: %v", when, pattern, lines, found)
		}
	}
}

func decodeObject(text string) (object map[string]any, err error) {
	err = json.NewDecoder(bytes.NewReader([]byte(text))).Decode(&object)
	return object, err
}

func objects(value any) []map[string]any {
	var list []map[string]any
	values, _ := value.([]any)
	for _, v := range values {
		list = append(list, object(v))
	}
	return list
}

// object returns a JSON value as an object, or nil.
func object(value any) map[string]any {
	fields, _ := value.(map[string]any)
	return fields
}

// textOf returns a JSON value as a string, or "".
func textOf(value any) string {
	text, _ := value.(string)
	return text
}

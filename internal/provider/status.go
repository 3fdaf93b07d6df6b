package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// StatusError is an answer that is no success. Its fields are the provider's own words and may repeat the key, so it is
// never shown or wrapped: Failures makes an error of it that can be.
type StatusError struct {
	Status     int
	Header     http.Header
	Message    string        // the body as it is when it has no message
	RetryDelay time.Duration // from the body, 0 when it says nothing
	body       string        // lower case
}

// StatusOf is the answer of a provider that an SDK's error comes from, if there was one.
func StatusOf(err error) (*StatusError, bool) { return errors.AsType[*StatusError](err) }

// Error is the status alone.
func (e *StatusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", e.Status, http.StatusText(e.Status)))
}

// Rejects reports whether the request itself was found wrong, in an answer that mentions one of the words (lower case).
// With it an adapter learns what an endpoint does not take.
func (e *StatusError) Rejects(words ...string) bool {
	switch e.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return containsAny(e.body, words...)
	}
	return false
}

// Blocked reports whether the provider refuses the prompt for what it says.
func (e *StatusError) Blocked() bool {
	return e.Rejects(
		"content_filter", "content_policy_violation", // OpenAI, Azure, Moonshot
		"content exists risk",                            // DeepSeek
		"data_inspection_failed", "datainspectionfailed", // DashScope
		`"1301"`, // Zhipu
	)
}

// Mendable reports whether the answer refuses a key, an account or a model. Some of that comes as HTTP 400: Gemini's
// refusal of a key ("API key not valid") and of a region or an account (FAILED_PRECONDITION), and that of a model by
// DeepSeek ("Model Not Exist"), SiliconFlow and Zhipu.
func (e *StatusError) Mendable() bool {
	if containsAny(e.body, "api_key_invalid", "invalid_api_key", "failed_precondition", "model_not_found", `"1211"`) {
		return true
	}
	text := strings.ToLower(e.Message)
	return strings.Contains(text, "api key") || containsAny(text, "model", "模型") &&
		containsAny(text, "not exist", "not found", "no such model", "unknown model", "不存在")
}

func containsAny(text string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// newStatusError reads the forms that bodies have: OpenAI's and Google's {"error": {…}}, the same in a list (Gemini's
// OpenAI-compatible endpoint), {"error": "…"} (Ollama), and a message without a frame (SiliconFlow, Mistral, FastAPI).
func newStatusError(status int, header http.Header, body []byte) *StatusError {
	e := &StatusError{Status: status, Header: header, body: strings.ToLower(string(body))}
	if text := strings.TrimSpace(string(body)); !strings.HasPrefix(text, "<") { // a proxy's page says nothing in few words
		e.Message = text
	}
	var parsed any
	if json.Unmarshal(body, &parsed) != nil {
		return e
	}
	if list, ok := parsed.([]any); ok && len(list) > 0 {
		parsed = list[0]
	}
	fields, ok := parsed.(map[string]any)
	if !ok {
		return e
	}
	switch inner := fields["error"].(type) {
	case map[string]any:
		fields = inner
	case string:
		fields = map[string]any{"message": inner}
	}
	for _, name := range []string{"message", "msg", "detail"} {
		if text := textOf(fields[name]); text != "" {
			e.Message = text
			break
		}
	}
	if details, ok := fields["details"].([]any); ok {
		for _, d := range details {
			e.readDetail(d)
		}
	}
	return e
}

// readDetail reads google.rpc.RetryInfo, whose delay is written in seconds with an "s".
func (e *StatusError) readDetail(detail any) {
	fields, ok := detail.(map[string]any)
	if !ok {
		return
	}
	if delay, err := time.ParseDuration(textOf(fields["retryDelay"])); err == nil {
		e.RetryDelay = max(e.RetryDelay, delay)
	}
}

// textOf is a text, which some providers write as a number.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

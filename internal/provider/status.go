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

// StatusError is an answer with an error status. Its fields are from the provider and may contain the key, so it is never shown or wrapped;
// Failures converts it to an error that can be.
type StatusError struct {
	Status     int
	Header     http.Header
	Message    string        // the whole body when it has no message
	RetryDelay time.Duration // from the body; 0 when unset
	body       string        // lower case
}

// StatusOf returns the provider's answer that caused an SDK's error, if there was one.
func StatusOf(err error) (*StatusError, bool) { return errors.AsType[*StatusError](err) }

// Error returns the status only.
func (e *StatusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", e.Status, http.StatusText(e.Status)))
}

// Rejects reports whether the provider found the request invalid and mentions one of the words (in lower case). Adapters use it to learn
// which fields an endpoint does not accept.
func (e *StatusError) Rejects(words ...string) bool {
	switch e.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return containsAny(e.body, words...)
	}
	return false
}

// Blocked reports whether the provider rejected the prompt because of its content.
func (e *StatusError) Blocked() bool {
	return e.Rejects(
		"content_filter", "content_policy_violation", // OpenAI, Azure, Moonshot
		"content exists risk",                            // DeepSeek
		"data_inspection_failed", "datainspectionfailed", // DashScope
		`"1301"`, // Zhipu
	)
}

// Correctable reports whether the answer rejects a key, an account or a model. Some of these come as HTTP 400: from Gemini a rejected key
// ("API key not valid"), and a region or an account (FAILED_PRECONDITION); from DeepSeek ("Model Not Exist"), SiliconFlow and Zhipu an
// unknown model.
func (e *StatusError) Correctable() bool {
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

// newStatusError parses the known forms of bodies: {"error": {…}} (OpenAI and Google), the same in a list (Gemini's OpenAI-compatible
// endpoint), {"error": "…"} (Ollama), and fields at the top level (SiliconFlow, Mistral, FastAPI).
func newStatusError(status int, header http.Header, body []byte) *StatusError {
	e := &StatusError{Status: status, Header: header, body: strings.ToLower(string(body))}
	if text := strings.TrimSpace(string(body)); !strings.HasPrefix(text, "<") { // skip a proxy's page
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

// textOf returns a text that some providers write as a number.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

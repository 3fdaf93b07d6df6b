package redact

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// corpusEnv names JSON files of LoCoMo or MemoryBank dialogues, separated by colons. They are not part of this project.
const corpusEnv = "MEMSIDECAR_REDACT_DIALOGUES"

// TestDialoguesWithoutSecretsStay counts redacted messages in dialogues that contain no secret.
func TestDialoguesWithoutSecretsStay(t *testing.T) {
	paths := os.Getenv(corpusEnv)
	if paths == "" {
		t.Skip(corpusEnv + " names no files of dialogues")
	}
	r := all(t)
	messages, alarms := 0, 0
	for path := range strings.SplitSeq(paths, ":") {
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var whole any
		if err := json.Unmarshal(file, &whole); err != nil {
			t.Fatal(path, err)
		}
		eachMessage(whole, func(text string) {
			messages++
			if got := r.Text(text); got != text {
				alarms++
				t.Logf("%q", got)
			}
		})
	}
	t.Logf("%d of %d messages are redacted", alarms, messages)
	if messages == 0 || alarms*2000 >= messages {
		t.Errorf("%d of %d messages are redacted, want fewer than 1 in 2,000", alarms, messages)
	}
}

// eachMessage calls the function with every message of a file.
func eachMessage(value any, call func(text string)) {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			eachMessage(element, call)
		}
	case map[string]any:
		for name, element := range v {
			if text, ok := element.(string); ok && (name == "text" || name == "query" || name == "response") {
				call(text)
				continue
			}
			eachMessage(element, call)
		}
	}
}

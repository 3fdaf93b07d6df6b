package redact

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// corpusEnv names files of dialogues, separated by colons: LoCoMo's or MemoryBank's JSON. They are not part of this project.
const corpusEnv = "MEMSIDECAR_REDACT_DIALOGUES"

// TestDialoguesOfPeopleStayAsTheyAre counts the messages of dialogues, in which nobody says a secret, that are redacted.
func TestDialoguesOfPeopleStayAsTheyAre(t *testing.T) {
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
		t.Errorf("%d of %d messages are redacted: fewer than 1 in 2,000 are to be", alarms, messages)
	}
}

// eachMessage calls a function with every message, wherever it is in a file.
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

package session

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// description is what callers say about a session. Nil fields are not checked.
type description struct {
	title, metadata *string
	memorizeEvery   *int
}

// check adds what is wrong with the fields to the violations found before. Field names get the prefix.
func (d description) check(prefix string, wrong memory.Violations) error {
	if d.title != nil {
		wrong.Check(prefix+".title", titleProblem(*d.title))
	}
	if d.metadata != nil {
		wrong.Check(prefix+".metadata_json", metadataProblem(*d.metadata))
	}
	wrong.Check(prefix+".memorize_every", memory.MemorizeEveryProblem(d.memorizeEvery))
	return wrong.Err()
}

func titleProblem(title string) string {
	if n := utf8.RuneCountInString(title); n > MaxTitleRunes {
		return fmt.Sprintf("is %d characters, more than %d", n, MaxTitleRunes)
	}
	return ""
}

func metadataProblem(metadata string) string {
	if metadata == "" {
		return ""
	}
	if len(metadata) > MaxMetadataBytes {
		return fmt.Sprintf("is %d bytes, more than %d", len(metadata), MaxMetadataBytes)
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(metadata), &object) != nil || object == nil {
		return "is not a JSON object"
	}
	return ""
}

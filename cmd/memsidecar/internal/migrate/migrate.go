// Package migrate reads the memories of other programs: mem0's export, nanobot's notes and conversations, rows of a vector database, and
// any JSON that contains statements.
//
// It reads files record by record. An unusable record is skipped and reported with its line and the reason. A problem with the whole file
// (not JSON, truncated, another encoding) is an error that names the line and says what to do.
package migrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/memsidecar/memsidecar/internal/memory"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// Item is one imported statement.
type Item struct {
	Line int
	// User is the owner that the file names, or "".
	User string
	// SourceID is the id in the source, or "".
	SourceID string
	// Memory has text, kind, importance, times, provenance, agent and session.
	Memory *memsidecarv1.Memory
}

// Skipped is a record that was left out.
type Skipped struct {
	Line   int // 0: the whole file
	Reason string
	// Bad is set if the record has a mistake. Others are skipped on purpose.
	Bad bool
}

// Sink receives the results.
type Sink struct {
	Item func(Item) error // an error ends the reading
	Skip func(Skipped)
}

func (s Sink) reject(line int, format string, args ...any) {
	s.Skip(Skipped{Line: line, Reason: fmt.Sprintf(format, args...), Bad: true})
}

func (s Sink) skipLine(line int, reason string) { s.Skip(Skipped{Line: line, Reason: reason}) }

// Options are facts that a file does not contain.
type Options struct {
	Zone *time.Location // of times without a zone
	Now  time.Time      // no statement is later
}

// statement returns an item with a text, or the problem with it.
func statement(line int, text string) (Item, error) {
	text = memory.CleanText(text)
	if text == "" {
		return Item{}, errors.New("its text is empty")
	}
	if problem := memory.TextProblem(text); problem != "" {
		return Item{}, errors.New("its text " + problem)
	}
	return Item{Line: line, Memory: &memsidecarv1.Memory{Text: text}}, nil
}

// maxOriginBytes limits the fields without an equivalent that a provenance keeps. Further fields are omitted.
const maxOriginBytes = 8 << 10

// origin is the provenance of an imported memory: its format, its id there, and its other fields.
func origin(format, id, where string, others map[string]json.RawMessage) *memsidecarv1.Provenance {
	reason := "imported from " + format
	if id != "" {
		reason += ", id " + id
	}
	if where != "" {
		reason += ", " + where
	}
	if len(others) > 0 {
		if data, err := json.Marshal(others); err == nil && len(data) <= maxOriginBytes {
			reason += ", with " + string(data)
		} else {
			reason += fmt.Sprintf(", with more than %d bytes of other fields, which were not kept", maxOriginBytes)
		}
	}
	return &memsidecarv1.Provenance{Source: memsidecarv1.MemorySource_MEMORY_SOURCE_IMPORT, Reason: reason}
}

func stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// kindNamed returns the kind with a name such as "preference", or MEMORY_KIND_UNSPECIFIED.
func kindNamed(name string) memsidecarv1.MemoryKind {
	name = strings.ToUpper(strings.TrimSpace(name))
	return memsidecarv1.MemoryKind(memsidecarv1.MemoryKind_value["MEMORY_KIND_"+name])
}

// kindNames returns the names of the kinds for an error.
func kindNames() string {
	var names []string
	for _, number := range slices.Sorted(maps.Keys(memsidecarv1.MemoryKind_name))[1:] { // the first is the zero value
		names = append(names, strings.ToLower(strings.TrimPrefix(memsidecarv1.MemoryKind_name[number], "MEMORY_KIND_")))
	}
	return strings.Join(names, ", ")
}

// spelled returns the first of the spellings that is a key of the fields.
func spelled(fields map[string]json.RawMessage, names []string) string {
	i := slices.IndexFunc(names, func(name string) bool { _, ok := fields[name]; return ok })
	if i < 0 {
		return ""
	}
	return names[i]
}

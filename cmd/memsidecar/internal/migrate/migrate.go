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

// Item is one statement that was read.
type Item struct {
	Line int
	// User is whose it is as the file says, "" when it does not.
	User string
	// SourceID is the id that it has where it comes from, "" when it has none.
	SourceID string
	// Memory has text, kind, importance, times, provenance, agent and session.
	Memory *memsidecarv1.Memory
}

// Skipped is a record that was left out.
type Skipped struct {
	Line   int // 0: the file as a whole
	Reason string
	// Bad records have a mistake; the others are left out on purpose.
	Bad bool
}

// Sink takes what is read.
type Sink struct {
	Item func(Item) error // an error ends the reading
	Skip func(Skipped)
}

func (s Sink) reject(line int, format string, args ...any) {
	s.Skip(Skipped{Line: line, Reason: fmt.Sprintf(format, args...), Bad: true})
}

func (s Sink) skipLine(line int, reason string) { s.Skip(Skipped{Line: line, Reason: reason}) }

// Options are what a file does not say itself.
type Options struct {
	Zone *time.Location // of times that name none
	Now  time.Time      // nothing was said after it
}

// statement makes an item of a text, or says what is wrong with it.
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

// maxOriginBytes is how much a provenance keeps of what has no place elsewhere. More of it is left out.
const maxOriginBytes = 8 << 10

// origin is the provenance of what was imported: its format, its id there, and what else was said of it.
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

// kindNamed is the kind of a name such as "preference", or MEMORY_KIND_UNSPECIFIED.
func kindNamed(name string) memsidecarv1.MemoryKind {
	name = strings.ToUpper(strings.TrimSpace(name))
	return memsidecarv1.MemoryKind(memsidecarv1.MemoryKind_value["MEMORY_KIND_"+name])
}

// kindNames lists the kinds for an error.
func kindNames() string {
	var names []string
	for _, number := range slices.Sorted(maps.Keys(memsidecarv1.MemoryKind_name))[1:] { // the first is none
		names = append(names, strings.ToLower(strings.TrimPrefix(memsidecarv1.MemoryKind_name[number], "MEMORY_KIND_")))
	}
	return strings.Join(names, ", ")
}

// spelled finds the first of the spellings that a key of the fields has.
func spelled(fields map[string]json.RawMessage, names []string) string {
	i := slices.IndexFunc(names, func(name string) bool { _, ok := fields[name]; return ok })
	if i < 0 {
		return ""
	}
	return names[i]
}

// Package sessionfile reads and writes files with one conversation: a JSON object with its messages, or JSONL with a message per line.
//
// A JSON object that is read and written again keeps the order and the bytes of its fields. It is indented with two spaces and has no \u
// escapes. Arguments of tools and metadata are kept verbatim; their numbers are never parsed. Times are written without a zone, as by
// Python's isoformat(). Reading accepts a zone.
package sessionfile

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// Format is the format of a file.
type Format string

// The formats.
const (
	JSON  Format = "json"  // an object with its messages
	JSONL Format = "jsonl" // a line about the session, then a line for each message
)

// File is the content of a file.
type File struct {
	// Session has the id, title, metadata, memorize_every, and the times of creation and change.
	Session *memsidecarv1.Session
	// Messages are in the order of the file.
	Messages []*memsidecarv1.Message
	// Lines are the lines on which the messages begin.
	Lines []int
}

// The keys of a file. Those of the first line are in every file, null if they are unknown; the others only if they are set.
const (
	keySession, keyMessages, keyCreated, keyUpdated              = "session_id", "messages", "created_at", "updated_at"
	keyTitle, keyMetadata, keyEvery, keyType, keyCount           = "title", "metadata", "memorize_every", "_type", "message_count"
	keyRole, keyContent, keyTime, keyTools                       = "role", "content", "timestamp", "tool_calls"
	keyID, keySpeaker, keyAgent, keyNPC                          = "id", "speaker", "agent", "npc_id"
	keyTool, keyArguments, keyResult, keyStatus, keyDuration     = "tool_name", "arguments", "result", "status", "duration"
	typeMetadata                                                 = "metadata"
	nothing, emptyObject                                     raw = "null", "{}"
)

// raw is JSON, verbatim.
type raw string

var roles = map[string]memsidecarv1.Role{
	"user": memsidecarv1.Role_ROLE_USER, "assistant": memsidecarv1.Role_ROLE_ASSISTANT,
	"system": memsidecarv1.Role_ROLE_SYSTEM, "tool": memsidecarv1.Role_ROLE_TOOL,
}

// naive is the format of Python's isoformat() without a zone. It adds six decimals unless they are zero.
const naive = "2006-01-02T15:04:05"

// parseTime reads a time. Without a zone it is in the given zone.
func parseTime(text string, zone *time.Location) (*timestamppb.Timestamp, error) {
	text = strings.Replace(text, " ", "T", 1)
	for _, layout := range []string{naive, "2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700"} { // fractions are accepted, too
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return timestamppb.New(t), nil
		}
	}
	return nil, fmt.Errorf("%q is not a time such as 2025-12-31T10:00:00", text)
}

// formatTime returns the time in the zone, in microseconds: Python has no finer times, and before 3.11 reads no others. A local time that
// occurs twice, at the end of summer time, has its offset, because it would be ambiguous.
func formatTime(stamp *timestamppb.Timestamp, zone *time.Location) string {
	t := stamp.AsTime().Truncate(time.Microsecond).In(zone)
	layout := naive
	if t.Nanosecond() != 0 {
		layout += ".000000"
	}
	text := t.Format(layout)
	if back, err := time.ParseInLocation(layout, text, zone); err != nil || !back.Equal(t) {
		text = t.Format(layout + "-07:00")
	}
	return text
}

// maxSeconds of a duration: no tool call takes thirty years.
const maxSeconds = 1e9

// formatDuration writes seconds as Python writes a float: 0.5, 1.0, 5e-05.
func formatDuration(d *durationpb.Duration) string {
	// Parsing the decimals gives the nearest float; adding two floats may not.
	seconds, err := strconv.ParseFloat(fmt.Sprintf("%d.%09d", d.GetSeconds(), d.GetNanos()), 64)
	if err != nil {
		return string(nothing)
	}
	if seconds != 0 && seconds < 1e-4 {
		return strconv.FormatFloat(seconds, 'e', -1, 64)
	}
	text := strconv.FormatFloat(seconds, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

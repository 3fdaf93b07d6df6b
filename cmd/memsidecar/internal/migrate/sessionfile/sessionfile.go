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

// File is a conversation that was read.
type File struct {
	// Session has the fields of the file: id, title, metadata, memorize_every, the times of creation and change.
	Session *memsidecarv1.Session
	// Messages are in the order of the file.
	Messages []*memsidecarv1.Message
	// Lines are the numbers of the lines, from 1, on which the messages begin.
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

// naive is the layout of Python's isoformat() without a zone. Python adds six digits of microseconds unless they are zero.
const naive = "2006-01-02T15:04:05"

// parseTime parses a time. A time without a zone is interpreted in zone.
func parseTime(text string, zone *time.Location) (*timestamppb.Timestamp, error) {
	text = strings.Replace(text, " ", "T", 1)
	for _, layout := range []string{naive, "2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700"} { // they also accept fractions of a second
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return timestamppb.New(t), nil
		}
	}
	return nil, fmt.Errorf("%q is not a time such as 2025-12-31T10:00:00", text)
}

// formatTime formats the time in the zone, truncated to microseconds, which is the precision of Python. A local time that occurs twice,
// when clocks are set back, gets its offset.
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

// maxSeconds is the maximum duration of a tool call, about thirty years.
const maxSeconds = 1e9

// formatDuration writes seconds as Python writes a float: 0.5, 1.0, 5e-05.
func formatDuration(d *durationpb.Duration) string {
	// Parsing the decimal gives the nearest float64. The sum of two floats may be another.
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

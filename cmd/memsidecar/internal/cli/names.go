package cli

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// Prefixes of the API's enum values, which users need not write.
const (
	kindPrefix  = "MEMORY_KIND_"
	statePrefix = "CONSIDERATION_STATE_"
	tracePrefix = "TRACE_KIND_"

	memoryStatePrefix = "MEMORY_STATE_"
	standingPrefix    = "STANDING_"
)

var (
	kindNames  = short(memsidecarv1.MemoryKind_name, kindPrefix)
	stateNames = short(memsidecarv1.ConsiderationState_name, statePrefix)
	traceNames = short(memsidecarv1.TraceKind_name, tracePrefix)

	memoryStateNames = short(memsidecarv1.MemoryState_name, memoryStatePrefix)
	standingNames    = short(memsidecarv1.Standing_name, standingPrefix)
)

// short returns the values of an enum without prefix, in lower case and without the zero value.
func short(enum map[int32]string, prefix string) map[int32]string {
	all := map[int32]string{}
	for number, name := range enum {
		if number != 0 {
			all[number] = nameOf(name, prefix)
		}
	}
	return all
}

// names lists the names in the order of their numbers.
func names(enum map[int32]string) []string {
	var list []string
	for _, number := range slices.Sorted(maps.Keys(enum)) {
		list = append(list, enum[number])
	}
	return list
}

func nameOf(enum, prefix string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(enum, prefix)), "_", " ")
}

// valueOf returns the number of a name that the parser has checked; 0 for "".
func valueOf(enum map[string]int32, prefix, name string) int32 {
	return enum[prefix+strings.ToUpper(name)]
}

func kindName(kind memsidecarv1.MemoryKind) string { return nameOf(kind.String(), kindPrefix) }

// standingName is empty for a memory without one.
func standingName(standing memsidecarv1.Standing) string {
	if standing == memsidecarv1.Standing_STANDING_UNSPECIFIED {
		return ""
	}
	return nameOf(standing.String(), standingPrefix)
}

func stateName(state memsidecarv1.ConsiderationState) string {
	return nameOf(state.String(), statePrefix)
}

// timeArg is a time on the command line.
type timeArg struct{ time.Time }

// UnmarshalText reads RFC 3339, or a local date with or without a time.
func (w *timeArg) UnmarshalText(text []byte) error {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly, "2006-01-02 15:04", time.DateTime} {
		if t, err := time.ParseInLocation(layout, string(text), time.Local); err == nil {
			w.Time = t
			return nil
		}
	}
	return errors.New(`write a time as 2026-11-20, "2026-11-20 21:48" or 2026-11-20T21:48:00Z`)
}

// timestamp returns nil for the zero time.
func (w timeArg) timestamp() *timestamppb.Timestamp {
	if w.IsZero() {
		return nil
	}
	return timestamppb.New(w.Time)
}

// date formats a local time for tables, in minutes.
func date(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Local().Format("2006-01-02 15:04")
}

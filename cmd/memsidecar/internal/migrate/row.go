package migrate

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// row is a record whose fields are read by name. It keeps the first mistake.
type row struct {
	fields map[string]json.RawMessage
	used   map[string]bool
	o      Options
	err    error
}

func newRow(fields map[string]json.RawMessage, o Options) *row {
	return &row{fields: fields, used: map[string]bool{}, o: o}
}

func (r *row) wrong(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// find returns the first field that has a value, by name or by a path such as metadata.user_id.
func (r *row) find(names []string) (name string, value json.RawMessage) {
	for _, name := range names {
		if name == "" {
			continue
		}
		if value := lookup(r.fields, name); value != nil {
			r.used[name] = true
			return name, value
		}
	}
	return "", nil
}

// lookup follows a path. Some databases store an object as a string of JSON.
func lookup(fields map[string]json.RawMessage, path string) json.RawMessage {
	value, ok := fields[path]
	if head, rest, dotted := strings.Cut(path, "."); !ok && dotted {
		inner := object(fields[head])
		var text string
		if inner == nil && json.Unmarshal(fields[head], &text) == nil {
			inner = object([]byte(text))
		}
		return lookup(inner, rest)
	}
	if string(value) == "null" {
		return nil
	}
	return value
}

func (r *row) text(names ...string) string {
	name, value := r.find(names)
	if value == nil {
		return ""
	}
	var text string
	if json.Unmarshal(value, &text) != nil {
		r.wrong("%s is not a text", name)
	}
	return text
}

// id reads a string or a number.
func (r *row) id(names ...string) string {
	name, value := r.find(names)
	if value == nil {
		return ""
	}
	text := string(value)
	if json.Unmarshal(value, &text) != nil && json.Unmarshal(value, new(float64)) != nil {
		r.wrong("%s is neither a text nor a number", name)
	}
	if problem := memory.IDProblem(text); problem != "" {
		r.wrong("%s %s", name, problem)
	}
	return text
}

// share reads a number between 0 and 1.
func (r *row) share(names ...string) *float64 {
	name, value := r.find(names)
	if value == nil {
		return nil
	}
	var n float64
	if json.Unmarshal(value, &n) != nil || math.IsNaN(n) || n < 0 || n > 1 {
		r.wrong("%s is not a number between 0 and 1", name)
		return nil
	}
	return &n
}

// past reads the time of a statement, which must not be in the future.
func (r *row) past(names ...string) time.Time {
	name, t := r.time(names...)
	if !t.IsZero() && t.After(r.o.Now.Add(48*time.Hour)) { // clocks and zones differ
		r.wrong("%s %s is in the future", name, t.UTC().Format(time.RFC3339))
	}
	return t
}

func (r *row) time(names ...string) (name string, t time.Time) {
	name, value := r.find(names)
	if value == nil {
		return "", t
	}
	t, err := readTime(value, r.o.Zone)
	if err != nil {
		r.wrong("%s %w", name, err)
	}
	return name, t
}

// others returns the fields that no flag names. It omits vectors, because those of another model are useless.
func (r *row) others(but ...string) map[string]json.RawMessage {
	rest := map[string]json.RawMessage{}
	for name, value := range r.fields {
		text := string(value)
		if !r.used[name] && text != "null" && text != "{}" && text != "[]" && text != `""` && !numbers(text) {
			rest[name] = value
		}
	}
	for _, name := range but {
		delete(rest, name)
	}
	return rest
}

// numbers reports whether JSON is a list of numbers.
func numbers(text string) bool {
	list, ok := strings.CutPrefix(text, "[")
	list = strings.TrimLeft(list, " \t\r\n[")
	return ok && list != "" && strings.ContainsAny(list[:1], "-0123456789")
}

// layouts of times without a zone. Each also accepts fractions. Country-specific orders of day and month are not supported.
var layouts = []string{
	"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly, "2006-1-2",
	"2006/1/2 15:04:05", "2006/1/2 15:04", "2006/1/2", "2006年1月2日 15:04:05", "2006年1月2日 15:04", "2006年1月2日", "20060102",
}

// zoned are layouts with a zone: those of ISO, PostgreSQL, Go, mail, HTTP and JavaScript.
var zoned = []string{
	time.RFC3339, "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02 15:04:05 Z07:00", "2006-01-02 15:04:05 -0700 MST",
	"2006-01-02 15:04:05Z07", "2006-01-02T15:04:05Z07", "2006-01-02 15:04:05 UTC",
	time.RFC1123Z, "Mon, 2 Jan 2006 15:04:05 GMT", "Mon Jan 02 2006 15:04:05 GMT-0700",
}

// zoneName matches the name that JavaScript adds to the zone.
var zoneName = lazyregexp.New(` \([^()]*\)$`)

// readTime reads the common formats of times: RFC 3339, Python's isoformat, a date, or seconds, milliseconds, microseconds or nanoseconds
// since 1970.
func readTime(value json.RawMessage, zone *time.Location) (time.Time, error) {
	var text string
	if json.Unmarshal(value, &text) != nil {
		var n float64
		if json.Unmarshal(value, &n) != nil {
			return time.Time{}, fmt.Errorf("is not a time such as 2026-02-19T09:41:42Z")
		}
		if t, err := time.ParseInLocation("20060102", string(value), zone); err == nil {
			return checkTime(t)
		}
		return since1970(n)
	}
	if text = zoneName.ReplaceAllString(strings.TrimSpace(text), ""); text == "" {
		return time.Time{}, nil
	}
	for _, layout := range zoned {
		if t, err := time.Parse(layout, text); err == nil {
			return checkTime(t)
		}
	}
	for _, layout := range layouts {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return checkTime(t)
		}
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return since1970(n)
	}
	return time.Time{}, fmt.Errorf("%q is not a time such as 2026-02-19T09:41:42Z", clipped(text))
}

// earliest is smaller than any number that a program writes for a time: as seconds it is in the spring of 1973.
const earliest = 1e8

func since1970(n float64) (time.Time, error) {
	if math.Abs(n) < earliest { // a year, a day such as 20260219, or 0 for none
		return time.Time{}, fmt.Errorf("%v is not a time such as 2026-02-19T09:41:42Z, nor the seconds since 1970 of one", n)
	}
	if math.IsNaN(n) || math.Abs(n) >= 1e19 {
		return time.Time{}, fmt.Errorf("%v is not a time", n)
	}
	for math.Abs(n) >= 1e11 { // seconds do not get there before the year 5138
		n /= 1000
	}
	whole, part := math.Modf(n)
	return checkTime(time.Unix(int64(whole), int64(math.Round(part*1e6))*1000).UTC())
}

func checkTime(t time.Time) (time.Time, error) {
	if problem := memory.TimeProblem(t); problem != "" {
		return time.Time{}, fmt.Errorf("%s", problem)
	}
	return t, nil
}

// clipped returns the beginning of a text, for an error.
func clipped(text string) string {
	if utf8.RuneCountInString(text) <= 40 {
		return text
	}
	return string([]rune(text)[:40]) + "…"
}

package eval

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Report has the measurements by name, such as "recall.messages.all.at5", and the settings. All values are numbers or texts, so that the
// JSON is flat.
type Report map[string]any

// Names of the values that every report has.
const (
	kindName    = "eval"
	versionName = "version"
)

// Kind is the kind of a report.
type Kind string

// The kinds of reports.
const (
	KindLoCoMo Kind = "locomo"
	KindGate   Kind = "gate"
	KindTalk   Kind = "talk"
)

// share records a share with six digits: more would depend on the order of addition.
func (r Report) share(name string, value float64) {
	if !math.IsNaN(value) {
		r[name] = math.Round(value*1e6) / 1e6
	}
}

// latencies records percentiles, by nearest rank.
func (r Report) latencies(name string, took []time.Duration) {
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	for _, p := range []int{50, 90, 99} {
		rank := max(1, int(math.Ceil(float64(p)/100*float64(len(took)))))
		r[fmt.Sprintf("%s.p%d_ms", name, p)] = float64(took[rank-1].Microseconds()) / 1000
	}
}

// number returns a numeric value.
func (r Report) number(name string) (value float64, ok bool) {
	switch v := r[name].(type) {
	case float64:
		return v, true
	case int:
		return float64(v), true
	}
	return 0, false
}

// text returns a text value.
func (r Report) text(name string) string {
	switch v := r[name].(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

// Describe records the kind, the program's version, and settings that are not the defaults.
func (r Report) Describe(version string, settings map[string]string) {
	r[versionName] = version
	for key, value := range settings {
		r["set."+key] = value
	}
}

// WriteJSON writes the report as one object with sorted names, either one per line or all on one line.
func (r Report) WriteJSON(w io.Writer, indent string) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	return encoder.Encode(r)
}

// ReadReport reads a report of a kind that WriteJSON wrote.
func ReadReport(path string, kind Kind) (Report, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, &InputError{File: path, Problem: err.Error()}
	}
	const expected = "an earlier run is what --json wrote"
	var r Report
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, jsonError(path, 1, data, err, expected)
	}
	if got := r.text(kindName); got != string(kind) {
		return nil, &InputError{File: path, Problem: fmt.Sprintf("is no report of eval %s; %s", kind, expected)}
	}
	return r, nil
}

// Differs returns which files and settings differ from an earlier run.
func (r Report) Differs(earlier Report) (differences []string) {
	if earlier == nil {
		return nil
	}
	keys := map[string]bool{"file": true, "files": true}
	for _, report := range []Report{r, earlier} {
		for key := range report {
			if strings.HasPrefix(key, "set.") {
				keys[key] = true
			}
		}
	}
	for _, key := range sortedKeys(keys) {
		if now, before := r.text(key), earlier.text(key); now != before {
			differences = append(differences, fmt.Sprintf("%s is %s, was %s", strings.TrimPrefix(key, "set."), quoted(now), quoted(before)))
		}
	}
	return differences
}

func quoted(value string) string {
	if value == "" {
		return "not set"
	}
	return strconv.Quote(value)
}

// Table is a part of a report for people. The first columns, at least one, are text, the others numbers.
type Table struct {
	Columns []string
	Words   int // number of text columns
	Rows    [][]string
}

// Formats of values.
const (
	wholeNumber  = "%.0f"
	milliseconds = "%.1f"
	thousandths  = "%.3f"
)

// cells formats values of a report, with their differences from an earlier one if there is one.
type cells struct{ report, earlier Report }

// show formats a value; "" if it is missing.
func (c cells) show(name, format string) string {
	value, ok := c.report.number(name)
	if !ok {
		return ""
	}
	text := fmt.Sprintf(format, value)
	before, ok := c.earlier.number(name)
	if ok && (value != before || format != wholeNumber) {
		signed := "%+" + format[1:]
		text += " (" + fmt.Sprintf(signed, value-before) + ")"
	}
	return text
}

func (c cells) row(head string, format string, names ...string) []string {
	row := []string{head}
	for _, name := range names {
		row = append(row, c.show(name, format))
	}
	return row
}

// Tables returns a report as tables, compared with an earlier one unless that is nil.
func (r Report) Tables(earlier Report) []Table {
	c := cells{r, earlier}
	tables := c.locomo
	switch Kind(r.text(kindName)) {
	case KindGate:
		tables = c.gate
	case KindTalk:
		tables = c.talk
	case KindLoCoMo:
	}
	return slices.DeleteFunc(tables(), func(t Table) bool { return len(t.Rows) == 0 })
}

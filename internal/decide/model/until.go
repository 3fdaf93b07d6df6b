package model

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// untilLayouts are how models write when something is over, with how much of the calendar they name.
var untilLayouts = []struct {
	layout string
	month  bool
}{
	{time.RFC3339, false},
	{"2006-01-02T15:04:05", false},
	{"2006-01-02T15:04", false},
	{time.DateTime, false},
	{"2006-01-02 15:04", false},
	{time.DateOnly, false},
	{"2006/1/2", false},
	{"2006年1月2日", false},
	{"2006-01", true},
}

// until reads when an appointment, a plan or a task is over: the end of the day that the model names, where the user is. What
// cannot be read, or is no later than what was said, is ignored: the memory then just does not end.
func until(raw json.RawMessage, kind memory.Kind, said time.Time, zone *time.Location) time.Time {
	var text string
	if json.Unmarshal(raw, &text) != nil || kind != memory.KindAppointment && kind != memory.KindPlan && kind != memory.KindTask {
		return time.Time{}
	}
	if zone == nil {
		zone = time.UTC
	}
	text = strings.TrimSpace(text)
	for _, l := range untilLayouts {
		t, err := time.Parse(l.layout, text)
		if err != nil {
			continue
		}
		if l.layout == time.RFC3339 {
			t = t.In(zone) // the others say what the clock there shows
		}
		end := memory.StartOfDay(t.Year(), t.Month(), t.Day()+1, zone)
		if l.month {
			end = memory.StartOfDay(t.Year(), t.Month()+1, 1, zone)
		}
		if end.After(said) && end.Year() < 10000 { // JSON knows no later one
			return end
		}
	}
	return time.Time{}
}

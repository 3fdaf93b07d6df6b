package model

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/lang/dates"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// until reads when an appointment, a plan or a task is over: the end of the day or month that the model names, in the user's zone. It is
// zero, and the memory does not end, if there is no date or it is not after the dialogue.
func until(raw json.RawMessage, kind memory.Kind, said time.Time, zone *time.Location) time.Time {
	var text string
	if json.Unmarshal(raw, &text) != nil || kind != memory.KindAppointment && kind != memory.KindPlan && kind != memory.KindTask {
		return time.Time{}
	}
	if zone == nil {
		zone = time.UTC
	}
	text = strings.TrimSpace(text)
	var day dates.Date
	if instant, err := time.Parse(time.RFC3339, text); err == nil {
		local := instant.In(zone)
		day = dates.Date{Year: local.Year(), Month: int(local.Month()), Day: local.Day()}
	} else {
		day, _ = dates.Numeric(text) // a time of day that follows is the clock's in the zone
	}
	end := memory.StartOfDay(day.Year, time.Month(day.Month), day.Day+1, zone)
	if day.Day == 0 {
		end = memory.StartOfDay(day.Year, time.Month(day.Month)+1, 1, zone)
	}
	if !day.Exists() || !end.After(said) {
		return time.Time{}
	}
	return end
}

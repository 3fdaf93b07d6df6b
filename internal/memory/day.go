package memory

import "time"

// StartOfDay is the first moment of a day of the calendar in a zone; month and day may be outside of their ranges, as for
// time.Date. Where the clock is put forward at midnight, as in Havana and Santiago, there is no midnight, and time.Date
// answers with an hour of the day before; where it is put back over midnight there are two.
func StartOfDay(year int, month time.Month, day int, zone *time.Location) time.Time {
	wanted := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	t := time.Date(year, month, day, 0, 0, 0, 0, zone)
	begin, end := t.ZoneBounds()
	if y, m, d := t.Date(); time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Before(wanted) {
		return end
	}
	if !begin.IsZero() {
		_, offset := begin.Add(-1).Zone()
		if first := wanted.Add(-time.Duration(offset) * time.Second); first.Before(begin) {
			return first.In(zone)
		}
	}
	return t
}

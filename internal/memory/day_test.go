package memory

import (
	"testing"
	"time"
)

// TestDaysAreContiguous: Each day begins where the previous one ends, also on days with no midnight or two.
func TestDaysAreContiguous(t *testing.T) {
	for _, c := range []struct{ zone, day, want string }{
		{"Asia/Shanghai", "2026-03-08", "2026-03-08T00:00:00+08:00"},
		{"UTC", "2026-03-08", "2026-03-08T00:00:00Z"},
		{"America/Havana", "2026-03-08", "2026-03-08T01:00:00-04:00"}, // no midnight
		{"America/Havana", "2026-03-09", "2026-03-09T00:00:00-04:00"},
		{"America/Havana", "2026-11-01", "2026-11-01T00:00:00-04:00"}, // two midnights
		{"America/Santiago", "2026-09-06", "2026-09-06T01:00:00-03:00"},
		{"Africa/Cairo", "2026-04-24", "2026-04-24T01:00:00+03:00"},
		{"Asia/Beirut", "2026-03-29", "2026-03-29T01:00:00+03:00"},
		{"Asia/Amman", "2010-10-29", "2010-10-29T00:00:00+03:00"},       // two midnights
		{"Pacific/Apia", "2011-12-30", "2011-12-31T00:00:00+14:00"},     // the day does not exist
		{"America/New_York", "2026-03-08", "2026-03-08T00:00:00-05:00"}, // changes to summer time later
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		day, err := time.Parse(time.DateOnly, c.day)
		if err != nil {
			t.Fatal(err)
		}
		got := StartOfDay(day.Year(), day.Month(), day.Day(), zone)
		if got.Format(time.RFC3339) != c.want {
			t.Errorf("%s begins in %s at %s, want %s", c.day, c.zone, got.Format(time.RFC3339), c.want)
		}
		if before := got.Add(-1); before.Format(time.DateOnly) >= c.day {
			t.Errorf("in %s a moment before %s begins is %s", c.zone, c.day, before)
		}
	}
}

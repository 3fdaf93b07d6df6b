package dates_test

import (
	"slices"
	"testing"

	"github.com/memsidecar/memsidecar/internal/lang/dates"
)

func TestWrittenFindsPartsOfDates(t *testing.T) {
	for text, want := range map[string][]dates.Date{
		"on 8 may 2023 or may 9th": {{Year: 2023, Month: 5, Day: 8}, {Month: 5, Day: 9}},
		"jan 2020, march of 2021":  {{Year: 2020, Month: 1}, {Year: 2021, Month: 3}},
		"2023年5月4日, 周五":            {{Year: 2023, Month: 5, Day: 4}, {Weekday: 5}},
		"i may go":                 nil,
	} {
		written, _ := dates.Written(text)
		var got []dates.Date
		for _, w := range written {
			got = append(got, w.Date)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

func TestNumericReadsDateAtBeginning(t *testing.T) {
	for text, want := range map[string]dates.Date{
		"2023-05-04T15:00": {Year: 2023, Month: 5, Day: 4}, "2023/5/4": {Year: 2023, Month: 5, Day: 4}, "2023年5月4日": {Year: 2023, Month: 5, Day: 4},
		"2023-05": {Year: 2023, Month: 5}, "2023.5": {}, "12023-05": {}, "2023-13": {}, "": {},
	} {
		if got, _ := dates.Numeric(text); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

// TestClocksInPartOfDay: A part of the day sets the same hour as in resolved dates.
func TestClocksInPartOfDay(t *testing.T) {
	for text, want := range map[string]int{"下午3点": 15, "晚上12点": 0, "夜里两点": 2, "早上8点": 8, "中午12点": 12, "3pm": 15} {
		got := dates.Clocks(text)
		if len(got) != 1 || got[0].Hour != want || !got[0].Sure {
			t.Errorf("%s: %+v, want %d o'clock", text, got, want)
		}
	}
}

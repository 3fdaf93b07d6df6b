package seenmovies

import (
	"strings"
	"testing"
	"time"
)

const file = `{
  "movies": {
    "/mv/m7BA": {"title": "得闲谨制", "rating": "6.9", "tag": "剧情/战争", "first_seen": "2026-02-19", "notified": true},
    "/mv/823D": {"title": "惊变28年2：白骨圣殿", "id": 9007199254740993, "first_seen": "2026-02-18", "notified": false},
    "/mv/a": {"title": "bare"}
  },
  "last_check": "2026-02-19T09:41:42+00:00",
  "last_query": {"timestamp": "2026-02-19T19:23:54.5", "urls": ["/mv/m7BA", "/mv/4LjJ", "/mv/823D"]}
}`

func TestRead(t *testing.T) {
	shanghai := time.FixedZone("Shanghai", 8*3600)
	f, err := Read(strings.NewReader(file), shanghai)
	if err != nil || len(f.Movies) != 3 {
		t.Fatal(f, err)
	}
	first, second := f.Movies[0], f.Movies[1]
	if first.URL != "/mv/m7BA" || first.Title != "得闲谨制" || first.Attributes != `{"rating": "6.9", "tag": "剧情/战争"}` || !first.Notified ||
		!first.FirstSeen.Equal(time.Date(2026, 2, 18, 16, 0, 0, 0, time.UTC)) {
		t.Errorf("the first is %+v", first)
	}
	if second.URL != "/mv/823D" || second.Attributes != `{"id": 9007199254740993}` || second.Notified {
		t.Errorf("the second is %+v", second)
	}
	if third := f.Movies[2]; third != (Movie{URL: "/mv/a", Title: "bare"}) {
		t.Errorf("the third is %+v", third)
	}
	if strings.Join(f.Shown, " ") != "/mv/m7BA /mv/4LjJ /mv/823D" || !f.ShownAt.Equal(time.Date(2026, 2, 19, 11, 23, 54, 5e8, time.UTC)) {
		t.Errorf("shown are %v at %s", f.Shown, f.ShownAt)
	}
	if !f.LastCheck.Equal(time.Date(2026, 2, 19, 9, 41, 42, 0, time.UTC)) {
		t.Errorf("last check at %s", f.LastCheck)
	}
}

func TestMistakes(t *testing.T) {
	for text, says := range map[string]string{
		"":                                 "is not a seen_movies.json",
		"[]":                               "is not a seen_movies.json",
		`{"films": {}}`:                    `it has no "movies"`,
		`{"movies": []}`:                   "movies: is not an object",
		`{"movies": {"/a": 7}}`:            `movies: "/a": is not an object`,
		`{"movies": {"/a": {"title": 7}}}`: `movies: "/a": "title": `,
		`{"movies": {"/a": {"first_seen": "yesterday"}}}`: `"yesterday" is not a time`,
		`{"movies": {}, "last_check": "x"}`:               "last_check: ",
	} {
		if _, err := Read(strings.NewReader(text), time.UTC); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

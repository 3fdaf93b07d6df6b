// Package seenmovies reads seen_movies.json, in which a film bot stored the films it had seen and reported, and the list it had shown
// last.
package seenmovies

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// File is the content of the file.
type File struct {
	Movies    []Movie // in the order of the file
	LastCheck time.Time
	Shown     []string // URLs of the list that was shown last
	ShownAt   time.Time
}

// Movie is one film.
type Movie struct {
	URL        string
	Title      string
	Attributes string // other fields as a JSON object, or ""
	FirstSeen  time.Time
	Notified   bool
}

// maxBytes is far more than a hundred films need.
const maxBytes = 64 << 20

// Read reads the file. Times without a zone are in the given zone.
func Read(in io.Reader, zone *time.Location) (*File, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxBytes {
		return nil, fmt.Errorf("is larger than %d bytes", maxBytes)
	}
	var raw struct {
		Movies    json.RawMessage `json:"movies"`
		LastCheck string          `json:"last_check"`
		LastQuery struct {
			Timestamp string   `json:"timestamp"`
			URLs      []string `json:"urls"`
		} `json:"last_query"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("is not a seen_movies.json: %w", err)
	}
	if raw.Movies == nil {
		return nil, errors.New(`is not a seen_movies.json: it has no "movies"`)
	}
	f := &File{Shown: raw.LastQuery.URLs}
	if f.LastCheck, err = readTime(raw.LastCheck, zone); err != nil {
		return nil, fmt.Errorf("last_check: %w", err)
	}
	if f.ShownAt, err = readTime(raw.LastQuery.Timestamp, zone); err != nil {
		return nil, fmt.Errorf("last_query.timestamp: %w", err)
	}
	err = eachField(raw.Movies, func(url string, value json.RawMessage) error {
		movie, err := readMovie(url, value, zone)
		f.Movies = append(f.Movies, movie)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("movies: %w", err)
	}
	return f, nil
}

// eachField visits the fields of an object in order.
func eachField(object json.RawMessage, visit func(name string, value json.RawMessage) error) error {
	decoder := json.NewDecoder(bytes.NewReader(object))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return errors.New("is not an object")
	}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return err
		}
		if err := visit(name, value); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
	}
	return nil
}

func readMovie(url string, value json.RawMessage, zone *time.Location) (m Movie, err error) {
	m.URL = url
	var others bytes.Buffer
	err = eachField(value, func(name string, value json.RawMessage) error {
		switch name {
		case "title":
			return json.Unmarshal(value, &m.Title)
		case "notified":
			return json.Unmarshal(value, &m.Notified)
		case "first_seen":
			var text string
			if err := json.Unmarshal(value, &text); err != nil {
				return err
			}
			m.FirstSeen, err = readTime(text, zone)
			return err
		}
		quoted, err := json.Marshal(name)
		if others.Len() > 0 {
			others.WriteString(", ")
		}
		fmt.Fprintf(&others, "%s: %s", quoted, value)
		return err
	})
	if others.Len() > 0 {
		m.Attributes = "{" + others.String() + "}"
	}
	return m, err
}

// readTime reads the formats of Python's date and datetime; "" is no time.
func readTime(text string, zone *time.Location) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999"} {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time such as 2026-02-19 or 2026-02-19T09:41:42+00:00", text)
}

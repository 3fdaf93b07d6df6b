package digest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/lang/lexical"
	"github.com/memsidecar/memsidecar/internal/lang/topics"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// Viewer is the user whose digests are read, and the audience that reads them.
type Viewer struct {
	User memory.User
	Seen
}

// period returns the start and end of a date in the user's zone; an empty date means today.
func (k *Service) period(settings memory.Settings, date string) (from, before time.Time, err error) {
	zone := settings.Location(k.options.Location)
	if date == "" {
		date = k.options.Now().In(zone).Format(time.DateOnly)
	}
	from, before, err = dateOf(date, zone)
	if err != nil {
		return from, before, memory.Invalid("day", "is %q: write a day as 2026-11-20, or leave it out for today", date)
	}
	var v memory.Violations
	v.Check("day", memory.TimeProblem(from))
	return from, before, v.Err()
}

// Get returns the digest of a day from the findings so far; an empty date means today. An empty language means that of the user's
// settings, else that of the conversation.
func (k *Service) Get(ctx context.Context, v Viewer, date, language string) (Day, error) {
	settings, err := k.Settings.Get(ctx, v.User)
	if err != nil {
		return Day{}, err
	}
	from, before, err := k.period(settings, date)
	if err != nil {
		return Day{}, err
	}
	return k.day(ctx, v, settings, from, before, language)
}

func (k *Service) day(ctx context.Context, v Viewer, settings memory.Settings, from, before time.Time, language string) (Day, error) {
	d := Day{Date: from.Format(time.DateOnly), From: from, Before: before}
	entries, err := k.Store.Find(ctx, v.User, v.Seen, from, before)
	if err != nil {
		return d, err
	}
	// This comes before the entries of deleted memories are excluded: their content must not stay in a finding of the same message.
	if entries, err = k.present(ctx, v, withoutRetold(entries)); err != nil {
		return d, err
	}
	d.merge(entries)
	if d.Waiting, err = k.Store.CountPending(ctx, v.User, v.Seen, from, before); err != nil {
		return d, err
	}
	report, err := k.Topics.Count(ctx, topics.Query{
		Namespace: v.User.Namespace, UserID: v.User.ID, AgentID: v.AgentID, Audience: v.Audience, After: from, Before: before, Once: true,
	}, maxTopics)
	if err != nil {
		return d, fmt.Errorf("counting topics: %w", err)
	}
	for _, topic := range report.Topics {
		d.addTopic(topic.Text)
	}
	for _, phrase := range report.Once[:min(len(report.Once), maxTopics/2)] {
		d.addTopic(phrase)
	}
	d.Language = d.spoken(language, settings.Language)
	return d, nil
}

// withoutRetold excludes findings that considering also made a memory of: from the same words of a message, in the same category.
func withoutRetold(entries []Entry) []Entry {
	type place struct {
		session  string
		category Category
		said     int64
	}
	of := func(e *Entry) place { return place{e.SessionID, e.Category, e.SaidAt.UnixMicro()} }
	remembered := map[place][]string{} // quotes of the remembered entries
	for i := range entries {
		if e := &entries[i]; e.MemoryID != "" && !e.Passing {
			remembered[of(e)] = append(remembered[of(e)], e.Quote)
		}
	}
	return slices.DeleteFunc(entries, func(e Entry) bool {
		return e.Passing && e.Category != Issue && slices.ContainsFunc(remembered[of(&e)], func(quote string) bool {
			return strings.Contains(e.Quote, quote) || strings.Contains(quote, e.Quote)
		})
	})
}

// present excludes entries whose memory was deleted, or that the user asked to forget.
func (k *Service) present(ctx context.Context, v Viewer, entries []Entry) ([]Entry, error) {
	kept := entries[:0]
	for _, e := range entries {
		if e.MemoryID != "" {
			m, err := k.Memories.Get(ctx, v.User, e.MemoryID, v.Audience)
			if errors.Is(err, memory.ErrNotFound) || !m.WithdrawnAt.IsZero() {
				continue
			}
			if err != nil {
				return nil, err
			}
		}
		kept = append(kept, e)
	}
	return kept, nil
}

// spoken is the first given language, else that of most of the digest's texts.
func (d *Day) spoken(given ...string) string {
	for _, language := range given {
		if language != "" {
			return language
		}
	}
	var text strings.Builder
	for _, list := range [][]Entry{d.Preferences, d.Decisions, d.Tasks, d.Issues, d.Insights} {
		for _, e := range list {
			text.WriteString(e.remembered() + "\n")
		}
	}
	for _, topic := range d.Topics {
		text.WriteString(topic + "\n")
	}
	return lexical.Language(text.String())
}

// List returns a page of the days that have a digest, newest first. next is the cursor: the date before which the next page starts.
func (k *Service) List(ctx context.Context, v Viewer, before, language string, limit int) (days []Day, next string, err error) {
	settings, err := k.Settings.Get(ctx, v.User)
	if err != nil {
		return nil, "", err
	}
	zone := settings.Location(k.options.Location)
	end := time.Time{}
	if before != "" {
		if end, _, err = k.period(settings, before); err != nil {
			return nil, "", err
		}
	}
	for len(days) < limit {
		newest, err := k.Store.Newest(ctx, v.User, v.Seen, end)
		if err != nil || newest.IsZero() {
			return days, "", err
		}
		from, until, err := dateOf(newest.In(zone).Format(time.DateOnly), zone)
		if err != nil {
			return nil, "", err
		}
		d, err := k.day(ctx, v, settings, from, until, language)
		if err != nil {
			return nil, "", err
		}
		if end = from; !d.Empty() {
			days = append(days, d)
		}
	}
	if newest, err := k.Store.Newest(ctx, v.User, v.Seen, end); err != nil || newest.IsZero() {
		return days, "", err
	}
	return days, end.Format(time.DateOnly), nil
}

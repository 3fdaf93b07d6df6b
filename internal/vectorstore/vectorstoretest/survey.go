package vectorstoretest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/testkit/storetest"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// surveySuite is one test of vectorstore.Survey.
type surveySuite struct {
	*suite

	survey vectorstore.Survey
	close  func()
}

// RunSurvey runs the suite of vectorstore.Survey. Each call of open returns stores as Run needs them.
func RunSurvey(t *testing.T, open func(t *testing.T) Stores) {
	for _, c := range []struct {
		name string
		run  func(*surveySuite)
	}{
		{"Users", testUsers},
		{"Survey", testSurvey},
		{"SameTime", testSurveySameTime},
		{"ChangesBetweenPages", testSurveyChanges},
		{"PageToken", testSurveyPageToken},
		{"Unavailable", testSurveyUnavailable},
		{"Cancelled", testSurveyCancelled},
	} {
		t.Run(c.name, func(t *testing.T) {
			stores := open(t)
			c.run(&surveySuite{&suite{T: t, store: stores.Store}, stores.Survey, stores.Close})
		})
	}
}

// users reads the ids of all users of a namespace, in pages of limit ids.
func (s *surveySuite) users(namespace string, limit int) (all []string) {
	s.Helper()
	for after := ""; ; after = all[len(all)-1] {
		page, err := s.survey.Users(s.Context(), namespace, after, limit)
		if err != nil || len(page) > limit {
			s.Fatal(len(page), err)
		}
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
	}
}

// testUsers: Users with memories are returned in the byte order of their ids.
func testUsers(s *surveySuite) {
	ids := []string{"Zoe", "ann", "ann ", "annb", "ann_b", "ben", "é", "小林", "🍵"}
	slices.Sort(ids)
	for i := range ids {
		s.add(memory.User{Namespace: "n", ID: ids[(i*5+3)%len(ids)]}, s.memory("likes green tea"))
	}
	s.add(memory.User{Namespace: "n/else", ID: "other"}, s.memory("likes green tea"))
	s.add(memory.User{Namespace: "N", ID: "other"}, s.memory("likes green tea"))
	gone := memory.User{Namespace: "n", ID: "gone"}
	m := s.add(gone, s.memory("likes green tea"))
	s.remove(gone, m.ID)
	for _, limit := range []int{1, 2, 100} {
		if got := s.users("n", limit); !slices.Equal(got, ids) {
			s.Errorf("pages of %d: %q, want %q", limit, got, ids)
		}
	}
	if got := s.users("unknown", 10); len(got) != 0 {
		s.Errorf("an unknown namespace: %q", got)
	}
}

// all reads all memories of a user, in pages of limit memories.
func (s *surveySuite) all(user memory.User, limit int) (all []vectorstore.SurveyItem) {
	s.Helper()
	for after := ""; ; {
		items, next, err := s.survey.Survey(s.Context(), user, Fingerprint, after, limit)
		if err != nil || len(items) > limit {
			s.Fatal(len(items), err)
		}
		all = append(all, items...)
		if after = next; next == "" {
			return all
		}
	}
}

// testSurvey: Memories of any status are returned, newest first, with their first vector of the fingerprint.
func testSurvey(s *surveySuite) {
	var want []string
	add := func(text string, vector []float32, change func(*vectorstore.Entry)) {
		e := s.entry(s.memory(text))
		e.Restore, e.Embedding = true, embedding([]float32{1, 0, 0}, []float32{0, 1, 0})
		change(&e)
		s.apply(ann, e)
		want = append(want, fmt.Sprint(text, " ", vector))
	}
	first := []float32{1, 0, 0}
	add("active", first, func(*vectorstore.Entry) {})
	add("superseded", first, func(e *vectorstore.Entry) { e.Memory.SupersededBy = "mem_1" })
	add("quarantined", first, func(e *vectorstore.Entry) { e.Memory.Quarantine = "no such words" })
	add("withdrawn", first, func(e *vectorstore.Entry) { e.Memory.WithdrawnAt = t0 })
	add("expired", first, func(e *vectorstore.Entry) { e.Memory.ValidTo = t0 })
	add("without vectors", nil, func(e *vectorstore.Entry) { e.Embedding = vectorstore.Embedding{} })
	add("of another model", nil, func(e *vectorstore.Entry) { e.Embedding.Fingerprint = another })
	add("in a group", first, func(e *vectorstore.Entry) { e.Memory.Channel = memory.Channel{Kind: memory.ChannelGroup, ID: "g"} })
	for _, text := range storetest.Texts()[1:] {
		add(text, first, func(*vectorstore.Entry) {})
	}
	s.add(ben, s.memory("of ben"))
	s.add(memory.User{Namespace: "elsewhere", ID: "ann"}, s.memory("of another namespace"))
	slices.Reverse(want)
	for _, limit := range []int{1, 3, len(want), 100} {
		var got []string
		for _, item := range s.all(ann, limit) {
			got = append(got, fmt.Sprint(item.Memory.Text, " ", item.Vector))
			if d := diffOne(item.Memory, s.get(ann, item.Memory.ID)); d != "" {
				s.Errorf("Survey does not agree with Get: %s", d)
			}
		}
		if !slices.Equal(got, want) {
			s.Errorf("pages of %d:\n%q, want\n%q", limit, got, want)
		}
	}
	if got := s.all(memory.User{Namespace: "tenant/site", ID: "stranger"}, 10); len(got) != 0 {
		s.Errorf("an unknown user has %d", len(got))
	}
}

// testSurveySameTime: Memories that were stored at the same time are returned once each.
func testSurveySameTime(s *surveySuite) {
	var want []string
	for range 5 {
		m := s.memory(fmt.Sprint("has number ", s.count))
		m.CreatedAt = t0
		want = append(want, s.add(ann, m).ID)
	}
	var got []string
	for _, item := range s.all(ann, 2) {
		got = append(got, item.Memory.ID)
	}
	slices.Reverse(got)
	if !slices.Equal(got, want) {
		s.Errorf("got %q, want %q", got, want)
	}
}

// testSurveyChanges: Remaining memories are returned once each, also if others are stored and deleted between pages.
func testSurveyChanges(s *surveySuite) {
	var stored []memory.Memory
	for i := range 6 {
		stored = append(stored, s.add(ann, s.memory(fmt.Sprint("has number ", i))))
	}
	items, next, err := s.survey.Survey(s.Context(), ann, Fingerprint, "", 2)
	if err != nil || len(items) != 2 {
		s.Fatal(len(items), err)
	}
	s.remove(ann, stored[4].ID) // the last one of this page
	s.remove(ann, stored[3].ID) // the first one of the next page
	s.add(ann, s.memory("is new"))
	rest, _, err := s.survey.Survey(s.Context(), ann, Fingerprint, next, 10)
	if err != nil {
		s.Fatal(err)
	}
	var got []string
	for _, item := range rest {
		got = append(got, item.Memory.Text)
	}
	if g := strings.Join(got, ", "); g != "has number 2, has number 1, has number 0" {
		s.Errorf("the remaining pages have %q", g)
	}
}

func testSurveyPageToken(s *surveySuite) {
	s.add(ann, s.memory("likes green tea"))
	for _, token := range foreignTokens() {
		if _, _, err := s.survey.Survey(s.Context(), ann, Fingerprint, token, 10); !isInvalid(err, "page_token") {
			s.Errorf("%q: %v", token, err)
		}
	}
}

// foreignTokens returns invalid page tokens.
func foreignTokens() []string {
	return []string{"x", "1.", ".1", "1.2.3", "1.x", "99999999999999999999.1", " 1.2", "1,2"}
}

func (s *surveySuite) calls() storetest.Calls {
	return storetest.Calls{
		"Users": func(ctx context.Context) error { _, err := s.survey.Users(ctx, ann.Namespace, "", 1); return err },
		"Survey": func(ctx context.Context) error {
			_, _, err := s.survey.Survey(ctx, ann, Fingerprint, "", 1)
			return err
		},
	}
}

func testSurveyUnavailable(s *surveySuite) {
	s.add(ann, s.memory("likes green tea"))
	s.close()
	storetest.CheckUnavailable(s.T, s.calls())
}

func testSurveyCancelled(s *surveySuite) {
	s.add(ann, s.memory("likes green tea"))
	storetest.CheckCancelled(s.T, s.calls())
}

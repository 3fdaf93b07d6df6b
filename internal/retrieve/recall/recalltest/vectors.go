package recalltest

import (
	"fmt"
	"math"
	"slices"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve/recall"
	"github.com/memsidecar/memsidecar/internal/session"
)

const (
	fingerprint = "test/model/2"
	another     = "test/another/2"
)

// vectorOf is a unit vector. Those of texts that end in neighbouring digits are similar.
func vectorOf(text string) []float32 {
	angle := float64(text[len(text)-1]-'0') / 10
	return []float32{float32(math.Cos(angle)), float32(math.Sin(angle))}
}

// embed gives vectors to all messages that are to have some, but for the refused one, and returns their texts.
func (s *suite) embed(fingerprint string, keep int, refused string) (embedded []string) {
	s.Helper()
	after, err := s.Index.Progress(s.Context(), fingerprint)
	if err != nil {
		s.Fatal(err)
	}
	for {
		missing, next, err := s.Index.Missing(s.Context(), after, keep, 3)
		if err != nil || len(missing) > 3 || next < after {
			s.Fatal(len(missing), after, next, err)
		}
		if next == after {
			return embedded
		}
		var vectors []recall.Vector
		for _, m := range missing {
			embedded = append(embedded, m.Text)
			if m.Text != refused {
				vectors = append(vectors, recall.Vector{Row: m.Row, UserRow: m.UserRow, Vector: vectorOf(m.Text)})
			}
		}
		if err := s.Index.SetVectors(s.Context(), fingerprint, vectors, next, keep); err != nil {
			s.Fatal(err)
		}
		after = next
	}
}

// similar are the texts of the messages found by a text's vector, the most similar first.
func (s *suite) similar(q recall.Query, fingerprint, text string) (found []string) {
	s.Helper()
	hits, err := s.Search.SearchVector(s.Context(), q, fingerprint, vectorOf(text))
	if err != nil {
		s.Fatal(err)
	}
	for i, h := range hits {
		found = append(found, h.Message.Content)
		own := vectorOf(h.Message.Content)
		want := float64(own[0]*vectorOf(text)[0] + own[1]*vectorOf(text)[1])
		if math.Abs(h.Score-want) > 1e-6 || h.Score < -1 || h.Score > 1 || i > 0 && h.Score > hits[i-1].Score {
			s.Errorf("hit %d of %q is %q with %v, want %v", i, text, h.Message.Content, h.Score, want)
		}
	}
	return found
}

func (s *suite) wantTexts(what string, got []string, want ...string) {
	s.Helper()
	if !slices.Equal(got, want) {
		s.Errorf("%s: %q, want %q", what, got, want)
	}
}

// testVectors: messages with words get vectors once for each model, and are found by those of the model that is asked for.
func testVectors(s *suite) {
	var want []string
	for i := range 6 {
		text := fmt.Sprint("hello ", i)
		want = append(want, text)
		s.say(in(ann, "s"), by(ann, text), answer(" \n"), memory.Message{Role: memory.RoleTool, Content: "tool 0", Time: t0})
	}
	s.append(session.Append{
		Scope: in(ann, "s"), Messages: []memory.Message{by(ann, "withheld 0")}, Excluded: []session.Exclusion{session.WithheldFailure},
	})
	s.say(in(bob, "b"), by(bob, "bob 0"))
	s.wantTexts("embedded", s.embed(fingerprint, 100, ""), append(want, "bob 0")...)
	s.wantTexts("embedded again", s.embed(fingerprint, 100, ""))

	s.wantTexts("similar", s.similar(all(ann, 2), fingerprint, "hello 0"), "hello 0", "hello 1")
	s.wantTexts("all", s.similar(all(ann, 100), fingerprint, "hello 0"), want...)
	s.wantTexts("none", s.similar(all(ann, 0), fingerprint, "hello 0"))
	s.wantTexts("by another model", s.similar(all(ann, 100), another, "hello 0"))
	s.wantTexts("of another user", s.similar(all(bob, 100), fingerprint, "hello 0"), "bob 0")
	s.wantTexts("of another namespace", s.similar(all(elsewhere, 100), fingerprint, "hello 0"))
	q := all(ann, 100)
	q.Filter.Audience = memory.VisibilityChannel.AudienceOf(group("g"))
	s.wantTexts("in a group", s.similar(q, fingerprint, "hello 0"))
	q = all(ann, 100)
	q.Filter.SaidBefore = t0
	s.wantTexts("said earlier", s.similar(q, fingerprint, "hello 0"))

	// After a change of the model everything gets vectors again. A message that the new model refuses keeps none.
	s.wantTexts("embedded by another model", s.embed(another, 100, "hello 3"), append(want, "bob 0")...)
	for more := true; more; {
		var err error
		if more, err = s.Index.DropOthers(s.Context(), another, 2); err != nil {
			s.Fatal(err)
		}
	}
	s.wantTexts("by the former model", s.similar(all(ann, 100), fingerprint, "hello 0"))
	s.wantTexts("by the new model", s.similar(all(ann, 100), another, "hello 0"), slices.Delete(want, 3, 4)...)
}

// testVectorsOfNewest: only the newest messages of each user have vectors.
func testVectorsOfNewest(s *suite) {
	s.say(in(bob, "b"), by(bob, "bob 0"))
	for i := range 8 {
		s.say(in(ann, "s"), by(ann, fmt.Sprint("hello ", i)))
	}
	s.wantTexts("embedded", s.embed(fingerprint, 5, ""), "bob 0", "hello 3", "hello 4", "hello 5", "hello 6", "hello 7")
	s.say(in(ann, "s"), by(ann, "later 8"), by(ann, "later 9"))
	s.wantTexts("embedded later", s.embed(fingerprint, 5, ""), "later 8", "later 9")
	s.wantTexts("found", s.similar(all(ann, 100), fingerprint, "later 9"), "later 9", "later 8", "hello 7", "hello 6", "hello 5")
	s.wantTexts("of another user", s.similar(all(bob, 100), fingerprint, "bob 0"), "bob 0")
}

// testVectorsOfOthers: a vector is stored for a message of its user, and for none that is gone.
func testVectorsOfOthers(s *suite) {
	s.say(in(ann, "s"), by(ann, "hello 1"))
	s.say(in(bob, "b"), by(bob, "bob 2"))
	missing, next, err := s.Index.Missing(s.Context(), 0, 10, 10)
	if err != nil || len(missing) != 2 || missing[0].Namespace != ann.Namespace || missing[0].UserRow == missing[1].UserRow {
		s.Fatal(missing, err)
	}
	err = s.Index.SetVectors(s.Context(), fingerprint, []recall.Vector{
		{Row: missing[0].Row, UserRow: missing[1].UserRow, Vector: vectorOf("0")},
		{Row: 1 << 40, UserRow: missing[0].UserRow, Vector: vectorOf("0")},
		{Row: missing[1].Row, UserRow: missing[1].UserRow, Vector: vectorOf("2")},
	}, next, 10)
	if err != nil {
		s.Fatal(err)
	}
	s.wantTexts("of ann", s.similar(all(ann, 100), fingerprint, "0"))
	s.wantTexts("of bob", s.similar(all(bob, 100), fingerprint, "0"), "bob 2")
}

// testVectorsRemoved: vectors are deleted with their messages.
func testVectorsRemoved(s *suite) {
	s.say(in(ann, "s"), by(ann, "hello 1"))
	s.say(in(ann, "deleted"), by(ann, "hello 2"))
	s.say(in(bob, "b"), by(bob, "bob 3"))
	s.embed(fingerprint, 10, "")
	if _, err := s.Sessions.Delete(s.Context(), viewer(ann), "deleted"); err != nil {
		s.Fatal(err)
	}
	s.wantTexts("of ann", s.similar(all(ann, 100), fingerprint, "hello 2"), "hello 1")
	if _, err := s.Sessions.Forget(s.Context(), ann); err != nil {
		s.Fatal(err)
	}
	s.wantTexts("forgotten", s.similar(all(ann, 100), fingerprint, "hello 2"))
	s.wantTexts("of bob", s.similar(all(bob, 100), fingerprint, "hello 2"), "bob 3")
	s.say(in(ann, "s"), by(ann, "back 4"))
	s.wantTexts("embedded later", s.embed(fingerprint, 10, ""), "back 4")
}

// testProgress: progress is stored for one model, and starts at zero for another.
func testProgress(s *suite) {
	progress := func(fingerprint string, want int64) {
		s.Helper()
		if row, err := s.Index.Progress(s.Context(), fingerprint); row != want || err != nil {
			s.Errorf("%s: %d, %v, want %d", fingerprint, row, err, want)
		}
	}
	progress(fingerprint, 0)
	if err := s.Index.SetVectors(s.Context(), fingerprint, nil, 7, 10); err != nil {
		s.Fatal(err)
	}
	progress(fingerprint, 7)
	progress(another, 0)
	progress(another, 0)
	progress(fingerprint, 0)
	missing, next, err := s.Index.Missing(s.Context(), 100, 10, 10)
	if len(missing) != 0 || next != 100 || err != nil {
		s.Errorf("after the last message %d are missing, up to %d, %v", len(missing), next, err)
	}
}

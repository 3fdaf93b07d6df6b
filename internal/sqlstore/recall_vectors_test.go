package sqlstore_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve/recall"
	"github.com/memsidecar/memsidecar/internal/sqlite"
)

func TestRecallVectors(t *testing.T) {
	s := dbtest.Open(t, sqlite.Options{Dir: t.TempDir()})
	h := newHistory(t, s)
	for i := range 10 {
		h.say(scope("ann", "s"), by("ann", fmt.Sprint("hello ", i)), answer(" "), memory.Message{Role: memory.RoleTool, Content: "tool", Time: spoken})
	}
	h.say(scope("bob", "b"), by("bob", "hello bob"))
	ctx := t.Context()
	embed := func(fingerprint string, keep int, refused string) (embedded int) {
		after, err := h.recall.Progress(ctx, fingerprint)
		if err != nil {
			t.Fatal(err)
		}
		for {
			missing, next, err := h.recall.Missing(ctx, after, keep, 3)
			if err != nil {
				t.Fatal(err)
			}
			if next == after {
				return embedded
			}
			var vectors []recall.Vector
			for _, m := range missing {
				if m.Text == refused {
					continue
				}
				angle := float64(len(m.Text)) + float64(m.Text[len(m.Text)-1]-'0')/10
				vectors = append(vectors, recall.Vector{Row: m.Row, UserRow: m.UserRow, Vector: []float32{float32(math.Cos(angle)), float32(math.Sin(angle))}})
			}
			vectors = append(vectors, recall.Vector{Row: 9999, UserRow: 1, Vector: []float32{1, 0}}) // deleted meanwhile
			if err := h.recall.SetVectors(ctx, fingerprint, vectors, next, keep); err != nil {
				t.Fatal(err)
			}
			embedded, after = embedded+len(missing), next
		}
	}
	like := func(q recall.Query, fingerprint, text string) (found []string) {
		angle := float64(len(text)) + float64(text[len(text)-1]-'0')/10
		hits, err := h.recall.SearchVector(ctx, q, fingerprint, []float32{float32(math.Cos(angle)), float32(math.Sin(angle))})
		if err != nil {
			t.Fatal(err)
		}
		for i, hit := range hits {
			found = append(found, hit.Message.Content)
			if i == 0 && math.Abs(hit.Score-1) > 1e-6 || i > 0 && hit.Score > hits[i-1].Score {
				t.Errorf("%+v", hits)
			}
		}
		return found
	}
	if n := embed("m@1", 100, ""); n != 11 {
		t.Errorf("%d messages got vectors, want those with words", n)
	}
	if n := embed("m@1", 100, ""); n != 0 {
		t.Errorf("%d messages got vectors again", n)
	}
	if got := like(query(listener, 2), "m@1", "hello 0"); !slices.Equal(got, []string{"hello 0", "hello 1"}) {
		t.Errorf("%q", got)
	}
	if got := like(query(listener, 100), "m@1", "hello 0"); len(got) != 10 {
		t.Errorf("%q", got)
	}
	if got := like(query(listener, 100), "m@2", "hello 0"); got != nil {
		t.Errorf("vectors of another model are found: %q", got)
	}
	group := query(listener, 100)
	group.Filter.Audience = memory.VisibilityChannel.AudienceOf(memory.Channel{Kind: memory.ChannelGroup, ID: "g"})
	if got := like(group, "m@1", "hello 0"); got != nil {
		t.Errorf("a group finds %q", got)
	}

	// Another model: at first nothing is found, then everything again, and nothing is left of the first.
	if n := embed("m@2", 100, "hello 3"); n != 11 {
		t.Errorf("%d messages got vectors of the new model", n)
	}
	for more := true; more; {
		var err error
		if more, err = h.recall.DropOthers(ctx, "m@2", 2); err != nil {
			t.Fatal(err)
		}
	}
	if n := dbtest.Value[int](t, s, `SELECT count(*) FROM message_embeddings WHERE fingerprint <> 'm@2'`); n != 0 {
		t.Errorf("%d old vectors are left", n)
	}
	// Only the newest are kept, per user.
	for i := range 4 {
		h.say(scope("ann", "s"), by("ann", fmt.Sprint("later ", i)))
	}
	embed("m@2", 5, "")
	if got := like(query(listener, 100), "m@2", "hello 0"); !slices.Equal(got, []string{"hello 9", "later 0", "later 1", "later 2", "later 3"}) && len(got) != 5 {
		t.Errorf("%q", got)
	}
	if got := like(query(memory.User{Namespace: "n", ID: "bob"}, 100), "m@2", "hello bob"); !slices.Equal(got, []string{"hello bob"}) {
		t.Errorf("%q", got)
	}
}

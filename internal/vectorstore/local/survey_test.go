package local_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
	"github.com/memsidecar/memsidecar/internal/vectorstore/vectorstoretest"
)

// TestSurvey: all memories of a user come, newest first, whatever their status, with their vectors of one model; and all users
// of one namespace who have any.
func TestSurvey(t *testing.T) {
	store := newStore(openStorage(t, t.TempDir()), roomy)
	start := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	add := func(user memory.User, i int, change func(*vectorstore.Entry)) {
		at := start.Add(time.Duration(i) * time.Minute)
		e := vectorstore.Entry{Restore: true, Memory: memory.Memory{
			ID: fmt.Sprint("m", i), Text: fmt.Sprint("has number ", i), Kind: memory.KindFact, Mentions: 1,
			CreatedAt: at, UpdatedAt: at, ObservedAt: at, LastSaidAt: at,
		}, Embedding: vectorstore.Embedding{Fingerprint: vectorstoretest.Fingerprint, Chunks: [][]float32{{1, 0, 0}, {0, 1, 0}}}}
		change(&e)
		if _, err := store.Apply(t.Context(), user, []vectorstore.Entry{e}); err != nil {
			t.Fatal(err)
		}
	}
	as := func(*vectorstore.Entry) {}
	ann := memory.User{Namespace: "n", ID: "ann"}
	add(ann, 1, as)
	add(ann, 2, func(e *vectorstore.Entry) { e.Memory.SupersededBy = "m1" })
	add(ann, 3, func(e *vectorstore.Entry) { e.Memory.Quarantine = "no such words" })
	add(ann, 4, func(e *vectorstore.Entry) { e.Memory.WithdrawnAt = start })
	add(ann, 5, func(e *vectorstore.Entry) { e.Embedding = vectorstore.Embedding{} })
	add(ann, 6, func(e *vectorstore.Entry) { e.Embedding.Fingerprint = "another/model/3" })
	add(ann, 7, func(e *vectorstore.Entry) { e.Memory.Channel = memory.Channel{Kind: memory.ChannelGroup, ID: "g"} })
	add(memory.User{Namespace: "n", ID: "小林"}, 1, as)
	add(memory.User{Namespace: "n", ID: "ben"}, 1, as)
	add(memory.User{Namespace: "n/else", ID: "eve"}, 1, as)
	add(memory.User{Namespace: "n", ID: "gone"}, 1, as)
	if err := store.Delete(t.Context(), memory.User{Namespace: "n", ID: "gone"}, "m1", memory.Everything()); err != nil {
		t.Fatal(err)
	}

	var seen []string
	for after, more := "", true; more; more = after != "" {
		items, next, err := store.Survey(t.Context(), ann, vectorstoretest.Fingerprint, after, 3)
		if err != nil || len(items) > 3 {
			t.Fatalf("%d items, %v", len(items), err)
		}
		for _, item := range items {
			seen = append(seen, fmt.Sprint(item.Memory.ID, " ", item.Memory.StatusAt(time.Now()), " ", item.Vector))
		}
		after = next
	}
	want := []string{
		"m7 active [1 0 0]", "m6 active []", "m5 active []", "m4 withdrawn [1 0 0]", "m3 quarantined [1 0 0]", "m2 superseded [1 0 0]", "m1 active [1 0 0]",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("seen\n%q, want\n%q", seen, want)
	}

	var users []string
	for after := ""; ; after = users[len(users)-1] {
		ids, err := store.Users(t.Context(), "n", after, 2)
		if err != nil {
			t.Fatal(err)
		}
		users = append(users, ids...)
		if len(ids) < 2 {
			break
		}
	}
	if !slices.Equal(users, []string{"ann", "ben", "小林"}) {
		t.Errorf("users %q", users)
	}
}

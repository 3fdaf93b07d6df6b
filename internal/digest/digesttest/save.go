package digesttest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/testkit/storetest"
)

func testSaveKeepsEverything(s *suite) {
	in := scope(ann, lobby, "session <1>")
	in.AgentID = "of the scope"
	c := s.contribution(in)
	c.ID, c.MadeBy = "con/with slash/茶", "provider/model"
	c.At = t0.In(time.FixedZone("far", -9*3600)).Add(789) // a store may drop zones and nanoseconds
	var want []digest.Entry
	for i, text := range append(storetest.Texts(), "a\x00b") {
		f := digest.Finding{
			Category: digest.Issue, Text: text, Key: text, Solution: text, Statement: text, Quote: text, Reason: text,
			Language: "zh", Kind: memory.KindPlan, Importance: 0.1234567890123, MessageIDs: []string{"m1", text}, Passing: true,
			SaidAt: t0.Add(time.Duration(i) * time.Microsecond), MemoryID: "mem_1",
		}
		entry := digest.Entry{
			Finding: f, ID: fmt.Sprint(c.ID, "/", i), AgentID: "nora", Channel: lobby, SessionID: in.SessionID, MadeBy: c.MadeBy, MadeAt: t0,
		}
		f.AgentID = "nora"
		c.Findings, want = append(c.Findings, f), append(want, entry)
	}
	minimal := digest.Finding{Category: digest.Topic, SaidAt: t0.Add(time.Hour)}
	c.Findings = append(c.Findings, minimal)
	want = append(want, digest.Entry{
		Finding: minimal, ID: fmt.Sprint(c.ID, "/", len(want)), Channel: lobby, SessionID: in.SessionID, MadeBy: c.MadeBy, MadeAt: t0,
	})
	s.save(c)
	listed, _, err := s.Digests.List(s.Context(), ann, "", 100)
	if err != nil {
		s.Fatal(err)
	}
	for method, got := range map[string][]digest.Entry{"Find": s.found(ann), "List": listed} {
		if len(got) != len(want) {
			s.Errorf("%s returns %d entries, want %d", method, len(got), len(want))
			continue
		}
		for i := range got {
			if !reflect.DeepEqual(got[i], want[i]) {
				s.Errorf("%s returns %+v\nwant %+v", method, got[i], want[i])
			}
		}
	}
}

func testSaveTwice(s *suite) {
	c := s.contribution(chat(ann, "s"), finding("first", 0))
	s.save(c)
	c.Findings = []digest.Finding{finding("second", 0)}
	s.save(c)
	s.want("saved twice", texts(s.found(ann)), "first")
	// A contribution's id is unique within its user.
	for _, user := range []memory.User{ben, elsewhere} {
		c.Scope = chat(user, "s")
		s.save(c)
		s.want("saved for another user", texts(s.found(user)), "second")
	}
	s.want("saved for others", texts(s.found(ann)), "first")
}

// testSaveCoversOnce: A message is covered once, by its user. A contribution that cannot cover all its messages stores nothing.
func testSaveCoversOnce(s *suite) {
	s.say(chat(ann, "s"), 10, "a1", "a2", "a3")
	s.say(chat(ben, "b"), 10, "b1")
	ref := refs(s.pending(ann))
	others := refs(s.pending(ben))
	first := s.contribution(chat(ann, "s"), finding("first", 0))
	first.Covers = ref[:1]
	s.save(first)
	s.want("pending", contents(s.pending(ann)), "a2 a3")

	for name, covers := range map[string][]int64{
		"covered":                {ref[0]},
		"one of them is covered": {ref[1], ref[0]},
		"another user's":         {others[0]},
		"one is another user's":  {ref[1], others[0]},
		"unknown":                {1 << 40},
		"one is unknown":         {ref[1], 1 << 40},
	} {
		c := s.contribution(chat(ann, "s"), finding("refused", 1))
		c.Covers = covers
		if err := s.Digests.Save(s.Context(), c); !errors.Is(err, digest.ErrChanged) {
			s.Errorf("%s: %v, want ErrChanged", name, err)
		}
	}
	s.want("stored", texts(s.found(ann)), "first")
	s.want("pending", contents(s.pending(ann)), "a2 a3")
	s.want("waiting of another user", contents(s.pending(ben)), "b1")

	last := s.contribution(chat(ann, "s")) // without findings
	last.Covers = ref[1:]
	s.save(last)
	s.want("pending", contents(s.pending(ann)), "")
}

func testSaveConcurrently(s *suite) {
	s.say(chat(ann, "s"), 10, "a1")
	covers := refs(s.pending(ann))
	var stored atomic.Int64
	var writers sync.WaitGroup
	for i := range 8 {
		c := s.contribution(chat(ann, "s"), finding(fmt.Sprint("f", i), 0))
		c.Covers = covers
		free := s.contribution(chat(ann, "s"), finding(fmt.Sprint("free", i), 1))
		writers.Go(func() {
			switch err := s.Digests.Save(s.Context(), c); {
			case err == nil:
				stored.Add(1)
			case !errors.Is(err, digest.ErrChanged):
				s.Error(err)
			}
			if err := s.Digests.Save(s.Context(), free); err != nil {
				s.Error(err)
			}
		})
	}
	writers.Wait()
	found := texts(s.found(ann))
	if free := strings.Count(found, "free"); stored.Load() != 1 || free != 8 || len(strings.Fields(found)) != 9 {
		s.Errorf("%d contributions cover the message; found %q", stored.Load(), found)
	}
}

func (s *suite) deleteSession(in memory.Scope) {
	s.Helper()
	viewer := session.Viewer{Namespace: in.Namespace, UserID: in.UserID, Channel: in.Channel, Audience: memory.Everything()}
	if _, err := s.Sessions.Delete(s.Context(), viewer, in.SessionID); err != nil {
		s.Fatal(err)
	}
}

func testSaveAfterDeletion(s *suite) {
	s.say(chat(ann, "s"), 10, "a1")
	c := s.contribution(chat(ann, "s"), finding("refused", 0))
	c.Covers = refs(s.pending(ann))
	s.deleteSession(chat(ann, "s"))
	if err := s.Digests.Save(s.Context(), c); !errors.Is(err, digest.ErrChanged) {
		s.Errorf("covering messages of a deleted session: %v", err)
	}
	s.want("stored", texts(s.found(ann)), "")
	if _, next := s.due(t0.Add(24 * time.Hour)); next != 0 {
		s.Errorf("a digest is due after %s", next)
	}
}

// accept stores a dialogue for consideration.
func (s *suite) accept(id string, in memory.Scope) {
	s.Helper()
	_, err := s.Queue.Accept(s.Context(), queue.Acceptance{
		ID: id, Speakers: []string{in.UserID}, At: t0, MaxPending: 10,
		Dialogue: memory.Dialogue{Scope: in, Messages: []memory.Message{said(in.User(), "considered")}},
	})
	if err != nil {
		s.Fatal(err)
	}
}

// testSaveOfConsideration: Findings of a consideration are stored only while it exists, and count as remembered.
func testSaveOfConsideration(s *suite) {
	in := chat(ann, "")
	in.AgentID = "nora"
	s.accept("con_1", in)
	important := finding("kept", 0)
	important.Importance, important.AgentID = 0.9, "not used"
	c := s.contribution(in, important)
	c.ID, c.ConsiderationID = "con_1", "con_1"
	s.save(c)
	got := s.found(ann)
	if len(got) != 1 || got[0].ID != "con_1/0" || got[0].AgentID != "nora" {
		s.Errorf("found %+v", got)
	}
	if list, err := s.Digests.Unremembered(s.Context(), ann); err != nil || len(list) != 0 {
		s.Errorf("to be remembered again: %+v, %v", list, err)
	}
	// Without the consideration nothing is stored, and this is no error.
	for name, in := range map[string]memory.Scope{"unknown": chat(ann, ""), "another user's": chat(ben, ""), "another namespace's": chat(elsewhere, "")} {
		c := s.contribution(in, finding("refused", 0))
		c.ConsiderationID = map[bool]string{true: "con_2", false: "con_1"}[name == "unknown"]
		if err := s.Digests.Save(s.Context(), c); err != nil {
			s.Errorf("%s consideration: %v", name, err)
		}
	}
	s.want("stored", texts(s.found(ann))+texts(s.found(ben))+texts(s.found(elsewhere)), "kept")
}

// testDeletedSession: Findings are deleted with the session whose messages they cover.
func testDeletedSession(s *suite) {
	s.say(chat(ann, "s"), 10, "a1")
	c := s.contribution(chat(ann, "s"), finding("covers", 0))
	c.Covers = refs(s.pending(ann))
	s.save(c)
	s.save(s.contribution(chat(ann, "s"), finding("free", 1)))
	s.deleteSession(chat(ann, "s"))
	s.want("left", texts(s.found(ann)), "free")
}

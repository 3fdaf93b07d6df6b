package sqlstore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve/recall"
	"github.com/memsidecar/memsidecar/internal/session"
)

// lifting is a search in which good hits lift those next to them.
func lifting(user memory.User) recall.Query {
	q := query(user, 10)
	q.NeighborWeight = 0.6
	return q
}

// TestRecallAnswers: a question leads to what was answered, in words that have nothing in common with it, and to no other
// session.
func TestRecallAnswers(t *testing.T) {
	atOnceAndIndexed(t, func(t *testing.T, h *history, settle func()) {
		tool := memory.Message{Role: memory.RoleTool, Content: "found it", Time: spoken}
		h.say(scope("ann", "s"), by("ann", "nothing much"), by("ann", "So, where did you spend the honeymoon?"), tool, tool, answer("In Kyoto, by the river"),
			by("ann", "lovely"), answer("goodbye"))
		h.say(scope("ann", "t"), by("ann", "你们去哪里度蜜月了"), answer("京都"))
		h.say(scope("ann", "u"), by("ann", "unrelated"))
		settle()

		hits := h.search(lifting(listener), "honeymoon")
		var found []string
		for _, hit := range hits {
			found = append(found, hit.Message.Content)
		}
		if want := []string{"So, where did you spend the honeymoon?", "In Kyoto, by the river", "nothing much", "lovely"}; len(found) != 4 ||
			!slices.Equal(found[:2], want[:2]) || !slices.Equal(contents(hits), slices.Sorted(slices.Values(want))) {
			t.Fatalf("%q, want %q", found, want)
		}
		for i, share := range []float64{0, 0.6, 0.4, 0.36} {
			if own := hits[0].Score; i > 0 && (hits[i].Score != 0 || !near(hits[i].Neighbors, share*own)) || hits[i].Relevance() > 1 {
				t.Errorf("%q has %v and %v of %v", found[i], hits[i].Score, hits[i].Neighbors, own)
			}
		}
		if hits := h.search(lifting(listener), "蜜月去了哪里？"); len(hits) != 2 || hits[1].Message.Content != "京都" {
			t.Errorf("%q", contents(hits))
		}
		h.finds(query(listener, 10), "honeymoon", "So, where did you spend the honeymoon?")
	})
}

func near(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 }

// TestRecallLiftsNothingOfOthers: what lifts a message is the user's own, and seen by the request, as is what is lifted.
func TestRecallLiftsNothingOfOthers(t *testing.T) {
	atOnceAndIndexed(t, func(t *testing.T, h *history, settle func()) {
		group := memory.Channel{Kind: memory.ChannelGroup, ID: "g"}
		s := scope("ann", "s")
		s.Channel = group
		h.say(s, by("ann", "ann before"), by("bob", "violin of bob"), by("ann", "ann after"))
		other := answer("with another agent")
		other.AgentID = "other"
		withheld := by("ann", "piano withheld")
		_, err := h.sessions.Append(t.Context(), session.Append{
			Scope: scope("ann", "t"), Audience: memory.Everything(), At: spoken,
			Messages: []memory.Message{withheld, by("ann", "next to it"), by("ann", "harp"), other, by("ann", "long ago")},
			Withheld: []session.Withheld{0: session.WithheldFailure, 4: session.NotWithheld},
		})
		if err != nil {
			t.Fatal(err)
		}
		settle()

		bob := memory.User{Namespace: "n", ID: "bob"}
		h.finds(lifting(listener), "violin")
		h.finds(lifting(bob), "violin", "violin of bob")
		// Who speaks between is neither found nor counted.
		if hits := h.search(lifting(listener), "before"); len(hits) != 2 || hits[1].Message.Content != "ann after" || !near(hits[1].Neighbors, 0.6*hits[0].Score) {
			t.Errorf("%+v", hits)
		}
		h.finds(lifting(listener), "piano")
		h.finds(lifting(listener), "harp", "next to it", "harp", "with another agent", "long ago")

		q := lifting(listener)
		q.Filter.Audience = memory.VisibilityChannel.AudienceOf(group)
		h.finds(q, "harp")
		h.finds(q, "before", "ann before", "ann after")
		q = lifting(listener)
		q.Filter.AgentID = new("other")
		h.finds(q, "harp")
		h.finds(q, "another", "with another agent")
		q.Filter.AgentID = new("")
		if hits := h.search(q, "harp"); len(hits) != 3 || hits[1].Message.Content != "long ago" || !near(hits[1].Neighbors, 0.6*hits[0].Score) {
			t.Errorf("%+v", hits)
		}
		q = lifting(listener)
		q.Filter.SaidFrom = spoken.Add(time.Second)
		h.finds(q, "harp")
	})
}

// TestRecallOfNames: names that come from another language are written in more than one way.
func TestRecallOfNames(t *testing.T) {
	atOnceAndIndexed(t, func(t *testing.T, h *history, settle func()) {
		for _, name := range []string{"安德鲁", "梅兰妮", "克里斯托弗"} {
			m := answer("周末我去学钢琴")
			m.AgentID = name
			h.say(scope("ann", "s"), m)
		}
		h.say(scope("ann", "s"), by("ann", "我喜欢拉小提琴"), by("ann", "塞巴斯蒂安教我的"), by("ann", "我哥哥教他的"))
		settle()
		if hits := h.search(query(listener, 1), "梅拉妮周末去学什么？"); len(hits) != 1 || hits[0].Message.AgentID != "梅兰妮" {
			t.Errorf("%+v", hits)
		}
		if hits := h.search(query(listener, 1), "塞巴斯汀是谁？"); len(hits) != 1 || hits[0].Message.Content != "塞巴斯蒂安教我的" {
			t.Errorf("%+v", hits)
		}
	})
}

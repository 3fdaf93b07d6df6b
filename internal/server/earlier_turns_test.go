package server_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// turn is one hand-over: what a user says, and what the bot answers.
type turn struct {
	after     time.Duration // since the first turn
	said, bot string
}

// TestTurnsAreUnderstoodWithThoseBefore: A bot hands over one turn at a time. The answer to the bot's question, and a request about what was
// just said, mean what the turn before says. What was considered before is not stored again.
func TestTurnsAreUnderstoodWithThoseBefore(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	began := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		turns   []turn
		session string
		keeps   []string // words that the memories have
		lacks   []string
		count   int
	}{
		"an answer": {
			turns: []turn{
				{0, "any tips for a week off?", "Sure! Which region are you travelling to?"}, {time.Minute, "Galicia, for two weeks in May", "Lovely."},
			},
			keeps: []string{"Galicia", "region"}, count: 1,
		},
		"an answer in Chinese": {
			turns: []turn{{0, "最近在学一门乐器", "好呀，你在学什么乐器？"}, {time.Minute, "古筝，学了三年了", "不错。"}},
			keeps: []string{"古筝", "乐器"}, count: 2,
		},
		"an answer the next morning": {
			turns: []turn{{0, "good night", "Good night! Where do you work these days?"}, {10 * time.Hour, "at a bakery in Lyon", "Nice!"}},
			keeps: []string{"Where do you work these days? — at a bakery in Lyon"}, count: 1,
		},
		"after days it is no answer": {
			turns: []turn{{0, "good night", "Good night! Where do you work these days?"}, {72 * time.Hour, "at a bakery in Lyon", "What of it?"}},
			keeps: []string{"at a bakery in Lyon"}, lacks: []string{"Where do you work"}, count: 1,
		},
		"what was said before is not said again": {
			turns: []turn{{0, "I live in Tallinn.", "Nice."}, {time.Minute, "and what is the weather there", "Cold."}},
			keeps: []string{"Tallinn"}, count: 1,
		},
		"forget that": {
			turns: []turn{{0, "I live in Tallinn with my cousin.", "Nice."}, {time.Minute, "please forget what I just said", "Done."}},
			lacks: []string{"Tallinn"},
		},
		"forget that, in Chinese": {
			turns: []turn{{0, "我住在泉州，养了两只鹅。", "真好。"}, {time.Minute, "刚才说的别记", "好的。"}},
			lacks: []string{"泉州", "鹅"},
		},
		"remember that": {
			turns: []turn{{0, "the spare key is under the third pot", "Ok."}, {time.Minute, "remember that", "I will."}},
			keeps: []string{"third pot"}, count: 1,
		},
		"forget everything": {
			turns: []turn{
				{0, "I live in Tallinn.", "Nice."},
				{time.Hour, "I play the harp every Sunday with my brother.", "Wow."},
				{90 * time.Hour, "forget everything you know about me", "Done."},
			},
			lacks: []string{"Tallinn", "harp"},
		},
		"in a session": {
			session: "one",
			turns: []turn{
				{0, "any tips for a week off?", "Sure! Which region are you travelling to?"}, {time.Minute, "Galicia, for two weeks in May", "Lovely."},
			},
			keeps: []string{"Galicia"}, count: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scope := sidecartest.Direct(name)
			scope.SessionId = c.session
			for _, turn := range c.turns {
				at := timestamppb.New(began.Add(turn.after))
				said, answered := sidecartest.Said(turn.said), sidecartest.Answered(turn.bot)
				said.SendTime, answered.SendTime = at, at
				r.Consider(t, scope, said, answered)
			}
			var texts []string
			for _, m := range r.Memories(t, sidecartest.Direct(name)) {
				if m.GetState() == memsidecarv1.MemoryState_MEMORY_STATE_ACTIVE {
					texts = append(texts, m.GetText())
				}
			}
			for _, words := range c.keeps {
				if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, words) }) {
					t.Errorf("%q is not in %q", words, texts)
				}
			}
			for _, words := range c.lacks {
				if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, words) }) {
					t.Errorf("%q is in %q", words, texts)
				}
			}
			if len(texts) != c.count {
				t.Errorf("%d memories, want %d: %q", len(texts), c.count, texts)
			}
		})
	}
}

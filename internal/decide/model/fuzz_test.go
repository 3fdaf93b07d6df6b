package model

import (
	"math"
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// FuzzRead: Whatever a model answers, it is refused or yields ops that may be stored.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"should_remember": true, "reason": "x"}`, "```json\n[{\"should_remember\": false,}]\n```", `{"ops": []}`, `{"ops":[1`,
		ops(add), ops(with("from", `[0, "m1"]`), `{"op":"add","text":"x","quote":"\\\""}`), `[{"op":"add","text":"用户","from":"m0","importance":"1"}]`,
		`<think>{</think>{"ops": null}`, "{{{{[[[[\"", `{"ops":[{"op":"add","text":"\ud800\u0000","importance":1e400,"from":["m2"]}]}`,
		ops(`{"op":"forget","ids":["*"],"from":["m2-m9999"]}`), ops(`{"op":"update","ids":["*","k0",1],"text":"x"}`), add + add,
	} {
		f.Add(seed)
	}
	in := berlin()
	p := rendered(f, in, 1000)
	f.Fuzz(func(t *testing.T, answer string) {
		if v, err := readVerdict(answer); err == nil && v.Reason == "" {
			t.Errorf("a verdict without a reason: %+v", v)
		}
		r := &reader{in: in, page: p}
		found, err := r.read(answer)
		if err != nil && len(found.Ops) > 0 {
			t.Error("an error and ops")
		}
		if err == nil && found.Reason == "" {
			t.Errorf("no reason: %+v", found)
		}
		for _, op := range found.Ops {
			s := op.Statement
			if memory.TextProblem(s.Text) != "" || strings.ContainsAny(s.Text, "\x00") || !s.Kind.Valid() || s.Forget != (op.Action == decide.OpForget) {
				t.Errorf("stored %+v", op)
			}
			if !(s.Importance >= 0 && s.Importance <= 1) || math.IsNaN(s.Importance) || s.ObservedAt.IsZero() || s.Language == "" {
				t.Errorf("stored %+v", op)
			}
			for _, id := range op.IDs {
				if !strings.HasPrefix(id, "mem_") && (id != decide.Everything || op.Action != decide.OpForget) {
					t.Errorf("concerns %q", op.IDs)
				}
			}
			if s.Quote == "" || len(s.MessageIDs) == 0 || !in.CitesNew(s) {
				t.Errorf("rests on %v and quotes %q", s.MessageIDs, s.Quote)
			}
		}
	})
}

// FuzzTranscript: The record has one line for each message and each known memory, whatever is in them.
func FuzzTranscript(f *testing.F) {
	f.Add("hi", "u2", 1000)
	f.Add("\"\n===== transcript", "a\" \u2028", 1500)
	f.Add(strings.Repeat("👨‍👩‍👧\x01", 900), "\u0085", 1001)
	f.Fuzz(func(t *testing.T, content, id string, limit int) {
		in := knowing(after(1, talk("x "+content, "A: "+content, "B: x", "y")), content, "! "+id)
		in.Dialogue.Messages[2].Speaker = "p" + id
		p := rendered(t, in, min(max(limit, minMaxChars), 10_000))
		lines := strings.FieldsFunc(p.text, func(r rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) })
		want := p.messages - p.left + 2 + 2 + 3 // marks, known memories, headings
		if p.left > 0 {
			want++
		}
		if len(lines) != want || !p.shown[3] {
			t.Errorf("%d lines, want %d:\n%s", len(lines), want, p.text)
		}
	})
}

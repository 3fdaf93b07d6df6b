package model

import (
	"math"
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// FuzzRead: whatever a model answers, it is refused or yields what may be stored.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"should_remember": true, "reason": "x"}`, "```json\n[{\"should_remember\": false,}]\n```", `{"statements": []}`, `{"statements":[1`,
		list(st("用户住在上海", `["m0"]`, "上海")), list(st("The user", `[0, "m1"]`, "\\\"")), `[{"text":"用户","messages":"m0","importance":"1"}]`,
		`<think>{</think>{"statements": null}`, "{{{{[[[[\"", `{"statements":[{"text":"\ud800\u0000","importance":1e400,"messages":["m0"]}]}`,
	} {
		f.Add(seed)
	}
	tr := talk("我住在 上海\n浦东", "A: 好", "B: 我住在北京", "I live in Berlin too")
	f.Fuzz(func(t *testing.T, answer string) {
		r := reader{t: tr, p: render(tr, 1000), v: yes}
		if v, err := readVerdict(answer); err == nil && v.Reason == "" {
			t.Errorf("a verdict without a reason: %+v", v)
		}
		drafts, err := r.read(answer)
		if err != nil && len(drafts) > 0 {
			t.Error("an error and statements")
		}
		for _, d := range drafts {
			if memory.TextProblem(d.Text) != "" || strings.ContainsAny(d.Text, "\x00\n") || !d.Kind.Valid() || d.Explicit {
				t.Errorf("stored %+v", d)
			}
			if !(d.Importance >= 0 && d.Importance <= 1) || math.IsNaN(d.Importance) || d.ObservedAt.IsZero() || d.Language == "" {
				t.Errorf("stored %+v", d)
			}
			own, quoted := false, false
			for _, i := range d.cited {
				m := tr.Dialogue.Messages[i]
				own = own || spokenBy(m, tr.Speaker)
				quoted = quoted || strings.Contains(m.Content, d.Quote)
			}
			if !own || !quoted || d.Quote == "" {
				t.Errorf("rests on %v and quotes %q", d.cited, d.Quote)
			}
		}
	})
}

// FuzzTranscript: a transcript has one line a message, whatever is in them.
func FuzzTranscript(f *testing.F) {
	f.Add("hi", "u2", 1000)
	f.Add("\"\n===== transcript", "a\" \u2028", 1500)
	f.Add(strings.Repeat("👨‍👩‍👧\x01", 900), "\u0085", 1001)
	f.Fuzz(func(t *testing.T, content, id string, limit int) {
		tr := talk("x "+content, "A: "+content, "B: x", "y")
		tr.Dialogue.Messages[2].Speaker = "p" + id
		p := render(tr, min(max(limit, minMaxChars), 10_000))
		lines := strings.FieldsFunc(p.text, func(r rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) })
		want := p.messages - p.left + 2
		if p.left > 0 {
			want++
		}
		if len(lines) != want || !p.shown[3] {
			t.Errorf("%d lines, want %d:\n%s", len(lines), want, p.text)
		}
	})
}

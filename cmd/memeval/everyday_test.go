package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestEverydayTurns: Most turns of an ordinary week hold nothing, and cost no call of a model. All that is worth keeping is kept. The
// model keeps just that; it is scripted.
func TestEverydayTurns(t *testing.T) {
	t.Parallel()
	path := evalFiles + "everyday.jsonl"
	var worth []string
	for line := range strings.Lines(string(read(t, path))) {
		var user struct {
			Steps []struct {
				Call []struct{ Content string }
				Keep []string
			}
		}
		decode(t, []byte(line), &user)
		for _, s := range user.Steps {
			if len(s.Keep) > 0 {
				worth = append(worth, s.Call[0].Content)
			}
		}
	}
	m := newScriptedModel(t, func(r record) string {
		var ops []string
		for _, name := range r.order {
			if text := r.Turns[name]; slices.Contains(r.New, "user: "+text) && slices.Contains(worth, text) {
				quoted, _ := json.Marshal(text) // a string can always be encoded
				ops = append(ops, fmt.Sprintf(`{"op":"add","text":%s,"kind":"fact","from":[%q]}`, quoted, name))
			}
		}
		return `{"ops":[` + strings.Join(ops, ",") + `]}`
	})
	for mode, test := range map[string]struct {
		args  []string
		calls float64
	}{
		"alone": {nil, 80}, "together": {[]string{"--together", "2m"}, 15},
	} {
		args := append([]string{"talk", path}, m.settings()...)
		numbers, _, misses := evaluate(t, append(args, test.args...)...)
		calls, _ := numbers["calls.summary"].(float64)
		tokens, _ := numbers["input_tokens.summary"].(float64)
		t.Logf("%s: %v calls, %v tokens", mode, calls, tokens)
		if calls == 0 || calls > test.calls || numbers["kept.all"] != 1.0 {
			t.Errorf("%s: %v calls, kept %v: %v", mode, calls, numbers["kept.all"], misses)
		}
	}
}

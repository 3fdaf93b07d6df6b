package model

import (
	"slices"
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/decide"
)

// group is a talk of the users "u" and "bob", as each of them is read. The user "u" has one known memory, and "bob" another.
func group() []decide.Input {
	u := knowing(talk("I moved to Berlin!", "B: and I sold my boat", "A: Busy weeks.", "B: don't save what I said"), "The user lives in Bonn.")
	bob := knowing(u, "The user has a boat.")
	bob.Speaker = "bob"
	known, _ := bob.Known() // it never fails
	known[0].Memory.ID = "mem_bob"
	return []decide.Input{u, bob}
}

// TestGroupAnswer: Of one answer about several users each gets what names them, and none changes another's memories.
func TestGroupAnswer(t *testing.T) {
	moved := `{"op":"update","ids":["k0"],"text":"The user moved to Berlin.","from":["m0"],"user":"u"}`
	sold := `{"op":"update","ids":["k1"],"text":"The user sold the boat.","from":["m1"],"user":"bob"}`
	for name, test := range map[string]struct {
		answers []any
		u, bob  string
		dropped string // of the first user
	}{
		"each their own": {[]any{ops(moved, sold)}, "update|mem_0|The user moved to Berlin.|#0", "update|mem_bob|The user sold the boat.|#1", ""},
		"one alone":      {[]any{ops(sold)}, "", "update|mem_bob|The user sold the boat.|#1", ""},
		"none":           {[]any{`{"ops":[]}`}, "", "", ""},
		"without names": {
			[]any{ops(strings.Replace(moved, `,"user":"u"`, "", 1), strings.Replace(sold, `,"user":"bob"`, "", 1))},
			"update|mem_0|The user moved to Berlin.|#0", "update|mem_bob|The user sold the boat.|#1", "",
		},
		"another's memory": {[]any{ops(strings.Replace(moved, "k0", "k1", 1))}, "update||The user moved to Berlin.|#0", "", ""},
		"another's message": {
			[]any{ops(sold, strings.Replace(moved, "m0", "m1", 1)), "no"},
			"", "update|mem_bob|The user sold the boat.|#1", "none of the user's messages",
		},
		"nobody's":           {[]any{ops(sold, strings.Replace(moved, `"u"`, `"eve"`, 1))}, "", "update|mem_bob|The user sold the boat.|#1", "names nobody"},
		"unusable, then not": {[]any{"I do not know", ops(moved)}, "update|mem_0|The user moved to Berlin.|#0", "", ""},
		"broken off, twice": {
			[]any{`{"ops":[` + moved + `,{"op":"add`, `{"ops":[` + sold + `,{"op":"add`},
			"", "update|mem_bob|The user sold the boat.|#1", "breaks off",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := answers(test.answers...)
			found, err := newExtractor(t, m, Options{}).ExtractTogether(t.Context(), group())
			if err != nil || len(found) != 2 {
				t.Fatalf("%d, %v", len(found), err)
			}
			if got := outline(found[0]); got != test.u {
				t.Errorf("u: %q, want %q", got, test.u)
			}
			if got := outline(found[1]); got != test.bob {
				t.Errorf("bob: %q, want %q", got, test.bob)
			}
			if got := strings.Join(found[0].Dropped, "; "); !strings.Contains(got, test.dropped) {
				t.Errorf("dropped %q, want %q", got, test.dropped)
			}
		})
	}
	m := answers(ops(`{"op":"private","from":["m1","m0"],"user":"bob"}`))
	found, err := newExtractor(t, m, Options{}).ExtractTogether(t.Context(), group())
	if err != nil || len(found[0].Private) > 0 || !slices.Equal(found[1].Private, []string{"#1"}) {
		t.Errorf("private: %+v, %v", found, err)
	}
	if _, err := newExtractor(t, answers(ops(`{"op":"add","text":"x","user":"eve"}`), "no"), Options{}).ExtractTogether(t.Context(), group()); err == nil {
		t.Error("an answer that names nobody of the record was taken")
	}
}

// TestGroupPrompt: The record of a group shows whose memories are whose, and calls each of them a user.
func TestGroupPrompt(t *testing.T) {
	m := answers(ops(add))
	_, _ = newExtractor(t, m, Options{}).ExtractTogether(t.Context(), group()) // the prompt matters alone
	golden(t, "extraction_group", m.prompts[0][len(constantPart):])
	if !strings.HasPrefix(m.prompts[0], constantPart) {
		t.Error("the prompt does not begin with the constant part")
	}
}

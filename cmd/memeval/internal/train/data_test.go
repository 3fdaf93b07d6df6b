package train

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/memsidecar/memsidecar/internal/decide/classify"
)

const data = "../../../../dataset/"

func filesOf(t *testing.T, patterns ...string) (files []string) {
	t.Helper()
	for _, pattern := range patterns {
		found, err := filepath.Glob(data + pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	return files
}

func messagesOf(t *testing.T) (all []message) {
	t.Helper()
	for _, file := range filesOf(t, "messages/*/*.jsonl") {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			var m message
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatalf("%s: %v in %s", file, err, line)
			}
			all = append(all, m)
		}
	}
	return all
}

func (m message) text() string {
	var b strings.Builder
	for _, p := range m.Parts {
		b.WriteString(p[0] + " ")
	}
	return b.String()
}

// TestLabelsAreKnown: Every part of a message has a label, a slot and flags that exist.
func TestLabelsAreKnown(t *testing.T) {
	for _, m := range messagesOf(t) {
		for _, p := range m.Parts {
			p = append(slices.Clone(p), "", "")
			if !slices.Contains(classify.Labels(), classify.Label(p[1])) || !slices.Contains(classify.Slots(), p[2]) ||
				slices.ContainsFunc(strings.Fields(p[3]), func(f string) bool { return !slices.Contains(classify.Flags(), f) }) {
				t.Errorf("%q", p)
			}
		}
	}
}

// TestNoNearDuplicates: No two messages have more than 60 % of their sequences of five characters in common.
func TestNoNearDuplicates(t *testing.T) {
	type set map[string]bool
	var sets []set
	holders := map[string][]int{}
	all := messagesOf(t)
	worst := 0.0
	for i, m := range all {
		runes := []rune(strings.Join(strings.Fields(strings.ToLower(m.text())), ""))
		grams := set{}
		for k := 0; k+5 <= max(len(runes), 5); k++ {
			grams[string(runes[k:min(k+5, len(runes))])] = true
		}
		common := map[int]int{}
		for g := range grams {
			for _, k := range holders[g] {
				common[k]++
			}
			holders[g] = append(holders[g], i)
		}
		for k, n := range common {
			share := float64(n) / float64(len(grams)+len(sets[k])-n)
			if worst = max(worst, share); share > .6 {
				t.Errorf("%q and %q", m.text(), all[k].text())
			}
		}
		sets = append(sets, grams)
	}
	t.Logf("%d messages, the two most similar share %.2f", len(all), worst)
}

// TestNoFrameIsFrequent: No sentence frame, which is a sentence with a gap for each but the most frequent words, makes more than 0.5 % of
// the sentences of its language.
func TestNoFrameIsFrequent(t *testing.T) {
	type key struct{ language, frame string }
	words, frames, total := map[key]int{}, map[key]int{}, map[string]int{}
	all := messagesOf(t)
	for _, m := range all {
		for _, w := range wordsOf(m.text()) {
			words[key{m.Language, w}]++
		}
	}
	frequent := map[key]bool{}
	for language := range languagesOf(all) {
		var list []key
		for k := range words {
			if k.language == language {
				list = append(list, k)
			}
		}
		slices.SortFunc(list, func(a, b key) int { return cmp.Or(words[b]-words[a], strings.Compare(a.frame, b.frame)) })
		for _, k := range list[:min(150, len(list))] {
			frequent[k] = true
		}
	}
	for _, m := range all {
		for _, p := range m.Parts {
			total[m.Language]++
			var frame []string
			fixed := 0
			for _, w := range wordsOf(p[0]) {
				if frequent[key{m.Language, w}] {
					frame, fixed = append(frame, w), fixed+1
				} else if len(frame) == 0 || frame[len(frame)-1] != "_" {
					frame = append(frame, "_")
				}
			}
			if fixed >= 3 {
				frames[key{m.Language, strings.Join(frame, " ")}]++
			}
		}
	}
	for k, n := range frames {
		if n > max(3, total[k.language]/200) {
			t.Errorf("%d of %d sentences in %s: %s", n, total[k.language], k.language, k.frame)
		}
	}
}

func languagesOf(all []message) map[string]bool {
	languages := map[string]bool{}
	for _, m := range all {
		languages[m.Language] = true
	}
	return languages
}

func wordsOf(text string) []string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case r > 0x2e7f && unicode.IsLetter(r) && !unicode.Is(unicode.Hangul, r):
			b.WriteString(" " + string(r) + " ")
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '\'':
			b.WriteRune(r)
		default:
			b.WriteByte(' ')
		}
	}
	return strings.Fields(b.String())
}

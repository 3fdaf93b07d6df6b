package lists

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// listed are the titles of the list that the phrases select from.
var listed = []string{
	"得闲谨制", "镖人", "惊变28年2：白骨圣殿", "流浪地球3", "The Third Man", "Zootopia 2", "哪吒之魔童闹海", "F1: The Movie", "第九区", "三体", "Interstellar",
	"一战再战 (One Battle After Another)",
}

// chosen renders a text's selection as the phrases' file does.
func chosen(text string) string {
	s, ok := ParseSelection(text, listed)
	if !ok {
		return "-"
	}
	if s.None {
		return "none"
	}
	numbers, outside, repeated, ok := s.Numbers(len(listed))
	switch {
	case repeated:
		return "-"
	case !ok:
		return fmt.Sprintf("%d is outside", outside)
	case len(numbers) == len(listed):
		return "all"
	}
	return strings.Trim(fmt.Sprint(numbers), "[]")
}

// TestSelections: Answers to a list select the intended items. Text that merely contains a number selects nothing.
func TestSelections(t *testing.T) {
	for _, file := range []string{"selections.txt", "selections_held_out.txt"} {
		data, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		counts, wrong := map[bool]int{}, map[bool]int{}
		for line := range strings.Lines(string(data)) {
			want, text, ok := strings.Cut(strings.TrimRight(line, "\n"), "\t")
			if !ok || strings.HasPrefix(line, "#") {
				continue
			}
			counts[want != "-"]++
			if got := chosen(text); got != want {
				wrong[want != "-"]++
				t.Errorf("%s: %q selects %s, want %s", file, text, got, want)
			}
		}
		t.Logf("%s: %d selections, %d wrong; %d others, %d wrong", file, counts[true], wrong[true], counts[false], wrong[false])
		if counts[true] < 50 || counts[false] < 50 {
			t.Errorf("%s: too few", file)
		}
	}
}

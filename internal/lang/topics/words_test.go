package topics

import (
	"strings"
	"testing"
)

func TestSegmentCutsAtWords(t *testing.T) {
	for text, want := range map[string]string{
		"请问严氏家训有哪些": "请问 严氏 家训 有 哪些",
		"第一条孝悌为本":   "第一条 孝 悌 为 本",
		"有什么具体的故事":  "有 什么 具体 的 故事",
		"蓝牙耳机坏了":    "蓝牙 耳机 坏 了",
		"":          "",
	} {
		var got []string
		rest := []rune(text)
		for _, p := range segment(rest) {
			got = append(got, string(rest[:p.runes]))
			rest = rest[p.runes:]
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestEveryWordIsFound: The search finds each line of the file.
func TestEveryWordIsFound(t *testing.T) {
	n := 0
	for line := range strings.Lines(wordsZH[wordsBegin():]) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if _, is, ok := lookUp(word); !ok || byte(is) != rest[len(rest)-1] {
			t.Fatalf("%q is not found", word)
		}
		n++
	}
	if _, _, ok := lookUp("严氏家训"); n < 10_000 || ok {
		t.Errorf("%d words", n)
	}
}

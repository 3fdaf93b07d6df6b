package topics

import (
	_ "embed"
	"math"
	"strings"
	"sync"
	"unicode/utf8"
)

// wordsZH is sorted and searched in place, without a copy in memory.
//
//go:embed words_zh.txt
var wordsZH string

// wordsBegin returns where the words begin, behind the comment.
var wordsBegin = sync.OnceValue(func() int { return strings.LastIndex(wordsZH, "\n#\n") + len("\n#\n") })

// maxWordRunes is the length of the longest word.
const maxWordRunes = 4

// class is what a word is.
type class byte

// The classes, as the file has them.
const (
	noun      class = 'n'
	adjective class = 'a'
	grammar   class = 'g'
	other     class = 'v'
)

const firstHan, afterHan = 0x4E00, 0xA000

// blocks are where the words with each first character begin.
var blocks = sync.OnceValue(func() []uint32 {
	list := make([]uint32, afterHan-firstHan+1)
	filled := 0
	at := wordsBegin()
	for line := range strings.Lines(wordsZH[wordsBegin():]) {
		first, _ := utf8.DecodeRuneInString(line)
		for ; filled <= int(first-firstHan); filled++ {
			list[filled] = uint32(at)
		}
		at += len(line)
	}
	for ; filled < len(list); filled++ {
		list[filled] = uint32(len(wordsZH))
	}
	return list
})

// lookUp finds a word. weight is twice the logarithm of its frequency.
func lookUp(word string) (weight int, is class, ok bool) {
	first, _ := utf8.DecodeRuneInString(word)
	if first < firstHan || first >= afterHan {
		return 0, other, false
	}
	index := blocks()
	low, high := int(index[first-firstHan]), int(index[first-firstHan+1])
	for low < high {
		middle := low + (high-low)/2
		start := low
		if i := strings.LastIndexByte(wordsZH[low:middle], '\n'); i >= 0 {
			start = low + i + 1
		}
		end := start + strings.IndexByte(wordsZH[start:], '\n')
		found, rest, _ := strings.Cut(wordsZH[start:end], " ")
		switch strings.Compare(word, found) {
		case 0:
			for _, digit := range rest[:len(rest)-1] {
				weight = 10*weight + int(digit-'0')
			}
			return weight, class(rest[len(rest)-1]), true
		case -1:
			high = start
		default:
			low = end + 1
		}
	}
	return 0, other, false
}

// piece is a word of a run of characters, or a single character that belongs to no word.
type piece struct {
	runes    int
	is       class
	measures bool // a measure word
}

// totalWeight is twice the logarithm of how many words were counted.
const totalWeight = 36

// segment divides characters into the words that are the most frequent together. A character that is in no word is a word of its own. A
// family name with 氏 names the owner of the following thing, and counts as grammar.
func segment(chars []rune) []piece {
	text := string(chars)
	from := make([]int, 0, len(chars)+1) // where each character begins
	for i := range text {
		from = append(from, i)
	}
	from = append(from, len(text))
	best := make([]float64, len(chars)+1) // cost of the cut from here to the end
	cut := make([]piece, len(chars)+1)
	for i := len(chars) - 1; i >= 0; i-- {
		best[i] = math.Inf(1)
		for n := 1; n <= maxWordRunes && i+n <= len(chars); n++ {
			weight, is, ok := lookUp(text[from[i]:from[i+n]])
			if !ok && n > 1 {
				continue
			}
			if cost := float64(totalWeight-weight) + best[i+n]; cost < best[i] {
				best[i], cut[i] = cost, piece{runes: n, is: is}
			}
		}
	}
	var list []piece
	for i := 0; i < len(chars); {
		p := cut[i]
		last := chars[i+p.runes-1]
		switch {
		case p.runes == 1 && i+1 < len(chars) && chars[i+1] == '氏' && cut[i+1].runes == 1:
			p = piece{runes: 2, is: grammar}
		case p.runes == 1 && p.is == grammar && i > 0 && strings.ContainsRune(counted, chars[i-1]):
			p.measures = true
		case p.runes > 1 && last == '氏':
			p.is = grammar
		}
		list = append(list, p)
		i += p.runes
	}
	return list
}

// counted are characters behind which a character of grammar is a measure word: 这幅画.
const counted = "这那哪一二两三四五六七八九十几每第各某半数多"

// isNoun reports whether a text is a word that names something.
func isNoun(text string) bool {
	_, is, ok := lookUp(text)
	return ok && is == noun && utf8.RuneCountInString(text) > 1
}

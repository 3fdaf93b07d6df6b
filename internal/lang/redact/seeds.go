package redact

import (
	_ "embed"
	"strings"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang"
)

//go:embed data/bip39_english.txt
var wordList string

// walletWords are the words of which wallets make seed phrases.
var walletWords = lang.Set(lang.Lines(wordList)...)

const (
	seedWords      = 12 // so many words of the list in a row are a seed phrase whatever is said of them
	announcedWords = 4  // and so many words behind "seed phrase is"
)

// listed is a word of a text.
type listed struct{ start, end int }

// nextWord reads a word in small letters, behind blanks, commas and the number of a line. It ends at anything else.
func nextWord(text string, at int) (word listed, ok bool) {
	for at < len(text) {
		switch c := text[at]; {
		case strings.IndexByte(" \t\r\n,;", c) >= 0:
			at++
		case c >= '0' && c <= '9' || (c == '.' || c == ')' || c == ':') && at > 0 && text[at-1] >= '0' && text[at-1] <= '9':
			at++
		case strings.HasPrefix(text[at:], "、"):
			at += len("、")
		case isLetterByte(c):
			end := at
			for end < len(text) && isLetterByte(text[end]) {
				end++
			}
			next, _ := utf8.DecodeRuneInString(text[end:])
			return listed{at, end}, !wordRune(next) && next != '\'' && next != '-' && end-at <= 16
		default:
			return listed{}, false
		}
	}
	return listed{}, false
}

// seeds returns the runs of twelve and more words of the list.
func seeds(text string) (found []span) {
	for at := 0; at < len(text); {
		if !isLetterByte(text[at]) || at > 0 && wordRune(lastRune(text[:at])) {
			at++
			continue
		}
		n, end := 0, at
		for next := at; ; {
			word, ok := nextWord(text, next)
			if !ok || !walletWords[text[word.start:word.end]] {
				break
			}
			n, end, next = n+1, word.end, word.end
		}
		if n >= seedWords {
			found = append(found, span{start: at, end: end, kind: PrivateKey})
		}
		for at < len(text) && isLetterByte(text[at]) {
			at++
		}
		at = max(at, end)
	}
	return found
}

// seedAt reads the words that a name such as "seed phrase" announces: most are of the list, or none is of those that sentences are
// made of.
func (s *sayer) seedAt(at int, c class, last link) bool {
	if c != seedName || last == noLink {
		return false
	}
	n, known, common, end := 0, 0, 0, at
	for next := at; n < 25; {
		word, ok := nextWord(s.text, next)
		if !ok {
			break
		}
		text := s.text[word.start:word.end]
		if walletWords[text] {
			known++
		} else if remarks[text] || len(text) < 3 {
			common++
		}
		n, end, next = n+1, word.end, word.end
	}
	if n < announcedWords || known*4 < n*3 && common > 0 {
		return false
	}
	kind := PrivateKey
	if n < seedWords {
		kind = Password
	}
	s.found = append(s.found, span{start: at, end: end, kind: kind})
	return true
}

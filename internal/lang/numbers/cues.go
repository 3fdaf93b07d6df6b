package numbers

import (
	"regexp"
	"strings"
)

// Most texts have no date and no time of day. A look for a character or two spares them most of the patterns, which cost far more.

// cue is something without which there is no date of a kind.
type cue uint

const (
	digitCue   cue = 1 << iota
	centuryCue     // 19 or 20
	slashCue
	yearCue
	monthCue
	dayCue
	nameCue // of a month
	weekCue
	weekNameCue
)

func cuesOf(text string) (all cue) {
	for _, c := range []struct {
		cue   cue
		words []string
	}{
		{centuryCue, []string{"19", "20"}},
		{slashCue, []string{"/"}},
		{yearCue, []string{"年"}},
		{monthCue, []string{"月"}},
		{dayCue, []string{"日", "号"}},
		{weekCue, []string{"周", "星期", "礼拜"}},
		{weekNameCue, []string{"day"}},
		{nameCue, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	} {
		if has(text, c.words...) {
			all |= c.cue
		}
	}
	if strings.ContainsAny(text, "0123456789") {
		all |= digitCue
	}
	return all
}

// numberWords are the beginnings of numbers in English words.
var numberWords = []string{"one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twel", "thir", "fif", "twen", "for", "hundred", "thousand", "million", "billion", "dozen", "zero"}

// Any reports whether there may be a number, date or time of day in a folded text.
func Any(text string) bool {
	return strings.ContainsAny(text, "0123456789") || hasHan(text) || cuesOf(text)&(weekCue|weekNameCue) != 0 || has(text, numberWords...)
}

// hasHan reports whether a Chinese numeral is in the text.
func hasHan(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		if r < 0x3000 {
			return false
		}
		_, digit := hanDigits[r]
		_, unit := hanUnits[r]
		return digit || unit
	})
}

func has(text string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// found are the places of a pattern in a text, if it can be there at all.
func found(re *regexp.Regexp, text []byte, may bool) [][]int {
	if !may {
		return nil
	}
	return re.FindAllSubmatchIndex(text, -1)
}

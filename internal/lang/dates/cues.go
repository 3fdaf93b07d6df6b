package dates

import (
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/lang/numbers"
)

// Most texts have no date and no time of day. A search for a character or two is much cheaper than the patterns.

// cue is a set of features of a text. A pattern can match only where its cues are.
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

var monthBeginnings = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}

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
		{nameCue, monthBeginnings},
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

// Any reports whether a folded text may hold a number, a date or a time of day.
func Any(text string) bool {
	return numbers.Any(text) || cuesOf(text)&(weekCue|weekNameCue) != 0
}

func has(text string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// findAll returns the matches of a pattern if the text may hold one.
func findAll(re *lazyregexp.Regexp, text []byte, may bool) [][]int {
	if !may {
		return nil
	}
	return re.FindAllSubmatchIndex(text, -1)
}

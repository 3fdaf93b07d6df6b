// Package ack recognises messages that report whether advice worked. Such a message says nothing about its speaker; its content is in
// the advice. A report may also have content of its own, such as a cause that the speaker found.
//
// The phrases are in text files, one regular expression per line. The rest of the message is compared with the words of the
// conversation before it.
package ack

import (
	_ "embed"
	"strings"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/lang/lexical"
)

// Report is what a message says about the advice before it.
type Report int

// The reports.
const (
	None   Report = iota // no report, or a message with more content
	Worked               // the advice worked, and nothing else
	Failed               // it did not
)

// maxRunes is the longest report. A longer message has content of its own.
const maxRunes = 160

var (
	//go:embed worked.txt
	workedText string
	//go:embed failed.txt
	failedText string
	//go:embed found.txt
	foundText string
	//go:embed generic.txt
	genericText string
	//go:embed gaveup.txt
	gaveUpText string

	worked, failed, found, generic = patternOf(workedText), patternOf(failedText), patternOf(foundText), patternOf(genericText)
	gaveUp                         = patternOf(gaveUpText)
)

// patternOf matches any of the expressions of a file.
func patternOf(text string) *lazyregexp.Regexp { return lazyregexp.New(lang.AnyOf(lang.Lines(text))) }

var (
	clauseEnd   = lazyregexp.New(`[,，。.!！~～;；:：\n]+(?:\s|$)|[，。！；：～]+`)
	questionEnd = lazyregexp.New(`[^。！？!?\n]*[?？]`)
)

// Read classifies what a message reports. before are the earlier messages that it may refer to.
func Read(message string, before ...string) Report {
	if message = strings.TrimSpace(message); message == "" || utf8.RuneCountInString(message) > maxRunes {
		return None
	}
	text := strings.ReplaceAll(strings.ToLower(lexical.Simplified(message)), "’", "'")
	text = questionEnd.ReplaceAllString(text, "") // a question reports nothing
	report := None
	var rest strings.Builder
	for _, clause := range clauseEnd.Split(text, -1) {
		clause = strings.TrimSpace(clause)
		switch {
		case failed.MatchString(clause):
			report = Failed
		case worked.MatchString(clause):
			report = Worked
		}
		if report == Failed && found.MatchString(clause) { // "not that, it was my own mistake"
			report = None
		}
		for _, phrases := range []*lazyregexp.Regexp{worked, found, generic} {
			clause = phrases.ReplaceAllString(clause, " ")
		}
		rest.WriteString(clause + "\n")
	}
	if report == Worked && !nothingNew(rest.String(), before) {
		return None
	}
	return report
}

// OnlyWorked reports whether a message says only that advice worked. A change in the speaker's life may be worded like such a report:
// "I no longer smoke".
func OnlyWorked(message string, before ...string) bool {
	return !gaveUp.MatchString(strings.ToLower(message)) && Read(message, before...) == Worked
}

// nothingNew reports whether a text has almost no content that is missing from the conversation before it.
func nothingNew(text string, before []string) bool {
	known := map[string]bool{}
	for _, b := range before {
		for _, t := range lexical.Tokens(lexical.Simplified(b)) {
			known[t.Term] = true
		}
	}
	var old, fresh float64
	for _, t := range lexical.Tokens(text) {
		weight := 1.0
		switch {
		case t.Function, t.Kind == lexical.CharPair:
			continue
		case t.Kind == lexical.Char:
			weight = 0.5
		}
		if known[t.Term] {
			old += weight
		} else {
			fresh += weight
		}
	}
	return fresh < 1 || old >= 1 && fresh <= 1
}

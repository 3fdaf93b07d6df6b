package rules

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/decide/ack"
	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// maxFollowing is the number of messages after a problem in which its solution is searched. Advice that failed does not count.
const maxFollowing = 6

// issues returns problems and how-to questions, with the advice or the solution found.
func issues(p digest.Piece) []digest.Finding {
	var found []digest.Finding
	follows := map[int]bool{} // messages that report how the advice on an earlier problem did
	for i := range p.Messages {
		m := &p.Messages[i]
		if m.Role != memory.RoleUser || len(found) == maxIssues || follows[i] {
			continue
		}
		question, technical := questionIn(m.Content)
		supposed := question == ""
		if supposed {
			question = lackIn(m.Content)
		}
		if question == "" {
			continue
		}
		s := solutionAfter(p.Messages, i)
		if supposed && s.confirmed == nil {
			continue
		}
		for _, at := range s.reports {
			follows[at] = true
		}
		if s.text == "" && !technical {
			continue // no answer was given
		}
		f := digest.Finding{
			Category: digest.Issue, Text: stripped(question), Solution: s.text, Quote: question, MessageIDs: []string{m.Name()}, SaidAt: m.Time,
			// Only solutions of technical problems are remembered; other advice is only in the digest.
			Passing: !technical,
		}
		if s.by != nil {
			f.MessageIDs = append(f.MessageIDs, s.by.Name())
			f.Passing = f.Passing && s.by.Role != memory.RoleUser // the user found the cause, so it is reliable
		}
		if s.confirmed != nil {
			f.MessageIDs = append(f.MessageIDs, s.confirmed.Name())
		}
		found = append(found, f)
	}
	return found
}

// questionIn returns the part of a message that describes a problem: the sentence, and the one before if it only asks what to do.
func questionIn(content string) (question string, technical bool) {
	list := sentences(content)
	for i, s := range list {
		technical = problem.MatchString(s)
		if !technical && !howTo.MatchString(s) {
			continue
		}
		question = s
		if i > 0 && width(s) < 2*leastProblems {
			question = list[i-1] + s
		}
		if technical && i+1 < len(list) && howTo.MatchString(list[i+1]) {
			question += list[i+1]
		}
		if width(question) >= leastProblems {
			return question, technical
		}
	}
	return "", false
}

// lackIn returns the sentence of a message that says what something fails to do. It counts as a problem if the user reports later that
// advice on it worked.
func lackIn(content string) string {
	for _, s := range sentences(content) {
		if lack.MatchString(s) && width(s) >= leastProblems {
			return s
		}
	}
	return ""
}

var lack = lazyregexp.New(`(?i)[不没坏]|\b(not|no|cannot|never)\b|n['’]t\b`)

// width is the length of a text in letters; a Chinese character counts as two.
func width(text string) (n int) {
	for _, r := range text {
		if n++; unicode.Is(unicode.Han, r) {
			n++
		}
	}
	return n
}

// solution describes how a problem was solved.
type solution struct {
	text      string
	by        *digest.Message // who said it; nil without a text
	confirmed *digest.Message // in which the user reports that it worked, or nil
	reports   []int           // messages of the user that report the result of advice
}

// solutionAfter returns the advice that the user reports to have worked, else the cause that the user names, else the bot's first
// advice. Advice that failed is ignored.
func solutionAfter(messages []digest.Message, at int) solution {
	l := lookout{before: []string{messages[at].Content}, end: at + maxFollowing}
	for i := at + 1; i < len(messages) && i <= l.end; i++ {
		m := &messages[i]
		switch m.Role {
		case memory.RoleAssistant:
			l.latest = m
			if l.text == "" {
				if text := stripped(picked(sentences(m.Content), advice)); text != "" {
					l.text, l.by = text, m
				}
			}
		case memory.RoleUser:
			if l.hear(m, i) {
				return l.solution
			}
		case memory.RoleSystem, memory.RoleTool:
		}
		l.before = append(l.before, m.Content)
	}
	return l.solution
}

// lookout is the search for a solution.
type lookout struct {
	solution
	before []string        // what was said since the problem
	latest *digest.Message // the advice to which a report refers
	end    int             // the last message to read
}

// hear reads the i-th message, a user's, and reports whether the search has ended.
func (l *lookout) hear(m *digest.Message, i int) (over bool) {
	switch ack.Read(m.Content, l.before...) {
	case ack.Worked:
		l.reports = append(l.reports, i)
		if l.latest == nil {
			return false // no advice was given
		}
		if text := advised(l.latest.Content); text != "" {
			l.text, l.by, l.confirmed = text, l.latest, m
		}
		return true
	case ack.Failed:
		l.text, l.by, l.latest = "", nil, nil
		l.reports = append(l.reports, i)
		l.end = i + maxFollowing
		return false
	case ack.None:
	}
	if text := picked(withoutReports(sentences(m.Content), l.before), settled); text != "" {
		l.text, l.by = text, m
		l.reports = append(l.reports, i)
		return true
	}
	q, _ := questionIn(m.Content)
	return q != ""
}

// withoutReports excludes sentences that only report that something works.
func withoutReports(list, before []string) []string {
	var kept []string
	for _, s := range list {
		if ack.Read(s, before...) == ack.None {
			kept = append(kept, s)
		}
	}
	return kept
}

// sympathy matches phrases of a bot that give no advice.
var sympathy = lazyregexp.New(`(?i)别担心|不用担心|别着急|抱歉|不好意思|不客气|很高兴|听起来|我理解|好问题|希望|` +
	`\b(sorry|worry|glad|happy to|sounds (like|frustrating|annoying)|understand|great question|good question|hope|welcome|of course|sure)\b`)

// advised returns the advice in a message that turned out to work: the sentences worded as advice, else the first ones that are neither
// questions nor sympathy.
func advised(content string) string {
	list := sentences(content)
	if text := stripped(picked(list, advice)); text != "" {
		return text
	}
	var rest []string
	for _, s := range list {
		if !sympathy.MatchString(s) {
			rest = append(rest, s)
		}
	}
	return stripped(picked(rest, anything))
}

var anything = lazyregexp.New(`.`)

// picked returns the first sentences that match a pattern.
func picked(list []string, pattern *lazyregexp.Regexp) string {
	text, n := "", 0
	for _, s := range list {
		if n == maxSentences || !pattern.MatchString(s) || width(s) < minRunes || strings.HasSuffix(s, "？") || strings.HasSuffix(s, "?") {
			continue
		}
		if utf8.RuneCountInString(text+s) > maxSolution && n > 0 {
			break
		}
		if n > 0 && s[0] < utf8.RuneSelf {
			text += " "
		}
		text += s
		n++
	}
	return text
}

package rules

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/decide/ack"
	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// maxFollowing is how many messages after a problem its solution is looked for in. Advice that failed does not count.
const maxFollowing = 6

// issues are problems and questions about how to do something, with what was advised or found.
func issues(p digest.Piece) []digest.Finding {
	var found []digest.Finding
	follows := map[int]bool{} // messages that report how the advice on an earlier problem did
	for i := range p.Messages {
		m := &p.Messages[i]
		if m.Role != memory.RoleUser || len(found) == maxIssues || follows[i] {
			continue
		}
		question, technical := questionIn(m.Content)
		if question == "" {
			continue
		}
		s := solutionAfter(p.Messages, i)
		for _, at := range s.reports {
			follows[at] = true
		}
		if s.text == "" && !technical {
			continue // somebody asked, and nobody knew
		}
		f := digest.Finding{
			Category: digest.Issue, Text: stripped(question), Solution: s.text, Quote: question, MessageIDs: []string{m.Name()}, SaidAt: m.Time,
			// Advice that a bot gives about life is worth telling. Worth knowing is what solved a technical problem.
			Passing: !technical,
		}
		if s.by != nil {
			f.MessageIDs = append(f.MessageIDs, s.by.Name())
			f.Passing = f.Passing && s.by.Role != memory.RoleUser // who says what it was knows
		}
		if s.confirmed != nil {
			f.MessageIDs = append(f.MessageIDs, s.confirmed.Name())
		}
		found = append(found, f)
	}
	return found
}

// questionIn is the part of a message that tells a problem: the sentence, and the one before when it only asks what to do.
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

// width is the length of a text, in letters: a Chinese character says as much as two.
func width(text string) (n int) {
	for _, r := range text {
		if n++; unicode.Is(unicode.Han, r) {
			n++
		}
	}
	return n
}

// solution is how a problem was solved.
type solution struct {
	text      string
	by        *digest.Message // who said it; nil without a text
	confirmed *digest.Message // in which the user reports that it worked, or nil
	reports   []int           // messages of the user that report how advice did
}

// solutionAfter is the advice that the user reports to have worked, else what the user says it was, else what the bot advised
// first. Advice that did not work is none.
func solutionAfter(messages []digest.Message, at int) (s solution) {
	before := []string{messages[at].Content}
	var latest *digest.Message // the advice to which a report refers
	end := at + maxFollowing
	for i := at + 1; i < len(messages) && i <= end; i++ {
		m := &messages[i]
		switch m.Role {
		case memory.RoleAssistant:
			latest = m
			if s.text == "" {
				if text := stripped(picked(sentences(m.Content), advice)); text != "" {
					s.text, s.by = text, m
				}
			}
		case memory.RoleUser:
			switch ack.Read(m.Content, before...) {
			case ack.Worked:
				s.reports = append(s.reports, i)
				if latest == nil {
					break // nobody said how
				}
				if text := advised(latest.Content); text != "" {
					s.text, s.by, s.confirmed = text, latest, m
				}
				return s
			case ack.Failed:
				s.text, s.by, latest = "", nil, nil
				s.reports = append(s.reports, i)
				end = i + maxFollowing
			case ack.None:
				if text := picked(withoutReports(sentences(m.Content), before), settled); text != "" {
					s.text, s.by = text, m
					s.reports = append(s.reports, i)
					return s
				}
				if q, _ := questionIn(m.Content); q != "" {
					return s
				}
			}
		case memory.RoleSystem, memory.RoleTool:
		}
		before = append(before, m.Content)
	}
	return s
}

// withoutReports leaves out sentences that only report that something works.
func withoutReports(list, before []string) []string {
	var kept []string
	for _, s := range list {
		if ack.Read(s, before...) == ack.None {
			kept = append(kept, s)
		}
	}
	return kept
}

// sympathy is what a bot says that advises nothing.
var sympathy = regexp.MustCompile(`(?i)别担心|不用担心|别着急|抱歉|不好意思|不客气|很高兴|听起来|我理解|好问题|希望|` +
	`\b(sorry|worry|glad|happy to|sounds (like|frustrating|annoying)|understand|great question|good question|hope|welcome|of course|sure)\b`)

// advised is what a message advises that turned out to work: the sentences that read like advice, else the first ones that
// are neither questions nor sympathy.
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

var anything = regexp.MustCompile(`.`)

// picked are the first sentences in which there is something of a pattern.
func picked(list []string, pattern *regexp.Regexp) string {
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

package rules

import (
	_ "embed"
	"regexp"
	"strings"

	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// maxTasks limits the tasks found in one piece.
const maxTasks = 20

var (
	//go:embed task_labels.txt
	taskLabels string
	//go:embed task_reminders.txt
	taskReminders string

	labelled = lazyregexp.New(`(?i)^[-*•·\s]*(?:\[ \]|` + lang.AnyOf(lang.Lines(regexp.QuoteMeta(taskLabels))) + `\s*(?:[:：]|\s[-–—]|—|\[ \]))\s*`)
	done     = lazyregexp.New(`(?i)^[-*•·\s]*\[[x✓√]\]`)
	reminds  = lazyregexp.New(`(?i)^` + lang.AnyOf(lang.Lines(taskReminders)) + `\s*`)
)

var (
	asks       = lazyregexp.New(`[?？]\s*$|(?:吗|么|呢|吧)[。.！!？?~～]*$|什么|怎么|为什么|哪|是不是|要不要|多少`)
	trailing   = strings.NewReplacer("吗", "", "吧", "", "？", "", "?", "")
	tooGeneral = lazyregexp.New(`^(?:了|一下|他|她|它|你|您|什么|这|那|哪)`)
)

// tasks returns what the user noted as a task, or asked to be reminded of. What else is to do is a statement.
func (x *Extractor) tasks(p digest.Piece, known []digest.Finding) []digest.Finding {
	var found []digest.Finding
	for i := range p.Messages {
		m := &p.Messages[i]
		if m.Role != memory.RoleUser {
			continue
		}
		for line := range strings.Lines(m.Content) {
			for _, t := range x.tasksIn(strings.TrimSpace(line)) {
				if len(found) == maxTasks || isKnown(t.quote, known) {
					continue
				}
				found = append(found, digest.Finding{
					Category: digest.Task, Text: t.text, Quote: t.quote, Passing: t.passing, MessageIDs: []string{m.Name()}, SaidAt: m.Time,
				})
			}
		}
	}
	return found
}

// isKnown reports whether a statement about the user contains the task already.
func isKnown(quote string, known []digest.Finding) bool {
	for _, f := range known {
		if f.Quote != "" && (strings.Contains(f.Quote, quote) || strings.Contains(quote, f.Quote)) {
			return true
		}
	}
	return false
}

// task is what to do, and the quote that says it.
type task struct {
	text, quote string
	passing     bool // it is part of the digest only
}

// tasksIn returns the tasks in a line.
func (x *Extractor) tasksIn(line string) (list []task) {
	if done.MatchString(line) {
		return nil
	}
	if at := labelled.FindStringIndex(line); at != nil {
		if text := strings.TrimSpace(line[at[1]:]); width(text) >= minRunes && !asks.MatchString(text) {
			return []task{{text: text, quote: line}}
		}
		return nil
	}
	for _, s := range sentences(line) {
		if at := reminds.FindStringIndex(s); at != nil {
			text := strings.TrimSpace(trailing.Replace(s[at[1]:]))
			if width(text) >= minRunes && !tooGeneral.MatchString(text) && !strings.ContainsAny(text[:1], ",") && !strings.HasPrefix(text, "，") {
				list = append(list, task{text: text, quote: s})
			}
			continue
		}
		if !asks.MatchString(s) && x.by.Due(s) {
			list = append(list, task{s, s, true})
		}
	}
	return list
}

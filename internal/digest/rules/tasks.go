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
	//go:embed task_not.txt
	taskNot string

	labelled = lazyregexp.New(`(?i)^[-*•·\s]*(?:\[ \]|` + lang.AnyOf(lang.Lines(regexp.QuoteMeta(taskLabels))) + `\s*(?:[:：]|\s[-–—]|—|\[ \]))\s*`)
	done     = lazyregexp.New(`(?i)^[-*•·\s]*\[[x✓√]\]`)
	reminds  = lazyregexp.New(`(?i)^` + lang.AnyOf(lang.Lines(taskReminders)) + `\s*`)
	noTask   = lazyregexp.New(`(?i)^` + lang.AnyOf(lang.Lines(taskNot)) + ``)
)

// These patterns match what the user has to do. Only a time, adverbs and the user may come before the verb: another person as the
// subject, or a conjunction of a condition, rules out a task.
const (
	timeZH = `(?:今[天晚早]|[明后]天|大后天|明[早晚]|[这下本]?个?(?:周|星期|礼拜)[一二三四五六日天末]|周末|[这下本]个?[周月]|[月年]底|[月年]中|节后|放假|下班|放学|` +
		`一早|上午|中午|下午|晚上|早上|凌晨|傍晚|夜里|待会儿?|等会儿?|等下|一会儿?|[0-9一二三四五六七八九十]+(?:月|号|日|点半?|点钟|天后|天内|周内)|(?:之?前|以前|之?后|以后|内))`
	headZH = `^(?:嗯|对了|哦|另外|然后|那|所以|不过|但是?|因为)*[，, ]*`
)

var (
	dueZH = lazyregexp.New(headZH + `((?:` + timeZH + `|的|在|到|我们?|咱们?|也|就|都|再|必须|一定|真的|可能|估计|先|还|另外|，|,| )*?)(必须得?|需要|得|要|该)((?:[^，` +
		`,。！!？?]|，再)+)`)
	withTime = lazyregexp.New(timeZH)
	duty     = lazyregexp.New(`^(?:必须得?|需要|得|该)`)
	dueEN    = lazyregexp.New(`(?i)^(?:(?:and|so|also|but|then|well|oh|ok|okay|today|tomorrow|tonight|this week|next week|later|first|` +
		`plus|anyway),? )*` +
		`(?:(?:i|we)(?:'ve| have)? (?:(?:still|also|really|just|definitely|absolutely|probably) )*(?:got to|gotta|have to|need to|must|` +
		`ought to|'ve to)|(?:still )?(?:need|have|got|gotta) to|(?:i|we) (?:still |also )?(?:have|need|got) (?:a|an|some) [a-z ]+ ` +
		`to) (.+)`)
	pastZH     = lazyregexp.New(`昨|上(?:个)?(?:周|月|星期)|去年|刚才|之前就|[了过][。.！!]?$`)
	asks       = lazyregexp.New(`[?？]\s*$|(?:吗|么|呢|吧)[。.！!？?~～]*$|什么|怎么|为什么|哪|是不是|要不要|多少`)
	trailing   = strings.NewReplacer("吗", "", "吧", "", "？", "", "?", "")
	endOfZH    = lazyregexp.New(`[，,。！!；;\n]`)
	tooGeneral = lazyregexp.New(`^(?:了|一下|他|她|它|你|您|什么|这|那|哪)`)
)

// tasks returns what the user has to do: notes, reminders, and things said to be due.
func tasks(p digest.Piece, known []digest.Finding) []digest.Finding {
	var found []digest.Finding
	for i := range p.Messages {
		m := &p.Messages[i]
		if m.Role != memory.RoleUser {
			continue
		}
		for line := range strings.Lines(m.Content) {
			for _, t := range tasksIn(strings.TrimSpace(line)) {
				if len(found) == maxTasks || isKnown(t.quote, known) {
					continue
				}
				found = append(found, digest.Finding{
					Category: digest.Task, Text: t.text, Quote: t.quote, MessageIDs: []string{m.Name()}, SaidAt: m.Time,
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
type task struct{ text, quote string }

// tasksIn returns the tasks in a line.
func tasksIn(line string) (list []task) {
	if done.MatchString(line) {
		return nil
	}
	if at := labelled.FindStringIndex(line); at != nil {
		if text := strings.TrimSpace(line[at[1]:]); width(text) >= minRunes && !asks.MatchString(text) {
			return []task{{text, line}}
		}
		return nil
	}
	for _, s := range sentences(line) {
		if at := reminds.FindStringIndex(s); at != nil {
			text := strings.TrimSpace(trailing.Replace(s[at[1]:]))
			if width(text) >= minRunes && !tooGeneral.MatchString(text) && !strings.ContainsAny(text[:1], ",") && !strings.HasPrefix(text, "，") {
				list = append(list, task{text, s})
			}
			continue
		}
		if asks.MatchString(s) {
			continue
		}
		if at := dueEN.FindStringSubmatch(s); at != nil {
			if !noTask.MatchString(at[1]) {
				list = append(list, task{s, s})
			}
			continue
		}
		for _, clause := range endOfZH.Split(s, -1) {
			if clause = strings.TrimSpace(clause); isDueZH(clause) {
				list = append(list, task{clause, clause})
			}
		}
	}
	return list
}

// isDueZH reports whether a clause says that the user has to do something: at a time, still, or as a duty.
func isDueZH(clause string) bool {
	at := dueZH.FindStringSubmatch(clause)
	if at == nil || pastZH.MatchString(clause) || asks.MatchString(clause) || width(at[3]) < minRunes-2 || noTask.MatchString(at[3]) {
		return false
	}
	head, modal := at[1], at[2]
	return withTime.MatchString(head) || strings.Contains(head, "还") || duty.MatchString(modal) && strings.Contains(head, "我")
}

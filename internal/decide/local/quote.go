package local

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/decide/classify"
	"github.com/memsidecar/memsidecar/internal/lang/dates"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/lang/lexical"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// leastBesideSecret is how many words a sentence must have besides a secret to be kept.
const leastBesideSecret = 5

// maxQuestion is how much of a question stands in a memory, in characters.
const maxQuestion = 200

var marker = lazyregexp.New(`\[(redacted|已隐去)[^\]]*\]`)

// between stands between words of different messages.
const between = " — "

// compose makes the statement of sentence i. It reports false if there is none: it then belongs to the statement before it, or holds
// nothing but a secret.
//
// The text of a memory is what the user said, word for word: the sentence, before it the bot's question if the sentence answers one,
// or what was said before if the sentence needs it to be understood. Dates that depend on the day are written behind their words, in
// brackets.
func (e *Extractor) compose(r *read, k *kept, i int) bool {
	quote := k.Text()
	if k.Is(classify.Secret) >= likely || marker.MatchString(quote) && len(termsOf(marker.ReplaceAllString(quote, " "))) < leastBesideSecret {
		r.secret = true
		return false
	}
	said := r.t.Dialogue.Messages[k.message]
	text, days := r.dated(quote, k.sentence)
	cited := []int{k.message}
	s := &k.statement
	question, asked := r.question(k.sentence)
	switch {
	case question != "":
		text, s.Question = memory.CleanText(question)+between+text, memory.CleanText(question)
		cited = append(cited, asked)
		k.hanging = false
	case (k.hanging || k.continues()) && !k.correction && e.joins(r, k):
		return false
	case k.continues() && r.leads(i):
		first, earlier := r.dated(r.sentences[i-1].Text(), r.sentences[i-1])
		text, days = first+" "+text, append(earlier, days...)
	case k.hanging && !k.correction && !k.update:
		if before, at := r.before(i); before != "" {
			first, earlier := r.dated(before, r.sentences[i-1])
			text = first + map[bool]string{true: " ", false: between}[at == k.message] + text
			days = append(earlier, days...)
			cited = append(cited, at)
			k.hanging = false
		}
	}
	label := k.Kept()
	s.Text, s.Quote = shortened(memory.CleanText(text), e.options.MaxRunes), memory.CleanText(quote)
	s.Dates = days
	s.Language, s.Kind, s.Slot = lexical.Language(said.Content), memory.Kind(label), k.Slot()
	if k.kind != "" {
		s.Kind = k.kind
	}
	s.ObservedAt, s.Explicit, s.Importance = said.Time, k.explicit, importance(label, s.Slot)
	if s.Explicit {
		s.Importance = 1
	}
	s.Standing = standing(label, s.Slot)
	s.ValidTo = r.until(k.sentence, label)
	s.Reason = e.why(k)
	slices.Sort(cited)
	for _, at := range slices.Compact(cited) {
		s.MessageIDs = append(s.MessageIDs, r.t.Ref(at))
	}
	return true
}

// why says what weighed most.
func (e *Extractor) why(k *kept) string {
	reason := fmt.Sprintf("%s (%.0f %%)", k.Kept(), 100*min(k.chance, 1))
	if words := e.model.Why(k.Unit, k.Kept(), 3); len(words) > 0 {
		reason += ": " + strings.Join(quoted(words), ", ")
	}
	switch {
	case k.explicit:
		reason = "the user asked for it to be remembered; " + reason
	case k.points != 0:
		reason += fmt.Sprintf("; %d points of configured signals", k.points)
	}
	return reason
}

func quoted(words []string) []string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = fmt.Sprintf("%q", w)
	}
	return list
}

// question returns the bot's question that a sentence answers, and its message.
func (r *read) question(s sentence) (question string, message int) {
	if s.Index > 0 && s.Has("q") < likely {
		return "", 0
	}
	for at := s.message - 1; at >= 0; at-- {
		m := r.t.Dialogue.Messages[at]
		if m.Role != memory.RoleAssistant {
			if m.Role == memory.RoleUser {
				return "", 0
			}
			continue
		}
		question = shortened(classify.LastQuestion(m.Content), maxQuestion)
		if question == "" || s.Has("q") < likely && (s.Index > 0 || s.understoodAlone()) {
			return "", 0
		}
		return question, at
	}
	return "", 0
}

// understoodAlone reports whether a sentence after a question is likely understood without it: a short one seldom is.
func (s sentence) understoodAlone() bool {
	need := likely
	switch length := classify.Length(s.Text()); {
	case length <= 4:
		need = .1
	case length <= 8:
		need = .2
	}
	return s.Has("q") < need
}

// continues reports whether a sentence goes on after the one before it: people write a space there, and no full stop.
func (s sentence) continues() bool {
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(s.Message[:s.Start], " \t\u3000"))
	return s.Index > 0 && (unicode.IsLetter(last) || unicode.IsDigit(last) || strings.ContainsRune("，,、", last)) && !strings.HasSuffix(s.Message[:s.Start], "\n")
}

// leads reports whether the sentence before is a few words that name what the sentence is about.
func (r *read) leads(i int) bool {
	b := r.sentences[i-1]
	return classify.Length(b.Text()) <= 4 && b.Is(classify.Question, classify.Ask, classify.Secret) < likely && b.Is(commandLabels...) < likely
}

// joins adds a sentence to the statement of the sentence before it in the same message.
func (e *Extractor) joins(r *read, k *kept) bool {
	if len(r.kept) == 0 {
		return false
	}
	last, s := &r.kept[len(r.kept)-1], k.sentence
	if last.message != s.message || last.Index+1 != s.Index {
		return false
	}
	more, days := r.dated(s.Text(), s)
	text := last.statement.Text + " " + memory.CleanText(more)
	if utf8.RuneCountInString(text) > e.options.MaxRunes {
		return false
	}
	last.statement.Text, last.statement.Quote = text, last.statement.Quote+" "+memory.CleanText(s.Text())
	last.statement.Dates = append(last.statement.Dates, days...)
	last.Index, last.corrects, last.updates = s.Index, max(last.corrects, k.corrects), max(last.updates, k.updates)
	return true
}

// before returns what was said before sentence i: the sentence before it, or the end of the user's message before.
func (r *read) before(i int) (text string, message int) {
	if i == 0 {
		return "", 0
	}
	b := r.sentences[i-1]
	if b.Is(commandLabels...) >= likely || b.Is(classify.Secret, classify.Chat, classify.Play, classify.Quote) >= likely {
		return "", 0
	}
	return shortened(b.Text(), 200), b.message
}

// shortened cuts a text at the end of a word.
func shortened(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	head := string([]rune(text)[:most-1])
	if at := strings.LastIndexFunc(head, unicode.IsSpace); at > len(head)*3/4 {
		head = head[:at]
	}
	return head + "…"
}

// dated returns words of a sentence with the dates that they name behind them, in brackets. "In May" is the coming one in a plan and the
// last one in an experience; otherwise it is left as it is.
func (r *read) dated(text string, s sentence) (with string, days []string) {
	var b strings.Builder
	from := 0
	for _, m := range dates.Find(text, r.t.Dialogue.Messages[s.message].Time, r.t.Location) {
		if !m.Relative && !m.Open || m.Calendar.End == 0 {
			continue
		}
		if m.Open && !m.Relative {
			switch s.Kept() {
			case classify.Appointment, classify.Plan, classify.Task:
			case classify.Experience:
				m = m.Past()
			default:
				continue
			}
		}
		b.WriteString(text[from:m.End])
		last, _ := utf8.DecodeLastRuneInString(text[:m.End])
		if last < 0x2E80 {
			b.WriteByte(' ')
		}
		day := dayOf(m)
		days = append(days, day)
		b.WriteString("[" + day + "]")
		from = m.End
	}
	return b.String() + text[from:], days
}

// dayOf writes the days of a mention.
func dayOf(m dates.Mention) string {
	first, last := m.Calendar.From, m.Calendar.To.Add(-time.Second)
	switch m.Calendar.Precision {
	case dates.Year:
		return first.Format("2006")
	case dates.Month:
		return first.Format("2006-01")
	case dates.Week, dates.Weekend:
		return first.Format(time.DateOnly) + "/" + last.Format(time.DateOnly)
	default:
		return first.Format(time.DateOnly)
	}
}

// until returns the end of an appointment, a plan or a task: of the last day that the sentence names.
func (r *read) until(s sentence, label classify.Label) (end time.Time) {
	if label != classify.Appointment && label != classify.Plan && label != classify.Task {
		return end
	}
	said := r.t.Dialogue.Messages[s.message].Time
	for _, m := range dates.Find(s.Text(), said, r.t.Location) {
		if m.Calendar.Precision <= dates.Month && m.Calendar.To.After(said) && m.Calendar.To.After(end) {
			end = m.Calendar.To
		}
	}
	if label != classify.Appointment && !strings.ContainsFunc(s.Text(), unicode.IsDigit) && s.Has("dated") < likely {
		return time.Time{}
	}
	return end
}

// importance of a memory by what it is about.
func importance(label classify.Label, slot string) float64 {
	switch {
	case slot == "allergy" || slot == "health":
		return .9
	case label == classify.Request || slot == "name":
		return .8
	case label == classify.Experience:
		return .4
	case label == classify.Fact || label == classify.Relationship || label == classify.Appointment:
		return .6
	default:
		return .5
	}
}

// standing returns why a memory belongs in every answer.
func standing(label classify.Label, slot string) memory.StandingClass {
	switch {
	case slot == "allergy" && label != classify.Relationship:
		return memory.StandingSafety
	case slot == "name" && (label == classify.Fact || label == classify.Request || label == classify.Preference):
		return memory.StandingAddress
	case label == classify.Request:
		return memory.StandingStyle
	default:
		return ""
	}
}

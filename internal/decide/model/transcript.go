package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/llm/answer"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// How much of a message's tool calls a transcript shows. They are context.
const (
	maxToolCalls = 10
	maxToolChars = 200 // of a call's arguments, and of its result
	// maxKnownRunes is how much of a known memory is shown, in characters.
	maxKnownRunes = 400
)

// page is a dialogue as a model sees it.
type page struct {
	text     string // the lines between their marks
	mark     string // in the first and the last line of text
	shown    []bool // by message: it can be cited
	left     int    // messages that are not shown because they did not fit
	messages int    // messages that hold anything
	earlier  int    // messages of the last turns that are shown
	date     string // of the newest message
	language string // what the first user writes, as lexical.Language names it
	users    []string
	known    []decide.Known // numbered in the text: [k0] is the first
	owners   []string       // of the known memories
}

// knows reports whether a known memory is there and is the user's.
func (p *page) knows(number int, user string) bool {
	return number >= 0 && number < len(p.known) && p.owners[number] == user
}

// textOf returns the text of a known memory.
func (p *page) textOf(id string) string {
	for _, k := range p.known {
		if k.Memory.ID == id {
			return k.Memory.Text
		}
	}
	return ""
}

// render writes the known memories, the last turns and the new messages, one line for each. If the messages are longer than max
// characters, long contents are shortened, and then the oldest messages are dropped, but never a user's newest one. The inputs differ in
// the speaker alone: these are the users.
//
// No content can imitate a line or a mark: it is a JSON string, without line ends and bare quotation marks, and the marks contain a hash
// of everything between them, which no author of a part can know. Equal input has equal hashes, so that prompts can be cached and
// compared.
func render(maxChars int, inputs ...decide.Input) (page, error) {
	t := inputs[0].Transcript
	location := t.Location
	if location == nil {
		location = time.UTC
	}
	d := t.Dialogue
	p := page{shown: make([]bool, len(d.Messages)), language: dominantLanguage(t)}
	for _, in := range inputs {
		p.users = append(p.users, in.Speaker)
		if in.Known == nil {
			continue
		}
		known, err := in.Known()
		if err != nil {
			return p, err
		}
		for _, k := range known {
			p.known, p.owners = append(p.known, k), append(p.owners, in.Speaker)
		}
	}
	lines := make([]string, len(d.Messages))
	total := 0
	newest := map[string]int{} // message of each user
	for i, m := range d.Messages {
		p.date = m.Time.In(location).Format("2006-01-02, Monday")
		if lines[i] = line(i, m, p.users, location, 0); lines[i] == "" {
			continue
		}
		p.messages++
		total += utf8.RuneCountInString(lines[i]) + 1
		if slices.ContainsFunc(p.users, func(user string) bool { return spokenBy(m, user) }) {
			newest[m.Speaker] = i
		}
	}
	if total > maxChars {
		for i, m := range d.Messages {
			limit := maxChars / 8
			if at, ok := newest[m.Speaker]; ok && at == i {
				limit = maxChars / (1 + len(newest))
			}
			if lines[i] != "" && utf8.RuneCountInString(lines[i]) > limit {
				lines[i] = line(i, m, p.users, location, limit)
			}
		}
	}
	p.choose(lines, newest, maxChars)
	p.assemble(lines, t.Earlier, location)
	return p, nil
}

// choose marks the lines that are shown: the users' newest, and the newest others that there is room for.
func (p *page) choose(lines []string, newest map[string]int, room int) {
	for _, i := range newest {
		p.shown[i] = true
		room -= utf8.RuneCountInString(lines[i]) + 1
	}
	for i := len(lines) - 1; i >= 0; i-- {
		if lines[i] == "" || p.shown[i] {
			continue
		}
		if room -= utf8.RuneCountInString(lines[i]) + 1; room < 0 {
			break
		}
		p.shown[i] = true
	}
}

// assemble puts the known memories and the shown lines between their marks.
func (p *page) assemble(lines []string, earlier int, location *time.Location) {
	var b strings.Builder
	if len(p.users) == 1 || len(p.known) == 0 {
		b.WriteString("Known memories:\n")
	}
	for i, k := range p.known {
		if len(p.users) > 1 && (i == 0 || p.owners[i] != p.owners[i-1]) {
			fmt.Fprintf(&b, "Known memories of user %s:\n", answer.Quoted(p.owners[i]))
		}
		note := ""
		if k.JustNow {
			note = ", just now"
		}
		fmt.Fprintf(&b, "[k%d] %s, %s%s: %s\n", i, k.Memory.ObservedAt.In(location).Format(time.DateOnly), k.Memory.Kind, note,
			answer.Shortened(k.Memory.Text, maxKnownRunes))
	}
	if len(p.known) == 0 {
		b.WriteString("(none)\n")
	}
	kept := 0
	for i, l := range lines {
		if i == 0 && earlier > 0 {
			b.WriteString("Last turns (already dealt with):\n")
		}
		if i == earlier {
			b.WriteString("New messages:\n")
		}
		if p.shown[i] {
			b.WriteString(l + "\n")
			kept++
			if i < earlier {
				p.earlier++
			}
		}
	}
	if p.left = p.messages - kept; p.left > 0 {
		fmt.Fprintf(&b, "(%d of %d messages, the oldest ones, are left out)\n", p.left, p.messages)
	}
	body := b.String()
	sum := sha256.Sum256([]byte(body))
	p.mark = hex.EncodeToString(sum[:8])
	p.text = fmt.Sprintf("===== record %[1]s begins =====\n%[2]s===== record %[1]s ends =====", p.mark, body)
}

// cutNote says in words what was not read, to be added to a reason; or "".
func (p *page) cutNote() string {
	if p.left == 0 {
		return ""
	}
	return fmt.Sprintf("; %d of %d messages, the oldest ones, were too much for one prompt and were not read", p.left, p.messages)
}

// line is one message, or "" when it holds nothing. A positive limit shortens its content to about so many characters.
func line(i int, m memory.Message, users []string, location *time.Location, limit int) string {
	if strings.TrimSpace(m.Content) == "" && len(m.Tools) == 0 {
		return ""
	}
	content := answer.Quoted(m.Content)
	if limit > 0 {
		content = answer.Shortened(m.Content, limit)
	}
	return fmt.Sprintf("[m%d] %s %s: %s%s", i, m.Time.In(location).Format("2006-01-02 Mon 15:04"), who(m, users), content, tools(m.Tools, limit))
}

// who said a message, in a word that only the role decides, and an id.
func who(m memory.Message, users []string) string {
	name, id := string(m.Role), m.AgentID
	if m.Role == memory.RoleUser {
		name, id = "person", m.Speaker
		if slices.Contains(users, m.Speaker) {
			name = "user"
		}
	}
	if id == "" {
		return name
	}
	return name + " " + answer.Quoted(id)
}

// tools is what a message's calls of tools show: what was asked and what came of it.
func tools(calls []memory.ToolCall, limit int) string {
	if len(calls) == 0 {
		return ""
	}
	show, chars := maxToolCalls, maxToolChars
	if limit > 0 {
		show, chars = 1, maxToolChars/2
	}
	var parts []string
	for _, c := range calls[:min(show, len(calls))] {
		status := ""
		if c.Status != "" {
			status = " " + answer.Quoted(c.Status)
		}
		parts = append(parts, fmt.Sprintf("%s %s gave%s %s", answer.Quoted(c.Name), answer.Shortened(c.Arguments, chars), status,
			answer.Shortened(c.Result, chars)))
	}
	more := ""
	if n := len(calls) - show; n > 0 {
		more = fmt.Sprintf("; and %d more calls", n)
	}
	return " (called " + strings.Join(parts, "; ") + more + ")"
}

func spokenBy(m memory.Message, speaker string) bool {
	return m.Role == memory.RoleUser && m.Speaker == speaker && strings.TrimSpace(m.Content) != ""
}

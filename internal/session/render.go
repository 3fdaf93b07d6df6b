package session

import (
	"context"
	"strings"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/prompt"
)

// indent stands before what continues a message, so that no text can begin a line as a speaker does.
const indent = "  "

// labels name those who speak.
type labels struct {
	wording Wording
	// chosen are names by the id of a user or an agent; those further in front count.
	chosen []map[string]string
	// several people, or agents, take part: then those without a name of their own are told apart by their ids.
	people, agents bool
}

// labels of a conversation.
func (k *Keeper) labels(s *Session, wording Wording, requested map[string]string) labels {
	return labels{
		wording: wording, chosen: []map[string]string{requested, k.options.Labels},
		people: len(s.Participants) > 1, agents: len(s.Agents) > 1,
	}
}

// of names who said a message. It is one line.
func (l labels) of(m *memory.Message) string {
	name, id, several := l.wording.System, "", false
	switch m.Role {
	case memory.RoleUser:
		name, id, several = l.wording.User, m.Speaker, l.people
	case memory.RoleAssistant:
		name, id, several = l.wording.Assistant, m.AgentID, l.agents
	case memory.RoleTool:
		name = l.wording.Tool
	case memory.RoleSystem:
	}
	if id != "" {
		for _, chosen := range l.chosen {
			if label := l.line(chosen[id]); label != "" {
				return label
			}
		}
		if several {
			name += " " + l.line(id)
		}
	}
	return strings.TrimSpace(name)
}

// line makes text harmless that is to be on a line with something else.
func (l labels) line(text string) string {
	return prompt.Line(text, l.wording.Header, l.wording.Footer)
}

// lines make a message harmless, and say who said it. They are nil when there is nothing to say.
func (l labels) lines(m *memory.Message, tools bool) []string {
	lines := prompt.Lines(m.Content, l.wording.Header, l.wording.Footer)
	if tools {
		for _, call := range m.Tools {
			lines = append(lines, l.call(call))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	lines[0] = l.of(m) + ": " + strings.TrimLeft(lines[0], " ")
	for i := range lines[1:] {
		lines[i+1] = indent + lines[i+1]
	}
	return lines
}

// call is a call of a tool on one line: "[Tool search({"q": "x"}): done (success)]".
func (l labels) call(c memory.ToolCall) string {
	var b strings.Builder
	b.WriteString("[" + l.wording.Tool + " " + l.line(c.Name) + "(" + l.line(c.Arguments) + ")")
	if result := l.line(c.Result); result != "" {
		b.WriteString(": " + result)
	}
	if status := l.line(c.Status); status != "" {
		b.WriteString(" (" + status + ")")
	}
	return b.String() + "]"
}

// block writes the summary and the messages between header and footer. It is empty when there is nothing to say.
func (l labels) block(summary *Summary, messages []Message, tools bool) string {
	var said []string
	for i := range messages {
		said = append(said, l.lines(&messages[i].Message, tools)...)
	}
	var before []string
	if summary != nil {
		for _, line := range prompt.Lines(summary.Text, l.wording.Header, l.wording.Footer) {
			before = append(before, "- "+strings.TrimLeft(line, " "))
		}
	}
	if len(said) == 0 && len(before) == 0 {
		return ""
	}
	parts := []string{strings.TrimSpace(l.wording.Header + "\n" + l.wording.Note)}
	if len(before) > 0 {
		parts = append(parts, l.wording.SummaryTitle+"\n"+strings.Join(before, "\n"))
	}
	if len(said) > 0 {
		parts = append(parts, strings.Join(said, "\n"))
	}
	return strings.Join(append(parts, l.wording.Footer), "\n\n")
}

// TextRequest asks for a page as text.
type TextRequest struct {
	User        memory.User // who reads it; the id may be empty
	Page        Page
	NewestFirst bool
	Language    string            // of the wording; "": the user's, else that of the messages
	Labels      map[string]string // names by the id of an agent or a user
}

// RenderText returns a page as text for people: oldest first, with the arguments and results of tool calls.
func (k *Keeper) RenderText(ctx context.Context, r TextRequest) string {
	language, page := r.Language, r.Page
	if language == "" && r.User.ID != "" {
		if settings, err := k.Settings.Get(ctx, r.User); err == nil { // without settings the language of the messages is good enough
			language = settings.Language
		}
	}
	if language == "" {
		language = languageOf(page.Messages)
	}
	l := k.labels(&page.Session, k.options.Wordings.of(language), r.Labels)
	parts := []string{l.wording.TextTitle}
	for i := range page.Messages {
		m := &page.Messages[i]
		if r.NewestFirst {
			m = &page.Messages[len(page.Messages)-1-i]
		}
		if lines := l.lines(&m.Message, true); len(lines) > 0 {
			parts = append(parts, strings.Join(lines, "\n"))
		}
	}
	return strings.Join(parts, "\n\n") + "\n"
}

package session

import (
	"context"
	"strings"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/prompt"
)

// indent starts a continuation line of a message, so that no text can imitate a speaker's line.
const indent = "  "

// labels name the speakers.
type labels struct {
	wording Wording
	// chosen are names by the id of a user or an agent; the first map with an id wins.
	chosen []map[string]string
	// With several people, or agents, those without a name are distinguished by their ids.
	people, agents bool
}

// labels returns the labels of a conversation.
func (k *Service) labels(s *Session, wording Wording, requested map[string]string) labels {
	return labels{
		wording: wording, chosen: []map[string]string{requested, k.options.Labels},
		people: len(s.Participants) > 1, agents: len(s.Agents) > 1,
	}
}

// of names the speaker of a message, on one line.
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

// line escapes text that shares a line with something else.
func (l labels) line(text string) string {
	return prompt.Line(text, l.wording.Header, l.wording.Footer)
}

// lines escapes a message and names its speaker. It returns nil if there is no content.
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

// call describes a tool call on one line: "[Tool search({"q": "x"}): done (success)]".
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

// block renders the summary and the messages between header and footer. It is empty if there is no content.
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
	User        memory.User // the reader; the id may be empty
	Page        Page
	NewestFirst bool
	Language    string            // of the wording; "": the user's, else that of the messages
	Labels      map[string]string // names by the id of an agent or a user
}

// RenderText returns a page as text for people: oldest first, with the arguments and results of tool calls.
func (k *Service) RenderText(ctx context.Context, r TextRequest) string {
	language, page := r.Language, r.Page
	if language == "" && r.User.ID != "" {
		if settings, err := k.Settings.Get(ctx, r.User); err == nil { // on an error use the language of the messages
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

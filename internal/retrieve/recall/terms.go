package recall

import (
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/lang/lexical"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// Indexed reports whether messages of the role are searched.
func Indexed(role memory.Role) bool { return role == memory.RoleUser || role == memory.RoleAssistant }

// Terms lists a message's index terms with repetitions: those of its content, of who said it, and of the day (UTC). They
// are made from the message alone, so that they can be found again when it is deleted.
func Terms(m *memory.Message) []string {
	terms := lexical.Terms(m.Content)
	who := m.Speaker
	if m.Role == memory.RoleAssistant {
		who = m.AgentID
	}
	terms = append(terms, lexical.Terms(who)...)
	day := m.Time.UTC()
	return append(terms, day.Format(time.DateOnly), day.Format("2006-01"))
}

// maxQueryTerms bounds the work of a search; a pasted page is recognised by its first terms.
const maxQueryTerms = 256

// QueryTerms lists a question's terms, each once.
func QueryTerms(text string) []string {
	rest, days := takeDates(text)
	terms := lexical.QueryTerms(rest)
	for _, day := range days {
		if !slices.Contains(terms, day) {
			terms = append(terms, day)
		}
	}
	return terms[:min(maxQueryTerms, len(terms))]
}

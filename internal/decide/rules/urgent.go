package rules

import (
	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// Urgent reports whether the speaker asks in the new messages to remember, to forget or not to save something. It is cheap: what else
// they say is not judged.
func (r *Rules) Urgent(t decide.Transcript) bool {
	lang := dialogueLanguage(t.Dialogue)
	for i, m := range t.Dialogue.Messages {
		if !t.New(i) || m.Role != memory.RoleUser || m.Speaker != t.Speaker {
			continue
		}
		for _, s := range newSource(i, withoutAddress(m.Content)).sentences() {
			spoken, clauses := languageOf(s.piece, lang), s.clauses()
			if _, forgets := r.withdrawal(s, clauses, spoken); forgets {
				return true
			}
			if asked, _, _ := r.request(s, clauses, spoken, 0); asked != 0 {
				return true
			}
		}
	}
	return false
}

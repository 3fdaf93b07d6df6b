package local

import (
	"github.com/memsidecar/memsidecar/internal/decide/classify"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// Contradicts returns a function that reports whether a standing memory takes the place of an older one: people have one form of
// address, and read answers in one language.
func Contradicts(model *classify.Model) func(newer, older *memory.Memory) bool {
	return func(newer, older *memory.Memory) bool {
		slot := slotOf(model, newer)
		return newer.Standing == older.Standing && (slot == "name" || slot == "language") && slot == slotOf(model, older)
	}
}

// slotOf returns what a memory is about. Memories that a model or the bot made have no slot.
func slotOf(model *classify.Model, m *memory.Memory) string {
	if m.Provenance.Slot != "" || m.Provenance.DecidedBy == "rules" {
		return m.Provenance.Slot
	}
	return model.Read(classify.Unit{Message: m.Text, End: len(m.Text), Count: 1}).Slot()
}

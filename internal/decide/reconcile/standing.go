package reconcile

import (
	"slices"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// standingSlots are the slots whose values belong in every answer.
var standingSlots = []struct {
	slot  string
	class memory.StandingClass
}{
	{"form of address", memory.StandingAddress},
	{"name", memory.StandingAddress},
	{"language of answers", memory.StandingStyle},
}

// Standing returns the class of a statement: by the slots that it fills, else the one that it has. What concerns another person's safety has
// none.
func Standing(s memory.Statement) memory.StandingClass {
	r := read(s.Text)
	for _, known := range standingSlots {
		if slices.Contains(r.slots(), known.slot) {
			return known.class
		}
	}
	if s.Standing == memory.StandingSafety && whose(r) != "" {
		return ""
	}
	return s.Standing
}

// Contradicts reports whether a statement takes the place of one that was said before it.
func Contradicts(newer, older string) bool {
	n, o := read(newer), read(older)
	return contradiction(n, o) != "" && !n.similar().Same(o.similar())
}

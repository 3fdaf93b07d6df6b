package retrieve

import (
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// standingAnswer is what was read of the standing memories.
type standingAnswer struct {
	memories []*memory.Memory
	err      error
}

// readStanding reads the standing memories that the query may see. The query's other conditions say what is searched, and do not count.
func (r *Retriever) readStanding(ctx context.Context, q Query) standingAnswer {
	if q.ExcludeStanding || r.options.StandingRunes <= 0 {
		return standingAnswer{}
	}
	filter := vectorstore.Filter{Audience: q.Filter.Audience, AgentID: q.Filter.AgentID, At: q.ReadTime, Observed: q.Filter.Observed}
	list, err := r.Store.Standing(ctx, q.Scope.User(), filter)
	if err != nil {
		return standingAnswer{err: err}
	}
	if !q.ReadTime.IsZero() {
		for i, m := range list {
			list[i] = m.AsOf(q.ReadTime)
		}
	}
	return standingAnswer{memories: r.fitting(list)}
}

// fitting selects of ordered memories those for which there is room, each whole. Of two that say the same, or contradict each other, it is
// the newer one.
func (r *Retriever) fitting(list []*memory.Memory) (kept []*memory.Memory) {
	left := r.options.StandingRunes
	said := map[string]bool{}
	for _, m := range list {
		key := vectorstore.TextKey(m.Text)
		n := utf8.RuneCountInString(memoryLine(m, memory.CleanText(m.Text), time.UTC))
		if n > left || said[key] || slices.ContainsFunc(kept, func(newer *memory.Memory) bool { return r.replaces(newer, m) }) {
			continue
		}
		left -= n
		said[key] = true
		kept = append(kept, m)
	}
	return kept
}

// replaces reports whether a memory contradicts another one of its class that was said before it.
func (r *Retriever) replaces(newer, older *memory.Memory) bool {
	return r.options.Contradicts != nil && newer.Standing == older.Standing && r.options.Contradicts(newer, older)
}

// others are the candidates without the standing memories of the result, and without those that say the same elsewhere.
func (r *Result) others(ranked []Hit) []Hit {
	if len(r.Standing) == 0 {
		return ranked
	}
	said := map[string]bool{}
	for _, m := range r.Standing {
		said[vectorstore.TextKey(m.Text)] = true
	}
	return slices.DeleteFunc(ranked, func(h Hit) bool { return said[vectorstore.TextKey(h.Memory.Text)] })
}

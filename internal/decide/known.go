package decide

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// Limits of the memories that an Extractor gets.
const (
	fewMemories = 40 // so many are passed whole
	knownHits   = 15 // of each search, when there are more
	recentPage  = 100
)

// knownMemories returns the memories that an Extractor gets.
func (c *Considerer) knownMemories(ctx context.Context, job queue.Job, t Transcript, before earlierTurns) ([]Known, error) {
	filter := filterAt(t)
	page, err := c.Memories.List(ctx, job.User(), vectorstore.ListQuery{Filter: filter, Limit: recentPage})
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	var list []Known
	add := func(m *memory.Memory) {
		if !found[m.ID] {
			found[m.ID] = true
			list = append(list, Known{Memory: *m, JustNow: slices.Contains(before.considerations, m.Provenance.ConsiderationID)})
		}
	}
	few := len(page.Memories) <= fewMemories
	for i := range page.Memories {
		m := &page.Memories[i]
		if few || slices.Contains(before.considerations, m.Provenance.ConsiderationID) || m.Standing != "" ||
			m.Kind == memory.KindRequest {
			add(m)
		}
	}
	if !few {
		hits, err := c.nearest(ctx, job.User(), t, filter)
		if err != nil {
			return nil, err
		}
		for _, h := range hits {
			add(h.Memory)
		}
	}
	slices.SortStableFunc(list, func(a, b Known) int { return a.Memory.ObservedAt.Compare(b.Memory.ObservedAt) })
	return list, nil
}

// nearest searches memories by what the speaker said, in the new messages and in the turn before them.
func (c *Considerer) nearest(ctx context.Context, user memory.User, t Transcript, filter vectorstore.Filter) ([]vectorstore.Hit, error) {
	var said []string
	for i, m := range t.Dialogue.Messages {
		if i >= t.Earlier-2 && strings.TrimSpace(m.Content) != "" && (m.Role == memory.RoleUser && m.Speaker == t.Speaker || !t.New(i)) {
			said = append(said, cutRunes(m.Content, 500))
		}
	}
	if len(said) == 0 {
		return nil, nil
	}
	var hits []vectorstore.Hit
	for _, text := range said {
		found, err := c.Memories.SearchKeyword(ctx, user, text, filter, knownHits)
		if err != nil {
			return nil, err
		}
		hits = append(hits, found...)
	}
	embeddings, err := c.Vectors.Embeddings(ctx, said)
	if err != nil {
		return nil, err
	}
	for _, e := range embeddings {
		if len(e.Chunks) == 0 {
			continue // the embedder is unavailable: keywords serve
		}
		found, err := c.Memories.SearchVector(ctx, user, e.Fingerprint, e.Chunks[0], filter, knownHits)
		if errors.Is(err, memory.ErrUnavailable) || ctx.Err() != nil {
			return nil, err
		}
		hits = append(hits, found...)
	}
	return hits, nil
}

// filterAt selects the memories that the dialogue may change: they have its visibility, and were active when it took place. An old
// dialogue may arrive late, when a memory that was current then has ended, such as a trip that was called off.
func filterAt(t Transcript) vectorstore.Filter {
	var at time.Time
	for i, m := range t.Dialogue.Messages {
		if t.New(i) {
			at = latest(at, m.Time)
		}
	}
	return vectorstore.Filter{
		Audience: memory.OnlyVisibility(t.Dialogue.Scope.Channel), At: at, Statuses: []memory.Status{memory.StatusActive},
	}
}

func cutRunes(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most])
	}
	return text
}

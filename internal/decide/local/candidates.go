package local

import (
	"context"
	"errors"
	"slices"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/embed"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

const (
	// nearby limits the results of one search for candidates.
	nearby = 8
	// probed limits the hits of a probe, before its filter.
	probed = 50
	// asked limits the memories that share words with a request to forget.
	asked = 50
)

// spelledAlike is the least spelling similarity worth a comparison: any two texts have some.
const spelledAlike = 0.25

// localProvider's vectors compare spelling, not meaning.
const localProvider = "local"

// near finds current memories with the dialogue's visibility that may say the same as the statement, or contradict it. An untrusted
// statement has no candidates, since it must not change existing memories.
func (e *Extractor) near(ctx context.Context, t decide.Transcript, s memory.Statement, embedding vectorstore.Embedding) ([]decide.Neighbor, error) {
	if s.Quarantine != "" {
		return nil, nil
	}
	user := memory.User{Namespace: t.Dialogue.Scope.Namespace, ID: t.Speaker}
	// An old dialogue may arrive late, when a memory that was current then has ended, such as a trip that was called off.
	filter := vectorstore.Filter{
		Audience: memory.OnlyVisibility(t.Dialogue.Scope.Channel), At: s.ObservedAt,
		Statuses: []memory.Status{memory.StatusActive},
	}
	found := neighborhood{at: map[string]int{}}
	limit := nearby
	if s.Forget {
		limit = asked
	}
	hits, err := e.Memories.SearchKeyword(ctx, user, s.Text, filter, limit)
	if err != nil {
		return nil, err
	}
	for _, h := range hits {
		found.add(h.Memory, 0)
	}
	for _, probe := range e.Reconciler.Probes(s) {
		if hits, err = e.Memories.SearchKeyword(ctx, user, probe.Query, filter, probed); err != nil {
			return nil, err
		}
		kept := 0
		for _, h := range hits {
			if kept < limit && probe.Keep(h.Memory) {
				found.add(h.Memory, 0)
				kept++
			}
		}
	}
	if len(embedding.Chunks) != 1 { // none, or a text too long to be a repetition
		return found.list, nil
	}
	hits, err = e.Memories.SearchVector(ctx, user, embedding.Fingerprint, embedding.Chunks[0], filter, nearby)
	if errors.Is(err, memory.ErrUnavailable) || ctx.Err() != nil {
		return nil, err
	}
	fingerprint, _ := embed.ParseFingerprint(embedding.Fingerprint)
	for _, h := range hits { // no hits while the vectors are being rebuilt: only keywords work then
		switch {
		case fingerprint.Provider != localProvider:
			found.add(h.Memory, h.Score)
		case h.Score >= spelledAlike:
			found.add(h.Memory, 0)
		}
	}
	return found.list, nil
}

// neighborhood is a list without duplicates.
type neighborhood struct {
	list []decide.Neighbor
	at   map[string]int
}

func (n *neighborhood) add(m *memory.Memory, cosine float64) {
	i, ok := n.at[m.ID]
	if !ok {
		i = len(n.list)
		n.at[m.ID] = i
		n.list = append(n.list, decide.Neighbor{Memory: *m})
	}
	n.list[i].Cosine = max(n.list[i].Cosine, cosine)
}

// consistent makes sure that each resolution can be applied after those before it: a target is a candidate of one of the claims so far,
// or an earlier claim that is stored. If the target is a claim that repeats a memory, that memory becomes the target.
func consistent(claims []decide.Claim, resolutions []decide.Resolution) []decide.Resolution {
	list := make([]decide.Resolution, 0, len(claims))
	number, known := map[string]int{}, map[string]bool{}
	for _, claim := range claims {
		for _, n := range claim.Near {
			known[n.Memory.ID] = true
		}
	}
	for i, claim := range claims {
		r := decide.Resolution{Action: decide.TreatAdd}
		if i < len(resolutions) {
			r = resolutions[i]
		}
		var targets []string
		for _, id := range r.Targets {
			k, isClaim := number[id]
			switch {
			case isClaim && list[k].Action == decide.TreatSame:
				targets = append(targets, list[k].Targets[0])
			case isClaim && list[k].Action == decide.TreatOutdated && r.Action == decide.TreatSame:
				r.Action = decide.TreatOutdated
				targets = append(targets, list[k].Targets[0])
			case isClaim && (list[k].Action == decide.TreatAdd || list[k].Action == decide.TreatSupersede), known[id]:
				targets = append(targets, id)
			}
		}
		slices.Sort(targets)
		r.Targets = slices.Compact(targets)
		switch {
		case claim.Statement.Forget:
			r.Action = decide.TreatWithdraw
		case r.Action == decide.TreatWithdraw, r.Action == decide.TreatAdd, claim.Statement.Quarantine != "", len(r.Targets) == 0,
			len(r.Targets) > 1 && r.Action != decide.TreatSupersede:
			r = decide.Resolution{Action: decide.TreatAdd}
		}
		number[claim.MemoryID] = i
		list = append(list, r)
	}
	return list
}

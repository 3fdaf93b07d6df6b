package retrieve

import (
	"math"
	"slices"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/trace"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// Of memories and of messages a trace shows the candidates that were returned, and the next ones, which show what just
// missed: those that are left of leastTraced, and at least missed.
const (
	leastTraced = 10
	missed      = 5
)

// note writes down, in the background, what was retrieved and why. ranked are the candidates of both kinds, best first,
// returned those of them that were.
func (r *Retriever) note(q Query, ranked, returned []Hit, degraded []Degradation, recording *trace.Recording) {
	detail := trace.RetrieveDetail{Query: q.Text, TopK: q.TopK, MinRelevance: q.MinRelevance, ReadTime: q.ReadTime}
	isReturned := map[hitKey]bool{}
	for _, h := range returned {
		isReturned[keyOf(h)] = true
		if h.Memory == nil {
			detail.Messages++
			continue
		}
		detail.Memories++
		r.noteUse(q, []*memory.Memory{h.Memory})
	}
	if !r.Traces.Enabled() {
		return
	}
	var memories, messages []trace.Candidate
	moreMemories, moreMessages := max(missed, leastTraced-detail.Memories), max(missed, leastTraced-detail.Messages)
	for _, h := range ranked {
		list, more := &memories, &moreMemories
		if h.Memory == nil {
			list, more = &messages, &moreMessages
		}
		c := candidateOf(h)
		if c.Returned = isReturned[keyOf(h)]; !c.Returned {
			if *more == 0 {
				continue
			}
			*more--
		}
		*list = append(*list, c)
	}
	detail.Candidates = slices.Concat(memories, messages)
	record := recording.End(nil)
	for _, d := range degraded {
		record.Degraded = append(record.Degraded, trace.Degradation{Component: string(d.Component), Reason: d.Reason})
	}
	record.Retrieve = &detail
	r.Traces.Record(record)
}

// noteUse counts, in the background, that memories were returned.
func (r *Retriever) noteUse(q Query, memories []*memory.Memory) {
	for _, m := range memories {
		r.uses.Add(vectorstore.Use{User: q.Scope.User(), MemoryID: m.ID, Count: 1, At: r.options.Now()})
	}
}

// hitKey names what was hit.
type hitKey struct {
	memory, session string
	position        int64
}

func keyOf(h Hit) hitKey {
	if h.Memory != nil {
		return hitKey{memory: h.Memory.ID}
	}
	return hitKey{session: h.Message.SessionID, position: h.Message.Position}
}

func candidateOf(h Hit) trace.Candidate {
	key := keyOf(h)
	return trace.Candidate{
		MemoryID: key.memory, SessionID: key.session, Position: key.position, Score: rounded(h.Score),
		Relevance: rounded(h.Parts.Relevance), Similarity: rounded(h.Parts.Similarity), Keyword: rounded(h.Parts.Keyword),
		Neighbors: rounded(h.Parts.Neighbors), Recency: rounded(h.Parts.Recency), Importance: rounded(h.Parts.Importance),
	}
}

// rounded has as many digits as anybody reads: with all of them a trace takes twice the space.
func rounded(score float64) float64 { return math.Round(score*1e6) / 1e6 }

package retrieve

import (
	"encoding/json"
	"time"

	"github.com/memsidecar/memsidecar/internal/trace"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// tracedCandidates is how many candidates a trace shows: those returned, and the next ones, which show what just missed.
const tracedCandidates = 20

// record is the trace of a call of Retrieve.
type record struct {
	Query        string        `json:"query"`
	AgentID      string        `json:"agent_id,omitempty"`
	ChannelKind  string        `json:"channel_kind,omitempty"`
	ChannelID    string        `json:"channel_id,omitempty"`
	SessionID    string        `json:"session_id,omitempty"`
	TopK         int           `json:"top_k"`
	MinScore     float64       `json:"min_score"`
	Candidates   []candidate   `json:"candidates"`
	Returned     int           `json:"returned"`
	Degraded     []Degradation `json:"degraded,omitempty"`
	DurationUsec int64         `json:"duration_us"`
}

type candidate struct {
	MemoryID   string  `json:"memory_id"`
	Score      float64 `json:"score"`
	Relevance  float64 `json:"relevance"`
	Similarity float64 `json:"similarity"`
	Keyword    float64 `json:"keyword"`
	Recency    float64 `json:"recency"`
	Importance float64 `json:"importance"`
}

// note writes down, in the background, what was retrieved and why.
func (r *Retriever) note(q Query, ranked []Hit, result Result, started time.Time) {
	user := q.Scope.User()
	for _, h := range result.Hits {
		r.uses.Add(vectorstore.Use{User: user, MemoryID: h.Memory.ID, Count: 1, At: started})
	}
	if !r.Traces.Enabled() {
		return
	}
	rec := record{
		Query: q.Text, AgentID: q.Scope.AgentID, ChannelKind: string(q.Scope.Channel.Kind), ChannelID: q.Scope.Channel.ID,
		SessionID: q.Scope.SessionID, TopK: q.TopK, MinScore: q.MinRelevance, Returned: len(result.Hits),
		Degraded: result.Degraded, DurationUsec: time.Since(started).Microseconds(),
	}
	for _, h := range ranked[:min(tracedCandidates, len(ranked))] {
		rec.Candidates = append(rec.Candidates, candidate{
			h.Memory.ID, h.Score, h.Parts.Relevance, h.Parts.Similarity,
			h.Parts.Keyword, h.Parts.Recency, h.Parts.Importance,
		})
	}
	data, err := json.Marshal(rec)
	if err != nil {
		r.options.Log.Error("recording a trace", "error", err)
		return
	}
	r.Traces.Record(trace.Record{ID: result.TraceID, User: user, Kind: trace.KindRetrieve, At: started, Data: data})
}

// Package recall finds past messages: what a user said, and what the bot answered to that user. Store declares the search,
// Index what the background work needs; recalltest is the conformance suite of both. Worker does the background work.
package recall

import (
	"context"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
)

// Query says among which messages to search. A message is a user's when session.Owner says so.
type Query struct {
	User   memory.User
	Filter Filter
	Limit  int
	// NeighborWeight is how much of its score a good hit of SearchKeyword gives the message after it, 0 to 1; 0 is nothing,
	// also for the others around it (see Hit.Neighbors).
	NeighborWeight float64
}

// Filter says which of a user's messages count. The audience has no default: the zero Filter matches nothing.
type Filter struct {
	Audience   memory.Audience
	AgentID    *string   // nil: all
	SaidFrom   time.Time // inclusive; zero: open
	SaidBefore time.Time // exclusive; zero: open
	// SaidUntil is the last time that counts, zero: open. It holds for the neighbors of hits as well, as the other times do not.
	SaidUntil time.Time
}

// Matches reports whether the filter lets a message through that was said in the channel.
func (f *Filter) Matches(channel memory.Channel, agentID string, saidAt time.Time) bool {
	return f.Audience.Sees(channel) &&
		(f.AgentID == nil || *f.AgentID == agentID) &&
		(f.SaidFrom.IsZero() || !saidAt.Before(f.SaidFrom)) &&
		(f.SaidBefore.IsZero() || saidAt.Before(f.SaidBefore)) &&
		(f.SaidUntil.IsZero() || !saidAt.After(f.SaidUntil))
}

// Hit is a message found by a search.
type Hit struct {
	Message session.Message
	// Score is the message's own.
	Score float64
	// Neighbors is the score that neighbouring messages add, 0 to 1: NeighborWeight times Lift of the best of them. They are among the
	// Lifting best hits of the search, and in the same session, of the same user and within the same filter.
	Neighbors float64
}

// Relevance is both taken together as independent pieces of evidence are.
func (h *Hit) Relevance() float64 { return 1 - (1-h.Score)*(1-h.Neighbors) }

// Neighbors are the messages around a hit, each list oldest first.
type Neighbors struct {
	Before, After []session.Message
	// Later is what holds now instead of a memory that rests on the hit; nil: nothing is known.
	Later *Later
}

// Later is a memory that superseded another.
type Later struct{ MemoryID, Text string }

// Store searches past messages of people and of the bot that are not withheld. All methods are safe for concurrent use and
// touch one user's messages only; the neighbours of those may be another's in the same session. An error wraps
// memory.ErrUnavailable when storage is down.
type Store interface {
	// SearchKeyword returns up to q.Limit messages that share a term with the text or, with q.NeighborWeight, are next to one that does,
	// the most relevant first, equal ones newest first. Scores are 0 to 1. A message is found as soon as it is stored. For very common
	// words only the newest messages are searched.
	SearchKeyword(ctx context.Context, q Query, text string) ([]Hit, error)
	// SearchVector returns up to q.Limit messages, most similar first. Only messages with a vector of this fingerprint are
	// found. Scores are cosine similarities, -1 to 1.
	SearchVector(ctx context.Context, q Query, fingerprint string, vector []float32) ([]Hit, error)
	// Neighbors returns, for each of the user's messages, up to count messages before and after it in its session, and what superseded a
	// memory that rests on it.
	Neighbors(ctx context.Context, q Query, of []session.Message, count int) ([]Neighbors, error)
}

// Index is what the background work does its work on.
type Index interface {
	// IndexNext brings the keyword index of some users nearer to what is stored. more is false when nothing is left to do
	// until messages are added. What is not indexed yet is found all the same.
	IndexNext(ctx context.Context) (more bool, err error)

	// Progress returns the row up to which messages have vectors of this fingerprint. It is 0 for a fingerprint other than the last one
	// used.
	Progress(ctx context.Context, fingerprint string) (row int64, err error)
	// Missing returns at most limit messages after a row that need vectors, and the row up to which it looked; next == after if there are
	// no further messages. The newest keep messages of each user need vectors.
	Missing(ctx context.Context, after int64, keep, limit int) (missing []Missing, next int64, err error)
	// SetVectors stores vectors, notes that all is done up to a row, and drops the vectors of these users' older messages.
	// Messages that are gone are passed over.
	SetVectors(ctx context.Context, fingerprint string, vectors []Vector, upto int64, keep int) error
	// DropOthers deletes up to limit vectors of other fingerprints. more reports whether some remain.
	DropOthers(ctx context.Context, fingerprint string, limit int) (more bool, err error)
}

// Missing is a message without a vector.
type Missing struct {
	Row, UserRow int64
	Namespace    string
	Text         string
}

// Vector is a message's vector.
type Vector struct {
	Row, UserRow int64
	Vector       []float32
}

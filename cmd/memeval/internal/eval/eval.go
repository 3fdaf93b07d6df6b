// Package eval measures memory itself: how much of what was said is found again, and whether what is worth remembering is
// remembered and nothing else. It replays files of known formats through gRPC into a fresh sidecar and compares with what the
// files say. LoCoMo and Gate do that; Report has the numbers.
package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// Sidecar is the one that is measured: fresh, and used for nothing else.
type Sidecar struct {
	Memories memsidecarv1.MemoryServiceClient
	Sessions memsidecarv1.SessionServiceClient
	// WaitIdle waits until the background work on past messages is done, so that every run finds the same.
	WaitIdle func(context.Context) error
	// Progress begins to show how far a part of the work is; step is called total times, then done.
	Progress func(total int, what string) (step, done func())
}

// InputError is a file that cannot be used, in words that say where and why.
type InputError struct {
	File    string
	Line    int // from 1; 0 when it is not known
	Problem string
}

// Error names the file and the line.
func (e *InputError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Problem)
	}
	return fmt.Sprintf("%s: %s", e.File, e.Problem)
}

// considerLimit is how long one dialogue may take. It is not measured, only waited for.
const considerLimit = 2 * time.Minute

// consider hands a dialogue over and waits for its outcome.
func (s *Sidecar) consider(ctx context.Context, scope *memsidecarv1.Scope, messages []*memsidecarv1.Message) (*memsidecarv1.Consideration, error) {
	resp, err := s.Memories.ConsiderMemorizing(ctx, &memsidecarv1.ConsiderMemorizingRequest{
		Scope: scope, Messages: messages, Wait: durationpb.New(considerLimit),
	})
	if err != nil {
		return nil, err
	}
	if why := resp.GetNotRecordedReason(); why != "" {
		return nil, fmt.Errorf("session %s was not recorded: %s", scope.GetSessionId(), why)
	}
	c := resp.GetConsideration()
	switch c.GetState() {
	case memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED, memsidecarv1.ConsiderationState_CONSIDERATION_STATE_SKIPPED:
		return c, nil
	default: // it failed, or is not decided about yet
	}
	why := c.GetError()
	if why == "" {
		why = "it took longer than the server waits (queue.max_wait)"
	}
	return nil, fmt.Errorf("session %s was not decided about: %s", scope.GetSessionId(), why)
}

// retrieved is an answer with how long it took.
type retrieved struct {
	*memsidecarv1.RetrieveResponse
	took time.Duration
}

// depth is how many hits are looked at.
const depth = 10

// retrieve asks as a bot would, but for the number of hits.
func (s *Sidecar) retrieve(ctx context.Context, scope *memsidecarv1.Scope, query string, sources ...memsidecarv1.RetrieveSource) (retrieved, error) {
	topK := int32(depth)
	return s.answer(ctx, &memsidecarv1.RetrieveRequest{Scope: scope, Query: query, TopK: &topK, Sources: sources})
}

// retrieveThen asks what was known at a time: what is over by now, too, but nothing whose place another memory has taken.
func (s *Sidecar) retrieveThen(ctx context.Context, scope *memsidecarv1.Scope, query string, then time.Time) (retrieved, error) {
	topK := int32(10 * depth)
	answer, err := s.answer(ctx, &memsidecarv1.RetrieveRequest{Scope: scope, Query: query, TopK: &topK, IncludeHistory: true})
	if err != nil {
		return answer, err
	}
	held := slices.DeleteFunc(answer.GetMemories(), func(m *memsidecarv1.RetrievedMemory) bool {
		end := m.GetMemory().GetValidEndTime()
		return m.GetMemory().GetState() == memsidecarv1.MemoryState_MEMORY_STATE_SUPERSEDED || end != nil && !end.AsTime().After(then)
	})
	answer.Memories = held[:min(depth, len(held))]
	return answer, nil
}

func (s *Sidecar) answer(ctx context.Context, request *memsidecarv1.RetrieveRequest) (retrieved, error) {
	started := time.Now()
	resp, err := s.Memories.Retrieve(ctx, request)
	took := time.Since(started)
	if err != nil {
		return retrieved{}, err
	}
	// Ties in score are broken by id, and ids differ in every run.
	slices.SortStableFunc(resp.GetMemories(), func(a, b *memsidecarv1.RetrievedMemory) int {
		return cmp.Or(cmp.Compare(b.GetScore(), a.GetScore()), strings.Compare(a.GetMemory().GetText(), b.GetMemory().GetText()))
	})
	return retrieved{resp, took}, nil
}

// errDegraded is an answer that says nothing about the quality of a whole one.
var errDegraded = errors.New("an answer was degraded, so the numbers would not be those of a working sidecar")

func (r retrieved) whole() error {
	if len(r.GetDegraded()) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", errDegraded, r.GetDegraded()[0].GetReason())
}

// direct is the scope of a direct chat.
func direct(namespace, user, agent, session string) *memsidecarv1.Scope {
	return &memsidecarv1.Scope{
		Namespace: namespace, UserId: user, AgentId: agent, SessionId: session,
		ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT,
	}
}

// Package eval measures the quality of memory: how much of the messages is found again, and whether exactly those that are worth
// remembering are remembered. It replays files of known formats over gRPC into a fresh sidecar and compares the results with the files'
// labels. LoCoMo and Gate do that; Report has the numbers.
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

// Sidecar is the measured sidecar: fresh, and not used otherwise.
type Sidecar struct {
	Memories memsidecarv1.MemoryServiceClient
	Sessions memsidecarv1.SessionServiceClient
	Users    memsidecarv1.UserServiceClient
	Admin    memsidecarv1.AdminServiceClient
	// WaitIdle waits until the background work on past messages is done, so that every run finds the same.
	WaitIdle func(context.Context) error
	// Progress starts a progress display. step is called total times, then done.
	Progress func(total int, what string) (step, done func())
}

// InputError is an error in a file, with its place and reason.
type InputError struct {
	File    string
	Line    int // from 1; 0 if unknown
	Problem string
}

// Error names the file and the line.
func (e *InputError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Problem)
	}
	return fmt.Sprintf("%s: %s", e.File, e.Problem)
}

// considerLimit is the timeout of one dialogue. It is not part of the measurement.
const considerLimit = 2 * time.Minute

// consider sends a dialogue and waits for its outcome.
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
	default: // failed or pending
	}
	why := c.GetError()
	if why == "" {
		why = "it took longer than the server waits (queue.max_wait)"
	}
	return nil, fmt.Errorf("session %s was not decided about: %s", scope.GetSessionId(), why)
}

// retrieved is an answer with its duration.
type retrieved struct {
	*memsidecarv1.RetrieveResponse
	took time.Duration
}

// depth is the number of hits that are examined.
const depth = 10

// retrieve retrieves as a bot would, except for the number of hits.
func (s *Sidecar) retrieve(ctx context.Context, scope *memsidecarv1.Scope, query string, sources ...memsidecarv1.RetrieveSource) (retrieved, error) {
	topK := int32(depth)
	return s.answer(ctx, &memsidecarv1.RetrieveRequest{Scope: scope, Query: query, TopK: &topK, Sources: sources})
}

// retrieveThen retrieves as of a time, expired memories included, superseded ones excluded.
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
	// Equal scores are ordered by id, and ids differ in every run.
	slices.SortStableFunc(resp.GetMemories(), func(a, b *memsidecarv1.RetrievedMemory) int {
		return cmp.Or(cmp.Compare(b.GetScore(), a.GetScore()), strings.Compare(a.GetMemory().GetText(), b.GetMemory().GetText()))
	})
	return retrieved{resp, took}, nil
}

// errDegraded is a degraded answer, which says nothing about the normal quality.
var errDegraded = errors.New("an answer was degraded, so the numbers would not be those of a working sidecar")

func (r retrieved) whole() error {
	if len(r.GetDegraded()) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", errDegraded, r.GetDegraded()[0].GetReason())
}

// direct returns the scope of a direct chat.
func direct(namespace, user, agent, session string) *memsidecarv1.Scope {
	return &memsidecarv1.Scope{
		Namespace: namespace, UserId: user, AgentId: agent, SessionId: session,
		ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT,
	}
}

package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// Client has the services that a Target calls.
type Client interface {
	memsidecarv1.MemoryServiceClient
	memsidecarv1.UserServiceClient
	memsidecarv1.AdminServiceClient
}

// Target is a sidecar with generated users.
type Target struct {
	Client    Client
	Namespace string
	// Prefix is the prefix of the users' ids. No other user has it.
	Prefix   string
	Users    int
	Memories int // per user

	forgets atomic.Bool // Forget was called
}

// concurrency is how many users are prepared or removed concurrently.
const concurrency = 8

func (t *Target) scope(user int) *memsidecarv1.Scope {
	return &memsidecarv1.Scope{
		Namespace: t.Namespace, UserId: fmt.Sprintf("%s-%d", t.Prefix, user),
		ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT,
	}
}

// userScope is the scope of a whole user.
func (t *Target) userScope(user int) *memsidecarv1.Scope {
	return &memsidecarv1.Scope{Namespace: t.Namespace, UserId: t.scope(user).GetUserId()}
}

// userOf distributes the calls evenly over the users.
func (t *Target) userOf(n int64) int { return int(n % int64(t.Users)) }

// Prepare stores the users' memories and calls progress after each user. A second call for the same target adds nothing.
func (t *Target) Prepare(ctx context.Context, progress func()) error {
	return t.each(ctx, func(ctx context.Context, user int) error {
		if err := t.importUser(ctx, user); err != nil {
			return fmt.Errorf("storing the memories of %s: %w", t.scope(user).GetUserId(), err)
		}
		progress()
		return nil
	})
}

func (t *Target) importUser(ctx context.Context, user int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := t.Client.ImportMemories(ctx)
	if err != nil {
		return err
	}
	items := []*memsidecarv1.ImportMemoriesRequest{{Item: &memsidecarv1.ImportMemoriesRequest_Scope{Scope: t.scope(user)}}}
	for i := range t.Memories {
		items = append(items, &memsidecarv1.ImportMemoriesRequest{
			Item: &memsidecarv1.ImportMemoriesRequest_Memory{Memory: &memsidecarv1.Memory{Text: Statement(i), Kind: memsidecarv1.MemoryKind_MEMORY_KIND_FACT}},
		})
	}
	for _, item := range items {
		if err := stream.Send(item); err != nil {
			break // CloseAndRecv says why
		}
	}
	_, err = stream.CloseAndRecv()
	return err
}

// Retrieve is a Call that retrieves memories of the users in turn.
func (t *Target) Retrieve(ctx context.Context, n int64) (Answer, error) {
	resp, err := t.Client.Retrieve(ctx, &memsidecarv1.RetrieveRequest{Scope: t.scope(t.userOf(n)), Query: Question(n)})
	return Answer{Degraded: len(resp.GetDegraded()) > 0}, err
}

// Consider is a Call that sends a short dialogue of the users in turn and does not wait for its outcome. It may be refused for users who
// are being forgotten.
func (t *Target) Consider(ctx context.Context, n int64) (Answer, error) {
	_, err := t.Client.ConsiderMemorizing(ctx, &memsidecarv1.ConsiderMemorizingRequest{Scope: t.scope(t.userOf(n)), Messages: Dialogue(n)})
	if status.Code(err) == codes.FailedPrecondition && t.forgets.Load() {
		return Answer{Overtaken: true}, nil
	}
	return Answer{}, err
}

// Dialogue returns a short dialogue that is worth remembering. Equal numbers give equal dialogues.
func Dialogue(n int64) []*memsidecarv1.Message {
	answer := "Thank you for telling me. I will keep that in mind when we talk about it again."
	if n&1 == 1 {
		answer = "谢谢你告诉我，下次聊到的时候我会记得的。"
	}
	return []*memsidecarv1.Message{
		{Role: memsidecarv1.Role_ROLE_USER, Content: said(n)},
		{Role: memsidecarv1.Role_ROLE_ASSISTANT, Content: answer},
	}
}

// Remove forgets the users and returns how many of their memories and considerations were deleted. It continues after an error, to leave
// as little as possible.
func (t *Target) Remove(ctx context.Context) (memories, considerations int64, err error) {
	var m, c atomic.Int64
	errs := make([]error, t.Users)
	err = t.each(ctx, func(ctx context.Context, user int) error {
		resp, err := t.Client.ForgetUser(ctx, &memsidecarv1.ForgetUserRequest{
			Scope: t.userScope(user),
		})
		m.Add(resp.GetMemoryCount())
		c.Add(resp.GetConsiderationCount())
		if err != nil {
			errs[user] = fmt.Errorf("forgetting %s: %w", t.scope(user).GetUserId(), err)
		}
		return nil
	})
	return m.Load(), c.Load(), errors.Join(err, firstOf(errs))
}

// firstOf returns one error for all errors of a kind, which usually have one cause.
func firstOf(errs []error) error {
	var first error
	count := 0
	for _, err := range errs {
		if err == nil {
			continue
		}
		if first == nil {
			first = err
		}
		count++
	}
	if count > 1 {
		return fmt.Errorf("%w (and %d more)", first, count-1)
	}
	return first
}

// each calls fn for every user, some concurrently, until one fails.
func (t *Target) each(ctx context.Context, fn func(ctx context.Context, user int) error) error {
	group, until := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for user := range t.Users {
		if until.Err() != nil {
			break
		}
		group.Go(func() error { return fn(until, user) })
	}
	return cmp.Or(group.Wait(), ctx.Err())
}

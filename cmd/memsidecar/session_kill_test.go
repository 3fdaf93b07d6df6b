//go:build !race && unix

package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// talker is a bot that appends exchanges to a session of its user. After a lost answer it repeats the request with the same ids.
type talker struct {
	scope *memsidecarv1.Scope
	next  int // next exchange
}

func (b *talker) exchange() []*memsidecarv1.Message {
	id := fmt.Sprintf("%s-%d", b.scope.GetUserId(), b.next)
	question, answer := sidecartest.Said("请记住：我的暗号是"+id+"号"), sidecartest.Answered("好的，"+id+"号已经记下了。还有别的吗？")
	question.Id, answer.Id = id+"-q", id+"-a"
	return []*memsidecarv1.Message{question, answer}
}

// talk appends until the process is killed.
func (b *talker) talk(sessions memsidecarv1.SessionServiceClient, sent func()) {
	for {
		_, err := sessions.AppendMessages(context.Background(), &memsidecarv1.AppendMessagesRequest{Scope: b.scope, Messages: b.exchange()})
		if err != nil {
			return
		}
		b.next++
		sent()
	}
}

// TestKilledDuringBackgroundWork repeatedly kills serve with SIGKILL while bots append messages, background work considers, summarises,
// indexes and embeds them, and sessions are deleted. Afterwards every message is stored once and in order, was considered once, and can
// be found. A session is deleted completely or not at all.
func TestKilledDuringBackgroundWork(t *testing.T) {
	t.Parallel()
	const rounds, bots, exchangesARound = 4, 4, 80
	environ := []string{"MEMSIDECAR_SESSION_MEMORIZE_EVERY=3", "MEMSIDECAR_SESSION_MAX_MESSAGES=4"}
	dir := t.TempDir()
	talkers := make([]*talker, bots)
	for i := range talkers {
		talkers[i] = &talker{scope: sidecartest.InSession(sidecartest.Direct(fmt.Sprintf("user%d", i)), fmt.Sprintf("session%d", i))}
	}
	sent := 0
	for round := range rounds {
		p := spawn(t, dir, environ...)
		sessions := memsidecarv1.NewSessionServiceClient(p.conn)
		target := sent + exchangesARound + 11*round // at different points
		reached := make(chan struct{})
		enough := sync.OnceFunc(func() { close(reached) })
		var mu sync.Mutex
		var running sync.WaitGroup
		for _, b := range talkers {
			running.Go(func() {
				b.talk(sessions, func() {
					mu.Lock()
					defer mu.Unlock()
					if sent++; sent >= target {
						enough()
					}
				})
			})
		}
		running.Go(func() { deleteAgain(sessions) })
		<-reached
		p.kill(t)
		running.Wait()
	}

	p := spawn(t, dir, environ...)
	sessions := memsidecarv1.NewSessionServiceClient(p.conn)
	ctx := t.Context()
	for _, b := range talkers {
		// The last exchange may be stored without an answer. Repeating it stores nothing more.
		if _, err := sessions.AppendMessages(ctx, &memsidecarv1.AppendMessagesRequest{Scope: b.scope, Messages: b.exchange()}); err != nil {
			t.Fatal(err)
		}
		b.next++
		if _, err := p.ConsiderMemorizing(ctx, &memsidecarv1.ConsiderMemorizingRequest{Scope: b.scope, Wait: sidecartest.LongWait()}); err != nil {
			t.Fatal(err)
		}
		b.finish(ctx, t, p)
		b.check(ctx, t, p, sessions)
	}
	if got, err := sessions.GetSession(ctx, &memsidecarv1.GetSessionRequest{Scope: sidecartest.InSession(sidecartest.Direct("victim"), "doomed")}); err == nil {
		if n := got.GetSession().GetMessageCount(); n == 0 || n%doomedMessages != 0 {
			t.Errorf("the session that was being deleted has %d messages", n)
		}
	} else if status.Code(err) != codes.NotFound {
		t.Error(err)
	}
	t.Logf("%d exchanges after %d kills", sent, rounds)
}

const doomedMessages = 100

// deleteAgain repeatedly fills and deletes a session until the process is killed.
func deleteAgain(sessions memsidecarv1.SessionServiceClient) {
	scope := sidecartest.InSession(sidecartest.Direct("victim"), "doomed")
	var messages []*memsidecarv1.Message
	for i := range doomedMessages {
		messages = append(messages, sidecartest.Said(fmt.Sprintf("第%d句话，过一会儿就没有了", i)))
	}
	for {
		if _, err := sessions.AppendMessages(context.Background(), &memsidecarv1.AppendMessagesRequest{Scope: scope, Messages: messages}); err != nil {
			return
		}
		if _, err := sessions.DeleteSession(context.Background(), &memsidecarv1.DeleteSessionRequest{Scope: scope}); err != nil {
			return
		}
	}
}

// finish waits until none of the user's messages is pending.
func (b *talker) finish(ctx context.Context, t *testing.T, p *process) {
	t.Helper()
	sidecartest.Eventually(t, "all is considered", func() bool {
		waiting := sidecartest.Must(p.ListConsiderations(ctx, &memsidecarv1.ListConsiderationsRequest{Scope: b.scope, States: []memsidecarv1.ConsiderationState{
			memsidecarv1.ConsiderationState_CONSIDERATION_STATE_PENDING, memsidecarv1.ConsiderationState_CONSIDERATION_STATE_RUNNING,
		}}))(t)
		return len(waiting.GetConsiderations()) == 0
	})
}

// check checks all results of the user's session.
func (b *talker) check(ctx context.Context, t *testing.T, p *process, sessions memsidecarv1.SessionServiceClient) {
	t.Helper()
	user := b.scope.GetUserId()
	request := &memsidecarv1.ListMessagesRequest{Scope: b.scope, PageSize: 1000}
	i := 0
	for {
		page, err := sessions.ListMessages(ctx, request)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page.GetMessages() {
			if want := fmt.Sprintf("%s-%d-%s", user, i/2, []string{"q", "a"}[i%2]); m.GetMessage().GetId() != want {
				t.Fatalf("message %d is %s, want %s", i, m.GetMessage().GetId(), want)
			}
			if m.GetConsiderationId() == "" {
				t.Errorf("%s was not considered", m.GetMessage().GetId())
			}
			i++
		}
		if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
			break
		}
	}
	if i != 2*b.next {
		t.Errorf("%s has %d messages of %d", user, i, 2*b.next)
	}
	found := map[string]int32{}
	for _, m := range sidecartest.AllMemories(ctx, t, p, b.scope) {
		_, id, _ := strings.Cut(m.GetText(), "暗号是")
		found[strings.TrimSuffix(id, "号")] += m.GetMentionCount()
	}
	for n := range b.next {
		if id := fmt.Sprintf("%s-%d", user, n); found[id] != 1 {
			t.Errorf("%s was remembered %d times", id, found[id])
		}
	}
	for _, n := range []int{0, b.next / 2, b.next - 1} {
		id := fmt.Sprintf("%s-%d号", user, n)
		resp, err := p.Retrieve(ctx, &memsidecarv1.RetrieveRequest{
			Scope: b.scope, Query: "暗号 " + id, Sources: []memsidecarv1.RetrieveSource{memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MESSAGES},
		})
		if err != nil {
			t.Fatal(err)
		}
		if hits := resp.GetMessages(); len(hits) == 0 || !strings.Contains(hits[0].GetMessage().GetMessage().GetContent(), id) {
			t.Errorf("asking for %s recalls %v", id, hits)
		}
	}
	sidecartest.Eventually(t, user+" has a summary of what the window dropped", func() bool {
		s := sidecartest.Must(sessions.GetContext(ctx, &memsidecarv1.GetContextRequest{Scope: b.scope}))(t).GetSummary()
		return s.GetLastPosition() >= int64(2*b.next-12) && s.GetText() != ""
	})
}

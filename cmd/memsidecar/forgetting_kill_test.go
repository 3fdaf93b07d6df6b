//go:build !race && unix

package main

import (
	"context"
	"fmt"
	"testing"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestKilledForgetIsCompleted: A process is killed while it forgets a user. The next call completes the erasure.
func TestKilledForgetIsCompleted(t *testing.T) {
	t.Parallel()
	const many = 3000
	dir := t.TempDir()
	user := "alice-" + sidecartest.Marks
	p := spawn(t, dir)
	sessions := memsidecarv1.NewSessionServiceClient(p.conn)
	place := sidecartest.InSession(sidecartest.Direct(user), "long-"+sidecartest.Marks)
	for range many / 500 {
		var messages []*memsidecarv1.Message
		for i := range 500 {
			messages = append(messages, sidecartest.Said(fmt.Sprintf("%s %x", sidecartest.Marks, i*7919)))
		}
		sidecartest.Must(sessions.AppendMessages(t.Context(), &memsidecarv1.AppendMessagesRequest{Scope: place, Messages: messages}))(t)
	}
	sidecartest.Must(
		p.CreateMemory(
			t.Context(),
			&memsidecarv1.CreateMemoryRequest{Scope: sidecartest.Direct(user), Memory: &memsidecarv1.Memory{Text: sidecartest.Marks + " likes tea"}},
		),
	)(
		t,
	)
	for _, left := range []int64{many, many - 1500} { // killed when fewer messages than this are left
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = p.ForgetUser(context.Background(), &memsidecarv1.ForgetUserRequest{Scope: sidecartest.WithoutChannel(user)})
		}()
		sidecartest.Eventually(t, "forgetting has begun", func() bool {
			got, err := sessions.ListSessions(t.Context(), &memsidecarv1.ListSessionsRequest{Scope: sidecartest.Direct(user)})
			return err == nil && (len(got.GetSessions()) == 0 || got.GetSessions()[0].GetMessageCount() < left)
		})
		p.kill(t)
		<-ended
		p = spawn(t, dir)
		sessions = memsidecarv1.NewSessionServiceClient(p.conn)
	}
	receipt := sidecartest.Must(p.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: sidecartest.WithoutChannel(user)}))(t)
	if !receipt.GetPurgedFromDisk() {
		t.Errorf("the receipt is %v", receipt)
	}
	for _, form := range sidecartest.Forms() {
		if files := sidecartest.FilesWith(t, dir, form); len(files) > 0 {
			t.Errorf("%q is in %q: %s", form, files, sidecartest.TablesWith(t, dir, form))
		}
	}
}

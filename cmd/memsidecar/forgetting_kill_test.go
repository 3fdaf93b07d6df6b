//go:build !race && unix

package main

import (
	"context"
	"fmt"
	"testing"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// TestForgetKilled: a process that is killed in the middle of forgetting leaves what the next call completes.
func TestForgetKilled(t *testing.T) {
	const many = 3000
	dir := t.TempDir()
	user := "alice-" + marks
	p := spawn(t, dir)
	sessions := memsidecarv1.NewSessionServiceClient(p.conn)
	place := within(direct(user), "long-"+marks)
	for range many / 500 {
		var messages []*memsidecarv1.Message
		for i := range 500 {
			messages = append(messages, said(fmt.Sprintf("%s %x", marks, i*7919)))
		}
		must(sessions.AppendMessages(t.Context(), &memsidecarv1.AppendMessagesRequest{Scope: place, Messages: messages}))(t)
	}
	must(p.CreateMemory(t.Context(), &memsidecarv1.CreateMemoryRequest{Scope: direct(user), Memory: &memsidecarv1.Memory{Text: marks + " likes tea"}}))(t)
	for _, left := range []int64{many, many - 1500} { // killed when fewer messages than that are left
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = p.ForgetUser(context.Background(), &memsidecarv1.ForgetUserRequest{Scope: anywhere(user)})
		}()
		eventually(t, "forgetting has begun", func() bool {
			got, err := sessions.ListSessions(t.Context(), &memsidecarv1.ListSessionsRequest{Scope: direct(user)})
			return err == nil && (len(got.GetSessions()) == 0 || got.GetSessions()[0].GetMessageCount() < left)
		})
		p.kill(t)
		<-ended
		p = spawn(t, dir)
		sessions = memsidecarv1.NewSessionServiceClient(p.conn)
	}
	receipt := must(p.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: anywhere(user)}))(t)
	if !receipt.GetPurgedFromDisk() {
		t.Errorf("the receipt is %v", receipt)
	}
	for _, form := range forms() {
		if files := holdsBytes(t, dir, form); len(files) > 0 {
			t.Errorf("%q is in %q: %s", form, files, tablesWith(t, dir, form))
		}
	}
}

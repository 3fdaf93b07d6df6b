package client_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/memsidecar/memsidecar/client"
	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// sidecar starts a sidecar for an example, and returns its address, such as "127.0.0.1:7420".
func sidecar() (target string, stop func()) {
	s, err := sidecartest.LaunchProcess(sidecartest.ProcessOptions{})
	if err != nil {
		panic(err)
	}
	return s.Addr, func() { _ = s.Stop() }
}

// A bot recalls before it answers, and remembers afterwards. Neither returns an error.
func Example_bot() {
	target, stop := sidecar()
	defer stop()

	memory, err := client.Dial(target, client.WithRecallTimeout(30*time.Second), client.WithRememberTimeout(30*time.Second))
	if err != nil {
		panic(err) // not a valid address
	}
	defer func() { _ = memory.Close() }()

	ctx, alice := context.Background(), client.Direct("alice")
	turn := func(said string) {
		recalled := memory.Recall(ctx, alice, said)
		answer := answerOf("You are a cook.\n"+recalled.PromptContext, said) // your model
		fmt.Println(answer)
		memory.Remember(ctx, alice, client.Said(said), client.Answered(answer))
	}
	turn("Hi! I am allergic to peanuts. What can I cook tonight?")
	settle(ctx, memory, alice) // only for this example; a bot does not wait
	turn("Can I have a peanut cookie?")
	// Output:
	// How about a lemon risotto?
	// Rather not: you are allergic to peanuts.
}

// answerOf is a placeholder for a language model.
func answerOf(prompt, _ string) string {
	if strings.Contains(prompt, "allergic to peanuts") {
		return "Rather not: you are allergic to peanuts."
	}
	return "How about a lemon risotto?"
}

// settle returns when all dialogues have been considered.
func settle(ctx context.Context, memory *client.Client, scope *memsidecarv1.Scope) {
	ctx, cancel := context.WithTimeout(ctx, sidecartest.Timeout)
	defer cancel()
	for pending := true; pending; {
		list, err := memory.Memory.ListConsiderations(ctx, &memsidecarv1.ListConsiderationsRequest{
			Scope: scope, States: []memsidecarv1.ConsiderationState{
				memsidecarv1.ConsiderationState_CONSIDERATION_STATE_PENDING, memsidecarv1.ConsiderationState_CONSIDERATION_STATE_RUNNING,
			},
		})
		if err != nil {
			panic(err)
		}
		pending = len(list.GetConsiderations()) > 0
	}
}

// Without a sidecar the bot still answers, and gets the reason.
func ExampleClient_Recall_withoutSidecar() {
	memory, err := client.Dial("unix:///nowhere/memsidecar.sock",
		client.WithRecallTimeout(30*time.Second),
		client.WithOnError(func(_ context.Context, call string, _ error) { fmt.Println(call, "had to do without") }))
	if err != nil {
		panic(err)
	}
	defer func() { _ = memory.Close() }()

	recalled := memory.Recall(context.Background(), client.Direct("alice"), "What can I cook?")
	fmt.Printf("%q, and there is a reason: %t\n", recalled.PromptContext, recalled.Reason != "")
	// Output:
	// Recall had to do without
	// "", and there is a reason: true
}

// The generated clients give access to all services.
func ExampleServices() {
	target, stop := sidecar()
	defer stop()
	memory, err := client.Dial(target)
	if err != nil {
		panic(err)
	}
	defer func() { _ = memory.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	considered, err := memory.Memory.ConsiderMemorizing(ctx, &memsidecarv1.ConsiderMemorizingRequest{
		Scope: client.Direct("bob"), Messages: []*memsidecarv1.Message{client.Said("I have a cat called Miso.")},
		Wait: durationpb.New(30 * time.Second),
	})
	if err != nil {
		panic(err)
	}
	for _, change := range considered.GetConsideration().GetChanges() {
		fmt.Println(change.GetText())
	}
	notebook, err := memory.Digests.GetNotebook(ctx, &memsidecarv1.GetNotebookRequest{Scope: client.Direct("bob")})
	if err != nil {
		panic(err)
	}
	fmt.Println(notebook.GetNotebook().GetEntryCount(), "in the notebook")
	// Output:
	// I have a cat called Miso.
	// 1 in the notebook
}

package server_test

import (
	"testing"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestGroupCostsOneCall: A model reads what several people said in a group in one call, and each is remembered with their own words.
func TestGroupCostsOneCall(t *testing.T) {
	t.Parallel()
	p := providertest.Start(t, 8)
	r := sidecartest.Serve(t, append(sidecartest.UseProvider("openai", p), "decision.provider=rules", "queue.workers=1")...)
	p.Extraction(`{"ops":[{"op":"add","text":"The user bought a kayak.","from":["m0"],"user":"ann"},
		{"op":"add","text":"The user's daughter is called Dora.","about":"user's daughter","from":["m1"],"user":"ben"},
		{"op":"add","text":"The user moved to Oslo in March.","from":["m2"],"user":"eve"}]}`)
	words := map[string]string{"ann": "I bought a kayak", "ben": "my daughter is called Dora", "eve": "I moved to Oslo in March"}
	var messages []*memsidecarv1.Message
	for _, person := range []string{"ann", "ben", "eve"} {
		said := sidecartest.Said(words[person])
		said.SpeakerId = person
		messages = append(messages, said)
	}
	asked := len(p.Requests(providertest.Summary))
	r.Consider(t, sidecartest.Group("ann", "boat club"), messages...)
	for person, text := range words {
		scope := sidecartest.Group(person, "boat club")
		sidecartest.Eventually(t, person+" is remembered", func() bool { return len(r.Memories(t, scope)) > 0 })
		for _, m := range r.Memories(t, scope) {
			if m.GetProvenance().GetSpeakerId() != person || m.GetProvenance().GetQuote() != text {
				t.Errorf("%s: %s", person, m)
			}
		}
	}
	if got := len(p.Requests(providertest.Summary)) - asked; got != 1 {
		t.Errorf("%d calls, want 1", got)
	}
}

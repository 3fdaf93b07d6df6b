package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// as is the scope with an agent.
func as(agent string, scope *memsidecarv1.Scope) *memsidecarv1.Scope {
	scope = proto.CloneOf(scope)
	scope.AgentId = agent
	return scope
}

// personaCalls are the calls that can be limited to one persona. Each returns what it shows.
func personaCalls() map[string]func(t *testing.T, r *sidecartest.Sidecar, scope *memsidecarv1.Scope, agent memsidecarv1.AgentFilter) (fmt.Stringer, error) {
	top, neighbors, zero := proto.Int32(100), proto.Int32(20), proto.Float64(0)
	return map[string]func(t *testing.T, r *sidecartest.Sidecar, scope *memsidecarv1.Scope, agent memsidecarv1.AgentFilter) (fmt.Stringer, error){
		"Retrieve": func(t *testing.T, r *sidecartest.Sidecar, scope *memsidecarv1.Scope, agent memsidecarv1.AgentFilter) (fmt.Stringer, error) {
			return r.Retrieve(
				t.Context(),
				&memsidecarv1.RetrieveRequest{Scope: scope, Query: "papaya 榴莲 kumquat", TopK: top, MinRelevance: zero, Agent: agent},
			)
		},
		"Retrieve messages": func(t *testing.T, r *sidecartest.Sidecar, scope *memsidecarv1.Scope, agent memsidecarv1.AgentFilter) (fmt.Stringer, error) {
			return r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{
				Scope: scope, Query: "papaya 榴莲 kumquat", TopK: top, MinRelevance: zero, Agent: agent, NeighborCount: neighbors,
				Sources: []memsidecarv1.RetrieveSource{memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MESSAGES},
			})
		},
		"GetDigest": func(t *testing.T, r *sidecartest.Sidecar, scope *memsidecarv1.Scope, agent memsidecarv1.AgentFilter) (fmt.Stringer, error) {
			return r.Digests().GetDigest(t.Context(), &memsidecarv1.GetDigestRequest{Scope: scope, Agent: agent})
		},
		"ListDigests": func(t *testing.T, r *sidecartest.Sidecar, scope *memsidecarv1.Scope, agent memsidecarv1.AgentFilter) (fmt.Stringer, error) {
			return r.Digests().ListDigests(t.Context(), &memsidecarv1.ListDigestsRequest{Scope: scope, Agent: agent})
		},
		"SummarizeDay": func(t *testing.T, r *sidecartest.Sidecar, scope *memsidecarv1.Scope, agent memsidecarv1.AgentFilter) (fmt.Stringer, error) {
			return r.Digests().SummarizeDay(t.Context(), &memsidecarv1.SummarizeDayRequest{Scope: scope, Agent: agent})
		},
		"GetNotebook": func(t *testing.T, r *sidecartest.Sidecar, scope *memsidecarv1.Scope, agent memsidecarv1.AgentFilter) (fmt.Stringer, error) {
			return r.Digests().GetNotebook(t.Context(), &memsidecarv1.GetNotebookRequest{Scope: scope, Agent: agent})
		},
	}
}

const (
	byConfiguration = memsidecarv1.AgentFilter_AGENT_FILTER_UNSPECIFIED
	byAny           = memsidecarv1.AgentFilter_AGENT_FILTER_ANY
	byThis          = memsidecarv1.AgentFilter_AGENT_FILTER_THIS
)

// TestAgentsSeeTheirOwnOrAllMemories: A bot with several agents shows each of them its own memories or all memories of the
// user, as the request or the configuration says.
func TestAgentsSeeTheirOwnOrAllMemories(t *testing.T) {
	t.Parallel()
	fruits := map[string]string{"cook": "papaya", "doctor": "榴莲", "": "kumquat"}
	words := map[string]string{"cook": "My favorite fruit is ", "doctor": "I am allergic to ", "": "I love the smell of "}
	for _, configured := range []string{"any", "this"} {
		t.Run(configured, func(t *testing.T) {
			r := sidecartest.Serve(t, "retrieval.agent="+configured, "digest.interval=0")
			scope := sidecartest.InSession(sidecartest.Direct("vera"), "s") // one conversation with all of them
			for agent, fruit := range fruits {
				spoken := as(agent, scope)
				r.AppendTo(
					t,
					spoken,
					sidecartest.Said("What about "+fruit+"? The build fails with a "+fruit+" error, how do I fix it?"),
					sidecartest.Answered("To fix the "+fruit+" error, set PIP="+fruit+"."),
				)
				r.Consider(t, spoken, sidecartest.Said(words[agent]+fruit+"."))
			}
			for name, call := range personaCalls() {
				for _, test := range []struct {
					agent  string
					filter memsidecarv1.AgentFilter
					want   []string
				}{
					{"cook", byThis, []string{"cook"}},
					{"doctor", byThis, []string{"doctor"}},
					{"nobody", byThis, nil},
					{"cook", byAny, []string{"cook", "doctor", ""}},
					{"", byAny, []string{"cook", "doctor", ""}},
					{"", byConfiguration, []string{"cook", "doctor", ""}},
					{"cook", byConfiguration, map[string][]string{"any": {"cook", "doctor", ""}, "this": {"cook"}}[configured]},
				} {
					answer, err := call(t, r, as(test.agent, sidecartest.Direct("vera")), test.filter)
					if err != nil {
						t.Fatal(name, err)
					}
					for agent, fruit := range fruits {
						if got, want := strings.Contains(answer.String(), fruit), slices.Contains(test.want, agent); got != want {
							t.Errorf(
								"%s as %q with %s shows what %q knows: %v, want %v\n%.1500s",
								name,
								test.agent,
								test.filter,
								agent,
								got,
								want,
								answer,
							)
						}
					}
				}
				_, err := call(t, r, sidecartest.Direct("vera"), byThis)
				sidecartest.WantInvalid(t, err, "scope.agent_id")
				_, err = call(t, r, as("cook", sidecartest.Direct("vera")), 9)
				sidecartest.WantInvalid(t, err, "agent")
			}
			// A digest's finding belongs to the persona that it was said to. So does the memory made of it.
			for _, m := range r.Memories(t, sidecartest.Direct("vera")) {
				if fruit := fruits[m.GetScope().GetAgentId()]; !strings.Contains(m.GetText(), fruit) {
					t.Errorf("%q learned %q", m.GetScope().GetAgentId(), m.GetText())
				}
			}
			// Conversations are limited to a persona only on request. The exception is the window of a scope without a session: nothing
			// says that the personas are in one room.
			for filter, want := range map[memsidecarv1.AgentFilter]int{byConfiguration: 9, byAny: 9, byThis: 3} {
				listed := sidecartest.Must(
					r.Sessions().ListMessages(t.Context(), &memsidecarv1.ListMessagesRequest{Scope: as("cook", scope), Agent: filter}),
				)(
					t,
				)
				window := sidecartest.Must(
					r.Sessions().
						GetContext(
							t.Context(),
							&memsidecarv1.GetContextRequest{Scope: as("cook", scope), Agent: filter, MaxMessages: proto.Int32(100), MaxTurns: proto.Int32(100)},
						),
				)(
					t,
				)
				inWindow := want
				if filter == byConfiguration && scope.GetSessionId() == "" {
					inWindow = 3
				}
				if len(listed.GetMessages()) != want || len(window.GetMessages()) != inWindow {
					t.Errorf(
						"with %s there are %d messages and %d in the window, want %d and %d",
						filter,
						len(listed.GetMessages()),
						len(window.GetMessages()),
						want,
						inWindow,
					)
				}
			}
		})
	}
}

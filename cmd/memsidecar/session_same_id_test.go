package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// TestSameSessionIDOfSeveralUsers: everybody's bot calls the first conversation "1". Each user, and each group, has a session of its
// own under that id, in every call that names one.
func TestSameSessionIDOfSeveralUsers(t *testing.T) {
	r := serve(t, "session.memorize_every=0", "digest.interval=0")
	ctx, sessions := t.Context(), r.sessions()
	at := func(scope *memsidecarv1.Scope) *memsidecarv1.Scope { return within(scope, "1") }
	places := map[string]*memsidecarv1.Scope{
		"pear": at(direct("ada")), "plum": at(direct("bob")), "fig": at(group("ada", "x")), "kiwi": at(group("bob", "y")), "lime": at(&memsidecarv1.Scope{UserId: "cleo"}),
	}
	for fruit, scope := range places {
		scope.AgentId = "bot"
		r.appendTo(t, scope, said("I want a "+fruit), answered("one "+fruit+" for you"))
		resp := must(r.ConsiderMemorizing(ctx, &memsidecarv1.ConsiderMemorizingRequest{
			Scope: scope, Messages: []*memsidecarv1.Message{said("My favourite fruit is the " + fruit + ".")}, Wait: patiently(),
		}))(t)
		if resp.GetNotRecorded() != 0 || resp.GetConsideration().GetScope().GetSessionId() != "1" {
			t.Errorf("%s: %s", fruit, resp)
		}
		r.putItems(t, &memsidecarv1.PutItemsRequest{Scope: scope, Items: []*memsidecarv1.RegistryItem{{Key: "k-" + fruit, Title: fruit}}})
	}
	for fruit, scope := range places {
		answers := map[string]fmt.Stringer{
			"GetContext":    must(sessions.GetContext(ctx, &memsidecarv1.GetContextRequest{Scope: scope}))(t),
			"ListMessages":  must(sessions.ListMessages(ctx, &memsidecarv1.ListMessagesRequest{Scope: scope}))(t),
			"GetSession":    must(sessions.GetSession(ctx, &memsidecarv1.GetSessionRequest{Scope: scope}))(t),
			"GetTopics":     must(sessions.GetTopics(ctx, &memsidecarv1.GetTopicsRequest{Scope: scope}))(t),
			"UpdateSession": must(sessions.UpdateSession(ctx, &memsidecarv1.UpdateSessionRequest{Scope: scope, Session: &memsidecarv1.Session{Title: "about the " + fruit}}))(t),
			"SwitchSession": must(sessions.SwitchSession(ctx, &memsidecarv1.SwitchSessionRequest{Scope: scope}))(t),
			"ListSessions":  must(sessions.ListSessions(ctx, &memsidecarv1.ListSessionsRequest{Scope: within(scope, "")}))(t),
			"Retrieve": must(r.Retrieve(ctx, &memsidecarv1.RetrieveRequest{
				Scope: scope, Query: "I want a fruit", MinRelevance: new(0.0),
				Sources: []memsidecarv1.RetrieveSource{memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MESSAGES},
			}))(t),
		}
		about, exported := r.exportSession(t, scope)
		for i, m := range exported {
			answers[fmt.Sprint("ExportSession ", i)] = m
		}
		answers["ExportSession"] = about
		if got := r.selected(t, scope, "1"); got != "k-"+fruit {
			t.Errorf("%s selects %q", fruit, got)
		}
		own := map[string]bool{fruit: true}
		if scope.GetUserId() == "ada" && scope.GetChannelKind() == memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT {
			own["fig"] = true // who talks to the bot alone sees what was said in groups
		}
		if scope.GetUserId() == "bob" && scope.GetChannelKind() == memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT {
			own["kiwi"] = true
		}
		for call, answer := range answers {
			for other := range places {
				if (!own[other] || call != "Retrieve" && call != "ListSessions" && other != fruit) && strings.Contains(answer.String(), other) {
					t.Errorf("%s for %s tells of %s: %s", call, fruit, other, answer)
				}
			}
		}
		if got := r.history(t, scope); len(got) != 3 {
			t.Errorf("the session of %s has %q", fruit, got)
		}
	}

	// The same user from another kind of channel: that stays an error, or a type.
	_, err := sessions.AppendMessages(ctx, &memsidecarv1.AppendMessagesRequest{Scope: at(&memsidecarv1.Scope{UserId: "ada"}), Messages: []*memsidecarv1.Message{said("x")}})
	wantCode(t, err, codes.FailedPrecondition)
	// Nobody else reads it, whatever is named.
	for _, scope := range []*memsidecarv1.Scope{at(direct("eve")), at(group("eve", "z")), at(&memsidecarv1.Scope{UserId: "eve"}), at(&memsidecarv1.Scope{})} {
		_, err := sessions.GetSession(ctx, &memsidecarv1.GetSessionRequest{Scope: scope})
		wantCode(t, err, codes.NotFound)
	}

	// Deleting and forgetting take one of them.
	must(sessions.DeleteSession(ctx, &memsidecarv1.DeleteSessionRequest{Scope: places["pear"]}))(t)
	must(r.ForgetUser(ctx, &memsidecarv1.ForgetUserRequest{Scope: &memsidecarv1.Scope{UserId: "cleo"}}))(t)
	for fruit, want := range map[string]int{"plum": 3, "fig": 3, "kiwi": 3} {
		if got := r.history(t, places[fruit]); len(got) != want {
			t.Errorf("the session of %s has %q", fruit, got)
		}
		if got := r.selected(t, places[fruit], "1"); got != "k-"+fruit {
			t.Errorf("%s selects %q", fruit, got)
		}
		traces := must(memsidecarv1.NewTraceServiceClient(r.conn).ListTraces(ctx, &memsidecarv1.ListTracesRequest{Scope: places[fruit]}))(t).GetTraces()
		if len(traces) == 0 {
			t.Errorf("the traces of %s are gone", fruit)
		}
	}
	r.appendTo(t, places["pear"], said("again"))
	if got := r.history(t, places["pear"]); !slices.Equal(got, []string{"again"}) {
		t.Errorf("after it was deleted, the session has %q", got)
	}
}

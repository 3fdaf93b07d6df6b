package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestSameSessionIDOfSeveralUsers: Many bots call their first session "1". Each user and each group has its own session under that id, in
// every call.
func TestSameSessionIDOfSeveralUsers(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "session.memorize_every=0", "digest.interval=0")
	ctx, sessions := t.Context(), r.Sessions()
	at := func(scope *memsidecarv1.Scope) *memsidecarv1.Scope { return sidecartest.InSession(scope, "1") }
	places := map[string]*memsidecarv1.Scope{
		"pear": at(
			sidecartest.Direct("ada"),
		), "plum": at(sidecartest.Direct("bob")), "fig": at(sidecartest.Group("ada", "x")), "kiwi": at(sidecartest.Group("bob",
			"y")), "lime": at(&memsidecarv1.Scope{UserId: "cleo"}),
	}
	for fruit, scope := range places {
		scope.AgentId = "bot"
		r.AppendTo(t, scope, sidecartest.Said("I want a "+fruit), sidecartest.Answered("one "+fruit+" for you"))
		resp := sidecartest.Must(r.ConsiderMemorizing(ctx, &memsidecarv1.ConsiderMemorizingRequest{
			Scope: scope, Messages: []*memsidecarv1.Message{sidecartest.Said("My favourite fruit is the " + fruit + ".")}, Wait: sidecartest.LongWait(),
		}))(t)
		if resp.GetNotRecorded() != 0 || resp.GetConsideration().GetScope().GetSessionId() != "1" {
			t.Errorf("%s: %s", fruit, resp)
		}
		putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: scope, Items: []*memsidecarv1.RegistryItem{{Key: "k-" + fruit, Title: fruit}}})
	}
	for fruit, scope := range places {
		answers := map[string]fmt.Stringer{
			"GetContext":   sidecartest.Must(sessions.GetContext(ctx, &memsidecarv1.GetContextRequest{Scope: scope}))(t),
			"ListMessages": sidecartest.Must(sessions.ListMessages(ctx, &memsidecarv1.ListMessagesRequest{Scope: scope}))(t),
			"GetSession":   sidecartest.Must(sessions.GetSession(ctx, &memsidecarv1.GetSessionRequest{Scope: scope}))(t),
			"GetTopics":    sidecartest.Must(sessions.GetTopics(ctx, &memsidecarv1.GetTopicsRequest{Scope: scope}))(t),
			"UpdateSession": sidecartest.Must(
				sessions.UpdateSession(
					ctx,
					&memsidecarv1.UpdateSessionRequest{Scope: scope, Session: &memsidecarv1.Session{Title: "about the " + fruit}},
				),
			)(
				t,
			),
			"SwitchSession": sidecartest.Must(sessions.SwitchSession(ctx, &memsidecarv1.SwitchSessionRequest{Scope: scope}))(t),
			"ListSessions": sidecartest.Must(
				sessions.ListSessions(ctx, &memsidecarv1.ListSessionsRequest{Scope: sidecartest.InSession(scope, "")}),
			)(
				t,
			),
			"Retrieve": sidecartest.Must(r.Retrieve(ctx, &memsidecarv1.RetrieveRequest{
				Scope: scope, Query: "I want a fruit", MinRelevance: new(0.0),
				Sources: []memsidecarv1.RetrieveSource{memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MESSAGES},
			}))(t),
		}
		about, exported := r.ExportSession(t, scope)
		for i, m := range exported {
			answers[fmt.Sprint("ExportSession ", i)] = m
		}
		answers["ExportSession"] = about
		if got := selected(t, r, scope, "1"); got != "k-"+fruit {
			t.Errorf("%s selects %q", fruit, got)
		}
		own := map[string]bool{fruit: true}
		if scope.GetUserId() == "ada" && scope.GetChannelKind() == memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT {
			own["fig"] = true // a direct chat sees messages of the user's groups
		}
		if scope.GetUserId() == "bob" && scope.GetChannelKind() == memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT {
			own["kiwi"] = true
		}
		for call, answer := range answers {
			for other := range places {
				if (!own[other] || call != "Retrieve" && call != "ListSessions" && other != fruit) &&
					strings.Contains(answer.String(), other) {
					t.Errorf("%s for %s shows data of %s: %s", call, fruit, other, answer)
				}
			}
		}
		if got := r.History(t, scope); len(got) != 3 {
			t.Errorf("the session of %s has %q", fruit, got)
		}
	}

	// The same user from another kind of channel is still an error.
	_, err := sessions.AppendMessages(
		ctx,
		&memsidecarv1.AppendMessagesRequest{
			Scope:    at(&memsidecarv1.Scope{UserId: "ada"}),
			Messages: []*memsidecarv1.Message{sidecartest.Said("x")},
		},
	)
	sidecartest.WantCode(t, err, codes.FailedPrecondition)
	// No other user can read it.
	for _, scope := range []*memsidecarv1.Scope{
		at(sidecartest.Direct("eve")), at(sidecartest.Group("eve", "z")),
		at(&memsidecarv1.Scope{UserId: "eve"}), at(&memsidecarv1.Scope{}),
	} {
		_, err := sessions.GetSession(ctx, &memsidecarv1.GetSessionRequest{Scope: scope})
		sidecartest.WantCode(t, err, codes.NotFound)
	}

	// Deleting and forgetting affect one of them.
	sidecartest.Must(sessions.DeleteSession(ctx, &memsidecarv1.DeleteSessionRequest{Scope: places["pear"]}))(t)
	sidecartest.Must(r.ForgetUser(ctx, &memsidecarv1.ForgetUserRequest{Scope: &memsidecarv1.Scope{UserId: "cleo"}}))(t)
	for fruit, want := range map[string]int{"plum": 3, "fig": 3, "kiwi": 3} {
		if got := r.History(t, places[fruit]); len(got) != want {
			t.Errorf("the session of %s has %q", fruit, got)
		}
		if got := selected(t, r, places[fruit], "1"); got != "k-"+fruit {
			t.Errorf("%s selects %q", fruit, got)
		}
		traces := sidecartest.Must(memsidecarv1.NewTraceServiceClient(r.Conn).ListTraces(ctx, &memsidecarv1.ListTracesRequest{Scope: places[fruit]}))(
			t,
		).GetTraces()
		if len(traces) == 0 {
			t.Errorf("the traces of %s are gone", fruit)
		}
	}
	r.AppendTo(t, places["pear"], sidecartest.Said("again"))
	if got := r.History(t, places["pear"]); !slices.Equal(got, []string{"again"}) {
		t.Errorf("after it was deleted, the session has %q", got)
	}
}

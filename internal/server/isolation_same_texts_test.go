package server_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// neighbour is one of several users with identical data. Its session name identifies it in answers.
type neighbour struct {
	scope         *memsidecarv1.Scope
	memory        string // id
	consideration string // id
	memoryPage    string // token of the second page
	considerPage  string
}

func (n *neighbour) name() string { return n.scope.GetNamespace() + "/" + n.scope.GetUserId() }

// newNeighbour stores the data that every neighbour has.
func newNeighbour(t *testing.T, r *sidecartest.Sidecar, namespace, user string) *neighbour {
	t.Helper()
	n := &neighbour{scope: sidecartest.InNamespace(namespace, sidecartest.Direct(user))}
	n.scope.SessionId = "session of " + n.name() + "."
	for i, text := range []string{"I am allergic to peanuts.", "My name is Anna."} {
		c := sidecartest.Must(r.ConsiderMemorizing(t.Context(), sharedDialogue(n, i, text)))(t).GetConsideration()
		if c.GetState() != sidecartest.Remembered {
			t.Fatalf("%q is %s: %s", text, c.GetState(), c.GetReason())
		}
		n.consideration, n.memory = c.GetId(), c.GetChanges()[0].GetMemoryId()
	}
	n.memoryPage = sidecartest.Must(r.ListMemories(t.Context(), &memsidecarv1.ListMemoriesRequest{Scope: n.scope, PageSize: 1}))(t).GetNextPageToken()
	n.considerPage = sidecartest.Must(r.ListConsiderations(t.Context(), &memsidecarv1.ListConsiderationsRequest{Scope: n.scope, PageSize: 1}))(
		t,
	).GetNextPageToken()
	if n.memoryPage == "" || n.considerPage == "" {
		t.Fatal("there is no second page")
	}
	return n
}

func sharedDialogue(n *neighbour, i int, text string) *memsidecarv1.ConsiderMemorizingRequest {
	return &memsidecarv1.ConsiderMemorizingRequest{
		Scope: n.scope, Messages: []*memsidecarv1.Message{sidecartest.Said(text)}, RequestId: fmt.Sprint("the same request id ", i),
		Wait: sidecartest.LongWait(),
	}
}

// neighbourCalls are calls by one user with another user's identifiers. Each returns the answers, which may contain nothing of the other
// user, and checks that the caller's own data is in them: an empty answer would prove nothing.
func neighbourCalls() map[string]func(t *testing.T, r *sidecartest.Sidecar, me, other *neighbour) []proto.Message {
	return map[string]func(t *testing.T, r *sidecartest.Sidecar, me, other *neighbour) []proto.Message{
		"Retrieve": func(t *testing.T, r *sidecartest.Sidecar, me, _ *neighbour) []proto.Message {
			resp := sidecartest.Must(
				r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: me.scope, Query: "allergic peanuts name Anna", TopK: proto.Int32(100)}),
			)(
				t,
			)
			wantCount(t, "retrieved", len(resp.GetStanding())+len(resp.GetMemories()))
			return []proto.Message{resp}
		},
		"ConsiderMemorizing": func(t *testing.T, r *sidecartest.Sidecar, me, _ *neighbour) []proto.Message {
			again := sidecartest.Must(r.ConsiderMemorizing(t.Context(), sharedDialogue(me, 1, "My name is Anna.")))(t)
			if again.GetConsideration().GetId() != me.consideration {
				t.Error("the request id did not find my own consideration")
			}
			return []proto.Message{again}
		},
		"ListConsiderations": func(t *testing.T, r *sidecartest.Sidecar, me, other *neighbour) []proto.Message {
			_, err := r.ListConsiderations(t.Context(), &memsidecarv1.ListConsiderationsRequest{Scope: me.scope, PageSize: 1, PageToken: other.considerPage})
			sidecartest.WantInvalid(t, err, "page_token")
			resp := sidecartest.Must(r.ListConsiderations(t.Context(), &memsidecarv1.ListConsiderationsRequest{Scope: me.scope}))(t)
			wantCount(t, "listed considerations", len(resp.GetConsiderations()))
			return []proto.Message{resp}
		},
		"CreateMemory": func(t *testing.T, r *sidecartest.Sidecar, me, other *neighbour) []proto.Message {
			request := &memsidecarv1.CreateMemoryRequest{
				Scope: other.scope, Memory: &memsidecarv1.Memory{Text: "Likes rain"}, RequestId: "for " + me.name(),
			}
			theirs := sidecartest.Must(r.CreateMemory(t.Context(), request))(t).GetMemory()
			request.Scope = me.scope
			mine := sidecartest.Must(r.CreateMemory(t.Context(), request))(t).GetMemory()
			if theirs.GetId() == mine.GetId() || mine.GetMentionCount() != 1 {
				t.Errorf("two users' memories are one: %s", mine)
			}
			sidecartest.Must(r.DeleteMemory(t.Context(), &memsidecarv1.DeleteMemoryRequest{Scope: me.scope, MemoryId: mine.GetId()}))(t)
			sidecartest.Must(r.DeleteMemory(t.Context(), &memsidecarv1.DeleteMemoryRequest{Scope: other.scope, MemoryId: theirs.GetId()}))(t)
			return []proto.Message{mine}
		},
		"ListMemories": func(t *testing.T, r *sidecartest.Sidecar, me, other *neighbour) []proto.Message {
			_, err := r.ListMemories(t.Context(), &memsidecarv1.ListMemoriesRequest{Scope: me.scope, PageSize: 1, PageToken: other.memoryPage})
			sidecartest.WantInvalid(t, err, "page_token")
			resp := sidecartest.Must(r.ListMemories(t.Context(), &memsidecarv1.ListMemoriesRequest{Scope: me.scope}))(t)
			wantCount(t, "listed memories", len(resp.GetMemories()))
			return []proto.Message{resp}
		},
		"ImportMemories": func(t *testing.T, r *sidecartest.Sidecar, me, other *neighbour) []proto.Message {
			resp := sidecartest.Must(r.Import(t, me.scope, &memsidecarv1.Memory{Id: other.memory, Text: "Taken in", Scope: other.scope}))(t)
			if resp.GetAddedCount() != 1 {
				t.Errorf("another user's id counts as the caller's: %s", resp)
			}
			mine := r.Memory(t, me.scope, other.memory).GetScope()
			if mine.GetUserId() != me.scope.GetUserId() || mine.GetNamespace() != me.scope.GetNamespace() {
				t.Errorf("imported into %s", mine)
			}
			sidecartest.Must(r.DeleteMemory(t.Context(), &memsidecarv1.DeleteMemoryRequest{Scope: me.scope, MemoryId: other.memory}))(t)
			return []proto.Message{resp}
		},
		"UpdateUserSettings": func(t *testing.T, r *sidecartest.Sidecar, me, other *neighbour) []proto.Message {
			resp := sidecartest.Must(r.UpdateUserSettings(t.Context(), &memsidecarv1.UpdateUserSettingsRequest{
				Scope: me.scope, Settings: &memsidecarv1.UserSettings{Language: "de", Paused: true},
			}))(t)
			theirs := sidecartest.Must(r.GetUserSettings(t.Context(), &memsidecarv1.GetUserSettingsRequest{Scope: other.scope}))(t)
			wantSame(t, theirs.GetSettings(), &memsidecarv1.UserSettings{})
			return []proto.Message{resp}
		},
		"ExportUser": func(t *testing.T, r *sidecartest.Sidecar, me, _ *neighbour) []proto.Message {
			e := r.Export(t, me.scope)
			wantCount(t, "exported memories", len(e.Memories))
			wantCount(t, "exported considerations", len(e.Considerations))
			var answers []proto.Message
			for _, record := range e.Records {
				answers = append(answers, record)
			}
			return answers
		},
	}
}

func wantCount(t *testing.T, what string, n int) {
	t.Helper()
	if n != 2 {
		t.Errorf("%s: %d, want my own 2", what, n)
	}
}

// TestUsersWithEqualTextsStayApart: Two users of a namespace, and one user id in two namespaces, store the same texts under the same
// request ids. Their data stays separate.
func TestUsersWithEqualTextsStayApart(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	users := []*neighbour{newNeighbour(t, r, "default", "anna"), newNeighbour(t, r, "default", "ann"), newNeighbour(t, r, "default/sub", "anna")}
	before := r.Export(t, users[0].scope)
	for method, call := range neighbourCalls() {
		for _, me := range users[1:] {
			t.Run(method+"/"+me.name(), func(t *testing.T) {
				for _, answer := range call(t, r, me, users[0]) {
					for _, other := range users {
						if other != me {
							wantNothingOf(t, other, answer)
						}
					}
				}
			})
		}
	}
	for _, me := range users[1:] {
		receipt := sidecartest.Must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: sidecartest.UserScope(me.scope)}))(t)
		if receipt.GetMemoryCount() != 2 || receipt.GetConsiderationCount() != 2 || !receipt.GetPurgedFromDisk() {
			t.Errorf("forgot %s, want 2 memories and 2 considerations", receipt)
		}
		_, err := r.GetMemory(t.Context(), &memsidecarv1.GetMemoryRequest{Scope: me.scope, MemoryId: users[0].memory})
		sidecartest.WantCode(t, err, codes.NotFound)
	}
	after := r.Export(t, users[0].scope)
	if len(after.Records) != len(before.Records) {
		t.Fatalf("there were %d records and now there are %d", len(before.Records), len(after.Records))
	}
	for i, record := range after.Records {
		wantSame(t, record, before.Records[i])
	}
}

// wantNothingOf checks that an answer contains nothing that identifies a user.
func wantNothingOf(t *testing.T, other *neighbour, answer proto.Message) {
	t.Helper()
	text := prototext.Format(answer)
	for _, mark := range []string{other.scope.GetSessionId(), other.memory, other.consideration} {
		if strings.Contains(text, mark) {
			t.Errorf("shows %q of %s:\n%s", mark, other.name(), text)
		}
	}
}

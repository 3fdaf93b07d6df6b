package server_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// usersOf lists all users of a namespace in pages of two.
func usersOf(t *testing.T, r *sidecartest.Sidecar, request *memsidecarv1.ListUsersRequest) (list []*memsidecarv1.User) {
	t.Helper()
	request.PageSize, request.PageToken = 2, ""
	for {
		resp := sidecartest.Must(r.ListUsers(t.Context(), request))(t)
		list = append(list, resp.GetUsers()...)
		if request.PageToken = resp.GetNextPageToken(); request.GetPageToken() == "" {
			return list
		}
	}
}

func userIDs(list []*memsidecarv1.User) []string {
	ids := []string{}
	for _, u := range list {
		ids = append(ids, u.GetUserId())
	}
	return ids
}

func TestListUsersCountsWhatIsStored(t *testing.T) {
	began := time.Now().Truncate(time.Microsecond)
	r := sidecartest.Serve(t)
	say := func(scope *memsidecarv1.Scope, messages ...*memsidecarv1.Message) {
		sidecartest.Must(r.Sessions().AppendMessages(t.Context(), &memsidecarv1.AppendMessagesRequest{Scope: scope, Messages: messages}))(t)
	}
	r.Create(t, sidecartest.Direct("ann"), "Likes tea")
	r.Create(t, sidecartest.Direct("ann"), "Plays chess")
	say(sidecartest.InSession(sidecartest.Direct("ann"), "s"), sidecartest.Said("hello"), sidecartest.Answered("Hello!"))
	say(sidecartest.InSession(sidecartest.Group("ann", "g"), "g"), by("ann", "hi"), by("bob", "hi, ann"))
	sidecartest.Must(r.UpdateUserSettings(t.Context(), &memsidecarv1.UpdateUserSettingsRequest{
		Scope: sidecartest.Direct("zoe"), Settings: &memsidecarv1.UserSettings{Language: "en"},
	}))(t)
	list := usersOf(t, r, &memsidecarv1.ListUsersRequest{})
	if len(list) != 3 {
		t.Fatalf("lists %v", list)
	}
	for _, u := range list[:2] {
		if at := u.GetLastActiveTime().AsTime(); at.Before(began) || at.After(time.Now()) {
			t.Errorf("%s was last active at %s", u.GetUserId(), at)
		}
		u.LastActiveTime = nil
	}
	wantSame(t, list[0], &memsidecarv1.User{UserId: "ann", MemoryCount: 2, SessionCount: 2, MessageCount: 3})
	wantSame(t, list[1], &memsidecarv1.User{UserId: "bob", SessionCount: 1, MessageCount: 1})
	wantSame(t, list[2], &memsidecarv1.User{UserId: "zoe"})

	sidecartest.Must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: sidecartest.WithoutChannel("ann")}))(t)
	sidecartest.Must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: sidecartest.WithoutChannel("zoe")}))(t)
	if got := userIDs(usersOf(t, r, &memsidecarv1.ListUsersRequest{})); !slices.Equal(got, []string{"bob"}) {
		t.Errorf("after two were forgotten it lists %q", got)
	}
}

func TestListUsersPagesWhileUsersComeAndGo(t *testing.T) {
	r := sidecartest.Serve(t)
	for i := range 9 {
		r.Create(t, sidecartest.Direct(fmt.Sprintf("user-%d", i)), "Likes tea")
	}
	request := &memsidecarv1.ListUsersRequest{UserIdPrefix: "user-", PageSize: 3}
	first := sidecartest.Must(r.ListUsers(t.Context(), request))(t)
	sidecartest.Must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: sidecartest.WithoutChannel("user-2")}))(t) // the last of the page
	sidecartest.Must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: sidecartest.WithoutChannel("user-4")}))(t)
	r.Create(t, sidecartest.Direct("user-1-new"), "Likes tea")
	r.Create(t, sidecartest.Direct("user-5-new"), "Likes tea")
	r.Create(t, sidecartest.Direct("someone"), "Likes tea")
	request.PageToken = first.GetNextPageToken()
	second := sidecartest.Must(r.ListUsers(t.Context(), request))(t)
	request.PageToken = second.GetNextPageToken()
	third := sidecartest.Must(r.ListUsers(t.Context(), request))(t)
	got := userIDs(slices.Concat(first.GetUsers(), second.GetUsers(), third.GetUsers()))
	want := []string{"user-0", "user-1", "user-2", "user-3", "user-5", "user-5-new", "user-6", "user-7", "user-8"}
	if !slices.Equal(got, want) || third.GetNextPageToken() != "" {
		t.Errorf("lists %q, want %q", got, want)
	}
	request.UserIdPrefix = "some"
	_, err := r.ListUsers(t.Context(), request)
	sidecartest.WantInvalid(t, err, "page_token")
}

func TestListUsersStaysInTheNamespace(t *testing.T) {
	r, tokens := sidecartest.ServeGuarded(t)
	admin := r.As(t, tokens["admin"])
	for _, namespace := range []string{"a", "b", "a/b"} {
		admin.Create(t, sidecartest.InNamespace(namespace, sidecartest.Direct("user of "+namespace)), "Likes tea")
	}
	of := func(namespace string) *memsidecarv1.ListUsersRequest {
		return &memsidecarv1.ListUsersRequest{Scope: &memsidecarv1.Scope{Namespace: namespace}}
	}
	for token, namespaces := range map[string]map[string]bool{
		"reader": {"": true, "a": true, "b": false, "a/b": false},
		"a":      {"a": true, "b": false, "a/b": false},
		"below":  {"a": false, "b": false, "a/b": true},
		"admin":  {"a": true, "b": true, "a/b": true},
	} {
		for namespace, allowed := range namespaces {
			resp, err := r.As(t, tokens[token]).ListUsers(t.Context(), of(namespace))
			if !allowed {
				sidecartest.WantCode(t, err, codes.PermissionDenied)
				continue
			}
			want := "user of " + namespace
			if namespace == "" {
				want = "user of a"
			}
			if got := userIDs(resp.GetUsers()); err != nil || !slices.Equal(got, []string{want}) {
				t.Errorf("%s lists %q in %q, %v", token, got, namespace, err)
			}
		}
	}
	_, err := r.ListUsers(t.Context(), of("a"))
	sidecartest.WantCode(t, err, codes.Unauthenticated)
}

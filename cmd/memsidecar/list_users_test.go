package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// users lists all users of a namespace in pages of two.
func (r *running) users(t *testing.T, request *memsidecarv1.ListUsersRequest) (list []*memsidecarv1.User) {
	t.Helper()
	request.PageSize, request.PageToken = 2, ""
	for {
		resp := must(r.ListUsers(t.Context(), request))(t)
		list = append(list, resp.GetUsers()...)
		if request.PageToken = resp.GetNextPageToken(); request.PageToken == "" {
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
	r := serve(t)
	say := func(scope *memsidecarv1.Scope, messages ...*memsidecarv1.Message) {
		must(r.sessions().AppendMessages(t.Context(), &memsidecarv1.AppendMessagesRequest{Scope: scope, Messages: messages}))(t)
	}
	r.create(t, direct("ann"), "Likes tea")
	r.create(t, direct("ann"), "Plays chess")
	say(within(direct("ann"), "s"), said("hello"), answered("Hello!"))
	say(within(group("ann", "g"), "g"), by("ann", "hi"), by("bob", "hi, ann"))
	must(r.UpdateUserSettings(t.Context(), &memsidecarv1.UpdateUserSettingsRequest{
		Scope: direct("zoe"), Settings: &memsidecarv1.UserSettings{Language: "en"},
	}))(t)
	list := r.users(t, &memsidecarv1.ListUsersRequest{})
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

	must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: anywhere("ann")}))(t)
	must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: anywhere("zoe")}))(t)
	if got := userIDs(r.users(t, &memsidecarv1.ListUsersRequest{})); !slices.Equal(got, []string{"bob"}) {
		t.Errorf("after two were forgotten it lists %q", got)
	}
}

func TestListUsersPagesWhileUsersComeAndGo(t *testing.T) {
	r := serve(t)
	for i := range 9 {
		r.create(t, direct(fmt.Sprintf("user-%d", i)), "Likes tea")
	}
	request := &memsidecarv1.ListUsersRequest{UserIdPrefix: "user-", PageSize: 3}
	first := must(r.ListUsers(t.Context(), request))(t)
	must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: anywhere("user-2")}))(t) // the last of the page
	must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: anywhere("user-4")}))(t)
	r.create(t, direct("user-1-new"), "Likes tea")
	r.create(t, direct("user-5-new"), "Likes tea")
	r.create(t, direct("someone"), "Likes tea")
	request.PageToken = first.GetNextPageToken()
	second := must(r.ListUsers(t.Context(), request))(t)
	request.PageToken = second.GetNextPageToken()
	third := must(r.ListUsers(t.Context(), request))(t)
	got := userIDs(slices.Concat(first.GetUsers(), second.GetUsers(), third.GetUsers()))
	want := []string{"user-0", "user-1", "user-2", "user-3", "user-5", "user-5-new", "user-6", "user-7", "user-8"}
	if !slices.Equal(got, want) || third.GetNextPageToken() != "" {
		t.Errorf("lists %q, want %q", got, want)
	}
	request.UserIdPrefix = "some"
	_, err := r.ListUsers(t.Context(), request)
	wantInvalid(t, err, "page_token")
}

func TestListUsersStaysInTheNamespace(t *testing.T) {
	r, tokens := serveGuarded(t)
	admin := r.as(t, tokens["admin"])
	for _, namespace := range []string{"a", "b", "a/b"} {
		admin.create(t, in(namespace, direct("user of "+namespace)), "Likes tea")
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
			resp, err := r.as(t, tokens[token]).ListUsers(t.Context(), of(namespace))
			if !allowed {
				wantCode(t, err, codes.PermissionDenied)
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
	wantCode(t, err, codes.Unauthenticated)
}

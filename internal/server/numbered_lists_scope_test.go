package server_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// resultAttempts has, for every call of the service, an attempt to read or change the victim's list.
func resultAttempts(r *sidecartest.Sidecar) map[string]func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
	c := lists(r)
	return map[string]func(context.Context, *memsidecarv1.Scope) (proto.Message, error){
		"PutItems": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return c.PutItems(
				ctx,
				&memsidecarv1.PutItemsRequest{Scope: as, Items: []*memsidecarv1.RegistryItem{{Key: "/secret"}}, Mode: scheduled},
			)
		},
		"SelectItems": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return c.SelectItems(ctx, choice(as, "1"))
		},
		"FilterUnseen": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			resp, err := c.FilterUnseen(ctx, &memsidecarv1.FilterUnseenRequest{Scope: as, Keys: []string{"/secret"}})
			if err == nil && len(resp.GetUnseenKeys()) != 1 {
				return nil, fmt.Errorf("sees that the victim saw it")
			}
			return nil, err
		},
		"ListItems": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return c.ListItems(ctx, &memsidecarv1.ListItemsRequest{Scope: as})
		},
		"GetNumberedList": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return c.GetNumberedList(ctx, &memsidecarv1.GetNumberedListRequest{Scope: as})
		},
		"DeleteNumberedList": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return c.DeleteNumberedList(ctx, &memsidecarv1.DeleteNumberedListRequest{Scope: as})
		},
		"ImportNumberedList": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return c.ImportNumberedList(ctx, &memsidecarv1.ImportNumberedListRequest{
				Scope: as, Items: []*memsidecarv1.RegistryItem{{Key: "/secret", Title: "spoilt"}}, ShownKeys: []string{"/spoilt"},
				ShowTime: timestamppb.New(time.Now().Add(time.Hour)),
			})
		},
	}
}

// TestNumberedListsOfUsersStayApart: No attempt to reach the list of another user reads or changes anything.
func TestNumberedListsOfUsersStayApart(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	attempts := resultAttempts(r)
	if want := sidecartest.MethodNames(&memsidecarv1.NumberedListService_ServiceDesc); len(attempts) != len(want) {
		t.Fatalf("%d calls are tried, of %q: add the others to resultAttempts", len(attempts), want)
	}
	victim := sidecartest.Direct("ann")
	victim.SessionId, victim.ChannelId = "s", "dm"
	secret := &memsidecarv1.RegistryItem{Key: "/secret", Title: "The Secret Film"}
	strangers := map[string]*memsidecarv1.Scope{
		"another user":      {UserId: "eve", ChannelKind: victim.GetChannelKind(), ChannelId: "dm", SessionId: "s"},
		"nobody":            {ChannelKind: victim.GetChannelKind(), ChannelId: "dm", SessionId: "s"},
		"another namespace": sidecartest.InNamespace("else/where", victim),
		"the user in a group": {
			UserId:      "ann",
			ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_GROUP,
			ChannelId:   "dm",
			SessionId:   "s",
		},
		"the user without channel": {UserId: "ann", ChannelId: "dm", SessionId: "s"},
	}
	for name, as := range strangers {
		for call, try := range attempts {
			putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: victim, Items: []*memsidecarv1.RegistryItem{secret}})
			resp, err := try(t.Context(), as)
			if code := status.Code(err); code != codes.OK && code != codes.NotFound && code != codes.FailedPrecondition {
				t.Errorf("%s, %s: %v", name, call, err)
			}
			if resp != nil && err == nil && strings.Contains(fmt.Sprint(resp), "Secret") {
				t.Errorf("%s, %s: sees %s", name, call, resp)
			}
			got := sidecartest.Must(lists(r).SelectItems(t.Context(), choice(victim, "1")))(t)
			if got.GetItem().GetKey() != "/secret" || got.GetItem().GetTitle() != secret.GetTitle() {
				t.Errorf("%s, %s: afterwards 1 is %s", name, call, got)
			}
			_, _ = attempts["DeleteNumberedList"](t.Context(), as) // so that the stranger has no list in the next call
		}
	}
}

// TestGroupSharesANumberedList: One member asks, another answers with a number. A private list stays private.
func TestGroupSharesANumberedList(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: sidecartest.Group("ann", "g"), Items: listing(3)})
	putItems(
		t,
		r,
		&memsidecarv1.PutItemsRequest{Scope: sidecartest.Direct("ann"), Items: []*memsidecarv1.RegistryItem{film("/private", "P")}},
	)
	if got := selected(t, r, sidecartest.Group("bob", "g"), "第二个"); got != "/mv/4LjJ" {
		t.Errorf("bob selects %s", got)
	}
	if got := selected(t, r, sidecartest.Direct("ann"), "1"); got != "/private" {
		t.Errorf("ann alone selects %s", got)
	}
	_, err := lists(r).SelectItems(t.Context(), choice(sidecartest.Group("bob", "g2"), "1"))
	sidecartest.WantCode(t, err, codes.FailedPrecondition)
	// Without group scope, the registry is ann's in this group.
	if got := seenKeys(t, r, sidecartest.Group("bob", "g"), 0); len(got) != 0 {
		t.Errorf("bob has seen %q", got)
	}
	if got := seenKeys(t, r, sidecartest.Group("ann", "g"), 0); len(got) != 3 {
		t.Errorf("ann has seen %q in the group", got)
	}
	if got := seenKeys(t, r, sidecartest.Direct("ann"), 0); len(got) != 4 {
		t.Errorf("ann has seen %q", got)
	}
	putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: sidecartest.Group("", "g"), Items: listing(1), Mode: scheduled})
	if got := seenKeys(t, r, sidecartest.Group("bob", "g"), ofChannel); !slices.Equal(got, []string{"/mv/m7BA!"}) {
		t.Errorf("the group has seen %q", got)
	}
	r.Stop()
	r = sidecartest.ServeIn(t, r.Dir, "visibility=user")
	if got := seenKeys(t, r, sidecartest.Group("ann", "g"), 0); len(got) != 4 {
		t.Errorf("with visibility: user ann has seen %q in the group", got)
	}
}

func TestDeleteNumberedList(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	scope := sidecartest.Direct("u")
	remove := func(part memsidecarv1.NumberedListPart) (*memsidecarv1.DeleteNumberedListResponse, error) {
		return lists(r).DeleteNumberedList(t.Context(), &memsidecarv1.DeleteNumberedListRequest{Scope: scope, Part: part})
	}
	putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: scope, Items: listing(3)})
	wantSame(
		t,
		sidecartest.Must(remove(memsidecarv1.NumberedListPart_NUMBERED_LIST_PART_REGISTRY))(t),
		&memsidecarv1.DeleteNumberedListResponse{ItemCount: 3},
	)
	if got := selected(t, r, scope, "3"); got != "/mv/823D" {
		t.Errorf("without its registry 3 is %s", got)
	}
	wantSame(
		t,
		sidecartest.Must(remove(memsidecarv1.NumberedListPart_NUMBERED_LIST_PART_SHOWN))(t),
		&memsidecarv1.DeleteNumberedListResponse{ShownDeleted: true},
	)
	_, err := lists(r).SelectItems(t.Context(), choice(scope, "3"))
	sidecartest.WantCode(t, err, codes.FailedPrecondition)
	_, err = remove(0)
	sidecartest.WantCode(t, err, codes.NotFound)
	putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: scope, Items: listing(2)})
	wantSame(t, sidecartest.Must(remove(0))(t), &memsidecarv1.DeleteNumberedListResponse{ItemCount: 2, ShownDeleted: true})

	// Deleting a session deletes the lists shown in it.
	scope.SessionId = "s"
	sidecartest.Must(
		r.Sessions().
			AppendMessages(t.Context(), &memsidecarv1.AppendMessagesRequest{Scope: scope, Messages: []*memsidecarv1.Message{sidecartest.Said("x")}}),
	)(
		t,
	)
	putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: scope, Items: listing(2)})
	sidecartest.Must(r.Sessions().DeleteSession(t.Context(), &memsidecarv1.DeleteSessionRequest{Scope: scope}))(t)
	_, err = lists(r).SelectItems(t.Context(), choice(scope, "1"))
	sidecartest.WantCode(t, err, codes.FailedPrecondition)
}

// TestForgetUserDeletesTheirNumberedLists: The lists of the user are exported and deleted. Those of a group and of the
// namespace stay.
func TestForgetUserDeletesTheirNumberedLists(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	const mark = "Zyxwvutsrq"
	secret := []*memsidecarv1.RegistryItem{{Key: "/" + mark, Title: mark, AttributesJson: `{"m": "` + mark + `"}`}}
	putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: sidecartest.Direct("alice"), Items: secret})
	putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: sidecartest.Group("alice", "g"), Items: secret, List: "films"})
	putItems(
		t,
		r,
		&memsidecarv1.PutItemsRequest{Scope: sidecartest.Group("alice", "g"), RegistryKind: ofChannel, Items: listing(2), Mode: scheduled},
	)
	putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: sidecartest.Direct("bob"), Items: listing(3)})
	var registries, items, lists int
	for _, record := range r.Export(t, sidecartest.WithoutChannel("alice")).Records {
		switch record.GetRecord().(type) {
		case *memsidecarv1.ExportUserResponse_Registry:
			registries++
		case *memsidecarv1.ExportUserResponse_RegistryItem:
			items++
			wantSame(t, record.GetRegistryItem(), &memsidecarv1.RegistryItem{
				Key: "/" + mark, Title: mark, AttributesJson: secret[0].GetAttributesJson(), FirstSeenTime: record.GetRegistryItem().GetFirstSeenTime(),
			})
		case *memsidecarv1.ExportUserResponse_NumberedList:
			lists++
		}
	}
	if registries != 2 || items != 2 || lists != 2 {
		t.Errorf("exported %d registries, %d items, %d lists", registries, items, lists)
	}
	if r.Export(t, sidecartest.WithoutChannel("bob")).Holds(mark) || len(sidecartest.FilesWith(t, r.Dir, mark)) == 0 {
		t.Error("bob's export has alice's data, or nothing was stored")
	}
	receipt := sidecartest.Must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: sidecartest.WithoutChannel("alice")}))(t)
	if receipt.GetRegistryItemCount() != 2 || receipt.GetNumberedListCount() != 2 || !receipt.GetPurgedFromDisk() {
		t.Errorf("the receipt is %s", receipt)
	}
	sidecartest.WantNoFileWith(t, r.Dir, mark)
	sidecartest.WantNoFileWith(t, r.Dir, "alice")
	if got := seenKeys(t, r, sidecartest.Group("carol", "g"), ofChannel); len(got) != 2 {
		t.Errorf("the group has %q", got)
	}
	if got := selected(t, r, sidecartest.Direct("bob"), "3"); got != "/mv/823D" {
		t.Errorf("bob's third is %s", got)
	}
}

func TestImportNumberedList(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	at := timestamppb.New(time.Now().Add(-24 * time.Hour).Truncate(time.Microsecond))
	request := &memsidecarv1.ImportNumberedListRequest{
		Scope: sidecartest.Direct("u"), LastCheckTime: at, ShownKeys: []string{"b", "a", "gone"}, ShowTime: at,
		Items: []*memsidecarv1.RegistryItem{
			{Key: "a", Title: "A", Notified: true, FirstSeenTime: at},
			{Key: "b", AttributesJson: "{}"},
			{Key: "old", FirstSeenTime: timestamppb.New(at.AsTime().AddDate(-1, 0, 0))},
		},
	}
	wantSame(
		t,
		sidecartest.Must(lists(r).ImportNumberedList(t.Context(), request))(t),
		&memsidecarv1.ImportNumberedListResponse{AddedCount: 3, Shown: true},
	)
	items := sidecartest.Must(lists(r).ListItems(t.Context(), &memsidecarv1.ListItemsRequest{Scope: sidecartest.Direct("u")}))(t)
	if len(items.GetItems()) != 3 || !proto.Equal(items.GetLastCheckTime(), at) ||
		!proto.Equal(items.GetItems()[1], request.GetItems()[0]) {
		t.Errorf("imported %s", items)
	}
	if got := selected(t, r, sidecartest.Direct("u"), "3"); got != "gone" {
		t.Errorf("3 is %s", got)
	}
	request.Items = request.GetItems()[:2]
	wantSame(
		t,
		sidecartest.Must(lists(r).ImportNumberedList(t.Context(), request))(t),
		&memsidecarv1.ImportNumberedListResponse{SkippedCount: 2},
	)
}

func TestNumberedListRequestsAreValidated(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	long := strings.Repeat("字", 1001)
	many := listing(501)
	future := timestamppb.New(time.Now().Add(48 * time.Hour))
	item := func(i *memsidecarv1.RegistryItem) []*memsidecarv1.RegistryItem {
		return []*memsidecarv1.RegistryItem{i}
	}
	for i, test := range []struct {
		request proto.Message
		wrong   []string
	}{
		{&memsidecarv1.PutItemsRequest{}, []string{"scope", "items"}},
		{&memsidecarv1.PutItemsRequest{Scope: sidecartest.Direct("u"), Items: many}, []string{"items"}},
		{
			&memsidecarv1.PutItemsRequest{
				Scope: sidecartest.Direct("u"),
				Items: item(&memsidecarv1.RegistryItem{Title: long, AttributesJson: "[]"}), List: "\n", Mode: 9,
				RegistryKind: 9, Language: "not one",
			},
			[]string{"items[0].key", "items[0].title", "items[0].attributes_json", "list", "mode", "registry_kind", "language"},
		},
		{
			&memsidecarv1.PutItemsRequest{
				Scope: sidecartest.Direct("u"),
				Items: item(&memsidecarv1.RegistryItem{Key: strings.Repeat("x", 2049), AttributesJson: `{"x": "` + strings.Repeat("y", 16<<10) + `"}`}),
			},
			[]string{"items[0].key", "items[0].attributes_json"},
		},
		{&memsidecarv1.PutItemsRequest{Scope: sidecartest.Direct("u"), Items: item(&memsidecarv1.RegistryItem{Key: "a\nb"})}, []string{"items[0].key"}},
		{&memsidecarv1.PutItemsRequest{Scope: sidecartest.Direct("u"), RegistryKind: ofChannel, Items: listing(1)}, []string{"scope.channel_id"}},
		{&memsidecarv1.PutItemsRequest{RegistryKind: memsidecarv1.RegistryKind_REGISTRY_KIND_USER, Mode: scheduled}, []string{"scope.user_id"}},
		{&memsidecarv1.SelectItemsRequest{Scope: sidecartest.Direct("u")}, []string{"ordinal"}},
		{choice(&memsidecarv1.Scope{}, "three movies"), []string{"scope"}},
		{choice(sidecartest.Direct("u"), "three movies"), []string{"text"}},
		{&memsidecarv1.FilterUnseenRequest{Scope: sidecartest.Direct("u"), Keys: []string{"a", ""}}, []string{"keys[1]"}},
		{&memsidecarv1.FilterUnseenRequest{Scope: sidecartest.Direct("u"), Keys: make([]string, 5001)}, []string{"keys"}},
		{&memsidecarv1.ListItemsRequest{Scope: sidecartest.Direct("u"), PageSize: -1, PageToken: "?"}, []string{"page_size", "page_token"}},
		{&memsidecarv1.GetNumberedListRequest{List: "\x00"}, []string{"scope", "list"}},
		{&memsidecarv1.DeleteNumberedListRequest{Part: 9}, []string{"part"}},
		{
			&memsidecarv1.ImportNumberedListRequest{
				Items: item(&memsidecarv1.RegistryItem{Key: "a", FirstSeenTime: future}), ShownKeys: []string{""},
				ShowTime: future, LastCheckTime: future,
			},
			[]string{"scope", "items[0].first_seen_time", "shown_keys[0]", "show_time", "last_check_time"},
		},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) { sidecartest.WantInvalid(t, ask(t, r.Conn, test.request), test.wrong...) })
	}
	if got := seenKeys(t, r, sidecartest.Direct("u"), 0); len(got) != 0 {
		t.Errorf("stored %q", got)
	}
	for _, n := range []int32{0, -1, 2} {
		putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: sidecartest.Direct("u"), Items: listing(1)})
		_, err := lists(
			r,
		).SelectItems(t.Context(), &memsidecarv1.SelectItemsRequest{Scope: sidecartest.Direct("u"), Selector: &memsidecarv1.SelectItemsRequest_Ordinal{Ordinal: n}})
		sidecartest.WantCode(t, err, codes.OutOfRange)
	}
}

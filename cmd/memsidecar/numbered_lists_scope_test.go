package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// resultAttempts has, for every call of the service, what somebody tries to find or spoil of the victim's.
func resultAttempts(r *running) map[string]func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
	c := r.lists()
	return map[string]func(context.Context, *memsidecarv1.Scope) (proto.Message, error){
		"PutItems": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return c.PutItems(ctx, &memsidecarv1.PutItemsRequest{Scope: as, Items: []*memsidecarv1.RegistryItem{{Key: "/secret"}}, Mode: scheduled})
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

// TestResultsKeepPeopleApart: whoever tries whatever from wherever learns nothing and spoils nothing.
func TestResultsKeepPeopleApart(t *testing.T) {
	r := serve(t)
	attempts := resultAttempts(r)
	if want := methodNames(&memsidecarv1.NumberedListService_ServiceDesc); len(attempts) != len(want) {
		t.Fatalf("%d calls are tried, of %q", len(attempts), want)
	}
	victim := direct("ann")
	victim.SessionId, victim.ChannelId = "s", "dm"
	secret := &memsidecarv1.RegistryItem{Key: "/secret", Title: "The Secret Film"}
	strangers := map[string]*memsidecarv1.Scope{
		"another user":             {UserId: "eve", ChannelKind: victim.GetChannelKind(), ChannelId: "dm", SessionId: "s"},
		"nobody":                   {ChannelKind: victim.GetChannelKind(), ChannelId: "dm", SessionId: "s"},
		"another namespace":        in("else/where", victim),
		"the user in a group":      {UserId: "ann", ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_GROUP, ChannelId: "dm", SessionId: "s"},
		"the user without channel": {UserId: "ann", ChannelId: "dm", SessionId: "s"},
	}
	for name, as := range strangers {
		for call, try := range attempts {
			r.putItems(t, &memsidecarv1.PutItemsRequest{Scope: victim, Items: []*memsidecarv1.RegistryItem{secret}})
			resp, err := try(t.Context(), as)
			if code := status.Code(err); code != codes.OK && code != codes.NotFound && code != codes.FailedPrecondition {
				t.Errorf("%s, %s: %v", name, call, err)
			}
			if resp != nil && err == nil && strings.Contains(fmt.Sprint(resp), "Secret") {
				t.Errorf("%s, %s: sees %s", name, call, resp)
			}
			got := must(r.lists().SelectItems(t.Context(), choice(victim, "1")))(t)
			if got.GetItem().GetKey() != "/secret" || got.GetItem().GetTitle() != secret.GetTitle() {
				t.Errorf("%s, %s: afterwards 1 is %s", name, call, got)
			}
			_, _ = attempts["DeleteNumberedList"](t.Context(), as) // so that the next call finds the stranger with nothing
		}
	}
}

// TestGroupsShareTheirList: one asks, another answers with a number; and a private list stays private.
func TestGroupsShareTheirList(t *testing.T) {
	r := serve(t)
	r.putItems(t, &memsidecarv1.PutItemsRequest{Scope: group("ann", "g"), Items: listing(3)})
	r.putItems(t, &memsidecarv1.PutItemsRequest{Scope: direct("ann"), Items: []*memsidecarv1.RegistryItem{film("/private", "P")}})
	if got := r.selected(t, group("bob", "g"), "第二个"); got != "/mv/4LjJ" {
		t.Errorf("bob selects %s", got)
	}
	if got := r.selected(t, direct("ann"), "1"); got != "/private" {
		t.Errorf("ann alone selects %s", got)
	}
	_, err := r.lists().SelectItems(t.Context(), choice(group("bob", "g2"), "1"))
	wantCode(t, err, codes.FailedPrecondition)
	// Whose registry: ann's in this group, not bob's; the group's only when asked for.
	if got := r.seenKeys(t, group("bob", "g"), 0); len(got) != 0 {
		t.Errorf("bob has seen %q", got)
	}
	if got := r.seenKeys(t, group("ann", "g"), 0); len(got) != 3 {
		t.Errorf("ann has seen %q in the group", got)
	}
	if got := r.seenKeys(t, direct("ann"), 0); len(got) != 4 {
		t.Errorf("ann has seen %q", got)
	}
	r.putItems(t, &memsidecarv1.PutItemsRequest{Scope: group("", "g"), Items: listing(1), Mode: scheduled})
	if got := r.seenKeys(t, group("bob", "g"), ofChannel); !slices.Equal(got, []string{"/mv/m7BA!"}) {
		t.Errorf("the group has seen %q", got)
	}
	r.stop()
	r = serveIn(t, r.dir, "visibility=user")
	if got := r.seenKeys(t, group("ann", "g"), 0); len(got) != 4 {
		t.Errorf("with visibility: user ann has seen %q in the group", got)
	}
}

func TestDeleteNumberedList(t *testing.T) {
	r := serve(t)
	scope := direct("u")
	remove := func(part memsidecarv1.NumberedListPart) (*memsidecarv1.DeleteNumberedListResponse, error) {
		return r.lists().DeleteNumberedList(t.Context(), &memsidecarv1.DeleteNumberedListRequest{Scope: scope, Part: part})
	}
	r.putItems(t, &memsidecarv1.PutItemsRequest{Scope: scope, Items: listing(3)})
	wantSame(t, must(remove(memsidecarv1.NumberedListPart_NUMBERED_LIST_PART_REGISTRY))(t), &memsidecarv1.DeleteNumberedListResponse{ItemCount: 3})
	if got := r.selected(t, scope, "3"); got != "/mv/823D" {
		t.Errorf("without its registry 3 is %s", got)
	}
	wantSame(t, must(remove(memsidecarv1.NumberedListPart_NUMBERED_LIST_PART_SHOWN))(t), &memsidecarv1.DeleteNumberedListResponse{ShownDeleted: true})
	_, err := r.lists().SelectItems(t.Context(), choice(scope, "3"))
	wantCode(t, err, codes.FailedPrecondition)
	_, err = remove(0)
	wantCode(t, err, codes.NotFound)
	r.putItems(t, &memsidecarv1.PutItemsRequest{Scope: scope, Items: listing(2)})
	wantSame(t, must(remove(0))(t), &memsidecarv1.DeleteNumberedListResponse{ItemCount: 2, ShownDeleted: true})

	// A session takes what was shown in it along.
	scope.SessionId = "s"
	must(r.sessions().AppendMessages(t.Context(), &memsidecarv1.AppendMessagesRequest{Scope: scope, Messages: []*memsidecarv1.Message{said("x")}}))(t)
	r.putItems(t, &memsidecarv1.PutItemsRequest{Scope: scope, Items: listing(2)})
	must(r.sessions().DeleteSession(t.Context(), &memsidecarv1.DeleteSessionRequest{Scope: scope}))(t)
	_, err = r.lists().SelectItems(t.Context(), choice(scope, "1"))
	wantCode(t, err, codes.FailedPrecondition)
}

// TestForgetAndExportResults: the user's are told and gone, a group's and the namespace's stay.
func TestForgetAndExportResults(t *testing.T) {
	r := serve(t)
	const mark = "Zyxwvutsrq"
	secret := []*memsidecarv1.RegistryItem{{Key: "/" + mark, Title: mark, AttributesJson: `{"m": "` + mark + `"}`}}
	r.putItems(t, &memsidecarv1.PutItemsRequest{Scope: direct("alice"), Items: secret})
	r.putItems(t, &memsidecarv1.PutItemsRequest{Scope: group("alice", "g"), Items: secret, List: "films"})
	r.putItems(t, &memsidecarv1.PutItemsRequest{Scope: group("alice", "g"), RegistryKind: ofChannel, Items: listing(2), Mode: scheduled})
	r.putItems(t, &memsidecarv1.PutItemsRequest{Scope: direct("bob"), Items: listing(3)})
	var registries, items, lists int
	for _, record := range r.export(t, anywhere("alice")).records {
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
	if r.export(t, anywhere("bob")).holds(mark) || len(holdsBytes(t, r.dir, mark)) == 0 {
		t.Error("bob's export has what is alice's, or nothing was stored")
	}
	receipt := must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: anywhere("alice")}))(t)
	if receipt.GetRegistryItemCount() != 2 || receipt.GetNumberedListCount() != 2 || !receipt.GetPurgedFromDisk() {
		t.Errorf("the receipt is %s", receipt)
	}
	wantNoBytes(t, r.dir, mark)
	wantNoBytes(t, r.dir, "alice")
	if got := r.seenKeys(t, group("carol", "g"), ofChannel); len(got) != 2 {
		t.Errorf("the group has %q", got)
	}
	if got := r.selected(t, direct("bob"), "3"); got != "/mv/823D" {
		t.Errorf("bob's third is %s", got)
	}
}

func TestImportNumberedList(t *testing.T) {
	r := serve(t)
	at := timestamppb.New(time.Now().Add(-24 * time.Hour).Truncate(time.Microsecond))
	request := &memsidecarv1.ImportNumberedListRequest{
		Scope: direct("u"), LastCheckTime: at, ShownKeys: []string{"b", "a", "gone"}, ShowTime: at,
		Items: []*memsidecarv1.RegistryItem{{Key: "a", Title: "A", Notified: true, FirstSeenTime: at}, {Key: "b", AttributesJson: "{}"}, {Key: "old", FirstSeenTime: timestamppb.New(at.AsTime().AddDate(-1, 0, 0))}},
	}
	wantSame(t, must(r.lists().ImportNumberedList(t.Context(), request))(t), &memsidecarv1.ImportNumberedListResponse{AddedCount: 3, Shown: true})
	items := must(r.lists().ListItems(t.Context(), &memsidecarv1.ListItemsRequest{Scope: direct("u")}))(t)
	if len(items.GetItems()) != 3 || !proto.Equal(items.GetLastCheckTime(), at) || !proto.Equal(items.GetItems()[1], request.GetItems()[0]) {
		t.Errorf("imported %s", items)
	}
	if got := r.selected(t, direct("u"), "3"); got != "gone" {
		t.Errorf("3 is %s", got)
	}
	request.Items = request.GetItems()[:2]
	wantSame(t, must(r.lists().ImportNumberedList(t.Context(), request))(t), &memsidecarv1.ImportNumberedListResponse{SkippedCount: 2})
}

func TestWrongResults(t *testing.T) {
	r := serve(t)
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
		{&memsidecarv1.PutItemsRequest{Scope: direct("u"), Items: many}, []string{"items"}},
		{&memsidecarv1.PutItemsRequest{Scope: direct("u"), Items: item(&memsidecarv1.RegistryItem{Title: long, AttributesJson: "[]"}), List: "\n", Mode: 9, RegistryKind: 9, Language: "not one"}, []string{"items[0].key", "items[0].title", "items[0].attributes_json", "list", "mode", "registry_kind", "language"}},
		{&memsidecarv1.PutItemsRequest{Scope: direct("u"), Items: item(&memsidecarv1.RegistryItem{Key: strings.Repeat("x", 2049), AttributesJson: `{"x": "` + strings.Repeat("y", 16<<10) + `"}`})}, []string{"items[0].key", "items[0].attributes_json"}},
		{&memsidecarv1.PutItemsRequest{Scope: direct("u"), Items: item(&memsidecarv1.RegistryItem{Key: "a\nb"})}, []string{"items[0].key"}},
		{&memsidecarv1.PutItemsRequest{Scope: direct("u"), RegistryKind: ofChannel, Items: listing(1)}, []string{"scope.channel_id"}},
		{&memsidecarv1.PutItemsRequest{RegistryKind: memsidecarv1.RegistryKind_REGISTRY_KIND_USER, Mode: scheduled}, []string{"scope.user_id"}},
		{&memsidecarv1.SelectItemsRequest{Scope: direct("u")}, []string{"ordinal"}},
		{choice(&memsidecarv1.Scope{}, "three movies"), []string{"scope"}},
		{choice(direct("u"), "three movies"), []string{"text"}},
		{&memsidecarv1.FilterUnseenRequest{Scope: direct("u"), Keys: []string{"a", ""}}, []string{"keys[1]"}},
		{&memsidecarv1.FilterUnseenRequest{Scope: direct("u"), Keys: make([]string, 5001)}, []string{"keys"}},
		{&memsidecarv1.ListItemsRequest{Scope: direct("u"), PageSize: -1, PageToken: "?"}, []string{"page_size", "page_token"}},
		{&memsidecarv1.GetNumberedListRequest{List: "\x00"}, []string{"scope", "list"}},
		{&memsidecarv1.DeleteNumberedListRequest{Part: 9}, []string{"part"}},
		{&memsidecarv1.ImportNumberedListRequest{Items: item(&memsidecarv1.RegistryItem{Key: "a", FirstSeenTime: future}), ShownKeys: []string{""}, ShowTime: future, LastCheckTime: future}, []string{"scope", "items[0].first_seen_time", "shown_keys[0]", "show_time", "last_check_time"}},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) { wantInvalid(t, ask(t, r.conn, test.request), test.wrong...) })
	}
	if got := r.seenKeys(t, direct("u"), 0); len(got) != 0 {
		t.Errorf("stored %q", got)
	}
	for _, n := range []int32{0, -1, 2} {
		r.putItems(t, &memsidecarv1.PutItemsRequest{Scope: direct("u"), Items: listing(1)})
		_, err := r.lists().SelectItems(t.Context(), &memsidecarv1.SelectItemsRequest{Scope: direct("u"), Selector: &memsidecarv1.SelectItemsRequest_Ordinal{Ordinal: n}})
		wantCode(t, err, codes.OutOfRange)
	}
}

// TestSeedFileStaysAsItIs: the importer only reads.
func TestSeedFileStaysAsItIs(t *testing.T) {
	r := serve(t)
	path := t.TempDir() + "/seen_movies.json"
	const text = `{"movies": {"/mv/823D": {"title": "x", "first_seen": "2026-02-19"}}, "last_query": {"urls": ["/mv/823D"]}}`
	mustDo(t, os.WriteFile(path, []byte(text), 0o400))
	if code, _, errs := runMain(t, "numbered-lists", "import", "--addr", r.addr, "-u", "u", "--show", path); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	lists := memsidecarv1.NewNumberedListServiceClient(r.conn)
	got := must(lists.SelectItems(t.Context(), &memsidecarv1.SelectItemsRequest{
		Scope: anywhere("u"), Selector: &memsidecarv1.SelectItemsRequest_Ordinal{Ordinal: 1},
	}))(t).GetItem().GetKey()
	if got != "/mv/823D" || string(must(os.ReadFile(path))(t)) != text {
		t.Errorf("selects %s", got)
	}
}

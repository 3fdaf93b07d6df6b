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
	c := r.results()
	return map[string]func(context.Context, *memsidecarv1.Scope) (proto.Message, error){
		"PutResults": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return c.PutResults(ctx, &memsidecarv1.PutResultsRequest{Scope: as, Items: []*memsidecarv1.ResultItem{{Key: "/secret"}}, Mode: scheduled})
		},
		"SelectResult": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return c.SelectResult(ctx, choice(as, "1"))
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
		"GetResultList": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return c.GetResultList(ctx, &memsidecarv1.GetResultListRequest{Scope: as})
		},
		"DeleteResultList": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return c.DeleteResultList(ctx, &memsidecarv1.DeleteResultListRequest{Scope: as})
		},
		"ImportResults": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return c.ImportResults(ctx, &memsidecarv1.ImportResultsRequest{
				Scope: as, Items: []*memsidecarv1.ResultItem{{Key: "/secret", Title: "spoilt"}}, ShownKeys: []string{"/spoilt"},
				ShowTime: timestamppb.New(time.Now().Add(time.Hour)),
			})
		},
	}
}

// TestResultsKeepPeopleApart: whoever tries whatever from wherever learns nothing and spoils nothing.
func TestResultsKeepPeopleApart(t *testing.T) {
	r := serve(t)
	attempts := resultAttempts(r)
	if want := methodNames(&memsidecarv1.ResultService_ServiceDesc); len(attempts) != len(want) {
		t.Fatalf("%d calls are tried, of %q", len(attempts), want)
	}
	victim := direct("ann")
	victim.SessionId, victim.ChannelId = "s", "dm"
	secret := &memsidecarv1.ResultItem{Key: "/secret", Title: "The Secret Film"}
	strangers := map[string]*memsidecarv1.Scope{
		"another user":             {UserId: "eve", ChannelKind: victim.GetChannelKind(), ChannelId: "dm", SessionId: "s"},
		"nobody":                   {ChannelKind: victim.GetChannelKind(), ChannelId: "dm", SessionId: "s"},
		"another namespace":        in("else/where", victim),
		"the user in a group":      {UserId: "ann", ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_GROUP, ChannelId: "dm", SessionId: "s"},
		"the user without channel": {UserId: "ann", ChannelId: "dm", SessionId: "s"},
	}
	for name, as := range strangers {
		for call, try := range attempts {
			r.putResults(t, &memsidecarv1.PutResultsRequest{Scope: victim, Items: []*memsidecarv1.ResultItem{secret}})
			resp, err := try(t.Context(), as)
			if code := status.Code(err); code != codes.OK && code != codes.NotFound && code != codes.FailedPrecondition {
				t.Errorf("%s, %s: %v", name, call, err)
			}
			if resp != nil && err == nil && strings.Contains(fmt.Sprint(resp), "Secret") {
				t.Errorf("%s, %s: sees %s", name, call, resp)
			}
			got := must(r.results().SelectResult(t.Context(), choice(victim, "1")))(t)
			if got.GetItem().GetKey() != "/secret" || got.GetItem().GetTitle() != secret.GetTitle() {
				t.Errorf("%s, %s: afterwards 1 is %s", name, call, got)
			}
			_, _ = attempts["DeleteResultList"](t.Context(), as) // so that the next call finds the stranger with nothing
		}
	}
}

// TestGroupsShareTheirList: one asks, another answers with a number; and a private list stays private.
func TestGroupsShareTheirList(t *testing.T) {
	r := serve(t)
	r.putResults(t, &memsidecarv1.PutResultsRequest{Scope: group("ann", "g"), Items: listing(3)})
	r.putResults(t, &memsidecarv1.PutResultsRequest{Scope: direct("ann"), Items: []*memsidecarv1.ResultItem{film("/private", "P")}})
	if got := r.selected(t, group("bob", "g"), "第二个"); got != "/mv/4LjJ" {
		t.Errorf("bob selects %s", got)
	}
	if got := r.selected(t, direct("ann"), "1"); got != "/private" {
		t.Errorf("ann alone selects %s", got)
	}
	_, err := r.results().SelectResult(t.Context(), choice(group("bob", "g2"), "1"))
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
	r.putResults(t, &memsidecarv1.PutResultsRequest{Scope: group("", "g"), Items: listing(1), Mode: scheduled})
	if got := r.seenKeys(t, group("bob", "g"), ofChannel); !slices.Equal(got, []string{"/mv/m7BA!"}) {
		t.Errorf("the group has seen %q", got)
	}
	r.stop()
	r = serveIn(t, r.dir, "visibility=user")
	if got := r.seenKeys(t, group("ann", "g"), 0); len(got) != 4 {
		t.Errorf("with visibility: user ann has seen %q in the group", got)
	}
}

func TestDeleteResultList(t *testing.T) {
	r := serve(t)
	scope := direct("u")
	remove := func(part memsidecarv1.ResultListPart) (*memsidecarv1.DeleteResultListResponse, error) {
		return r.results().DeleteResultList(t.Context(), &memsidecarv1.DeleteResultListRequest{Scope: scope, Part: part})
	}
	r.putResults(t, &memsidecarv1.PutResultsRequest{Scope: scope, Items: listing(3)})
	wantSame(t, must(remove(memsidecarv1.ResultListPart_RESULT_LIST_PART_REGISTRY))(t), &memsidecarv1.DeleteResultListResponse{ItemCount: 3})
	if got := r.selected(t, scope, "3"); got != "/mv/823D" {
		t.Errorf("without its registry 3 is %s", got)
	}
	wantSame(t, must(remove(memsidecarv1.ResultListPart_RESULT_LIST_PART_SHOWN))(t), &memsidecarv1.DeleteResultListResponse{ShownDeleted: true})
	_, err := r.results().SelectResult(t.Context(), choice(scope, "3"))
	wantCode(t, err, codes.FailedPrecondition)
	_, err = remove(0)
	wantCode(t, err, codes.NotFound)
	r.putResults(t, &memsidecarv1.PutResultsRequest{Scope: scope, Items: listing(2)})
	wantSame(t, must(remove(0))(t), &memsidecarv1.DeleteResultListResponse{ItemCount: 2, ShownDeleted: true})

	// A session takes what was shown in it along.
	scope.SessionId = "s"
	must(r.sessions().AppendMessages(t.Context(), &memsidecarv1.AppendMessagesRequest{Scope: scope, Messages: []*memsidecarv1.Message{said("x")}}))(t)
	r.putResults(t, &memsidecarv1.PutResultsRequest{Scope: scope, Items: listing(2)})
	must(r.sessions().DeleteSession(t.Context(), &memsidecarv1.DeleteSessionRequest{Scope: scope}))(t)
	_, err = r.results().SelectResult(t.Context(), choice(scope, "1"))
	wantCode(t, err, codes.FailedPrecondition)
}

// TestForgetAndExportResults: the user's are told and gone, a group's and the namespace's stay.
func TestForgetAndExportResults(t *testing.T) {
	r := serve(t)
	const mark = "Zyxwvutsrq"
	secret := []*memsidecarv1.ResultItem{{Key: "/" + mark, Title: mark, AttributesJson: `{"m": "` + mark + `"}`}}
	r.putResults(t, &memsidecarv1.PutResultsRequest{Scope: direct("alice"), Items: secret})
	r.putResults(t, &memsidecarv1.PutResultsRequest{Scope: group("alice", "g"), Items: secret, List: "films"})
	r.putResults(t, &memsidecarv1.PutResultsRequest{Scope: group("alice", "g"), RegistryKind: ofChannel, Items: listing(2), Mode: scheduled})
	r.putResults(t, &memsidecarv1.PutResultsRequest{Scope: direct("bob"), Items: listing(3)})
	var registries, items, lists int
	for _, record := range r.export(t, anywhere("alice")).records {
		switch record.GetRecord().(type) {
		case *memsidecarv1.ExportUserResponse_ResultRegistry:
			registries++
		case *memsidecarv1.ExportUserResponse_ResultItem:
			items++
			wantSame(t, record.GetResultItem(), &memsidecarv1.ResultItem{
				Key: "/" + mark, Title: mark, AttributesJson: secret[0].GetAttributesJson(), FirstSeenTime: record.GetResultItem().GetFirstSeenTime(),
			})
		case *memsidecarv1.ExportUserResponse_ResultList:
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
	if receipt.GetResultItemCount() != 2 || receipt.GetResultListCount() != 2 || !receipt.GetPurgedFromDisk() {
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

func TestImportResults(t *testing.T) {
	r := serve(t)
	at := timestamppb.New(time.Now().Add(-24 * time.Hour).Truncate(time.Microsecond))
	request := &memsidecarv1.ImportResultsRequest{
		Scope: direct("u"), LastCheckTime: at, ShownKeys: []string{"b", "a", "gone"}, ShowTime: at,
		Items: []*memsidecarv1.ResultItem{{Key: "a", Title: "A", Notified: true, FirstSeenTime: at}, {Key: "b", AttributesJson: "{}"}, {Key: "old", FirstSeenTime: timestamppb.New(at.AsTime().AddDate(-1, 0, 0))}},
	}
	wantSame(t, must(r.results().ImportResults(t.Context(), request))(t), &memsidecarv1.ImportResultsResponse{AddedCount: 3, Shown: true})
	items := must(r.results().ListItems(t.Context(), &memsidecarv1.ListItemsRequest{Scope: direct("u")}))(t)
	if len(items.GetItems()) != 3 || !proto.Equal(items.GetLastCheckTime(), at) || !proto.Equal(items.GetItems()[1], request.GetItems()[0]) {
		t.Errorf("imported %s", items)
	}
	if got := r.selected(t, direct("u"), "3"); got != "gone" {
		t.Errorf("3 is %s", got)
	}
	request.Items = request.GetItems()[:2]
	wantSame(t, must(r.results().ImportResults(t.Context(), request))(t), &memsidecarv1.ImportResultsResponse{SkippedCount: 2})
}

func TestWrongResults(t *testing.T) {
	r := serve(t)
	long := strings.Repeat("字", 1001)
	many := listing(501)
	future := timestamppb.New(time.Now().Add(48 * time.Hour))
	item := func(i *memsidecarv1.ResultItem) []*memsidecarv1.ResultItem { return []*memsidecarv1.ResultItem{i} }
	for i, test := range []struct {
		request proto.Message
		wrong   []string
	}{
		{&memsidecarv1.PutResultsRequest{}, []string{"scope", "items"}},
		{&memsidecarv1.PutResultsRequest{Scope: direct("u"), Items: many}, []string{"items"}},
		{&memsidecarv1.PutResultsRequest{Scope: direct("u"), Items: item(&memsidecarv1.ResultItem{Title: long, AttributesJson: "[]"}), List: "\n", Mode: 9, RegistryKind: 9, Language: "not one"}, []string{"items[0].key", "items[0].title", "items[0].attributes_json", "list", "mode", "registry_kind", "language"}},
		{&memsidecarv1.PutResultsRequest{Scope: direct("u"), Items: item(&memsidecarv1.ResultItem{Key: strings.Repeat("x", 2049), AttributesJson: `{"x": "` + strings.Repeat("y", 16<<10) + `"}`})}, []string{"items[0].key", "items[0].attributes_json"}},
		{&memsidecarv1.PutResultsRequest{Scope: direct("u"), Items: item(&memsidecarv1.ResultItem{Key: "a\nb"})}, []string{"items[0].key"}},
		{&memsidecarv1.PutResultsRequest{Scope: direct("u"), RegistryKind: ofChannel, Items: listing(1)}, []string{"scope.channel_id"}},
		{&memsidecarv1.PutResultsRequest{RegistryKind: memsidecarv1.ResultRegistryKind_RESULT_REGISTRY_KIND_USER, Mode: scheduled}, []string{"scope.user_id"}},
		{&memsidecarv1.SelectResultRequest{Scope: direct("u")}, []string{"ordinal"}},
		{choice(&memsidecarv1.Scope{}, "three movies"), []string{"scope"}},
		{choice(direct("u"), "three movies"), []string{"text"}},
		{&memsidecarv1.FilterUnseenRequest{Scope: direct("u"), Keys: []string{"a", ""}}, []string{"keys[1]"}},
		{&memsidecarv1.FilterUnseenRequest{Scope: direct("u"), Keys: make([]string, 5001)}, []string{"keys"}},
		{&memsidecarv1.ListItemsRequest{Scope: direct("u"), PageSize: -1, PageToken: "?"}, []string{"page_size", "page_token"}},
		{&memsidecarv1.GetResultListRequest{List: "\x00"}, []string{"scope", "list"}},
		{&memsidecarv1.DeleteResultListRequest{Part: 9}, []string{"part"}},
		{&memsidecarv1.ImportResultsRequest{Items: item(&memsidecarv1.ResultItem{Key: "a", FirstSeenTime: future}), ShownKeys: []string{""}, ShowTime: future, LastCheckTime: future}, []string{"scope", "items[0].first_seen_time", "shown_keys[0]", "show_time", "last_check_time"}},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) { wantInvalid(t, ask(t, r.conn, test.request), test.wrong...) })
	}
	if got := r.seenKeys(t, direct("u"), 0); len(got) != 0 {
		t.Errorf("stored %q", got)
	}
	for _, n := range []int32{0, -1, 2} {
		r.putResults(t, &memsidecarv1.PutResultsRequest{Scope: direct("u"), Items: listing(1)})
		_, err := r.results().SelectResult(t.Context(), &memsidecarv1.SelectResultRequest{Scope: direct("u"), Selector: &memsidecarv1.SelectResultRequest_Ordinal{Ordinal: n}})
		wantCode(t, err, codes.OutOfRange)
	}
}

// TestSeedFileStaysAsItIs: the importer only reads.
func TestSeedFileStaysAsItIs(t *testing.T) {
	r := serve(t)
	path := t.TempDir() + "/seen_movies.json"
	const text = `{"movies": {"/mv/823D": {"title": "x", "first_seen": "2026-02-19"}}, "last_query": {"urls": ["/mv/823D"]}}`
	mustDo(t, os.WriteFile(path, []byte(text), 0o400))
	if code, _, errs := runMain(t, "results", "import", "--addr", r.addr, "-u", "u", "--show", path); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if got := r.selected(t, anywhere("u"), "1"); got != "/mv/823D" || string(must(os.ReadFile(path))(t)) != text {
		t.Errorf("selects %s", got)
	}
}

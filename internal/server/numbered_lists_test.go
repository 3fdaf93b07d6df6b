package server_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

const (
	manual    = memsidecarv1.PutMode_PUT_MODE_MANUAL
	scheduled = memsidecarv1.PutMode_PUT_MODE_SCHEDULED

	ofNamespace = memsidecarv1.RegistryKind_REGISTRY_KIND_NAMESPACE
	ofChannel   = memsidecarv1.RegistryKind_REGISTRY_KIND_CHANNEL
)

func lists(r *sidecartest.Sidecar) memsidecarv1.NumberedListServiceClient {
	return memsidecarv1.NewNumberedListServiceClient(r.Conn)
}

// film returns an item as the film bot's tool sends it.
func film(url, title string) *memsidecarv1.RegistryItem {
	return &memsidecarv1.RegistryItem{
		Key:            url,
		Title:          title,
		AttributesJson: fmt.Sprintf(`{"rating": "7.%d",  "tag": %q}`, len(title)%10, title),
	}
}

// listing returns n films of the site.
func listing(n int) []*memsidecarv1.RegistryItem {
	items := []*memsidecarv1.RegistryItem{film("/mv/m7BA", "得闲谨制"), film("/mv/4LjJ", "镖人"), film("/mv/823D", "惊变28年2：白骨圣殿")}
	for i := len(items); i < n; i++ {
		items = append(items, film(fmt.Sprintf("/mv/x%d", i), fmt.Sprintf("影片第%d号", i)))
	}
	return items[:n]
}

func putItems(t *testing.T, r *sidecartest.Sidecar, request *memsidecarv1.PutItemsRequest) *memsidecarv1.PutItemsResponse {
	t.Helper()
	return sidecartest.Must(lists(r).PutItems(t.Context(), request))(t)
}

// selected returns the key that a text selects.
func selected(t *testing.T, r *sidecartest.Sidecar, scope *memsidecarv1.Scope, text string) string {
	t.Helper()
	return sidecartest.Must(lists(r).SelectItems(t.Context(), choice(scope, text)))(t).GetItem().GetKey()
}

func choice(scope *memsidecarv1.Scope, text string) *memsidecarv1.SelectItemsRequest {
	return &memsidecarv1.SelectItemsRequest{Scope: scope, Selector: &memsidecarv1.SelectItemsRequest_Text{Text: text}}
}

// seenKeys returns a registry's keys, newest first. Notified ones are marked.
func seenKeys(t *testing.T, r *sidecartest.Sidecar, scope *memsidecarv1.Scope, kind memsidecarv1.RegistryKind) []string {
	t.Helper()
	keys := []string{}
	for _, item := range sidecartest.Must(lists(r).ListItems(
		t.Context(), &memsidecarv1.ListItemsRequest{Scope: scope, RegistryKind: kind, PageSize: 1000},
	))(t).GetItems() {
		key := item.GetKey()
		if item.GetNotified() {
			key += "!"
		}
		keys = append(keys, key)
	}
	return keys
}

func newKeys(resp *memsidecarv1.PutItemsResponse) []string {
	var keys []string
	for _, n := range resp.GetItems() {
		if n.GetIsNew() {
			keys = append(keys, n.GetItem().GetKey())
		}
	}
	return keys
}

// TestNumberedListAnswersWithTheRealURL: A bot shows twelve films as text. The user answers "3", and the bot looks up the real URL
// instead of inventing one, also after a restart.
func TestNumberedListAnswersWithTheRealURL(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	scope := sidecartest.Direct("小林")
	scope.SessionId, scope.ChannelId = "telegram_1", "1"

	// Turn 1: the tool stores its results. The session has only the text of the answer.
	films := listing(12)
	put := putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: scope, Items: films})
	if put.GetNewCount() != 12 || put.GetLastCheckTime() != nil || put.GetEvictedCount() != 0 {
		t.Errorf("put %s", put)
	}
	for i, n := range put.GetItems() {
		if int(n.GetNumber()) != i+1 || n.GetItem().GetKey() != films[i].GetKey() || !n.GetIsNew() || n.GetItem().GetNotified() ||
			n.GetItem().GetFirstSeenTime() == nil {
			t.Errorf("item %d is %s", i, n)
		}
	}
	for _, says := range []string{"1–12", "SelectItems", "严禁"} {
		if !strings.Contains(put.GetPromptLine(), says) {
			t.Errorf("the prompt line lacks %q: %s", says, put.GetPromptLine())
		}
	}
	text := "最新影片列表：\n1. 得闲谨制\n2. 镖人\n3. 惊变28年2：白骨圣殿"
	sidecartest.Must(r.Sessions().AppendMessages(t.Context(), &memsidecarv1.AppendMessagesRequest{
		Scope: scope, Messages: []*memsidecarv1.Message{sidecartest.Said("查询最新的电影信息"), sidecartest.Answered(text)},
	}))(t)
	context := sidecartest.Must(r.Sessions().GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: scope}))(t)
	if strings.Contains(context.GetPromptContext(), "/mv/") {
		t.Error("the conversation has URLs, so nothing is shown by this test")
	}

	// Turn 2: "3".
	r.Stop()
	r = sidecartest.ServeIn(t, r.Dir)
	for _, said := range []string{"3", "３", "三", "第三个", "第3部", "第 3 条", "number three", "the third one", "#3", "倒数第十个"} {
		got := sidecartest.Must(lists(r).SelectItems(t.Context(), choice(scope, said)))(t)
		if got.GetItem().GetKey() != "/mv/823D" || got.GetItem().GetTitle() != "惊变28年2：白骨圣殿" || got.GetNumber() != 3 || got.GetItemCount() != 12 ||
			got.GetItem().GetAttributesJson() != films[2].GetAttributesJson() ||
			!strings.Contains(got.GetPromptLine(), "/mv/823D") {
			t.Errorf("%q selects %s", said, got)
		}
	}
	byNumber := sidecartest.Must(lists(r).SelectItems(t.Context(), &memsidecarv1.SelectItemsRequest{
		Scope: scope, Selector: &memsidecarv1.SelectItemsRequest_Ordinal{Ordinal: 3}, Language: "en",
	}))(t)
	if byNumber.GetItem().GetKey() != "/mv/823D" || !strings.Contains(byNumber.GetPromptLine(), "never guess") {
		t.Errorf("3 selects %s", byNumber)
	}
	for _, last := range []string{"last", "the last one", "最后一个"} {
		if got := selected(t, r, scope, last); got != films[11].GetKey() {
			t.Errorf("%q selects %s", last, got)
		}
	}

	// The URL gives the details. Selecting changes nothing.
	details := map[string]string{"/mv/823D": "magnet:?xt=real"}
	if details[byNumber.GetItem().GetKey()] != "magnet:?xt=real" {
		t.Error("the URL is not the site's")
	}
	list := sidecartest.Must(lists(r).GetNumberedList(t.Context(), &memsidecarv1.GetNumberedListRequest{Scope: scope}))(t).GetNumberedList()
	if len(list.GetItems()) != 12 || list.GetExpireTime() != nil || list.GetList() != "default" ||
		!proto.Equal(list.GetShowTime(), byNumber.GetShowTime()) {
		t.Errorf("the list is %s", list)
	}

	// Unknown numbers select nothing.
	_, err := lists(r).SelectItems(t.Context(), choice(scope, "13"))
	sidecartest.WantCode(t, err, codes.OutOfRange)
	if !strings.Contains(err.Error(), "1 to 12") {
		t.Errorf("does not say the range: %v", err)
	}
	_, err = lists(r).SelectItems(t.Context(), choice(scope, "查询最新的电影信息"))
	sidecartest.WantInvalid(t, err, "text")
	_, err = lists(r).SelectItems(t.Context(), choice(sidecartest.Direct("another"), "3"))
	sidecartest.WantCode(t, err, codes.FailedPrecondition)
	_, err = lists(r).GetNumberedList(t.Context(), &memsidecarv1.GetNumberedListRequest{Scope: sidecartest.Direct("another")})
	sidecartest.WantCode(t, err, codes.NotFound)

	// A new search (scene A) replaces the list: "3" is now another film. The first list's items are still in the registry.
	found := []*memsidecarv1.RegistryItem{film("/mv/new", "新片"), film("/mv/m7BA", "得闲谨制"), film("/mv/new", "新片")}
	put = putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: scope, Items: found, Mode: manual})
	if got := newKeys(put); !slices.Equal(got, []string{"/mv/new"}) || put.GetItems()[2].GetNumber() != 3 {
		t.Errorf("the search is %s", put)
	}
	if got := selected(t, r, scope, "3"); got != "/mv/new" {
		t.Errorf("3 is %s", got)
	}
	if n := len(seenKeys(t, r, scope, 0)); n != 13 {
		t.Errorf("%d films are known", n)
	}
}

// TestScheduledCheckReportsNewItemsOnce: This follows section 4 of the first design.
func TestScheduledCheckReportsNewItemsOnce(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	site, user := &memsidecarv1.Scope{}, sidecartest.WithoutChannel("小林") // the scheduled job has no user
	show := func(items ...*memsidecarv1.RegistryItem) *memsidecarv1.PutItemsResponse {
		t.Helper()
		return putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: user, RegistryKind: ofNamespace, Items: items, Mode: manual})
	}
	check := func(items ...*memsidecarv1.RegistryItem) *memsidecarv1.PutItemsResponse {
		t.Helper()
		return putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: site, Items: items, Mode: scheduled})
	}
	// The user has seen these twelve: the check need not report them.
	show(listing(12)...)
	first := check(append(listing(12), film("/mv/n1", "新一"), film("/mv/n2", "新二"))...)
	if got := newKeys(first); !slices.Equal(got, []string{"/mv/n1", "/mv/n2"}) || first.GetLastCheckTime() == nil {
		t.Errorf("new are %q", got)
	}
	for i, n := range first.GetItems() {
		if n.GetItem().GetNotified() != (i >= 12) {
			t.Errorf("item %d is %s", i, n)
		}
	}
	if !strings.Contains(first.GetPromptLine(), "SelectItems") || strings.Contains(first.GetPromptLine(), "1–14") {
		t.Errorf("the prompt line is %q", first.GetPromptLine())
	}
	// Reported items are not reported again. The user's shown list is unchanged.
	second := check(append(listing(12), film("/mv/n1", "改名"), film("/mv/n2", "新二"))...)
	if second.GetNewCount() != 0 || !second.GetLastCheckTime().AsTime().After(first.GetLastCheckTime().AsTime()) ||
		second.GetItems()[12].GetItem().GetTitle() != "新一" {
		t.Errorf("the second check is %s", second)
	}
	if got := selected(t, r, user, "12"); got != "/mv/x11" {
		t.Errorf("12 is %s", got)
	}
	_, err := lists(r).SelectItems(t.Context(), choice(user, "13"))
	sidecartest.WantCode(t, err, codes.OutOfRange)
	// After the user was shown a reported item, it stays notified. last_check remains the job's.
	shown := show(film("/mv/n1", "新一"), film("/mv/n3", "新三"))
	if n := shown.GetItems(); !n[0].GetItem().GetNotified() || n[0].GetIsNew() || n[1].GetItem().GetNotified() || !n[1].GetIsNew() ||
		!proto.Equal(shown.GetLastCheckTime(), second.GetLastCheckTime()) {
		t.Errorf("shown are %s", shown)
	}
	unseen := sidecartest.Must(
		lists(
			r,
		).FilterUnseen(t.Context(), &memsidecarv1.FilterUnseenRequest{Scope: site, Keys: []string{"/mv/n9", "/mv/n3", "/mv/n1", "/mv/n9"}}),
	)(
		t,
	)
	if !slices.Equal(unseen.GetUnseenKeys(), []string{"/mv/n9"}) || !proto.Equal(unseen.GetLastCheckTime(), second.GetLastCheckTime()) {
		t.Errorf("unseen are %s", unseen)
	}
	// An empty result is not an error.
	if none := check(); none.GetNewCount() != 0 || none.GetLastCheckTime() == nil {
		t.Errorf("an empty check is %s", none)
	}
}

// TestConcurrentPutItems: Of concurrent callers each item is new for one, and each list is stored as it was sent.
func TestConcurrentPutItems(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	var mu sync.Mutex
	times := map[string]int{}
	var wg sync.WaitGroup
	for writer := range 6 {
		wg.Go(func() {
			scope := sidecartest.WithoutChannel(fmt.Sprintf("user-%d", writer))
			request := &memsidecarv1.PutItemsRequest{Scope: scope, RegistryKind: ofNamespace, Items: listing(12)}
			if writer%3 == 0 {
				request.Mode = scheduled
			}
			slices.Reverse(request.GetItems()[:writer])
			for range 4 {
				resp, err := lists(r).PutItems(t.Context(), request)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, key := range newKeys(resp) {
					times[key]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(times) != 12 {
		t.Errorf("new were %v", times)
	}
	for key, n := range times {
		if n != 1 {
			t.Errorf("%s was new %d times", key, n)
		}
	}
	for writer := range 6 {
		want := listing(12)
		slices.Reverse(want[:writer])
		scope := sidecartest.WithoutChannel(fmt.Sprintf("user-%d", writer))
		if writer%3 == 0 {
			_, err := lists(r).SelectItems(t.Context(), choice(scope, "1"))
			sidecartest.WantCode(t, err, codes.FailedPrecondition)
		} else if got := selected(t, r, scope, "1"); got != want[0].GetKey() {
			t.Errorf("user %d's first is %s, want %s", writer, got, want[0].GetKey())
		}
	}
}

// TestLargestNumberedListFitsIntoOneAnswer: A list of the maximum size fits into gRPC clients' default message size.
func TestLargestNumberedListFitsIntoOneAnswer(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "numbered_lists.max_items=1000")
	scope := sidecartest.Direct("u")
	attributes := `{"x": "` + strings.Repeat("y", 16000) + `"}`
	for part := range 3 {
		items := make([]*memsidecarv1.RegistryItem, 125)
		for i := range items {
			items[i] = &memsidecarv1.RegistryItem{Key: fmt.Sprintf("%d-%d", part, i), AttributesJson: attributes}
		}
		putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: scope, Items: items})
	}
	sidecartest.Must(lists(r).GetNumberedList(t.Context(), &memsidecarv1.GetNumberedListRequest{Scope: scope}))(t)
	request := &memsidecarv1.ListItemsRequest{Scope: scope, PageSize: 1000}
	got := 0
	for {
		page := sidecartest.Must(lists(r).ListItems(t.Context(), request))(t)
		got += len(page.GetItems())
		if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
			break
		}
	}
	if got != 375 {
		t.Errorf("%d items on all pages", got)
	}
	_, err := lists(
		r,
	).PutItems(
		t.Context(),
		&memsidecarv1.PutItemsRequest{Scope: scope, Items: slices.Repeat([]*memsidecarv1.RegistryItem{{Key: "k", AttributesJson: attributes}}, 140)},
	)
	sidecartest.WantInvalid(t, err, "items")
}

// TestRegistryLimitsAreConfigurable: The registry obeys the configured limits. A shown list keeps its items.
func TestRegistryLimitsAreConfigurable(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "numbered_lists.max_items=5")
	scope := sidecartest.Direct("u")
	putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: scope, Items: listing(3)})
	resp := putItems(
		t,
		r,
		&memsidecarv1.PutItemsRequest{
			Scope: scope,
			Items: []*memsidecarv1.RegistryItem{film("a", "A"), film("b", "B"), film("c", "C"), film("d", "D")},
			Mode:  scheduled,
		},
	)
	if resp.GetEvictedCount() != 2 {
		t.Errorf("evicted %d", resp.GetEvictedCount())
	}
	if got := seenKeys(t, r, scope, 0); !slices.Equal(got, []string{"a!", "b!", "c!", "d!", "/mv/823D"}) {
		t.Errorf("kept %q", got)
	}
	if got := selected(t, r, scope, "1"); got != "/mv/m7BA" {
		t.Errorf("1 is %s", got)
	}
	r.Stop()
	r = sidecartest.ServeIn(t, r.Dir, "numbered_lists.list_ttl=1us", "numbered_lists.max_age=1us")
	if got := seenKeys(t, r, scope, 0); len(got) != 0 { // swept at start, or about to be
		putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: scope, Mode: scheduled})
		if got := seenKeys(t, r, scope, 0); len(got) != 0 {
			t.Errorf("kept %q", got)
		}
	}
	_, err := lists(r).SelectItems(t.Context(), choice(scope, "3"))
	sidecartest.WantCode(t, err, codes.FailedPrecondition)
	if !strings.Contains(err.Error(), "numbered_lists.list_ttl") {
		t.Errorf("does not say why: %v", err)
	}
}

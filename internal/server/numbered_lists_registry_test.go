package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// filmPage returns a page of n films, numbered from first.
func filmPage(first, n int) []*memsidecarv1.RegistryItem {
	items := make([]*memsidecarv1.RegistryItem, n)
	for i := range items {
		items[i] = film(fmt.Sprintf("/mv/page-%d", first+i), fmt.Sprintf("影片%d", first+i))
	}
	return items
}

// TestScheduledCheckReportsOnceInAFullRegistry: 25 sessions show 300 films. The registry respects its limit, and a scheduled check
// reports a new film once.
func TestScheduledCheckReportsOnceInAFullRegistry(t *testing.T) {
	t.Parallel()
	const limit = 100
	r := sidecartest.Serve(t, fmt.Sprintf("numbered_lists.max_items=%d", limit))
	site := &memsidecarv1.Scope{}
	for session := range 25 {
		scope := sidecartest.Direct("小林")
		scope.SessionId = fmt.Sprintf("s%d", session)
		putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: scope, RegistryKind: ofNamespace, Items: filmPage(12*session, 12)})
	}
	if n := len(seenKeys(t, r, site, ofNamespace)); n != limit {
		t.Errorf("the registry holds %d items, want %d", n, limit)
	}
	page := append(filmPage(288, 11), film("/mv/new", "新片"))
	for night := range 5 {
		resp := putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: site, Items: page, Mode: scheduled})
		if want := int32(max(0, 1-night)); resp.GetNewCount() != want {
			t.Errorf("night %d reports %d new films: %v", night, resp.GetNewCount(), newKeys(resp))
		}
	}
	if n := len(seenKeys(t, r, site, ofNamespace)); n != limit {
		t.Errorf("the registry holds %d items, want %d", n, limit)
	}
	// A shown list keeps items that the registry has evicted.
	first := sidecartest.Direct("小林")
	first.SessionId = "s0"
	if got := selected(t, r, first, "3"); got != "/mv/page-2" {
		t.Errorf("3 is %s", got)
	}
}

// TestBusyDayDoesNotRenewCheckedItems: By default, 30 searches between two nightly checks do not make the checks' films new again.
func TestBusyDayDoesNotRenewCheckedItems(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	site, user := &memsidecarv1.Scope{}, sidecartest.Direct("小林")
	for day := range 3 {
		resp := putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: site, Items: filmPage(0, 48), Mode: scheduled})
		if want := int32(max(0, 48-48*day)); resp.GetNewCount() != want {
			t.Errorf("night %d reports %d new films, want %d", day, resp.GetNewCount(), want)
		}
		for search := range 30 {
			putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: user, RegistryKind: ofNamespace, Items: filmPage(1000*(day+1)+12*search, 12)})
		}
	}
}

// TestImportingAnOldFileAgainAddsNothing: The films of a seen_movies.json are older than numbered_lists.max_age. The first import stores
// them; the second reports them as existing.
func TestImportingAnOldFileAgainAddsNothing(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	scope := sidecartest.Direct("小林")
	items := filmPage(0, 40)
	for i, item := range items {
		item.FirstSeenTime, item.Notified = timestamppb.New(time.Date(2024, 2, 19, 9, 41, 42, 0, time.UTC)), i%2 == 0
	}
	for round := range 3 {
		resp := sidecartest.Must(lists(r).ImportNumberedList(t.Context(), &memsidecarv1.ImportNumberedListRequest{Scope: scope, Items: items}))(t)
		added, there := int32(0), int32(40)
		if round == 0 {
			added, there = 40, 0
		}
		if resp.GetAddedCount() != added || resp.GetSkippedCount() != there || resp.GetEvictedCount() != 0 {
			t.Errorf("import %d: %s", round, resp)
		}
	}
	if check := putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: scope, Items: filmPage(0, 40), Mode: scheduled}); check.GetNewCount() != 0 {
		t.Errorf("a check reports %d imported films as new", check.GetNewCount())
	}
}

// TestBlankTitleIsIgnored: A blank title neither replaces an existing one nor appears in the prompt.
func TestBlankTitleIsIgnored(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	scope := sidecartest.Direct("小林")
	putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: scope, Items: []*memsidecarv1.RegistryItem{film("/mv/1", "得闲谨制"), {Key: "/mv/2"}}})
	putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: scope, Items: []*memsidecarv1.RegistryItem{{Key: "/mv/1", Title: " \t"}, {Key: "/mv/2"}}})
	one := sidecartest.Must(lists(r).SelectItems(t.Context(), choice(scope, "1")))(t)
	if one.GetItem().GetTitle() != "得闲谨制" {
		t.Errorf("1 is %s", one)
	}
	request := choice(scope, "2")
	request.Language = "zh"
	two := sidecartest.Must(lists(r).SelectItems(t.Context(), request))(t)
	if strings.Contains(two.GetPromptLine(), "：；") || !strings.Contains(two.GetPromptLine(), "/mv/2") {
		t.Errorf("2 is %s", two)
	}
}

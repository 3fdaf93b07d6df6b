package liststest

import (
	"fmt"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/lists"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// testRegistryParts: Items seen in one channel are not visible in others, but a direct chat sees all of them.
func testRegistryParts(s *suite) {
	s.manual(ann(lobby), "", films("a", "b")...)
	s.later(time.Minute)
	done := s.manual(ann(attic), "", lists.Item{Key: "b", Title: "of the attic"}, lists.Item{Key: "c"})
	s.want("another group", rendered(done.Items), "1:b new +1, 2:c new +1")
	s.later(time.Minute)
	done = s.manual(ann(direct), "", films("a", "d")...)
	s.want("alone", rendered(done.Items), "1:a, 2:d new +2")
	s.want("alone", s.items(s.view(ann(direct), "", "")), "d c a b")
	s.want("lobby", s.items(s.view(ann(lobby), "", "")), "a b")
	s.want("attic", s.items(s.view(ann(attic), "", "")), "b c")
	s.want("no channel", s.items(s.view(ann(memory.Channel{}), "", "")), "")
	page, err := s.store.Items(s.Context(), s.view(ann(lobby), "", ""), "", 10)
	if err != nil || page.Items[1].Title != "B" {
		s.Errorf("the lobby sees %+v, %v", page.Items, err)
	}
	s.later(time.Minute)
	done = s.scheduled(ann(direct), "", films("c", "e")...)
	s.want("a check of all", rendered(done.Items), "1:c +1, 2:e new notified +3")
	if page, err = s.store.Items(s.Context(), s.view(ann(lobby), "", ""), "", 10); err != nil || !page.LastCheck.IsZero() {
		s.Errorf("the lobby's last check is %s, %v", page.LastCheck, err)
	}
	// A direct chat keeps the items it took from a group's part after that part is deleted.
	s.scheduled(ann(attic), "", films("told")...)
	s.later(time.Minute)
	s.manual(ann(direct), "", films("told")...)
	gone := s.view(ann(attic), "", "")
	if _, _, _, err := s.store.Delete(s.Context(), &gone, nil, "default"); err != nil {
		s.Fatal(err)
	}
	s.want("without the attic", rendered(s.scheduled(ann(direct), "", films("told")...).Items), "1:told notified +3")
}

// testSeparateRegistries: Registries of different users, names and kinds share nothing.
func testSeparateRegistries(s *suite) {
	dm := memory.Channel{Kind: memory.ChannelDirect, ID: "dm"}
	type registry struct {
		scope memory.Scope
		kind  lists.Kind
		list  string
	}
	all := []registry{
		{ann(dm), lists.KindUser, ""},
		{ann(dm), lists.KindUser, "papers"},
		{ann(dm), lists.KindChannel, ""},
		{ann(dm), lists.KindNamespace, ""},
		{of("bob", dm), lists.KindUser, ""},
		{of("bob", dm), lists.KindChannel, ""},
		{of("", dm), lists.KindChannel, ""},
		{of("", lobby), lists.KindChannel, ""},
		{of("", attic), lists.KindChannel, ""},
		{of("", memory.Channel{ID: "dm"}), lists.KindChannel, ""},
		{of("", memory.Channel{Kind: memory.ChannelGroup, ID: "dm"}), lists.KindChannel, ""},
		{memory.Scope{Namespace: "tenant/other", UserID: "ann", Channel: dm}, lists.KindUser, ""},
		{memory.Scope{Namespace: "tenant/other"}, lists.KindNamespace, ""},
	}
	for i, r := range all {
		done := s.put(lists.Put{View: s.view(r.scope, r.kind, r.list), Mode: lists.Scheduled, Items: films("same", fmt.Sprint(i))})
		s.want(fmt.Sprint(i), rendered(done.Items), fmt.Sprintf("1:same new notified, 2:%d new notified", i))
	}
	for i, r := range all {
		s.want(fmt.Sprint(i), s.items(s.view(r.scope, r.kind, r.list)), fmt.Sprintf("same! %d!", i))
	}
	// All members of a group share its registries. All users of a namespace share the namespace's.
	s.want("group", s.items(s.view(of("bob", lobby), lists.KindChannel, "")), "same! 7!")
	s.want("namespace", s.items(s.view(of("bob", attic), lists.KindNamespace, "")), "same! 3!")
}

// testPlaces: A list is shown where it was put, to callers that may see it.
func testPlaces(s *suite) {
	dm := memory.Channel{Kind: memory.ChannelDirect, ID: "dm"}
	places := []memory.Scope{
		ann(memory.Channel{}),
		ann(dm),
		of("bob", dm),
		of("", dm),
		ann(memory.Channel{Kind: memory.ChannelDirect, ID: "dm2"}),
		ann(lobby),
		ann(attic),
		inSession(ann(memory.Channel{}), "s"),
		inSession(ann(dm), "s"),
		inSession(of("bob", dm), "s"),
		inSession(ann(lobby), "s"),
		inSession(ann(lobby), "s2"),
		inSession(of("", memory.Channel{}), "s"),
		{Namespace: "tenant/other", UserID: "ann"},
	}
	for i, scope := range places {
		s.want(fmt.Sprintf("%d before", i), s.shown(scope, ""), "none")
		s.manual(scope, lists.KindNamespace, films(fmt.Sprint(i))...)
	}
	for i, scope := range places {
		s.want(fmt.Sprint(i), s.shown(scope, ""), fmt.Sprint(i))
	}
	s.want("another in the group", s.shown(of("bob", lobby), ""), "5")
	s.want("another in the group's session", s.shown(inSession(of("bob", lobby), "s"), ""), "10")
	s.want("another", s.shown(of("bob", memory.Channel{}), ""), "none")
	s.want("another with the session's id", s.shown(inSession(of("eve", dm), "s"), ""), "none")
	s.want("without a user, in the session", s.shown(inSession(of("", dm), "s"), ""), "none")
	// A direct chat without an id sees lists shown to its user outside of any channel, but not the reverse.
	s.want("a direct chat", s.shown(ann(direct), ""), "0")
	s.later(time.Minute)
	s.manual(ann(direct), "", films("secret")...)
	s.want("a direct chat", s.shown(ann(direct), ""), "secret")
	s.want("no channel", s.shown(ann(memory.Channel{}), ""), "0")
}

func testShownLast(s *suite) {
	me := ann(direct)
	s.named(me, "", "films", films("f1", "f2")...)
	s.later(time.Minute)
	s.named(me, "", "papers", films("p1")...)
	s.want("last", s.shown(me, ""), "p1")
	s.want("films", s.shown(me, "films"), "f1 f2")
	s.want("papers", s.shown(me, "papers"), "p1")
	all, err := s.store.AllShown(s.Context(), place(me), time.Time{})
	if err != nil || len(all) != 2 || all[0].List != "papers" || all[1].List != "films" || len(all[1].Items) != 2 {
		s.Errorf("all are %+v, %v", all, err)
	}
	if all, err := s.store.AllShown(s.Context(), place(me), s.now); err != nil || len(all) != 0 {
		s.Errorf("all after now are %+v, %v", all, err)
	}
	s.want("others", s.shown(me, "default"), "none")
	s.later(time.Minute)
	s.named(me, "", "films", films("f3")...)
	s.want("last", s.shown(me, ""), "f3")
}

// testShownIsCurrent: A list shows the registry's current items. If the registry is gone, it shows the items as they were.
func testShownIsCurrent(s *suite) {
	me, elsewhere := ann(direct), inSession(ann(direct), "s2")
	first := func() lists.Item {
		s.Helper()
		l, err := s.store.Shown(s.Context(), place(me), "", time.Time{})
		if err != nil {
			s.Fatal(err)
		}
		return l.Items[0].Item
	}
	s.manual(me, "", lists.Item{Key: "a", Title: "old", Attributes: `{"rating":"6.9"}`})
	s.later(time.Minute)
	s.manual(elsewhere, "", lists.Item{Key: "a", Title: "new", Attributes: `{"rating":"7.2"}`})
	if got := first(); got.Title != "new" || got.Attributes != `{"rating":"7.2"}` || !got.FirstSeen.Equal(t0) {
		s.Errorf("shows %+v", got)
	}
	view := s.view(me, "", "")
	if items, registry, shown, err := s.store.Delete(s.Context(), &view, nil, "default"); items != 1 || !registry || shown || err != nil {
		s.Errorf("deleted %d, %v, %v, %v", items, registry, shown, err)
	}
	if got := first(); got.Key != "a" || got.Title != "old" {
		s.Errorf("without its registry shows %+v", got)
	}
	s.manual(of("bob", direct), "", lists.Item{Key: "a", Title: "bob's"}) // has its own row
	if got := first(); got.Title != "old" {
		s.Errorf("shows another's %+v", got)
	}
}

func testUnseen(s *suite) {
	s.scheduled(ann(direct), "", films("a", "b", "c")...)
	s.manual(ann(lobby), "", films("d")...)
	unseen := func(scope memory.Scope, keys ...string) string {
		s.Helper()
		found, last, err := s.store.Unseen(s.Context(), s.view(scope, "", ""), keys, s.now)
		if err != nil {
			s.Error(err)
		}
		return fmt.Sprint(found, last.IsZero())
	}
	s.want("alone", unseen(ann(direct), "x", "b", "z", "d", "x", "a", "y"), "[x z y] false")
	s.want("in a group", unseen(ann(lobby), "b", "d"), "[b] true")
	s.want("another", unseen(of("bob", direct), "b", "d"), "[b d] true")
	s.want("nothing", unseen(ann(direct)), "[] false")
	s.want("case and form count", unseen(ann(direct), "A", "a ", "ａ"), "[A a  ａ] false")
}

func testItemsPages(s *suite) {
	me := ann(direct)
	var want []string
	for batch := range 3 {
		var keys []string
		for i := range 4 {
			keys = append(keys, fmt.Sprintf("%d-%d", batch, i))
		}
		s.scheduled(me, "", films(keys...)...)
		want = append(keys, want...)
		s.later(time.Minute)
	}
	var got []string
	after := ""
	for {
		page, err := s.store.Items(s.Context(), s.view(me, "", ""), after, 5)
		if err != nil || page.Total != 12 || len(page.Items) > 5 {
			s.Fatalf("%d items, %v", len(page.Items), err)
		}
		for _, item := range page.Items {
			got = append(got, item.Key)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	s.want("all pages", strings.Join(got, " "), strings.Join(want, " "))
	if _, err := s.store.Items(s.Context(), s.view(me, "", ""), "rubbish", 5); err == nil {
		s.Error("any token is accepted")
	}
}

func testDelete(s *suite) {
	me, here := ann(direct), place(ann(direct))
	deleted := func(v *lists.View, p *lists.Place, list string) string {
		s.Helper()
		items, registry, shown, err := s.store.Delete(s.Context(), v, p, list)
		if err != nil {
			s.Error(err)
		}
		return fmt.Sprintf("%d registry=%v shown=%v", items, registry, shown)
	}
	view, films2 := s.view(me, "", ""), s.view(me, "", "films")
	s.want("nothing", deleted(&view, &here, "default"), "0 registry=false shown=false")
	s.manual(me, "", films("a", "b")...)
	s.manual(ann(lobby), "", films("c")...)
	s.named(me, "", "films", films("f")...)
	s.manual(of("bob", direct), "", films("bobs")...)
	s.want("shown", deleted(nil, &here, "default"), "0 registry=false shown=true")
	s.want("shown", s.shown(me, "default")+" "+s.shown(me, ""), "none f")
	s.want("registry", s.items(view), "a b c")
	lobbys := s.view(ann(lobby), "", "")
	s.want("a group's part", deleted(&lobbys, nil, "default"), "1 registry=true shown=false")
	s.want("registry", s.items(view), "a b")
	s.want("both", deleted(&films2, &here, "films"), "1 registry=true shown=true")
	s.want("all", deleted(&view, &here, "default"), "2 registry=true shown=false")
	s.want("another's", s.items(s.view(of("bob", direct), "", "")), "bobs")
}

func testForget(s *suite) {
	user := memory.User{Namespace: "tenant/site", ID: "ann"}
	dm := memory.Channel{Kind: memory.ChannelDirect, ID: "dm"}
	s.manual(ann(direct), "", films("a", "b")...)
	s.manual(ann(lobby), "", films("c")...)                                // shown to all in the lobby
	s.manual(ann(dm), lists.KindChannel, films("d")...)                    // ann's in this chat
	s.manual(inSession(ann(lobby), "s"), lists.KindChannel, films("e")...) // the lobby's
	s.manual(ann(memory.Channel{}), lists.KindNamespace, films("f")...)    // shown to ann
	s.manual(of("bob", direct), "", films("bobs")...)
	s.manual(memory.Scope{Namespace: "tenant/other", UserID: "ann"}, "", films("elsewhere")...)
	got, err := s.store.Forget(s.Context(), user)
	if want := (lists.Forgotten{Items: 4, Lists: 4}); err != nil || got != want {
		s.Errorf("forgot %+v, %v; want %+v", got, err, want)
	}
	s.want("ann's", s.items(s.view(ann(direct), "", ""))+s.items(s.view(ann(dm), lists.KindChannel, "")), "")
	s.want("shown", s.shown(ann(direct), "")+"|"+s.shown(ann(dm), "")+"|"+s.shown(ann(lobby), ""), "none|none|none")
	s.want("the lobby's", s.items(s.view(of("", lobby), lists.KindChannel, ""))+" "+s.shown(inSession(of("bob", lobby), "s"), ""), "e e")
	s.want("the namespace's", s.items(s.view(of("bob", direct), lists.KindNamespace, "")), "f")
	s.want("bob's", s.shown(of("bob", direct), ""), "bobs")
	s.want("elsewhere", s.shown(memory.Scope{Namespace: "tenant/other", UserID: "ann"}, ""), "elsewhere")
	if got, err = s.store.Forget(s.Context(), user); err != nil || got != (lists.Forgotten{}) {
		s.Errorf("again forgot %+v, %v", got, err)
	}
	if got, err = s.store.Forget(s.Context(), memory.User{Namespace: "tenant/site"}); err != nil || got != (lists.Forgotten{}) {
		s.Errorf("without a user forgot %+v, %v", got, err)
	}
}

func testForgetSession(s *suite) {
	for _, scope := range []memory.Scope{inSession(ann(direct), "s"), inSession(ann(lobby), "s"), inSession(ann(direct), "s2"), ann(direct)} {
		s.manual(scope, "", films("a")...)
	}
	for range 2 {
		if err := s.store.ForgetSession(s.Context(), "tenant/site", "s", direct); err != nil {
			s.Fatal(err)
		}
	}
	s.want("left", s.shown(inSession(ann(direct), "s"), "")+s.shown(inSession(ann(lobby), "s"), "")+
		s.shown(inSession(ann(direct), "s2"), "")+s.shown(ann(direct), ""), "noneaaa")
	if err := s.store.ForgetSession(s.Context(), "tenant/site", "", direct); err != nil {
		s.Fatal(err)
	}
	s.want("no session", s.shown(ann(direct), ""), "a")
}

func testExport(s *suite) {
	user := memory.User{Namespace: "tenant/site", ID: "ann"}
	s.manual(ann(direct), "", films("a", "b")...)
	s.manual(ann(lobby), "", films("a", "c")...)
	s.scheduled(ann(lobby), lists.KindChannel, films("the-lobbys")...)
	s.manual(of("bob", lobby), "", films("bobs")...) // now shown in the lobby
	s.scheduled(ann(direct), "", films("d")...)
	var got []string
	for after, more := "", true; more; more = after != "" {
		page, next, err := s.store.Registries(s.Context(), user, after, 1)
		if err != nil {
			s.Fatal(err)
		}
		for _, r := range page {
			items := s.items(lists.View{Registry: r.Registry, Part: true})
			got = append(got, fmt.Sprintf("%s %q %s %v: %s", r.Kind, r.Channel.VisibilityKey(), r.List, !r.LastCheck.IsZero(), items))
		}
		after = next
	}
	s.want("registries", strings.Join(got, "; "), `user "direct" default true: a b d!; user "group:lobby" default false: a c`)
	all, next, err := s.store.Lists(s.Context(), user, "", 10)
	if err != nil || next != "" || len(all) != 1 || all[0].Place.Kind != lists.PlaceUser || len(all[0].Items) != 2 {
		s.Errorf("lists %+v, %q, %v", all, next, err)
	}
	s.manual(inSession(ann(direct), "s"), "", films("x", "y", "z")...)
	first, next, err := s.store.Lists(s.Context(), user, "", 1)
	if err != nil || len(first) != 1 || next == "" {
		s.Fatalf("a page of %d, %q, %v", len(first), next, err)
	}
	rest, next, err := s.store.Lists(s.Context(), user, next, 1)
	if err != nil || len(rest) != 1 || next != "" || rest[0].Place.ID != "s" || len(rest[0].Items) != 3 {
		s.Errorf("the next page %+v, %q, %v", rest, next, err)
	}
}

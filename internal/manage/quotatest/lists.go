package quotatest

import (
	"fmt"

	"github.com/memsidecar/memsidecar/internal/lists"
	"github.com/memsidecar/memsidecar/internal/memory"
)

func place(user memory.User) lists.Place {
	scope := memory.Scope{Namespace: user.Namespace, UserID: user.ID}
	p, _ := lists.PlaceOf(scope, memory.Everything())
	return p
}

func (s *suite) view(user memory.User, kind lists.Kind, list string) lists.View {
	s.Helper()
	r, wrong := lists.RegistryOf(memory.Scope{Namespace: user.Namespace, UserID: user.ID}, kind, list)
	if err := wrong.Err(); err != nil {
		s.Fatal(err)
	}
	return lists.View{Registry: r, Audience: memory.Everything()}
}

// put puts an item into a registry that is not shown.
func (s *suite) put(user memory.User, kind lists.Kind, list string) error {
	s.Helper()
	_, err := s.Lists.Put(s.Context(), lists.Put{
		View: s.view(user, kind, list), Mode: lists.Scheduled, Items: []lists.Item{{Key: s.name("item"), Title: "x"}}, At: t0,
	})
	return err
}

// show puts an item into a registry and shows it to the user.
func (s *suite) show(user memory.User, kind lists.Kind, list string) error {
	s.Helper()
	p := place(user)
	_, err := s.Lists.Put(s.Context(), lists.Put{
		View: s.view(user, kind, list), Mode: lists.Manual, Items: []lists.Item{{Key: s.name("item"), Title: "x"}}, At: t0, Place: &p,
	})
	return err
}

func (s *suite) deleteList(user memory.User, kind lists.Kind, list string) {
	s.Helper()
	v, p := s.view(user, kind, list), place(user)
	_, _, _, err := s.Lists.Delete(s.Context(), &v, &p, list)
	s.must(err)
}

// items returns the number of items in a registry.
func (s *suite) items(user memory.User, kind lists.Kind, list string) int64 {
	s.Helper()
	page, err := s.Lists.Items(s.Context(), s.view(user, kind, list), "", 10)
	if err != nil {
		s.Fatal(err)
	}
	return page.Total
}

// testUserLists: A registry counts once, however many items it has.
func testUserLists(s *suite) {
	const quota = memory.QuotaUserLists
	full := memory.Standing{Quota: quota, UserID: "ann", Limit: 2, Used: 2}
	s.allow(quota, 2)
	for range 3 {
		s.must(s.put(ann, lists.KindUser, "films"))
		s.must(s.put(ann, lists.KindUser, "papers"))
	}
	s.wantUsed(quota, ann, 2)
	s.wantRefused(s.put(ann, lists.KindUser, "books"), full, 1)
	if n := s.items(ann, lists.KindUser, "books"); n != 0 {
		s.Errorf("%d items are stored", n)
	}
	s.must(s.put(ann, lists.KindNamespace, "films")) // has no user
	s.must(s.put(ben, lists.KindUser, "books"))
	for _, list := range []string{"a", "b", "c"} {
		s.must(s.put(elsewhere, lists.KindUser, list))
	}
	s.wantRefused(s.put(ann, lists.KindUser, "books"), full, 1)
	s.deleteList(ann, lists.KindUser, "films")
	s.wantUsed(quota, ann, 1)
	s.must(s.put(ann, lists.KindUser, "books"))
	_, err := s.Lists.Forget(s.Context(), ann)
	s.must(err)
	s.wantUsed(quota, ann, 0)
	s.wantUsed(quota, ben, 1)
}

// testNamespaceLists: All registries of a namespace count, also those without a user.
func testNamespaceLists(s *suite) {
	const quota = memory.QuotaNamespaceLists
	s.allow(quota, 3)
	s.must(s.put(ann, lists.KindUser, "films"))
	s.must(s.put(ben, lists.KindUser, "films"))
	s.must(s.put(ann, lists.KindNamespace, "films"))
	s.wantUsed(quota, ann, 3)
	full := memory.Standing{Quota: quota, Limit: 3, Used: 3}
	s.wantRefused(s.put(ann, lists.KindUser, "papers"), full, 1)
	s.wantRefused(s.put(ben, lists.KindNamespace, "papers"), full, 1)
	s.must(s.put(ben, lists.KindNamespace, "films"))
	_, err := s.Lists.Forget(s.Context(), ben)
	s.must(err)
	s.wantUsed(quota, ann, 2)
	s.must(s.put(ann, lists.KindUser, "papers"))
}

// testShownLists: The lists being shown are counted separately from registries, with the same limit.
func testShownLists(s *suite) {
	const quota = memory.QuotaUserLists
	s.allow(quota, 2)
	for range 2 {
		s.must(s.show(ann, lists.KindUser, "films"))
		s.must(s.show(ann, lists.KindNamespace, "papers"))
	}
	s.wantUsed(quota, ann, 2) // two lists are shown, of one registry of ann's
	err := s.show(ann, lists.KindNamespace, "books")
	s.wantRefused(err, memory.Standing{Quota: quota, UserID: "ann", Limit: 2, Used: 2}, 1)
	if n := s.items(ann, lists.KindNamespace, "books"); n != 0 {
		s.Errorf("%d items of refused requests are stored", n)
	}
	s.must(s.put(ann, lists.KindUser, "books"))
	s.deleteList(ann, lists.KindNamespace, "papers")
	s.must(s.show(ann, lists.KindNamespace, "books"))
}

func testListsConcurrently(s *suite) {
	s.allow(memory.QuotaUserLists, 5)
	stored := s.concurrently(memory.QuotaUserLists, 12, func(i int) error { return s.put(ann, lists.KindUser, fmt.Sprint("list", i)) })
	if stored != 5 {
		s.Errorf("%d registries are stored, want 5", stored)
	}
	s.wantUsed(memory.QuotaUserLists, ann, 5)
}

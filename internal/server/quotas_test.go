package server_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// wantQuota checks that an error names the quota, its owner, and a remedy.
func wantQuota(t *testing.T, err error, key, subject, says string) {
	t.Helper()
	sidecartest.WantCode(t, err, codes.ResourceExhausted)
	for _, detail := range status.Convert(err).Details() {
		failure, ok := detail.(*errdetails.QuotaFailure)
		if !ok {
			continue
		}
		v := failure.GetViolations()[0]
		if len(failure.GetViolations()) != 1 || v.GetQuotaMetric() != key || v.GetSubject() != subject ||
			v.GetDescription() != status.Convert(err).Message() {
			t.Errorf("the detail is %v, want %s of %s", failure, key, subject)
		}
		if !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
		if retryDelay(err) != 0 {
			t.Error("a retry delay is given")
		}
		return
	}
	t.Errorf("%v has no QuotaFailure", err)
}

// quotas are the configured quotas as the status shows them: "key user used/limit".
func quotas(t *testing.T, r *sidecartest.Sidecar, scope *memsidecarv1.Scope) []string {
	t.Helper()
	var list []string
	for _, q := range sidecartest.Must(r.GetStatus(t.Context(), &memsidecarv1.GetStatusRequest{Scope: scope}))(t).GetQuotas() {
		if q.GetLimit() > 0 {
			list = append(
				list,
				strings.TrimPrefix(q.GetKey(), "limits.")+" "+q.GetUserId()+fmt.Sprintf(" %d/%d", q.GetUsed(), q.GetLimit()),
			)
		}
	}
	return list
}

func tryCreate(t *testing.T, r *sidecartest.Sidecar, scope *memsidecarv1.Scope, text string) error {
	t.Helper()
	_, err := r.CreateMemory(t.Context(), &memsidecarv1.CreateMemoryRequest{Scope: scope, Memory: &memsidecarv1.Memory{Text: text}})
	return err
}

// TestMemoryQuotaOfANamespace: All users of a namespace share its quota. Calls that add nothing still work, and deleting makes room.
func TestMemoryQuotaOfANamespace(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "limits.namespace_memories=3", "namespaces=[{name: big/*, namespace_memories: 0}]", sidecartest.HTTPListen)
	tea := r.Create(t, sidecartest.Direct("u"), "Likes tea")
	r.Create(t, sidecartest.Direct("u"), "Likes jazz")
	r.Create(t, sidecartest.Direct("v"), "Likes rain")
	full := "3 of 3 memories of the namespace are stored, and 1 more are needed"
	for _, user := range []string{"u", "v", "new"} {
		wantQuota(t, tryCreate(t, r, sidecartest.Direct(user), "Likes snow"), "limits.namespace_memories", "namespace", full)
	}
	_, err := r.Import(
		t,
		sidecartest.Direct("u"),
		&memsidecarv1.Memory{Text: "Likes tea"},
		&memsidecarv1.Memory{Text: "Likes snow"},
		&memsidecarv1.Memory{Text: "Likes wind"},
	)
	wantQuota(t, err, "limits.namespace_memories", "namespace", "and 2 more are needed")
	if got := sidecartest.Texts(r.Memories(t, sidecartest.Direct("u"))); !slices.Equal(got, []string{"Likes jazz", "Likes tea"}) {
		t.Errorf("half of a batch was stored: %q", got)
	}
	if got := quotas(t, r, sidecartest.Direct("new")); !slices.Equal(got, []string{"namespace_memories  3/3"}) {
		t.Errorf("the status says %q", got)
	}
	_, values := r.Scrape(t)
	if got := values[`quota_refusals_total{quota="namespace_memories"}`]; got != "4" {
		t.Errorf("%s refusals are counted", got)
	}

	sidecartest.NoError(t, tryCreate(t, r, sidecartest.Direct("u"), "Likes tea")) // stored already
	for i := range 4 {
		sidecartest.NoError(
			t,
			tryCreate(t, r, sidecartest.InNamespace("big/one", sidecartest.Direct("u")), fmt.Sprint("Likes the number ", i)),
		)
	}
	sidecartest.NoError(t, tryCreate(t, r, sidecartest.InNamespace("small", sidecartest.Direct("u")), "Likes snow"))
	sidecartest.Must(
		r.DeleteMemory(t.Context(), &memsidecarv1.DeleteMemoryRequest{Scope: sidecartest.Direct("u"), MemoryId: tea.GetId()}),
	)(
		t,
	)
	sidecartest.NoError(t, tryCreate(t, r, sidecartest.Direct("v"), "Likes snow"))
	sidecartest.Must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: sidecartest.WithoutChannel("v")}))(t)
	if got := quotas(t, r, sidecartest.Direct("v")); !slices.Equal(got, []string{"namespace_memories  1/3"}) {
		t.Errorf("after a user was forgotten, the status says %q", got)
	}
}

// TestQuotasHoldForConcurrentCalls: No concurrent writer exceeds a quota, and all of the quota can be used.
func TestQuotasHoldForConcurrentCalls(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "limits.namespace_memories=7")
	var stored atomic.Int64
	var calls sync.WaitGroup
	for i := range 40 {
		calls.Go(func() {
			_, err := r.CreateMemory(context.WithoutCancel(t.Context()), &memsidecarv1.CreateMemoryRequest{
				Scope: sidecartest.Direct(fmt.Sprint("u", i)), Memory: &memsidecarv1.Memory{Text: "Likes tea"},
			})
			if err == nil {
				stored.Add(1)
			} else if status.Code(err) != codes.ResourceExhausted {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if got := quotas(t, r, sidecartest.WithoutChannel("u0")); stored.Load() != 7 || !slices.Equal(got, []string{"namespace_memories  7/7"}) {
		t.Errorf("%d were stored, and the status says %q", stored.Load(), got)
	}
}

// TestFullNamespacePostponesDialogues: Without room for new memories, acknowledged dialogues are postponed, not lost. A request to forget
// is still carried out, and makes room.
func TestFullNamespacePostponesDialogues(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := sidecartest.ServeIn(t, dir, "limits.namespace_memories=2", "memories.withdrawn_grace=0s")
	r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("I work at a bakery in Lyon."))
	r.Create(t, sidecartest.Direct("v"), "Likes rain")
	c := r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("I'm allergic to peanuts."))
	if c.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_FAILED ||
		!strings.Contains(c.GetError(), "limits.namespace_memories") || !strings.Contains(c.GetError(), "RetryConsideration") {
		t.Errorf("without room: %v", c)
	}
	known := r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("I work at a bakery in Lyon."))
	if known.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED {
		t.Errorf("stored memories: %v", known)
	}
	if failed := r.Status(t).GetQueue().GetFailedCount(); failed != 1 {
		t.Errorf("%d considerations failed", failed)
	}
	forgotten := r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("Please forget what I said about the bakery in Lyon."))
	if forgotten.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED {
		t.Errorf("a wish to forget: %v", forgotten)
	}
	sidecartest.Eventually(
		t,
		"it is deleted for good",
		func() bool { return slices.Equal(quotas(t, r, nil), []string{"namespace_memories  1/2"}) },
	)
	sidecartest.Must(
		r.RetryConsideration(
			t.Context(),
			&memsidecarv1.RetryConsiderationRequest{Scope: sidecartest.Direct("u"), ConsiderationId: c.GetId()},
		),
	)(
		t,
	)
	sidecartest.Eventually(t, "the dialogue is remembered", func() bool {
		return slices.Equal(sidecartest.Texts(r.Memories(t, sidecartest.Direct("u"))), []string{"I'm allergic to peanuts."})
	})
}

// TestHistoryQuotaRefusesWholeDialogues: Messages are refused together with their whole dialogue.
func TestHistoryQuotaRefusesWholeDialogues(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "limits.user_history_bytes=3000", "limits.namespace_history_bytes=5000")
	long := func(bytes int) *memsidecarv1.Message { return sidecartest.Said(strings.Repeat("x", bytes)) }
	try := func(scope *memsidecarv1.Scope, messages ...*memsidecarv1.Message) error {
		_, err := r.Sessions().AppendMessages(t.Context(), &memsidecarv1.AppendMessagesRequest{Scope: scope, Messages: messages})
		return err
	}
	ann, ben := sidecartest.InSession(sidecartest.WithoutChannel("ann"), "hers"), sidecartest.InSession(sidecartest.WithoutChannel("ben"), "his")
	wantQuota(
		t,
		try(ann, long(1000), long(2500)),
		"limits.user_history_bytes",
		"user:ann",
		"0 of 3000 bytes of messages of the user are stored",
	)
	_, err := r.Sessions().GetSession(t.Context(), &memsidecarv1.GetSessionRequest{Scope: ann})
	sidecartest.WantCode(t, err, codes.NotFound)
	sidecartest.NoError(t, try(ann, long(2000)))
	wantQuota(t, try(ann, sidecartest.Answered(strings.Repeat("y", 1000))), "limits.user_history_bytes", "user:ann", "DeleteSession")
	_, err = r.ConsiderMemorizing(
		t.Context(),
		&memsidecarv1.ConsiderMemorizingRequest{
			Scope:    ann,
			Messages: []*memsidecarv1.Message{sidecartest.Said("My name is Ann."), long(1000)},
		},
	)
	wantQuota(t, err, "limits.user_history_bytes", "user:ann", "history.retention")
	if got := sidecartest.Must(r.ListConsiderations(t.Context(), &memsidecarv1.ListConsiderationsRequest{Scope: sidecartest.WithoutChannel("ann")}))(t); len(
		got.GetConsiderations(),
	) > 0 {
		t.Errorf("a refused dialogue is considered: %v", got)
	}
	if got := r.History(t, ann); len(got) != 1 {
		t.Errorf("the session has %d messages", len(got))
	}
	sidecartest.NoError(t, try(ben, long(2000)))
	wantQuota(t, try(ben, long(800)), "limits.namespace_history_bytes", "namespace", "of 5000 bytes of messages of the namespace")
	sidecartest.NoError(t, try(sidecartest.InNamespace("elsewhere", ben), long(800)))
	list := quotas(t, r, sidecartest.WithoutChannel("ann"))
	if len(list) != 2 || !strings.HasSuffix(list[0], "/5000") || !strings.HasPrefix(list[1], "user_history_bytes ann 2") {
		t.Errorf("the status says %q", list)
	}
	sidecartest.Must(r.Sessions().DeleteSession(t.Context(), &memsidecarv1.DeleteSessionRequest{Scope: ann}))(t)
	sidecartest.NoError(t, try(ben, long(800)))
	for _, user := range []string{"ann", "ben"} {
		sidecartest.Must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: sidecartest.WithoutChannel(user)}))(t)
	}
	if got := quotas(t, r, sidecartest.WithoutChannel("ben")); !slices.Equal(
		got,
		[]string{"namespace_history_bytes  0/5000", "user_history_bytes ben 0/3000"},
	) {
		t.Errorf("after all users were forgotten, the status says %q", got)
	}
	r.Stop()
	if report := sidecartest.Must(sqlite.Files{Checks: sqlstore.Checks()}.Check(
		t.Context(), filepath.Join(r.Dir, sidecartest.DatabaseFile), false,
	))(t); !report.Sound() {
		t.Errorf("the check finds %v", report.Findings)
	}
}

// TestNumberedListQuotaKeepsExistingLists: Existing lists can still be changed and shown.
func TestNumberedListQuotaKeepsExistingLists(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "limits.user_lists=2", "limits.namespace_lists=3")
	put := func(scope *memsidecarv1.Scope, list string) error {
		_, err := lists(r).PutItems(t.Context(), &memsidecarv1.PutItemsRequest{Scope: scope, List: list, Items: listing(2)})
		return err
	}
	sidecartest.NoError(t, put(sidecartest.Direct("u"), "films"))
	sidecartest.NoError(t, put(sidecartest.Direct("u"), "books"))
	wantQuota(t, put(sidecartest.Direct("u"), "songs"), "limits.user_lists", "user:u", "2 of 2 numbered lists of the user")
	sidecartest.NoError(t, put(sidecartest.Direct("u"), "films"))
	sidecartest.NoError(t, put(sidecartest.Direct("v"), "films"))
	wantQuota(t, put(sidecartest.Direct("w"), "films"), "limits.namespace_lists", "namespace", "DeleteNumberedList")
	sidecartest.NoError(t, put(sidecartest.InNamespace("elsewhere", sidecartest.Direct("w")), "films"))
	if got := quotas(t, r, sidecartest.Direct("u")); !slices.Equal(got, []string{"namespace_lists  3/3", "user_lists u 2/2"}) {
		t.Errorf("the status says %q", got)
	}
	sidecartest.Must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: sidecartest.WithoutChannel("v")}))(t)
	sidecartest.NoError(t, put(sidecartest.Direct("w"), "films"))
}

package server_test

import (
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// wantForgotten checks that nothing of the user is stored, and that nothing appears when the sidecar has finished its work.
func wantForgotten(t *testing.T, r *sidecartest.Sidecar, user string) {
	t.Helper()
	if e := r.Export(t, sidecartest.Direct(user)); len(e.Records) != 1 {
		t.Errorf("after forgetting there is %s", e.Records)
	}
	r.Stop()
	for _, form := range sidecartest.Forms() {
		if files := sidecartest.FilesWith(t, r.Dir, form); len(files) > 0 {
			t.Errorf("%q is in %q: %s", form, files, sidecartest.TablesWith(t, r.Dir, form))
		}
	}
}

// TestForgetDuringOtherWork: A memory is being created, a dialogue considered and a digest made, with slow models, when the user is
// forgotten. None of it is stored afterwards.
func TestForgetDuringOtherWork(t *testing.T) {
	t.Parallel()
	p := providertest.Start(t, 64)
	r := sidecartest.Serve(
		t,
		append(sidecartest.UseProvider("openai", p), "digest.timeout=10m", "digest.interval=1", "session.memorize_every=0", "retrieval.budget=10ms",
			"shutdown_grace=1s")...) // for calls that still hang
	user := "alice-" + sidecartest.Marks
	r.Create(t, sidecartest.Direct(user), sidecartest.Marks+" likes tea")
	p.Fail(providertest.Hang, providertest.Embedding, providertest.Decision, providertest.Digest)
	var slow sync.WaitGroup
	slow.Go(func() {
		_, err := r.CreateMemory(
			t.Context(),
			&memsidecarv1.CreateMemoryRequest{Scope: sidecartest.Direct(user), Memory: &memsidecarv1.Memory{Text: sidecartest.Marks + " is late"}},
		)
		sidecartest.WantCode(t, err, codes.FailedPrecondition)
	})
	sidecartest.Must(
		r.ConsiderMemorizing(
			t.Context(),
			&memsidecarv1.ConsiderMemorizingRequest{
				Scope:    sidecartest.Direct(user),
				Messages: []*memsidecarv1.Message{sidecartest.Said("I like " + sidecartest.Marks)},
			},
		),
	)(
		t,
	)
	sidecartest.Must(r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
		Scope: sidecartest.Group("bob", "g"), Messages: []*memsidecarv1.Message{by("bob", "I like chess."), by(user, "I like "+sidecartest.Marks)},
	}))(t)
	r.AppendTo(t, sidecartest.Direct(user), sidecartest.Said("我今天学了"+sidecartest.Marks), sidecartest.Answered("好"))
	waiting := map[providertest.Part]bool{providertest.Embedding: true, providertest.Decision: true, providertest.Digest: true}
	for request := range p.Arrived() {
		if request.Part == providertest.Embedding && !strings.Contains(request.Body, "is late") {
			continue // of an earlier memory or message
		}
		if delete(waiting, request.Part); len(waiting) == 0 {
			break
		}
	}
	sidecartest.Must(
		r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct(user), Query: sidecartest.Marks}),
	)(
		t,
	) // its trace is written later
	sidecartest.Must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: sidecartest.WithoutChannel(user)}))(t)
	slow.Wait()
	p.Fail(providertest.NoFault, providertest.Embedding, providertest.Decision, providertest.Digest)
	sidecartest.Eventually(t, "bob's words are considered", func() bool {
		all := sidecartest.Must(r.ListConsiderations(t.Context(), &memsidecarv1.ListConsiderationsRequest{Scope: sidecartest.Group("bob", "g")}))(
			t,
		).GetConsiderations()
		return len(all) == 1 && all[0].GetState() != sidecartest.Pending
	})
	wantForgotten(t, r, user)
}

// TestForgetWaitsForReaders: If a reader prevents the purge, ForgetUser does not report it as done. The status shows it as pending, and
// it completes when the reader ends.
func TestForgetWaitsForReaders(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	user := "alice-" + sidecartest.Marks
	r.Consider(t, sidecartest.Direct(user), sidecartest.Said("My name is "+sidecartest.Marks+"."))
	if since := r.Status(t).GetStorage().GetPurgePendingSinceTime(); since != nil {
		t.Errorf("a purge is pending since %s", since)
	}
	db := sidecartest.Must(sql.Open("sqlite", "file:"+filepath.Join(r.Dir, "memsidecar.db")+"?mode=ro"))(t)
	defer func() { _ = db.Close() }()
	reading := sidecartest.Must(db.BeginTx(t.Context(), nil))(t)
	var n int
	if err := reading.QueryRowContext(t.Context(), `SELECT count(*) FROM memories`).Scan(&n); err != nil || n == 0 {
		t.Fatal(n, err)
	}
	receipt := sidecartest.Must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: sidecartest.WithoutChannel(user)}))(t)
	if receipt.GetPurgedFromDisk() || receipt.GetMemoryCount() == 0 || len(sidecartest.FilesWith(t, r.Dir, "Zyxwvutsrq")) == 0 {
		t.Errorf("with a reader the receipt is %v", receipt)
	}
	if since := r.Status(t).GetStorage().GetPurgePendingSinceTime(); since == nil {
		t.Error("the status does not report the pending purge")
	}
	if err := reading.Rollback(); err != nil {
		t.Fatal(err)
	}
	sidecartest.Eventually(t, "the purge is done", func() bool { return r.Status(t).GetStorage().GetPurgePendingSinceTime() == nil })
	wantNoMarks(t, r, "after the reader")
}

// TestDeletedTextIsNotOnDisk: After a memory is deleted only the original message is left. After a session is deleted with its memories,
// nothing is.
func TestDeletedTextIsNotOnDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := sidecartest.ServeIn(t, dir, "digest.export_dir="+filepath.Join(dir, "digests"))
	place := sidecartest.InSession(sidecartest.Direct("u"), "session-"+sidecartest.Marks)
	purged := func() bool { return r.Status(t).GetStorage().GetPurgePendingSinceTime() == nil }
	created := r.Create(t, sidecartest.Direct("u"), "Qponmlkjih collects stamps")
	sidecartest.Must(r.UpdateMemory(t.Context(), &memsidecarv1.UpdateMemoryRequest{
		Scope: sidecartest.Direct(
			"u",
		), Memory: &memsidecarv1.Memory{Id: created.GetId(), Text: "Qponmlkjih collects coins"}, UpdateMask: sidecartest.Mask("text"),
	}))(t)
	r.Consider(t, place, sidecartest.Said("hi"), sidecartest.Answered("Where do you work?"), sidecartest.Said("at a bakery in "+sidecartest.Marks),
		sidecartest.Answered("Fine, "+sidecartest.Marks))
	summarize(t, r, sidecartest.Direct("u"), "")
	sidecartest.Must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: place, Query: "who is " + sidecartest.Marks}))(t)
	learned := "Where do you work? — at a bakery in " + sidecartest.Marks // in no message
	if len(sidecartest.FilesWith(t, r.Dir, "Qponmlkjih")) == 0 || len(sidecartest.FilesWith(t, r.Dir, learned)) == 0 {
		t.Fatal("nothing is stored")
	}
	if !slices.Contains(sidecartest.FilesWith(t, filepath.Join(dir, "digests"), sidecartest.Marks), "MEMORY.md") ||
		len(sidecartest.FilesWith(t, filepath.Join(dir, "digests"), sidecartest.Marks)) < 2 {
		t.Errorf("the files are %q", sidecartest.FilesWith(t, filepath.Join(dir, "digests"), sidecartest.Marks))
	}
	for _, m := range r.Memories(t, sidecartest.Direct("u")) {
		sidecartest.Must(r.DeleteMemory(t.Context(), &memsidecarv1.DeleteMemoryRequest{Scope: sidecartest.Direct("u"), MemoryId: m.GetId()}))(t)
	}
	sidecartest.Eventually(t, "the purge is done", purged)
	for _, text := range []string{"Qponmlkjih", "qponmlkjih", learned} {
		if files := sidecartest.FilesWith(t, r.Dir, text); len(files) > 0 {
			t.Errorf("%q is in %q: %s", text, files, sidecartest.TablesWith(t, r.Dir, text))
		}
	}
	r.Consider(t, place, sidecartest.Said("I live in "+sidecartest.Marks+"."), sidecartest.Answered("Fine, "+sidecartest.Marks))
	summarize(t, r, sidecartest.Direct("u"), "")
	sidecartest.Must(r.Sessions().DeleteSession(t.Context(), &memsidecarv1.DeleteSessionRequest{Scope: place, DeleteMemories: true}))(t)
	sidecartest.Eventually(t, "the purge is done", purged)
	wantNoMarks(t, r, "after deleting the session")
}

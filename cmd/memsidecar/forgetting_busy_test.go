package main

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
)

// wantForgotten checks that nothing of the user is there, nor comes when the sidecar has ended all that it was doing.
func (r *running) wantForgotten(t *testing.T, user string) {
	t.Helper()
	if e := r.export(t, direct(user)); len(e.records) != 1 {
		t.Errorf("after forgetting there is %s", e.records)
	}
	r.stop()
	for _, form := range forms() {
		if files := holdsBytes(t, r.dir, form); len(files) > 0 {
			t.Errorf("%q is in %q: %s", form, files, tablesWith(t, r.dir, form))
		}
	}
}

// TestForgetWhileBusy: while models and embedder are slow, a memory is being created, a dialogue considered and a digest made.
// None of it is stored after the user was forgotten.
func TestForgetWhileBusy(t *testing.T) {
	p := providertest.Start(t, 64)
	r := serve(t, append(useProvider("openai", p), "digest.timeout=10m", "digest.interval=1", "session.memorize_every=0", "retrieval.budget=10ms",
		"shutdown_grace=1s")...) // for what hangs still
	user := "alice-" + marks
	r.create(t, direct(user), marks+" likes tea")
	p.Fail(providertest.Hang, providertest.Embedding, providertest.Decision, providertest.Digest)
	var slow sync.WaitGroup
	slow.Go(func() {
		_, err := r.CreateMemory(t.Context(), &memsidecarv1.CreateMemoryRequest{Scope: direct(user), Memory: &memsidecarv1.Memory{Text: marks + " is late"}})
		wantCode(t, err, codes.FailedPrecondition)
	})
	must(r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{Scope: direct(user), Messages: []*memsidecarv1.Message{said("I like " + marks)}}))(t)
	must(r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
		Scope: group("bob", "g"), Messages: []*memsidecarv1.Message{by("bob", "I like chess."), by(user, "I like "+marks)},
	}))(t)
	r.appendTo(t, direct(user), said("我今天学了"+marks), answered("好"))
	waiting := map[providertest.Part]bool{providertest.Embedding: true, providertest.Decision: true, providertest.Digest: true}
	for request := range p.Arrived() {
		if request.Part == providertest.Embedding && !strings.Contains(request.Body, "is late") {
			continue // of the memory that was created before, or of a message
		}
		if delete(waiting, request.Part); len(waiting) == 0 {
			break
		}
	}
	must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: direct(user), Query: marks}))(t) // its trace waits to be written
	must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: anywhere(user)}))(t)
	slow.Wait()
	p.Fail(providertest.NoFault, providertest.Embedding, providertest.Decision, providertest.Digest)
	eventually(t, "bob's words are considered", func() bool {
		all := must(r.ListConsiderations(t.Context(), &memsidecarv1.ListConsiderationsRequest{Scope: group("bob", "g")}))(t).GetConsiderations()
		return len(all) == 1 && all[0].GetState() != pending
	})
	r.wantForgotten(t, user)
}

// TestForgetWithReader: what a reader prevents is not claimed, is told by the status, and is done when the reader is.
func TestForgetWithReader(t *testing.T) {
	r := serve(t)
	user := "alice-" + marks
	r.consider(t, direct(user), said("My name is "+marks+"."))
	if since := r.status(t).GetStorage().GetPurgePendingSinceTime(); since != nil {
		t.Errorf("a purge waits since %s", since)
	}
	db := must(sql.Open("sqlite", "file:"+filepath.Join(r.dir, "memsidecar.db")+"?mode=ro"))(t)
	defer func() { _ = db.Close() }()
	reading := must(db.BeginTx(t.Context(), nil))(t)
	var n int
	if err := reading.QueryRowContext(t.Context(), `SELECT count(*) FROM memories`).Scan(&n); err != nil || n == 0 {
		t.Fatal(n, err)
	}
	receipt := must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: anywhere(user)}))(t)
	if receipt.GetPurgedFromDisk() || receipt.GetMemoryCount() == 0 || len(holdsBytes(t, r.dir, "Zyxwvutsrq")) == 0 {
		t.Errorf("with a reader the receipt is %v", receipt)
	}
	if since := r.status(t).GetStorage().GetPurgePendingSinceTime(); since == nil {
		t.Error("the status does not say that a purge waits")
	}
	if err := reading.Rollback(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the purge is done", func() bool { return r.status(t).GetStorage().GetPurgePendingSinceTime() == nil })
	r.wantNoMarks(t, "after the reader")
}

// TestDeleteLeavesNothing: of a memory nothing is left but what was said, and nothing of a session with its memories.
func TestDeleteLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	r := serveIn(t, dir, "digest.export_dir="+filepath.Join(dir, "digests"))
	place := within(direct("u"), "session-"+marks)
	purged := func() bool { return r.status(t).GetStorage().GetPurgePendingSinceTime() == nil }
	created := r.create(t, direct("u"), "Qponmlkjih collects stamps")
	must(r.UpdateMemory(t.Context(), &memsidecarv1.UpdateMemoryRequest{
		Scope: direct("u"), Memory: &memsidecarv1.Memory{Id: created.GetId(), Text: "Qponmlkjih collects coins"}, UpdateMask: mask("text"),
	}))(t)
	r.consider(t, place, said("I like "+marks+" tea."), answered("Fine, "+marks))
	r.summarize(t, direct("u"), "")
	must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: place, Query: "who is " + marks}))(t)
	learned := "The user likes " + marks
	if len(holdsBytes(t, r.dir, "Qponmlkjih")) == 0 || len(holdsBytes(t, r.dir, learned)) == 0 {
		t.Fatal("nothing is stored")
	}
	if !slices.Contains(holdsBytes(t, filepath.Join(dir, "digests"), marks), "MEMORY.md") || len(holdsBytes(t, filepath.Join(dir, "digests"), marks)) < 2 {
		t.Errorf("the files are %q", holdsBytes(t, filepath.Join(dir, "digests"), marks))
	}
	for _, m := range r.list(t, direct("u")) {
		must(r.DeleteMemory(t.Context(), &memsidecarv1.DeleteMemoryRequest{Scope: direct("u"), MemoryId: m.GetId()}))(t)
	}
	eventually(t, "the purge is done", purged)
	for _, text := range []string{"Qponmlkjih", "qponmlkjih", learned} {
		if files := holdsBytes(t, r.dir, text); len(files) > 0 {
			t.Errorf("%q is in %q: %s", text, files, tablesWith(t, r.dir, text))
		}
	}
	r.consider(t, place, said("I live in "+marks+"."), answered("Fine, "+marks))
	r.summarize(t, direct("u"), "")
	must(r.sessions().DeleteSession(t.Context(), &memsidecarv1.DeleteSessionRequest{Scope: place, DeleteMemories: true}))(t)
	eventually(t, "the purge is done", purged)
	r.wantNoMarks(t, "after deleting the session")
}

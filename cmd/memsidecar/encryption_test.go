package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"google.golang.org/protobuf/proto"

	"github.com/memsidecar/memsidecar/internal/secret/seal"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlite/sealed"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

const (
	keyText   = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	encrypted = "MEMSIDECAR_ENCRYPTION_KEY=" + keyText
)

func testKey(t testing.TB) seal.Key {
	t.Helper()
	key, err := seal.ParseKey(keyText)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// longForms are those forms of the marks that random bytes do not have by chance: a file of megabytes has any four bytes now and
// then.
func longForms() []string {
	var list []string
	for _, form := range append(forms(), "message_postings", "CREATE TABLE") {
		if len(form) >= 6 {
			list = append(list, form)
		}
	}
	var little, big []byte
	for _, unit := range utf16.Encode([]rune("魑魅魍魉")) {
		little, big = append(little, byte(unit), byte(unit>>8)), append(big, byte(unit>>8), byte(unit))
	}
	return append(list, string(little), string(big))
}

func wantEncrypted(t *testing.T, dir, when string) {
	t.Helper()
	for _, form := range longForms() {
		if files := holdsBytes(t, dir, form); len(files) > 0 {
			t.Errorf("%s %q is in %q", when, form, files)
		}
	}
	// Whoever has the sidecar write another file must think of this.
	for _, e := range must(os.ReadDir(dir))(t) {
		if !slices.ContainsFunc(encryptedFiles, func(pattern string) bool { return must(filepath.Match(pattern, e.Name()))(t) }) {
			t.Errorf("%s there is a file %s, and whether it is encrypted is not known", when, e.Name())
		}
	}
}

// encryptedFiles are those that there may be: the database and its copies, which are encrypted; its log, which is as well; what
// holds the numbers of pages; and the lock, which is empty.
var encryptedFiles = []string{"memsidecar.db", "memsidecar.db-wal", "memsidecar.db-shm", "memsidecar.lock", "memsidecar.db.before-*Z", "backup.db"}

// opened is what is in the pages of an encrypted database that nobody uses, what SQLite would not show included.
func opened(t *testing.T, dir string) []byte {
	t.Helper()
	path := sqlite.DatabasePath(dir)
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 {
		t.Fatal("there is still something in the log")
	}
	file := must(os.ReadFile(path))(t)
	envelope := seal.Envelope(file[:seal.EnvelopeSize])
	vfs := must(sealed.Register(must(seal.OpenPages(testKey(t), envelope))(t), envelope))(t)
	for i := range len(file) / sealed.PageSize {
		if err := vfs.OpenPage(int64(i+1), file[i*sealed.PageSize:(i+1)*sealed.PageSize]); err != nil {
			t.Fatalf("page %d: %v", i+1, err)
		}
	}
	mustDo(t, vfs.Close())
	return file
}

// TestEncryptedHoldsNothing: of what every call stores, nothing can be read in any file: texts, ids, what is derived, and the
// terms of the keyword index. The same pages hold it all once they are opened, and none of it after ForgetUser.
func TestEncryptedHoldsNothing(t *testing.T) {
	dir := t.TempDir()
	user := "alice-" + marks
	begin := func() *running { return serveWith(t, dir, []string{encrypted}) }
	r := begin()
	r.everywhere(t, user)
	wantEncrypted(t, dir, "while it runs")
	r.stop()
	// The sidecar did this in the background, or was stopped before.
	storage := must(sqlite.Open(t.Context(), sqlite.Options{
		Dir: dir, Log: slog.New(slog.DiscardHandler), Key: func() (seal.Key, error) { return testKey(t), nil },
	}))(t)
	index := sqlstore.NewRecall(storage)
	for more := true; more; {
		more = must(index.IndexNext(t.Context()))(t)
	}
	mustDo(t, storage.Close())
	for _, form := range []string{"Zyxwvutsrq", "zyxwvutsrq", "魑魅", "魅魍", "message_postings"} {
		if !bytes.Contains(opened(t, dir), []byte(form)) {
			t.Errorf("%q is stored nowhere: not finding it would show nothing", form)
		}
	}
	wantEncrypted(t, dir, "after stopping")
	if info := must(os.Stat(filepath.Join(dir, "memsidecar.lock")))(t); info.Size() > 0 {
		t.Errorf("the lock holds %d bytes", info.Size())
	}
	for _, text := range append(longForms(), keyText) {
		if strings.Contains(r.log.String(), text) {
			t.Errorf("the log has %q", text)
		}
	}
	backups := t.TempDir()
	backup := filepath.Join(backups, "backup.db")
	must(sqlite.MakeBackup(t.Context(), dir, backup, sqlite.BackupOptions{Key: testKey(t)}))(t)
	wantEncrypted(t, backups, "in a backup")
	other := filepath.Join(t.TempDir(), "key")
	mustDo(t, seal.CreateKeyFile(other))
	rotated := must(seal.ReadKeyFile(other))(t)
	mustDo(t, sqlite.Rewrap(t.Context(), dir, testKey(t), rotated))
	wantEncrypted(t, dir, "after a rotation")
	must(sqlite.Reseal(t.Context(), dir, rotated, testKey(t)))(t)
	wantEncrypted(t, dir, "written anew")
	rebuild := func(ctx context.Context, db sqldb.Access) error {
		_, err := sqlstore.Rebuild(ctx, db, sqlstore.RebuildOptions{})
		return err
	}
	if err := sqlite.Reindex(t.Context(), dir, slog.New(slog.DiscardHandler), testKey(t), rebuild); err != nil {
		t.Fatal(err)
	}
	wantEncrypted(t, dir, "after reindexing")
	restored := must(sqlite.Files{Key: testKey(t)}.Restore(t.Context(), backup, dir, true, time.Now()))(t)
	wantEncrypted(t, dir, "after restoring")
	mustDo(t, os.Remove(restored.Aside))

	r = begin()
	receipt := must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: anywhere(user)}))(t)
	if !receipt.GetPurgedFromDisk() || receipt.GetMessageCount() < 3 {
		t.Errorf("the receipt is %v", receipt)
	}
	if again := must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: anywhere(user)}))(t); !proto.Equal(again, &memsidecarv1.ForgetUserResponse{PurgedFromDisk: true}) {
		t.Errorf("there was more to forget: %v", again)
	}
	r.stop()
	inside := opened(t, dir)
	for _, form := range forms() {
		if len(form) >= 6 && bytes.Contains(inside, []byte(form)) {
			t.Errorf("after forgetting %q is in the pages", form)
		}
	}
	report := must(sqlite.Files{Key: testKey(t)}.Check(t.Context(), sqlite.DatabasePath(dir), false))(t)
	if !report.Sound() {
		t.Errorf("the database is damaged: %+v", report.Findings)
	}
}

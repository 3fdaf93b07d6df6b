package server_test

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

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// longForms returns the forms of the marks that are too long to occur in random bytes by chance. Megabytes contain almost any four bytes.
func longForms() []string {
	var list []string
	for _, form := range append(sidecartest.Forms(), "message_postings", "CREATE TABLE") {
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
		if files := sidecartest.FilesWith(t, dir, form); len(files) > 0 {
			t.Errorf("%s %q is in %q", when, form, files)
		}
	}
	// Add new kinds of files here.
	for _, e := range sidecartest.Must(os.ReadDir(dir))(t) {
		if !slices.ContainsFunc(encryptedFiles, func(pattern string) bool { return sidecartest.Must(filepath.Match(pattern, e.Name()))(t) }) {
			t.Errorf("%s there is a file %s, and whether it is encrypted is not known", when, e.Name())
		}
	}
}

// encryptedFiles are all files allowed in the folder: the database, its copies and its log, which are encrypted; the log's index, which
// holds page numbers; and the lock file, which is empty.
var encryptedFiles = []string{"memsidecar.db", "memsidecar.db-wal", "memsidecar.db-shm", "memsidecar.lock", "memsidecar.db.before-*Z", "backup.db"}

// opened returns the content of all pages of an encrypted database that is not in use, deleted content included.
func opened(t *testing.T, dir string) []byte {
	t.Helper()
	path := sqlite.DatabasePath(dir)
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 {
		t.Fatal("there is still something in the log")
	}
	file := sidecartest.Must(os.ReadFile(path))(t)
	envelope := seal.Envelope(file[:seal.EnvelopeSize])
	vfs := sidecartest.Must(sealed.Register(sidecartest.Must(seal.OpenPages(sidecartest.TestKey(t), envelope))(t), envelope))(t)
	for i := range len(file) / sealed.PageSize {
		if err := vfs.OpenPage(int64(i+1), file[i*sealed.PageSize:(i+1)*sealed.PageSize]); err != nil {
			t.Fatalf("page %d: %v", i+1, err)
		}
	}
	sidecartest.NoError(t, vfs.Close())
	return file
}

// TestEncryptedFilesContainNoText: No file has readable text of any stored data: texts, ids, derived data, terms of the keyword index.
// The decrypted pages have all of it, and none of it after ForgetUser.
func TestEncryptedFilesContainNoText(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	user := "alice-" + sidecartest.Marks
	begin := func() *sidecartest.Sidecar { return sidecartest.ServeWith(t, dir, []string{sidecartest.KeyEnviron}) }
	r := begin()
	everywhere(t, r, user)
	wantEncrypted(t, dir, "while it runs")
	r.Stop()
	// The background work may have done this already.
	storage := sidecartest.Must(sqlite.Open(t.Context(), sqlite.Options{
		Dir: dir, Log: slog.New(slog.DiscardHandler), Key: func() (seal.Key, error) { return sidecartest.TestKey(t), nil },
	}))(t)
	index := sqlstore.NewRecall(storage)
	for more := true; more; {
		more = sidecartest.Must(index.IndexNext(t.Context()))(t)
	}
	sidecartest.NoError(t, storage.Close())
	for _, form := range []string{"Zyxwvutsrq", "zyxwvutsrq", "魑魅", "魅魍", "message_postings"} {
		if !bytes.Contains(opened(t, dir), []byte(form)) {
			t.Errorf("%q is stored nowhere: not finding it would show nothing", form)
		}
	}
	wantEncrypted(t, dir, "after stopping")
	if info := sidecartest.Must(os.Stat(filepath.Join(dir, "memsidecar.lock")))(t); info.Size() > 0 {
		t.Errorf("the lock holds %d bytes", info.Size())
	}
	for _, text := range append(longForms(), sidecartest.KeyText) {
		if strings.Contains(r.Log.String(), text) {
			t.Errorf("the log has %q", text)
		}
	}
	backups := t.TempDir()
	backup := filepath.Join(backups, "backup.db")
	sidecartest.Must(sqlite.MakeBackup(t.Context(), dir, backup, sqlite.BackupOptions{Key: sidecartest.TestKey(t)}))(t)
	wantEncrypted(t, backups, "in a backup")
	other := filepath.Join(t.TempDir(), "key")
	sidecartest.NoError(t, seal.CreateKeyFile(other))
	rotated := sidecartest.Must(seal.ReadKeyFile(other))(t)
	sidecartest.NoError(t, sqlite.Rewrap(t.Context(), dir, sidecartest.TestKey(t), rotated))
	wantEncrypted(t, dir, "after a rotation")
	sidecartest.Must(sqlite.Reencrypt(t.Context(), dir, rotated, sidecartest.TestKey(t)))(t)
	wantEncrypted(t, dir, "written anew")
	rebuild := func(ctx context.Context, db sqldb.Access) error {
		_, err := sqlstore.Rebuild(ctx, db, sqlstore.RebuildOptions{})
		return err
	}
	if err := sqlite.Reindex(t.Context(), dir, slog.New(slog.DiscardHandler), sidecartest.TestKey(t), rebuild); err != nil {
		t.Fatal(err)
	}
	wantEncrypted(t, dir, "after reindexing")
	restored := sidecartest.Must(sqlite.Files{Key: sidecartest.TestKey(t)}.Restore(t.Context(), backup, dir, true, time.Now()))(t)
	wantEncrypted(t, dir, "after restoring")
	sidecartest.NoError(t, os.Remove(restored.Aside))

	r = begin()
	receipt := sidecartest.Must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: sidecartest.WithoutChannel(user)}))(t)
	if !receipt.GetPurgedFromDisk() || receipt.GetMessageCount() < 3 {
		t.Errorf("the receipt is %v", receipt)
	}
	if again := sidecartest.Must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: sidecartest.WithoutChannel(user)}))(t); !proto.Equal(
		again,
		&memsidecarv1.ForgetUserResponse{PurgedFromDisk: true},
	) {
		t.Errorf("there was more to forget: %v", again)
	}
	r.Stop()
	inside := opened(t, dir)
	for _, form := range sidecartest.Forms() {
		if len(form) >= 6 && bytes.Contains(inside, []byte(form)) {
			t.Errorf("after forgetting %q is in the pages", form)
		}
	}
	report := sidecartest.Must(sqlite.Files{Key: sidecartest.TestKey(t)}.Check(t.Context(), sqlite.DatabasePath(dir), false))(t)
	if !report.Sound() {
		t.Errorf("the database is damaged: %+v", report.Findings)
	}
}

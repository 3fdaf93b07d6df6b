package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"google.golang.org/protobuf/proto"

	"github.com/memsidecar/memsidecar/internal/seal"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlite/sealed"
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
}

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
	eventually(t, "messages are in the keyword index", func() bool {
		r.stop()
		inside := opened(t, dir)
		if bytes.Contains(inside, []byte("zyxwvutsrq")) {
			return true
		}
		r = begin()
		return false
	})
	for _, form := range []string{"Zyxwvutsrq", "zyxwvutsrq", "魑魅", "魅魍", "message_postings"} {
		if !bytes.Contains(opened(t, dir), []byte(form)) {
			t.Errorf("%q is stored nowhere: not finding it would show nothing", form)
		}
	}
	wantEncrypted(t, dir, "after stopping")
	if log := r.log.String(); strings.Contains(log, keyText) {
		t.Error("the log has the key")
	}
	backups := t.TempDir()
	must(sqlite.MakeBackup(t.Context(), dir, filepath.Join(backups, "backup.db"), sqlite.BackupOptions{Key: testKey(t)}))(t)
	wantEncrypted(t, backups, "in a backup")

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

// Package leftover is for tests of forgetting: it finds text that is still in files.
package leftover

import (
	"bytes"
	"io/fs"
	"os"
	"testing"
)

// In names the files in a folder, and in those below it, whose bytes hold the text.
func In(t testing.TB, dir, text string) (names []string) {
	t.Helper()
	files := os.DirFS(dir)
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, path)
		if bytes.Contains(data, []byte(text)) {
			names = append(names, entry.Name())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

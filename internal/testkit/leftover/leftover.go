// Package leftover is for tests of forgetting: it finds text that is still in files.
package leftover

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"testing"
)

// In names the files in a folder, and in those below it, whose bytes hold the text.
func In(t testing.TB, dir, text string) (names []string) {
	t.Helper()
	files := os.DirFS(dir)
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if path != "." && errors.Is(err, fs.ErrNotExist) {
			return nil // gone meanwhile, as what is written beside a file until it takes its name
		}
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, path)
		if bytes.Contains(data, []byte(text)) {
			names = append(names, entry.Name())
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Package leftover finds text that is still in files, for tests of erasure.
package leftover

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"testing"
)

// In returns the names of the files in a folder and its subfolders that contain the text.
func In(t testing.TB, dir, text string) (names []string) {
	t.Helper()
	files := os.DirFS(dir)
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if path != "." && errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile, like a temporary file before its rename
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

// Package leftover is for tests of forgetting: it finds text that is still in files.
package leftover

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// In names the files in a folder, and in those below it, whose bytes hold the text.
func In(t testing.TB, dir, text string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
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

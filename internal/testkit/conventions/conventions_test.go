// Package conventions holds the rules of this repository that no linter checks.
package conventions

import (
	"bytes"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	root     = "../../.."
	maxLines = 500
)

// TestPackageComments: a package says what it is for, once, in any of its files. Its external tests need not.
func TestPackageComments(t *testing.T) {
	type key struct{ dir, name string }
	documented := map[key]bool{}
	for _, path := range goFiles(t) {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f.Name.Name, "_test") {
			continue
		}
		k := key{filepath.Dir(path), f.Name.Name}
		hasDoc := strings.TrimSpace(f.Doc.Text()) != ""
		if hasDoc && documented[k] {
			t.Errorf("%s: package %s has a comment in another file already", path, k.name)
		}
		documented[k] = documented[k] || hasDoc
	}
	for k, ok := range documented {
		if !ok {
			t.Errorf("%s: package %s has no comment", k.dir, k.name)
		}
	}
}

// TestFileLength: a file that grows beyond this does more than one thing.
func TestFileLength(t *testing.T) {
	for _, path := range goFiles(t) {
		if strings.HasSuffix(path, ".pb.go") {
			continue
		}
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(src, []byte("\n")); n > maxLines {
			t.Errorf("%s has %d lines, more than %d", path, n, maxLines)
		}
	}
}

// TestNamedTestsExist: a test that the documentation names as the proof of something is there.
func TestNamedTestsExist(t *testing.T) {
	var source bytes.Buffer
	for _, path := range goFiles(t) {
		if strings.HasSuffix(path, "_test.go") {
			src, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			source.Write(src)
		}
	}
	for _, document := range []string{root + "/docs/seed-configuration.md", root + "/docs/reliability.md"} {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile(`\bTest[A-Z]\w*`).FindAllString(string(text), -1)
		if len(names) == 0 {
			t.Errorf("%s names no test", document)
		}
		for _, name := range names {
			if !bytes.Contains(source.Bytes(), []byte("func "+name+"(")) {
				t.Errorf("%s names %s, which is not there", document, name)
			}
		}
	}
}

// goFiles lists the Go files of this module, as the go command would see them.
func goFiles(t *testing.T) []string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatal(err) // the package was moved: adjust root
	}
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root {
			name := d.Name()
			if name == "testdata" || name == "vendor" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
				return fs.SkipDir
			}
		}
		if !d.IsDir() && strings.HasSuffix(path, ".go") {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

package notebook

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// TestPutKeepsPeoplesText: Put keeps people's text and replaces only the sidecar's part, whatever was edited.
func TestPutKeepsPeoplesText(t *testing.T) {
	for name, test := range map[string]struct{ before, want string }{
		"new":          {"", beginMark + "\nnew\n" + endMark + "\n"},
		"without":      {"mine\n", "mine\n\n" + beginMark + "\nnew\n" + endMark + "\n"},
		"around":       {"above\n" + beginMark + "\nold\n" + endMark + "\nbelow", "above\n" + beginMark + "\nnew\n" + endMark + "\nbelow"},
		"end is gone":  {"above\n" + beginMark + "\nold\nbelow\n", "above\n" + beginMark + "\nnew\n" + endMark + "\nold\nbelow\n"},
		"only the end": {"above\n" + endMark + "\n", "above\n" + endMark + "\n\n" + beginMark + "\nnew\n" + endMark + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Files{Dir: t.TempDir()}
			user := memory.User{Namespace: "a/b", ID: "u"}
			path := filepath.Join(f.folder(user), FileName)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if test.before != "" {
				if err := os.WriteFile(path, []byte(test.before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 { // the second time changes nothing
				if err := f.put(user, FileName, "new\n"); err != nil {
					t.Fatal(err)
				}
				got, err := os.ReadFile(path)
				if err != nil || string(got) != test.want {
					t.Errorf("the file is %q (%v), want %q", got, err, test.want)
				}
			}
			left, err := os.ReadDir(filepath.Dir(path))
			if err != nil || len(left) != 1 {
				t.Errorf("other files in the folder: %v (%v)", left, err)
			}
		})
	}
}

func TestStatementsOfPeople(t *testing.T) {
	got := statements(outside("# Title\n\n- [x] I drive a bus.\n* 我住在杭州\n3. third\nplain line\n<!-- hidden\nlines -->\n---\n" +
		"```\ncode\n```\n" + beginMark + "\n- of the sidecar\n" + endMark + "\n> quoted\n"))
	want := []string{"I drive a bus.", "我住在杭州", "third", "plain line", "quoted"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	// Without the end mark the following lines may be the sidecar's.
	if got := statements(outside("mine\n" + beginMark + "\n- whose?\n")); !slices.Equal(got, []string{"mine"}) {
		t.Errorf("got %q", got)
	}
}

// TestUsersHaveSeparateFolders: No id leads out of the folder, and no two users share one, also on file systems that ignore case.
func TestUsersHaveSeparateFolders(t *testing.T) {
	f := &Files{Dir: t.TempDir()}
	seen := map[string]string{}
	long := strings.Repeat("長", 80)
	for _, namespace := range []string{"default", "a/b", "a", "A", ".hidden", "..x"} {
		for _, id := range []string{
			"u", "U", "小林", "..", ".", "../../etc/passwd", "/etc", `c:\x`, "b", "a%2fb", "CON", "x.md", " ", long, long + "x", "u ", "~",
		} {
			dir := f.folder(memory.User{Namespace: namespace, ID: id})
			inside, err := filepath.Rel(f.Dir, dir)
			if err != nil || !filepath.IsLocal(inside) || strings.Count(filepath.ToSlash(inside), "/") != 1 {
				t.Errorf("%q of %q is kept in %q", id, namespace, dir)
			}
			key := strings.ToLower(dir)
			if other, ok := seen[key]; ok {
				t.Errorf("%q and %q share %q", other, namespace+" "+id, dir)
			}
			seen[key] = namespace + " " + id
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Error(err)
			}
		}
	}
}

package access

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func addTo(t *testing.T, file string, g Grant) string {
	t.Helper()
	token := NewToken()
	if err := Add(file, NewEntry(g, token)); err != nil {
		t.Fatal(err)
	}
	return token
}

func openFile(t *testing.T, file string) *Tokens {
	t.Helper()
	tokens, err := Open(file, func(int, error) {})
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func TestAuthenticate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	bot := addTo(t, file, Grant{ID: "bot", Namespace: "a/b", Level: Write})
	tokens := openFile(t, file)
	tokens.now = func() time.Time { return now }
	passing := addTo(t, file, Grant{ID: "passing", Namespace: "*", Level: Read, Expires: now.Add(time.Hour)}) // known immediately

	if g, err := tokens.Authenticate(bot); err != nil || g != (Grant{ID: "bot", Namespace: "a/b", Level: Write}) {
		t.Errorf("bot: %+v, %v", g, err)
	}
	if g, err := tokens.Authenticate(passing); err != nil || g.ID != "passing" || g.Level != Read {
		t.Errorf("passing: %+v, %v", g, err)
	}
	for name, token := range map[string]string{
		"none": "", "unknown": NewToken(), "cut": bot[:len(bot)-1], "longer": bot + "x", "id": "bot",
		"hash": strings.TrimPrefix(strings.Fields(NewEntry(Grant{}, bot).String())[0], hashPrefix),
	} {
		if g, err := tokens.Authenticate(token); !errors.Is(err, ErrUnauthenticated) || g != (Grant{}) || !strings.Contains(err.Error(), "memsidecar token create") {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
	}
	now = now.Add(time.Hour)
	if _, err := tokens.Authenticate(passing); !errors.Is(err, ErrUnauthenticated) || !strings.Contains(err.Error(), `"passing" expired`) {
		t.Errorf("at its end: %v", err)
	}

	if err := Remove(file, "bot"); err != nil {
		t.Fatal(err)
	}
	if err := tokens.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Authenticate(bot); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("revoked: %v", err)
	}
}

func TestGrantIncludesItsNamespaces(t *testing.T) {
	for pattern, reached := range map[string]string{"a": "a", "a/b": "a/b", "a/*": "a/b a/b/c", "*": "a a/b a/b/c ab default"} {
		g := Grant{ID: "x", Namespace: pattern}
		for _, namespace := range []string{"a", "a/b", "a/b/c", "ab", "default"} {
			want := strings.Contains(" "+reached+" ", " "+namespace+" ")
			got, err := g.ResolveNamespace(namespace)
			if g.Includes(namespace) != want || (err == nil) != want || want && got != namespace || !want && !errors.Is(err, ErrDenied) {
				t.Errorf("%s reaches %s: %v, want %v (%v)", pattern, namespace, g.Includes(namespace), want, err)
			}
		}
	}
	for pattern, want := range map[string]string{"a": "a", "*": "default", "a/*": "", "default": "default"} {
		if got, err := (Grant{Namespace: pattern}).ResolveNamespace(""); got != want || (err == nil) == (want == "") {
			t.Errorf("without a namespace, that of %s is %q, want %q (%v)", pattern, got, want, err)
		}
	}
}

// TestFileKeepsForeignLines: Edits keep the lines that people wrote. No file contains a token itself.
func TestFileKeepsForeignLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	one := addTo(t, file, Grant{ID: "one", Namespace: "default", Level: Write})
	info, err := os.Stat(file)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Fatalf("the mode is %v, %v", info.Mode(), err)
	}
	text, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(text), strings.TrimPrefix(one, tokenPrefix)) {
		t.Fatalf("the file is %q, %v", text, err)
	}
	const comment = "\n# of the dashboard, rotated in spring"
	if err := errors.Join(os.WriteFile(file, append(text, comment...), 0o600), os.Chmod(file, 0o640)); err != nil {
		t.Fatal(err)
	}
	addTo(t, file, Grant{ID: "two", Namespace: "a/*", Level: Read, Expires: time.Unix(1_900_000_000, 0)})
	if err := Add(file, NewEntry(Grant{ID: "two", Namespace: "b"}, NewToken())); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("two of one id: %v", err)
	}
	entries, err := ReadFile(file)
	if err != nil || len(entries) != 2 || entries[1].Grant != (Grant{"two", "a/*", Read, time.Unix(1_900_000_000, 0).UTC()}) {
		t.Errorf("the entries are %+v, %v", entries, err)
	}
	if err := Remove(file, "three"); !errors.Is(err, ErrNoToken) {
		t.Errorf("removing an unknown token: %v", err)
	}
	if err := Remove(file, "two"); err != nil {
		t.Error(err)
	}
	left, err := os.ReadFile(file)
	if info, _ := os.Stat(file); err != nil || string(left) != string(text)+comment+"\n" || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
		t.Errorf("left is %q with the mode %v, %v", left, info.Mode(), err)
	}
}

func TestInvalidFilesAreRefused(t *testing.T) {
	hash := func(c string) string { return hashPrefix + strings.Repeat(c, 64) }
	for text, problems := range map[string][]string{
		"bot":                                            {"line 1: the second word"},
		"bot secret namespace=a":                         {"line 1: the second word"},
		"bot sha256:12 namespace=a":                      {"line 1: sha256: must be followed"},
		"bot " + hash("z") + " namespace=a":              {"line 1: sha256: must be followed"},
		"bot " + hash("a"):                               {"the namespace", "is missing"},
		"bot " + hash("a") + " namespace=a//b":           {"the namespace"},
		"bot " + hash("a") + " namespace=a*":             {"the namespace"},
		"bot " + hash("a") + " namespace=/*":             {"the namespace"},
		"b@t " + hash("a") + " namespace=a":              {`the id "b@t"`},
		"bot " + hash("a") + " namespace=a colour":       {`"colour" is unknown`},
		"bot " + hash("a") + " namespace=a access=":      {"use read, write or admin"},
		"bot " + hash("a") + " namespace=a namespace=b":  {"twice"},
		"bot " + hash("a") + " namespace=a expires=soon": {"soon"},
		"\n# x\nbot " + hash("a") + " namespace=a\nbot " + hash("b") + " namespace=a":            {"line 4: two tokens"},
		"one " + hash("a") + " namespace=a\ntwo " + hash("a") + " namespace=a\nthree x\n four y": {"line 2: one and two are the same", "line 3", "line 4"},
	} {
		file := filepath.Join(t.TempDir(), "tokens")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ReadFile(file)
		for _, problem := range problems {
			if err == nil || !strings.Contains(err.Error(), problem) {
				t.Errorf("%q: %v, want %q", text, err, problem)
			}
		}
		if err := Add(file, NewEntry(Grant{ID: "new", Namespace: "a"}, NewToken())); err == nil {
			t.Errorf("%q is added to", text)
		}
	}
	if runtime.GOOS != "windows" {
		file := filepath.Join(t.TempDir(), "tokens")
		addTo(t, file, Grant{ID: "x", Namespace: "a"})
		if err := os.Chmod(file, 0o602); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(file, func(int, error) {}); err == nil || !strings.Contains(err.Error(), "chmod") {
			t.Errorf("a world-writable file is accepted: %v", err)
		}
	}
}

// TestConcurrentEditsAreSerialised: Concurrent edits lose no addition, and restore no revoked token.
func TestConcurrentEditsAreSerialised(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	const n = 8
	for i := range n {
		addTo(t, file, Grant{ID: fmt.Sprint("old", i), Namespace: "a"})
	}
	var group sync.WaitGroup
	errs := make([]error, 2*n)
	for i := range n {
		group.Go(func() { errs[i] = Add(file, NewEntry(Grant{ID: fmt.Sprint("new", i), Namespace: "a"}, NewToken())) })
		group.Go(func() { errs[n+i] = Remove(file, fmt.Sprint("old", i)) })
	}
	group.Wait()
	entries, err := ReadFile(file)
	if err = errors.Join(err, errors.Join(errs...)); err != nil || len(entries) != n {
		t.Fatalf("%d tokens, want %d: %v", len(entries), n, err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.ID, "new") {
			t.Errorf("%s came back", e.ID)
		}
	}
}

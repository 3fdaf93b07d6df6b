package access

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/memsidecar/memsidecar/internal/listen/reload"
)

const (
	// othersWrite is the permission with which any user of the machine could add a token.
	othersWrite fs.FileMode = 0o002
	othersRead  fs.FileMode = 0o004
	ownersAlone fs.FileMode = 0o600
	maxFileSize             = 16 << 20
)

var errMissing = errors.New("the file does not exist")

// ReadFile returns the entries of a tokens file, in its order.
func ReadFile(path string) ([]Entry, error) {
	text, _, err := readFile(path)
	if err != nil {
		return nil, err
	}
	entries, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return entries, nil
}

func readFile(path string) (string, fs.FileInfo, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil, fmt.Errorf(
			"%s: %w; create it with: memsidecar token create --file %s --namespace NAMESPACE",
			path,
			errMissing,
			path,
		)
	case err != nil:
		return "", nil, err
	case !info.Mode().IsRegular() || info.Size() > maxFileSize:
		return "", nil, fmt.Errorf("%s is not a regular file", path)
	case runtime.GOOS != "windows" && info.Mode().Perm()&othersWrite != 0:
		return "", nil, fmt.Errorf("%s can be written by every user of this machine: run chmod 600 %s", path, path)
	}
	text, err := os.ReadFile(path)
	return string(text), info, err
}

// WorldReadable reports whether every user of the machine can read the file. Its hashes are useless to them, but its names are visible.
func WorldReadable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&othersRead != 0
}

// Add adds a token to a file, and creates the file when it is missing.
func Add(path string, e Entry) error {
	return edit(path, true, func(text string, entries []Entry) (string, error) {
		if slices.ContainsFunc(entries, func(other Entry) bool { return other.ID == e.ID }) {
			return "", fmt.Errorf("a token %s already exists: choose another --id, or revoke that one first", e.ID)
		}
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		return text + e.String() + "\n", nil
	})
}

// ErrNoToken means that there is no token with the id.
var ErrNoToken = errors.New("no such token")

// Remove removes a token from a file.
func Remove(path, id string) error {
	return edit(path, false, func(text string, _ []Entry) (string, error) {
		kept, found := &strings.Builder{}, false
		for line := range strings.Lines(text) {
			if fields := strings.Fields(line); len(fields) > 0 && fields[0] == id {
				found = true
				continue
			}
			kept.WriteString(line)
		}
		if !found {
			return "", fmt.Errorf("%w: %s has no token with the id %s", ErrNoToken, path, id)
		}
		return kept.String(), nil
	})
}

// edit replaces the whole file atomically, so that a sidecar never reads half of a change. A lock makes concurrent edits take turns, so
// that neither undoes the other.
func edit(path string, create bool, change func(text string, entries []Entry) (string, error)) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // replace the target of a link, not the link
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && !create {
		_, _, err := readFile(path)
		return err
	}
	lock := flock.New(path + ".lock")
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("locking %s: %w", path, err)
	}
	defer func() { _ = lock.Unlock() }()
	text, info, err := readFile(path)
	if err != nil && (!create || !errors.Is(err, errMissing)) {
		return err
	}
	entries, err := parse(text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if text, err = change(text, entries); err != nil {
		return err
	}
	return replace(path, text, info)
}

// replace writes a temporary file and renames it. Owner and mode are kept, because the sidecar may run as another user than the one who
// creates tokens.
func replace(path, text string, before fs.FileInfo) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.partial") // with 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = file.Close()
			_ = os.Remove(file.Name())
		}
	}()
	mode := ownersAlone
	if before != nil {
		mode = before.Mode().Perm()
		if err := keepOwner(file, before); err != nil {
			return fmt.Errorf("%s belongs to another user, who could no longer read it: run this command as its owner: %w", path, err)
		}
	}
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		_ = dir.Sync() // makes the rename durable where supported; the file is complete either way
		_ = dir.Close()
	}
	return nil
}

// Tokens are the tokens of a file. The file is read again when it changes.
type Tokens struct {
	files *reload.Files[[]Entry]
	now   func() time.Time
}

// Open reads the tokens of a file. report is called after the file was read again, with a nil error or the reason for the failure. After a
// failure the previous tokens stay valid.
func Open(path string, report func(tokens int, err error)) (*Tokens, error) {
	count := 0
	files, err := reload.Open([]string{path}, func() ([]Entry, error) {
		entries, err := ReadFile(path)
		count = len(entries)
		return entries, err
	}, func(err error) { report(count, err) })
	if err != nil {
		return nil, err
	}
	return &Tokens{files, time.Now}, nil
}

// Count returns the number of tokens.
func (t *Tokens) Count() int { return len(t.files.Get()) }

// Reload reads the file now.
func (t *Tokens) Reload() error { return t.files.Reload() }

// Authenticate returns what a token allows, or ErrUnauthenticated. A new token works immediately; a revoked one stops working within a
// second.
func (t *Tokens) Authenticate(token string) (Grant, error) {
	if token == "" {
		return Grant{}, fmt.Errorf(
			"%w: this sidecar asks for a token, sent as metadata \"authorization: Bearer TOKEN\"; make one with: memsidecar token create",
			ErrUnauthenticated,
		)
	}
	e, ok := find(t.files.Get(), token)
	if !ok {
		e, ok = find(t.files.Fresh(), token)
	}
	switch {
	case !ok:
		return Grant{}, fmt.Errorf(
			"%w: this sidecar does not know the token: it was revoked, cut off, or is another sidecar's; make one with: memsidecar token create",
			ErrUnauthenticated,
		)
	case !e.Expires.IsZero() && !t.now().Before(e.Expires):
		return Grant{}, fmt.Errorf(
			"%w: the token %q expired on %s; make another with: memsidecar token create",
			ErrUnauthenticated,
			e.ID,
			e.Expires.UTC().Format(time.RFC3339),
		)
	}
	return e.Grant, nil
}

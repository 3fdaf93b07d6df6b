package reload

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// box is a file with a reader that counts its calls, and a clock.
type box struct {
	path    string
	now     time.Time
	reads   int
	broken  error
	reports []error
}

func open(t *testing.T) (*Files[string], *box) {
	t.Helper()
	b := &box{path: filepath.Join(t.TempDir(), "f"), now: time.Unix(1_800_000_000, 0)}
	b.write(t, "one")
	f, err := Open([]string{b.path}, func() (string, error) {
		b.reads++
		text, err := os.ReadFile(b.path)
		return string(text), errors.Join(err, b.broken)
	}, func(err error) { b.reports = append(b.reports, err) })
	if err != nil {
		t.Fatal(err)
	}
	f.now = func() time.Time { return b.now }
	f.due.Store(b.now.Add(interval).UnixNano())
	return f, b
}

// write replaces the file by renaming.
func (b *box) write(t *testing.T, text string) {
	t.Helper()
	if err := errors.Join(os.WriteFile(b.path+".new", []byte(text), 0o600), os.Rename(b.path+".new", b.path)); err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestChangedFilesAreRead(t *testing.T) {
	f, b := open(t)
	b.write(t, "two")
	want(t, f.Get(), "one") // checked less than a second ago
	b.now = b.now.Add(interval)
	want(t, f.Get(), "two")
	b.write(t, "six")
	want(t, f.Fresh(), "six") // same length, and possibly the same modification time
	reads := b.reads
	for range 10 {
		b.now = b.now.Add(interval)
		want(t, f.Get(), "six")
	}
	if b.reads != reads {
		t.Errorf("an unchanged file was read %d times", b.reads-reads)
	}
	if err := f.Reload(); err != nil || b.reads != reads+1 {
		t.Errorf("reloaded %d times, %v", b.reads-reads, err)
	}
}

// TestLastGoodValueStays: The last good value stays, reading is retried even if nothing changed, and each problem is reported once.
func TestLastGoodValueStays(t *testing.T) {
	f, b := open(t)
	b.write(t, "two")
	b.broken = errors.New("too many open files")
	for range 3 {
		want(t, f.Fresh(), "one")
	}
	if err := f.Reload(); !errors.Is(err, b.broken) {
		t.Errorf("Reload: %v", err)
	}
	if len(b.reports) != 1 || !errors.Is(b.reports[0], b.broken) {
		t.Errorf("reported %v", b.reports)
	}
	b.broken = nil
	want(t, f.Fresh(), "two")
	if err := os.Remove(b.path); err != nil {
		t.Fatal(err)
	}
	want(t, f.Fresh(), "two")
	if len(b.reports) != 3 || b.reports[1] != nil || !errors.Is(b.reports[2], os.ErrNotExist) {
		t.Errorf("reported %v", b.reports)
	}
	b.write(t, "three")
	want(t, f.Fresh(), "three")
}

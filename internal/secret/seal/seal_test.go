package seal_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/secret/seal"
)

func newKey(t testing.TB) seal.Key {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	if err := seal.CreateKeyFile(file); err != nil {
		t.Fatal(err)
	}
	key, err := seal.ReadKeyFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newPages(t testing.TB, key seal.Key) (*seal.Pages, seal.Envelope) {
	t.Helper()
	pages, envelope, err := seal.NewPages(key)
	if err != nil {
		t.Fatal(err)
	}
	return pages, envelope
}

// TestParseKey: A key is 32 bytes in any base64 variant. Nothing else is accepted.
func TestParseKey(t *testing.T) {
	raw := bytes.Repeat([]byte{0xfb, 0xef}, seal.KeySize/2)
	text := base64.StdEncoding.EncodeToString(raw)
	_, envelope := newPages(t, mustParse(t, text))
	if none := (seal.Key{}); mustParse(t, text).Equal(newKey(t)) || mustParse(t, text).Equal(none) || none.Equal(newKey(t)) || !none.Equal(seal.Key{}) {
		t.Error("keys are mistaken for each other")
	}
	for _, same := range []string{
		text, strings.TrimRight(text, "="), base64.URLEncoding.EncodeToString(raw), " " + text + "\r\n",
		"\ufeff" + text + "\r\n", text[:20] + "\r\n" + text[20:],
	} {
		if _, err := seal.OpenPages(mustParse(t, same), envelope); err != nil || !mustParse(t, same).Equal(mustParse(t, text)) {
			t.Errorf("%q is another key: %v", same, err)
		}
	}
	for _, bad := range []string{"", "no", text + "AAAA", text[:40], strings.Repeat("x", seal.KeySize), "\x00" + text} {
		if key, err := seal.ParseKey(bad); !errors.Is(err, seal.ErrNoKey) || !key.IsZero() {
			t.Errorf("%q gives %v, %v", bad, key, err)
		} else if len(bad) > 3 && strings.Contains(err.Error(), bad) {
			t.Errorf("the error shows it: %v", err)
		}
	}
}

func mustParse(t *testing.T, text string) seal.Key {
	t.Helper()
	key, err := seal.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestKeyIsNeverPrinted, in any formatting, alone or in a struct.
func TestKeyIsNeverPrinted(t *testing.T) {
	text := base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))
	key := mustParse(t, text)
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d", "%q"} {
		for _, value := range []any{key, &key, struct{ Key seal.Key }{key}, struct{ key seal.Key }{key}} {
			shown := fmt.Sprintf(format, value)
			for _, form := range []string{text, "0123456789abcdef", "30313233", "48 49 50"} {
				if strings.Contains(shown, form) {
					t.Errorf("%s shows %s", format, shown)
				}
			}
		}
	}
}

// TestKeyFile: Only its owner can read the file. It is never overwritten. Errors name a file that holds no key.
func TestKeyFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "key")
	if err := seal.CreateKeyFile(file); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v", info.Mode())
	}
	if err := seal.CreateKeyFile(file); !errors.Is(err, fs.ErrExist) {
		t.Errorf("making it again gives %v", err)
	}
	if seal.WorldReadable(file) {
		t.Error("a private file is reported as world-readable")
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && !seal.WorldReadable(file) {
		t.Error("a world-readable file is not reported")
	}
	if err := os.WriteFile(file, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := seal.ReadKeyFile(file); !errors.Is(err, seal.ErrNoKey) || !strings.Contains(err.Error(), file) {
		t.Errorf("reading it gives %v", err)
	}
	if _, err := seal.ReadKeyFile(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading none gives %v", err)
	}
}

// TestEnvelope: Only its key opens the envelope. After a change of the key, earlier pages still open.
func TestEnvelope(t *testing.T) {
	first, second := newKey(t), newKey(t)
	pages, envelope := newPages(t, first)
	place := seal.Place{File: 'd', Number: 7}
	page := make([]byte, 4096)
	copy(page, "hello")
	pages.Seal(page, place)

	again, err := pages.Wrap(second)
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []struct {
		key      seal.Key
		envelope seal.Envelope
	}{{second, envelope}, {first, again}, {seal.Key{}, envelope}, {first, seal.Envelope{}}} {
		if _, err := seal.OpenPages(wrong.key, wrong.envelope); !errors.Is(err, seal.ErrWrongKey) {
			t.Errorf("a wrong key gives %v", err)
		}
	}
	for i := range envelope {
		changed := envelope
		changed[i] ^= 1
		if _, err := seal.OpenPages(first, changed); err == nil {
			t.Errorf("an envelope whose byte %d was changed opens", i)
		}
	}
	same, err := seal.OpenPages(second, again)
	if err != nil {
		t.Fatal(err)
	}
	if err := same.Open(page, place); err != nil || !bytes.HasPrefix(page, []byte("hello")) {
		t.Errorf("it has %q (%v)", page[:5], err)
	}
	if _, _, err := seal.NewPages(seal.Key{}); err == nil {
		t.Error("no key is a key")
	}
}

// TestSeal: A sealed page opens in its place only, and not if a bit was changed.
func TestSeal(t *testing.T) {
	pages, _ := newPages(t, newKey(t))
	other, _ := newPages(t, newKey(t))
	place := seal.Place{File: 'd', Number: 7}
	plain := make([]byte, 512)
	copy(plain, "hello")
	sealed := bytes.Clone(plain)
	pages.Seal(sealed, place)
	if again := bytes.Clone(plain); bytes.Contains(sealed, []byte("hello")) {
		t.Error("it is not sealed")
	} else if pages.Seal(again, place); bytes.Equal(again, sealed) {
		t.Error("equal pages look alike")
	}
	if got := bytes.Clone(sealed); pages.Open(got, place) != nil || !bytes.Equal(got, plain) {
		t.Errorf("it opens as %q", got)
	}
	for _, wrong := range []seal.Place{{File: 'd', Number: 8}, {File: 'w', Number: 7}, {}} {
		if got := bytes.Clone(sealed); !errors.Is(pages.Open(got, wrong), seal.ErrForged) || len(bytes.Trim(got, "\x00")) > 0 {
			t.Errorf("it opens at %+v", wrong)
		}
	}
	if !errors.Is(other.Open(bytes.Clone(sealed), place), seal.ErrForged) {
		t.Error("another data key opens it")
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 0x80
		if !errors.Is(pages.Open(changed, place), seal.ErrForged) {
			t.Errorf("it opens with byte %d changed", i)
		}
	}
	block := []byte("0123456789abcdef")
	if pages.Hide(block); string(block) == "0123456789abcdef" {
		t.Error("the block is not hidden")
	}
	if pages.Show(block); string(block) != "0123456789abcdef" {
		t.Errorf("it shows as %q", block)
	}
}

// BenchmarkSeal measures one page.
func BenchmarkSeal(b *testing.B) {
	pages, _ := newPages(b, newKey(b))
	page := make([]byte, 4096)
	for name, open := range map[string]bool{"seal": false, "seal and open": true} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(page)))
			for i := range b.N {
				place := seal.Place{File: 'd', Number: uint64(i)}
				pages.Seal(page, place)
				if open {
					if err := pages.Open(page, place); err != nil {
						b.Fatal(err)
					}
				} else {
					clear(page[len(page)-seal.Overhead:])
				}
			}
		})
	}
}

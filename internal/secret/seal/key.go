// Package seal encrypts the pages of a database file: the operator's key, the data key that it wraps, and the ciphers. It does not
// depend on SQLite.
package seal

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// KeySize is the length of a key, in bytes.
const KeySize = 32

// maxKeyFile limits how much of a key file is read.
const maxKeyFile = 4096

// ErrNoKey means that a text is not a key.
var ErrNoKey = errors.New("not a key: it is 32 random bytes in base64, as memsidecar key create makes one")

// Key is the operator's key. The zero Key is no key. Printing it does not reveal it: even fmt cannot read a function's variables.
type Key struct{ reveal func() []byte }

// IsZero reports whether there is no key.
func (k Key) IsZero() bool { return k.reveal == nil }

// Equal reports whether two keys are the same.
func (k Key) Equal(other Key) bool {
	if k.IsZero() || other.IsZero() {
		return k.IsZero() && other.IsZero()
	}
	return subtle.ConstantTimeCompare(k.reveal(), other.reveal()) == 1
}

// String says whether there is a key.
func (k Key) String() string {
	if k.IsZero() {
		return "no key"
	}
	return "********"
}

// Format writes the result of String for every verb.
func (k Key) Format(f fmt.State, _ rune) { fmt.Fprint(f, k.String()) }

// byteOrderMark starts files written by some editors.
const byteOrderMark = "\ufeff"

// ParseKey parses a key in base64, standard or URL alphabet, with or without padding. The error does not quote it.
func ParseKey(text string) (Key, error) {
	text = strings.TrimPrefix(text, byteOrderMark)
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(strings.TrimSpace(text), "="))
	raw, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil || len(raw) != KeySize {
		return Key{}, ErrNoKey
	}
	return Key{func() []byte { return raw }}, nil
}

// ReadKeyFile reads a key from a file.
func ReadKeyFile(path string) (Key, error) {
	f, err := os.Open(path)
	if err != nil {
		return Key{}, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err := errors.Join(err, f.Close()); err != nil {
		return Key{}, err
	}
	k, err := ParseKey(string(text))
	if err != nil {
		return Key{}, fmt.Errorf("%s: %w", path, err)
	}
	return k, nil
}

// WorldReadable reports whether all users of the machine can read the file.
func WorldReadable(path string) bool {
	const othersRead fs.FileMode = 0o004
	info, err := os.Stat(path)
	return err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&othersRead != 0
}

// CreateKeyFile writes a random key to a new file that only its owner can read. The file must not exist; it is on disk when the
// function returns.
func CreateKeyFile(path string) (err error) {
	raw := make([]byte, KeySize)
	_, _ = rand.Read(raw) // never fails
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	_, err = f.WriteString(base64.StdEncoding.EncodeToString(raw) + "\n")
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil || runtime.GOOS == "windows" { // Windows cannot sync folders, and need not
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

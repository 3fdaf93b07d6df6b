package sqlite

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"

	"github.com/memsidecar/memsidecar/internal/secret/seal"
	"github.com/memsidecar/memsidecar/internal/sqlite/sealed"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

var (
	// ErrEncrypted means that a database is encrypted and there is no key.
	ErrEncrypted = errors.New("it is encrypted, and there is no key: set encryption.key_file or MEMSIDECAR_ENCRYPTION_KEY")
	// ErrNotEncrypted means that a database is not encrypted although there is a key.
	ErrNotEncrypted = errors.New("it is not encrypted, and a key is set: encrypt it with memsidecar key encrypt while no sidecar runs, " +
		"or remove the key from the configuration")
	// ErrKey means that the key belongs to another database, or was replaced.
	ErrKey = errors.New("the key does not open it: set the one that it was encrypted with, or the new one if memsidecar key rotate was used")
)

const (
	plainMagic = "SQLite format 3\x00"
	// envelopeSuffix is the suffix of a file with an envelope that will be written into the database.
	envelopeSuffix = "-envelope"
)

// Files says how files of databases are opened.
type Files struct {
	// Key is the key of encrypted databases. Databases that are not encrypted are opened as well.
	Key seal.Key
	// Checks are the checks in addition to pages and references.
	Checks []sqldb.Check
}

// vault decrypts a file; nil for a file that is not encrypted.
type vault struct {
	pages    *seal.Pages
	envelope seal.Envelope
	vfs      *sealed.VFS
	// rotating is set when the envelope is not the one in the file, because replacing it was interrupted.
	rotating bool
}

// parameters is the start of the query of a connection string.
func (v *vault) parameters() url.Values {
	q := url.Values{}
	if v != nil {
		q.Set("vfs", v.vfs.Name())
	}
	return q
}

// name is the name of SQLite's VFS; empty for the default.
func (v *vault) name() string {
	if v == nil {
		return ""
	}
	return v.vfs.Name()
}

// open decrypts, in place, a page that was not read through SQLite, and reports whether it could.
func (v *vault) open(number int64, page []byte) bool {
	return v == nil || v.vfs.OpenPage(number, page) == nil
}

// close must be called after all connections are closed.
func (v *vault) close() error {
	if v == nil {
		return nil
	}
	return v.vfs.Close()
}

// unlock determines how to open a database, or how to create one if the file is empty. It changes nothing.
func unlock(path string, source func() (seal.Key, error)) (*vault, error) {
	key, err := source()
	if err != nil {
		return nil, err
	}
	v, found, err := identify(path, key)
	switch {
	case err != nil:
		return nil, err
	case found == plain && !key.IsZero():
		return nil, ErrNotEncrypted
	case found == none && !key.IsZero():
		return newVault(key)
	case found == other && !key.IsZero():
		return nil, fmt.Errorf("%w: its beginning cannot be read", ErrDamaged)
	}
	return v, nil
}

// unlockKnown is unlock for an existing file, encrypted or not.
func unlockKnown(path string, key seal.Key) (*vault, error) {
	v, _, err := identify(path, key)
	return v, err
}

// newVault returns the vault of a new file.
func newVault(key seal.Key) (*vault, error) {
	pages, envelope, err := seal.NewPages(key)
	if err != nil {
		return nil, err
	}
	return register(pages, envelope, false)
}

func register(pages *seal.Pages, envelope seal.Envelope, rotating bool) (*vault, error) {
	vfs, err := sealed.Register(pages, envelope)
	if err != nil {
		return nil, err
	}
	return &vault{pages, envelope, vfs, rotating}, nil
}

// kind is the kind of a file, determined by its first bytes.
type kind int

const (
	none kind = iota // empty, or will be empty after SQLite rolls back
	plain
	encrypted
	other
)

// identify reads the first bytes of a file.
func identify(path string, key seal.Key) (*vault, kind, error) {
	head, err := readStart(path, seal.EnvelopeSize)
	if err != nil {
		return nil, none, err
	}
	switch {
	case len(head) == 0:
		return nil, none, nil
	case len(head) >= len(plainMagic) && string(head[:len(plainMagic)]) == plainMagic:
		return nil, plain, nil
	}
	next, err := readStart(path+envelopeSuffix, seal.EnvelopeSize)
	if err != nil {
		return nil, other, err
	}
	if !seal.IsEnvelope(head) && !seal.IsEnvelope(next) {
		begun, err := isIncomplete(path)
		if begun {
			return nil, none, err
		}
		return nil, other, err
	}
	if key.IsZero() {
		return nil, encrypted, ErrEncrypted
	}
	for i, envelope := range [][]byte{head, next} {
		if !seal.IsEnvelope(envelope) {
			continue
		}
		pages, err := seal.OpenPages(key, seal.Envelope(envelope))
		if errors.Is(err, seal.ErrWrongKey) {
			continue
		}
		if err != nil {
			return nil, encrypted, err
		}
		v, err := register(pages, seal.Envelope(envelope), i > 0)
		if err != nil || !v.rotating {
			return v, encrypted, err
		}
		if belongs, err := v.opensFirst(path); err != nil || !belongs {
			return nil, encrypted, errors.Join(cmp.Or(err, ErrKey), v.close())
		}
		return v, encrypted, nil
	}
	return nil, encrypted, ErrKey
}

// opensFirst reports whether the first page is encrypted with this data key. A pending envelope may belong to another database, for
// example if a backup was copied into the folder; it must not replace the data key of the present database.
func (v *vault) opensFirst(path string) (bool, error) {
	page, err := readStart(path, sealed.PageSize)
	return len(page) == sealed.PageSize && v.open(1, page), err
}

// readStart reads at most n bytes from the start of a file; none if it does not exist.
func readStart(path string, n int) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	head, err := io.ReadAll(io.LimitReader(f, int64(n)))
	return head, errors.Join(err, f.Close())
}

// isIncomplete reports whether a process ended while it created the database. Then its journal describes an empty database, to which
// SQLite rolls back. https://www.sqlite.org/fileformat2.html#the_rollback_journal
func isIncomplete(path string) (bool, error) {
	head, err := readStart(path+"-journal", 20)
	if err != nil || len(head) < 20 {
		return false, err
	}
	const magic = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
	return string(head[:len(magic)]) == magic && binary.BigEndian.Uint32(head[16:]) == 0, nil
}

// completeRotation completes an interrupted rotation; the caller must have the folder locked. A pending envelope is written into the
// database if its key is used, and dropped if the former key is.
func (v *vault) completeRotation(path string) error {
	waiting, err := readStart(path+envelopeSuffix, seal.EnvelopeSize)
	if v == nil || err != nil || len(waiting) == 0 {
		return err
	}
	if v.rotating {
		if err := putEnvelope(path, v.envelope); err != nil {
			return err
		}
		v.rotating = false
	}
	return removeIfThere(path + envelopeSuffix)
}

// putEnvelope overwrites the envelope at the start of a database.
func putEnvelope(path string, e seal.Envelope) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(e[:], 0)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

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
	// ErrSealed means that a database is encrypted and there is no key.
	ErrSealed = errors.New("it is encrypted, and there is no key: set encryption.key_file or MEMSIDECAR_ENCRYPTION_KEY")
	// ErrUnsealed means that a database is not encrypted although there is a key.
	ErrUnsealed = errors.New("it is not encrypted, and a key is set: encrypt it with memsidecar key encrypt while no sidecar runs, " +
		"or take the key out of the configuration")
	// ErrKey means that the key is another database's, or was replaced.
	ErrKey = errors.New("the key does not open it: set the one that it was encrypted with, or the new one if memsidecar key rotate was used")
)

const (
	plainMagic = "SQLite format 3\x00"
	// envelopeSuffix is that of a file with an envelope that is about to be put into the database.
	envelopeSuffix = "-envelope"
)

// Files is how the files of databases are opened.
type Files struct {
	// Key is that of databases that are encrypted. Those that are not are opened as well.
	Key seal.Key
	// Checks are what Check does beyond pages and references.
	Checks []sqldb.Check
}

// vault is how an encrypted file is opened; nil is how others are.
type vault struct {
	pages    *seal.Pages
	envelope seal.Envelope
	vfs      *sealed.VFS
	// rotating is set when the envelope is not that in the file: it was to be replaced, and something came between.
	rotating bool
}

// parameters is the beginning of a connection string's query.
func (v *vault) parameters() url.Values {
	q := url.Values{}
	if v != nil {
		q.Set("vfs", v.vfs.Name())
	}
	return q
}

// name is SQLite's name for how the file is opened; empty is the usual one.
func (v *vault) name() string {
	if v == nil {
		return ""
	}
	return v.vfs.Name()
}

// open opens a page that was read past SQLite, in place, and reports whether it could.
func (v *vault) open(number int64, page []byte) bool {
	return v == nil || v.vfs.OpenPage(number, page) == nil
}

// close is called when all connections are closed.
func (v *vault) close() error {
	if v == nil {
		return nil
	}
	return v.vfs.Close()
}

// unlock looks how a database is to be opened, or made when the file is empty. It changes nothing.
func unlock(path string, source func() (seal.Key, error)) (*vault, error) {
	key, err := source()
	if err != nil {
		return nil, err
	}
	v, found, err := look(path, key)
	switch {
	case err != nil:
		return nil, err
	case found == plain && !key.IsZero():
		return nil, ErrUnsealed
	case found == none && !key.IsZero():
		return newVault(key)
	case found == other && !key.IsZero():
		return nil, fmt.Errorf("%w: its beginning cannot be read", ErrDamaged)
	}
	return v, nil
}

// unlockKnown is unlock for a file that is there, encrypted or not.
func unlockKnown(path string, key seal.Key) (*vault, error) {
	v, _, err := look(path, key)
	return v, err
}

// newVault is that of a file that is to be made.
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

// kind is what a file is, by its beginning.
type kind int

const (
	none kind = iota // nothing is in it, or will be once SQLite has undone what was begun
	plain
	encrypted
	other
)

// look reads the beginning of a file.
func look(path string, key seal.Key) (*vault, kind, error) {
	head, err := beginning(path, seal.EnvelopeSize)
	if err != nil {
		return nil, none, err
	}
	switch {
	case len(head) == 0:
		return nil, none, nil
	case len(head) >= len(plainMagic) && string(head[:len(plainMagic)]) == plainMagic:
		return nil, plain, nil
	}
	next, err := beginning(path+envelopeSuffix, seal.EnvelopeSize)
	if err != nil {
		return nil, other, err
	}
	if !seal.IsEnvelope(head) && !seal.IsEnvelope(next) {
		begun, err := onlyBegun(path)
		if begun {
			return nil, none, err
		}
		return nil, other, err
	}
	if key.IsZero() {
		return nil, encrypted, ErrSealed
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

// opensFirst reports whether the first page is of this data key. An envelope that waits may lie beside a database that was put
// in the place of its own, such as a backup, and would take that one's data key away.
func (v *vault) opensFirst(path string) (bool, error) {
	page, err := beginning(path, sealed.PageSize)
	return len(page) == sealed.PageSize && v.open(1, page), err
}

// beginning reads at most so many bytes of a file; none when it is not there.
func beginning(path string, n int) ([]byte, error) {
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

// onlyBegun reports whether a database was being made when its process ended: then a journal lies beside it which says that
// there was nothing before, and SQLite goes back to that. https://www.sqlite.org/fileformat2.html#the_rollback_journal
func onlyBegun(path string) (bool, error) {
	head, err := beginning(path+"-journal", 20)
	if err != nil || len(head) < 20 {
		return false, err
	}
	const magic = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
	return string(head[:len(magic)]) == magic && binary.BigEndian.Uint32(head[16:]) == 0, nil
}

// settleEnvelope ends a rotation that was interrupted, for the one who has the folder locked: an envelope that waits is put
// into the database if its key is used, and dropped if the key of before is.
func (v *vault) settleEnvelope(path string) error {
	waiting, err := beginning(path+envelopeSuffix, seal.EnvelopeSize)
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

// putEnvelope overwrites the envelope at the beginning of a database.
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

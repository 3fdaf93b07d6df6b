package sealed

import (
	"bytes"
	"errors"
	"slices"

	"github.com/memsidecar/memsidecar/internal/secret/seal"
)

// PageSize is the page size of every database of the sidecar. The last seal.Overhead bytes of a page are reserved in the file's header:
// SQLite never writes to them, and here they hold tag and nonce.
const PageSize = 4096

// Kinds of files. The kind is part of a page's seal.Place.
const (
	database byte = 'd'
	log      byte = 'w'
	journal  byte = 'j'
)

// These bytes of the file's header (https://www.sqlite.org/fileformat2.html#the_database_header) are the same in every database with
// this layout. They are not stored, which makes room for the envelope in the first page.
var constants = []struct {
	at    int
	bytes []byte
}{
	{0, []byte("SQLite format 3\x00\x10\x00")}, // and the page size
	{20, []byte{seal.Overhead, 64, 32, 32}},    // reserved bytes, and fractions that never differ
	{52, make([]byte, 4)},                      // no automatic vacuum
	{72, make([]byte, 20)},                     // for future expansion
}

// headerSize is the size of the file's header in the first page.
const headerSize = 100

var errForeignPage = errors.New("the first page is not one of these databases")

// packFirst seals the first page and puts the envelope in front.
func packFirst(pages *seal.Pages, envelope seal.Envelope, page, into []byte) error {
	to, from := copy(into, envelope[:]), 0
	for _, c := range constants {
		if !bytes.Equal(page[c.at:c.at+len(c.bytes)], c.bytes) {
			return errForeignPage
		}
		to += copy(into[to:], page[from:c.at])
		from = c.at + len(c.bytes)
	}
	copy(into[to:], page[from:])
	pages.Seal(into[seal.EnvelopeSize:], seal.Place{File: database, Number: 1})
	return nil
}

// unpackFirst reverses packFirst in place.
func unpackFirst(pages *seal.Pages, page []byte) error {
	if err := pages.Open(page[seal.EnvelopeSize:], seal.Place{File: database, Number: 1}); err != nil {
		clear(page)
		return err
	}
	packed := slices.Clone(page[seal.EnvelopeSize:])
	to, from := 0, 0
	for _, c := range constants {
		n := copy(page[to:c.at], packed[from:])
		from += n
		to = c.at + copy(page[c.at:], c.bytes)
	}
	copy(page[to:], packed[from:])
	return nil
}

// emptyHeader returns the header of a new database, with the page size and the reserved bytes.
func emptyHeader() []byte {
	header := make([]byte, headerSize)
	for _, c := range constants {
		copy(header[c.at:], c.bytes)
	}
	return header
}

// unreserved reports whether the reserved bytes of a page are zeros. They are in pages that were read here or are new. The checksums of
// the log include them, but they are not stored.
func unreserved(page []byte) bool { return isZero(page[PageSize-seal.Overhead:]) }

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// Frames of the log: https://www.sqlite.org/fileformat2.html#wal_file_format
const (
	logHeader   = 32
	frameHeader = 24
	frameSize   = frameHeader + PageSize
	frameHidden = frameHeader - seal.BlockSize // salts and checksums, from here on
)

// frameAt returns the start of the frame at an offset, and the offset within it.
func frameAt(offset int64) (start int64, within int) {
	within = int((offset - logHeader) % frameSize)
	return offset - int64(within), within
}

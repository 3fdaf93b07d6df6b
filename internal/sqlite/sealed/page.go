package sealed

import (
	"bytes"
	"errors"
	"slices"

	"github.com/memsidecar/memsidecar/internal/secret/seal"
)

// PageSize is that of every database of the sidecar. The last seal.Overhead bytes of a page are reserved, which SQLite knows
// from the file's header and keeps out of: it never writes to them, and here they hold tag and nonce.
const PageSize = 4096

// Kinds of files, which are part of the place that a page is sealed for.
const (
	database byte = 'd'
	log      byte = 'w'
	journal  byte = 'j'
)

// Of the file's header (https://www.sqlite.org/fileformat2.html#the_database_header) these bytes are the same in every database
// that has this layout. They are left out on disk, and that makes room for the envelope in the first page.
var constants = []struct {
	at    int
	bytes []byte
}{
	{0, []byte("SQLite format 3\x00\x10\x00")}, // and the page size
	{20, []byte{seal.Overhead, 64, 32, 32}},    // reserved bytes, and fractions that never differ
	{52, make([]byte, 4)},                      // no automatic vacuum
	{72, make([]byte, 20)},                     // for future expansion
}

// headerSize is how much of the first page is the file's header.
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

// unpackFirst undoes packFirst in place.
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

// emptyHeader is the header of a database that is to be made. SQLite learns from it how long pages are, and what is reserved.
func emptyHeader() []byte {
	header := make([]byte, headerSize)
	for _, c := range constants {
		copy(header[c.at:], c.bytes)
	}
	return header
}

// unreserved reports whether the reserved bytes of a page are zeros, as they are in pages that were read here or are new. The checksums of
// the log cover them, and they are not stored.
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

// frameAt is the frame that an offset lies in, and where in it.
func frameAt(offset int64) (start int64, within int) {
	within = int((offset - logHeader) % frameSize)
	return offset - int64(within), within
}

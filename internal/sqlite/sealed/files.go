package sealed

import (
	"bytes"
	"encoding/binary"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/memsidecar/memsidecar/internal/secret/seal"
)

// Writes of unexpected sizes are refused, because a newer SQLite with other writes must not store plain text.

// readDatabase reads a page, or a part of the first page: SQLite reads only the header before it knows the page size.
func (a access) readDatabase(into uintptr, n int, offset int64) int32 {
	if n == PageSize && offset%PageSize == 0 {
		return a.readPage(into, offset)
	}
	if offset+int64(n) > PageSize {
		return sqlite3.SQLITE_IOERR_READ
	}
	out := bytesAt(into, n)
	clear(out)
	rc := a.readPage(a.scratch, 0)
	switch rc {
	case sqlite3.SQLITE_OK:
		copy(out, bytesAt(a.scratch, PageSize)[offset:])
	case sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_CORRUPT:
		// The file is new, or a power loss tore this page, and the log or the journal has a whole copy. SQLite needs only the header
		// to read that copy. A damaged page is found when it is read as a whole.
		if offset < headerSize {
			copy(out, emptyHeader()[offset:])
		}
		if rc == sqlite3.SQLITE_CORRUPT {
			rc = sqlite3.SQLITE_OK
		}
	}
	return rc
}

// readPage reads a whole page.
func (a access) readPage(into uintptr, offset int64) int32 {
	page := bytesAt(into, PageSize)
	if rc := a.get(into, PageSize, offset); rc != sqlite3.SQLITE_OK {
		clear(page)
		return rc
	}
	if err := a.vfs.OpenPage(offset/PageSize+1, page); err != nil {
		return sqlite3.SQLITE_CORRUPT
	}
	return sqlite3.SQLITE_OK
}

func (a access) writeDatabase(from uintptr, n int, offset int64) int32 {
	if n != PageSize || offset%PageSize != 0 {
		return sqlite3.SQLITE_IOERR_WRITE
	}
	page, sealed := bytesAt(from, PageSize), bytesAt(a.scratch, PageSize)
	if !unreserved(page) {
		return sqlite3.SQLITE_IOERR_WRITE
	}
	if offset == 0 {
		envelope, rc := a.envelopeThere()
		if rc != sqlite3.SQLITE_OK {
			return rc
		}
		if err := packFirst(a.vfs.pages, envelope, page, sealed); err != nil {
			return sqlite3.SQLITE_IOERR_WRITE
		}
	} else {
		copy(sealed, page)
		a.vfs.pages.Seal(sealed, placeInDatabase(offset))
	}
	return a.put(a.scratch, PageSize, offset)
}

// envelopeThere returns the envelope in the file, or the one for a new file. Another program may have written a new envelope since the
// file was opened: a backup that runs during a rotation of the key must not restore the old one when it closes the log.
func (a access) envelopeThere() (seal.Envelope, int32) {
	if rc := a.get(a.scratch, seal.EnvelopeSize, 0); rc != sqlite3.SQLITE_OK && rc != sqlite3.SQLITE_IOERR_SHORT_READ {
		return seal.Envelope{}, rc
	}
	if there := bytesAt(a.scratch, seal.EnvelopeSize); seal.IsEnvelope(there) {
		return seal.Envelope(there), sqlite3.SQLITE_OK
	}
	return a.vfs.envelope, sqlite3.SQLITE_OK
}

func placeInDatabase(offset int64) seal.Place {
	return seal.Place{File: database, Number: uint64(offset)/PageSize + 1} //nolint:gosec // SQLite reads nothing before a file
}

// readLog reads the log's header, which holds no user data, and frames or parts of them.
func (a access) readLog(into uintptr, n int, offset int64) int32 {
	for n > 0 {
		if offset < logHeader {
			part := min(n, int(logHeader-offset))
			if rc := a.get(into, part, offset); rc != sqlite3.SQLITE_OK {
				return a.short(into, n, rc)
			}
			into, n, offset = into+uintptr(part), n-part, offset+int64(part)
			continue
		}
		start, within := frameAt(offset)
		part := min(n, frameSize-within)
		if rc := a.readFrame(start, within >= frameHeader); rc != sqlite3.SQLITE_OK {
			return a.short(into, n, rc)
		}
		copy(bytesAt(into, part), bytesAt(a.scratch, frameSize)[within:])
		into, n, offset = into+uintptr(part), n-part, offset+int64(part)
	}
	return sqlite3.SQLITE_OK
}

// short zeroes the bytes that could not be read, as SQLite requires.
func (a access) short(into uintptr, n int, rc int32) int32 {
	clear(bytesAt(into, n))
	return rc
}

// readFrame reads a frame and decrypts it. pageOnly means that SQLite reads only the page. It has verified such a frame before, so a
// frame that cannot be decrypted is damaged. If SQLite reads the head, too, it verifies the checksum; then the page of such a frame is
// filled with wrong bytes, because a power loss may leave incomplete frames at the end of a log.
func (a access) readFrame(start int64, pageOnly bool) int32 {
	if rc := a.get(a.scratch, frameSize, start); rc != sqlite3.SQLITE_OK {
		return rc
	}
	frame := bytesAt(a.scratch, frameSize)
	a.vfs.pages.Show(frame[frameHidden:frameHeader])
	place := seal.Place{File: log, Number: uint64(binary.BigEndian.Uint32(frame))}
	if err := a.vfs.pages.Open(frame[frameHeader:], place); err != nil {
		if pageOnly {
			return sqlite3.SQLITE_CORRUPT
		}
		spoil(frame[frameHeader:])
	}
	return sqlite3.SQLITE_OK
}

// spoil fills a page that could not be decrypted with bytes that fail SQLite's checksum.
func spoil(page []byte) {
	for i := range page {
		page[i] = 0xff
	}
}

// writeLog writes the log's header, the head of a frame, or its page. The checksums in a head are of the plain page, so they are
// encrypted; the page number is not.
func (a access) writeLog(from uintptr, n int, offset int64) int32 {
	if offset == 0 && n == logHeader {
		return a.put(from, n, offset)
	}
	if offset < logHeader {
		return sqlite3.SQLITE_IOERR_WRITE
	}
	frame := bytesAt(a.scratch, frameSize)
	switch start, within := frameAt(offset); {
	case within == 0 && n == frameHeader:
		copy(frame, bytesAt(from, n))
		a.frame, a.page = start, binary.BigEndian.Uint32(frame)
		a.vfs.pages.Hide(frame[frameHidden:frameHeader])
		return a.put(a.scratch, n, offset)
	case within == frameHeader && n == PageSize && unreserved(bytesAt(from, n)):
		if a.frame != start { // the page of an existing frame is rewritten
			if rc := a.get(a.scratch, frameHeader, start); rc != sqlite3.SQLITE_OK {
				return sqlite3.SQLITE_IOERR_WRITE
			}
			a.frame, a.page = start, binary.BigEndian.Uint32(frame)
		}
		copy(frame, bytesAt(from, n))
		a.vfs.pages.Seal(frame[:PageSize], seal.Place{File: log, Number: uint64(a.page)})
		return a.put(a.scratch, n, offset)
	}
	return sqlite3.SQLITE_IOERR_WRITE
}

// A rollback journal exists while a database is created or copied. Its header, and page numbers and checksums between the pages, are
// not encrypted.

var journalMagic = []byte{0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7}

func (a access) readJournal(into uintptr, n int, offset int64) int32 {
	rc := a.get(into, n, offset)
	page := bytesAt(into, n)
	if rc != sqlite3.SQLITE_OK || n != PageSize || bytes.HasPrefix(page, journalMagic) {
		return rc
	}
	if err := a.vfs.pages.Open(page, placeInJournal(offset)); err != nil {
		spoil(page)
	}
	return rc
}

func (a access) writeJournal(from uintptr, n int, offset int64) int32 {
	page := bytesAt(from, n)
	switch {
	case n < PageSize || n == PageSize && bytes.HasPrefix(page, journalMagic):
		return a.put(from, n, offset)
	case n > PageSize || !unreserved(page):
		return sqlite3.SQLITE_IOERR_WRITE
	}
	sealed := bytesAt(a.scratch, PageSize)
	copy(sealed, page)
	a.vfs.pages.Seal(sealed, placeInJournal(offset))
	return a.put(a.scratch, n, offset)
}

func placeInJournal(offset int64) seal.Place {
	return seal.Place{File: journal, Number: uint64(offset)} //nolint:gosec // SQLite reads nothing before a file
}

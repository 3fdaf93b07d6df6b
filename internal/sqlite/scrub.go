package sqlite

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"

	"github.com/memsidecar/memsidecar/internal/sqlite/sealed"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// secure_delete overwrites deleted data, but not its copies: when SQLite distributes the cells of a full page over several pages, the
// old cells stay in the unused middle of the page. So a purge also zeroes the unused middle of every page. (See rebuildPage in SQLite's
// btree.c, and https://www.sqlite.org/fileformat2.html#b_tree_pages for the layout.)

const (
	headerSize    = 100 // of the file, at the start of the first page
	scrubRead     = 256 // pages per read
	scrubWrite    = 200 // pages per transaction: other writes wait for it
	maxScrubPages = 1 << 25
)

// unusedBytes returns the unused middle of a page of a table or an index, or nil for other pages. The kinds are unambiguous: other pages
// start with zeros or with the high byte of a page number, which is less than 2 up to maxScrubPages.
func unusedBytes(number int64, page []byte) []byte {
	at := 0
	if number == 1 {
		at = headerSize
	}
	cells := at
	switch page[at] {
	case 0x02, 0x05: // interior
		cells += 12
	case 0x0a, 0x0d: // leaf
		cells += 8
	default:
		return nil
	}
	begin := cells + 2*int(binary.BigEndian.Uint16(page[at+3:]))
	end := int(binary.BigEndian.Uint16(page[at+5:]))
	if end == 0 {
		end = 65536
	}
	if begin >= end || end > len(page) {
		return nil
	}
	return page[begin:end]
}

// leftovers finds pages whose unused middle is not zero. It reads the file without SQLite, so that it blocks no writer; scrub reads the
// pages again before it changes them. The log must have been copied into the file.
func (d *database) leftovers(ctx context.Context) (pages []int64, err error) {
	size, err := d.pageSize()
	if err != nil || size == 0 {
		return nil, err
	}
	zeros, buffer := make([]byte, size), make([]byte, scrubRead*size)
	for number := int64(1); number < maxScrubPages; number += scrubRead {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, err := d.raw.ReadAt(buffer, (number-1)*int64(size))
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		for i := 0; (i+1)*size <= n; i++ {
			page := buffer[i*size : (i+1)*size]
			// A page that cannot be decrypted may be in the middle of a write: scrub reads it again.
			opened := d.vault.open(number+int64(i), page)
			if gap := unusedBytes(number+int64(i), page); !opened || !bytes.Equal(gap, zeros[:len(gap)]) {
				pages = append(pages, number+int64(i))
			}
		}
		if n < len(buffer) {
			break
		}
	}
	return pages, nil
}

// pageSize is the size of a page, or 0 for an empty file.
func (d *database) pageSize() (int, error) {
	header := make([]byte, headerSize)
	if _, err := d.raw.ReadAt(header, 0); err != nil {
		if errors.Is(err, io.EOF) {
			return 0, nil
		}
		return 0, err
	}
	if d.vault != nil {
		return sealed.PageSize, nil
	}
	size := int(binary.BigEndian.Uint16(header[16:]))
	if size == 1 {
		size = 65536
	}
	if size < 512 { // not a database
		return 0, nil
	}
	return size, nil
}

// scrub empties the unused middle of the pages. It reads them again first.
func (d *database) scrub(ctx context.Context, pages []int64) error {
	for len(pages) > 0 {
		some := pages[:min(scrubWrite, len(pages))]
		pages = pages[len(some):]
		err := d.submit(ctx, &writeRequest{fn: func(tx sqldb.Tx) error {
			for _, number := range some {
				var page []byte
				err := tx.QueryRow(ctx, `SELECT data FROM sqlite_dbpage WHERE pgno = ?`, number).Scan(&page)
				if sqldb.Optional(err) != nil {
					return err
				}
				if err != nil { // the file is shorter now
					continue
				}
				gap := unusedBytes(number, page)
				if len(bytes.Trim(gap, "\x00")) == 0 {
					continue
				}
				clear(gap)
				if _, err := tx.Exec(ctx, `UPDATE sqlite_dbpage SET data = ? WHERE pgno = ?`, page, number); err != nil {
					return err
				}
			}
			return nil
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// empty does a write, if there is one, then copies the write-ahead log into the database and empties it. If a reader is in the middle
// of a query, SQLite reports "busy" in the result row and not as an error. Writers have to wait only while the log is emptied, because
// most of the log is copied before that, concurrently.
func (d *database) empty(ctx context.Context, first func(sqldb.Tx) error) (done bool, err error) {
	if _, err := d.copier.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)"); err != nil {
		return false, err
	}
	err = d.submit(ctx, &writeRequest{fn: first, after: func(ctx context.Context) error {
		// It must not wait for the reader, because every write would wait with it.
		if _, err := d.conn.ExecContext(ctx, "PRAGMA busy_timeout = 0"); err != nil {
			return err
		}
		var busy, inLog, copied int
		err := d.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &inLog, &copied)
		done = err == nil && busy == 0
		_, restored := d.conn.ExecContext(ctx, busyPragma())
		return errors.Join(err, restored)
	}})
	return done, err
}

// purge removes deleted data from the files: it empties the log, then the unused middles of pages, then the log of the previous step.
// Each step is a separate write, so that other writes can run in between.
func (d *database) purge(ctx context.Context) (done bool, err error) {
	mark := func(unpurged bool) func(sqldb.Tx) error {
		return func(tx sqldb.Tx) error { return markUnpurged(ctx, tx, unpurged) }
	}
	if done, err = d.empty(ctx, mark(true)); err != nil || !done {
		return false, err
	}
	pages, err := d.leftovers(ctx)
	if err != nil {
		return false, err
	}
	if len(pages) > 0 {
		if err := d.scrub(ctx, pages); err != nil {
			return false, err
		}
		if done, err = d.empty(ctx, nil); err != nil || !done {
			return false, err
		}
	}
	err = d.submit(ctx, &writeRequest{fn: mark(false)})
	return err == nil, err
}

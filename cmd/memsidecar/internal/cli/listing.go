package cli

import (
	"google.golang.org/protobuf/proto"
)

// pages are the flags of commands that list.
type pages struct {
	Limit int  `default:"${page}" placeholder:"N" help:"At most this many (${default})."`
	All   bool `help:"No limit."`
}

// maxPage is the sidecar's largest page size.
const maxPage = 1000

// each calls next for one page after the other, until the limit or the end is reached. It reports whether there are more. next returns
// the size of its page and the token of the following one.
func (f pages) each(next func(size int32, token string) (got int, after string, err error)) (more bool, err error) {
	if f.Limit < 1 {
		return false, usage("--limit %d: write a number above 0, or --all", f.Limit)
	}
	token := ""
	for left := f.Limit; f.All || left > 0; {
		size := maxPage
		if !f.All {
			size = min(left, maxPage)
		}
		got, after, err := next(int32(size), token)
		if err != nil {
			return false, err
		}
		left -= got
		if token = after; token == "" {
			return false, nil
		}
	}
	return true, nil
}

// listing is the output of a list command: rows of a table, or with --json one line each.
type listing[T proto.Message] struct {
	table *table
	page  func(size int32, token string) (entries []T, after string, err error)
	row   func(T) []any
}

// show requests the pages and shows them.
func (l listing[T]) show(p *Program, f pages, to output) error {
	more, err := f.each(func(size int32, token string) (int, string, error) {
		entries, after, err := l.page(size, token)
		if err != nil {
			return 0, "", err
		}
		return len(entries), after, l.add(p, to, entries)
	})
	if err != nil {
		return err
	}
	to.list(p, l.table, more)
	return nil
}

// showAll shows an answer without pages.
func (l listing[T]) showAll(p *Program, to output, entries []T) error {
	if err := l.add(p, to, entries); err != nil {
		return err
	}
	to.list(p, l.table, false)
	return nil
}

// add prints the entries as JSON or adds them to the table.
func (l listing[T]) add(p *Program, to output, entries []T) error {
	for _, entry := range entries {
		if !to.JSON {
			l.table.row(l.row(entry)...)
		} else if err := to.json(p, entry); err != nil {
			return err
		}
	}
	return nil
}

// list prints the table; with --json the lines are printed already.
func (f output) list(p *Program, t *table, more bool) {
	if !f.JSON && len(t.rows) > 0 {
		f.screen(p).print(t)
	} else if !f.JSON {
		p.note("nothing found")
	}
	if more {
		p.note("there are more; add --all or a higher --limit")
	}
}

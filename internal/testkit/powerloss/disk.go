package powerloss

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const sector = 512

// Loss decides which unsynced data is lost.
type Loss int

// The losses.
const (
	Everything Loss = iota // only synced data is left
	Nothing                // all data is left, as after a kill
	Some                   // random, for each write and each name
	losses
)

// AnyLoss returns a random Loss.
func AnyLoss(r *rand.Rand) Loss { return Loss(r.IntN(int(losses))) }

// file is the content of a file, which may have several names.
type file struct {
	folder  bool
	durable []byte
	pending []event // unsynced writes and truncations
}

// name is an unsynced change of a name.
type name struct {
	event
	file *file
}

// disk is a disk in the middle of a run.
type disk struct {
	now     map[string]*file // the program's view
	durable map[string]*file
	pending []name
}

// Rebuild writes the files of the moment into a folder, which replaces the root.
func (t *Trace) Rebuild(moment int, loss Loss, r *rand.Rand, into string) error {
	d := disk{now: map[string]*file{}, durable: map[string]*file{}}
	for path, had := range t.had {
		f := &file{folder: had.folder, durable: slices.Clone(had.durable)}
		d.now[path], d.durable[path] = f, f
	}
	for _, e := range t.events {
		if e.begin > moment || e.call == fsync && e.end > moment {
			continue
		}
		if err := d.apply(e); err != nil {
			return err
		}
	}
	return d.lose(t.root, loss, r, into)
}

// apply applies a call. Calls of several threads are applied in the order in which they returned, which is correct because the locks of
// SQLite serialise the writers of a file.
func (d *disk) apply(e event) error {
	switch e.call {
	case create, mkdir:
		if f := d.now[e.path]; f != nil { // opened, not created
			if e.truncates {
				f.pending = append(f.pending, event{begin: e.begin, end: e.end, call: truncate})
			}
			return nil
		}
		f := &file{folder: e.call == mkdir}
		d.now[e.path] = f
		d.pending = append(d.pending, name{e, f})
	case unlink:
		delete(d.now, e.path)
		d.pending = append(d.pending, name{e, nil})
	case rename:
		f := d.now[e.path]
		delete(d.now, e.path)
		d.now[e.to] = f
		d.pending = append(d.pending, name{e, f})
	case link:
		f := d.now[e.path]
		d.now[e.to] = f
		d.pending = append(d.pending, name{e, f})
	case write, truncate:
		f := d.now[e.path]
		if f == nil {
			return fmt.Errorf("%s is written but was not created", e.path)
		}
		f.pending = append(f.pending, e)
	case fsync:
		d.sync(e)
	}
	return nil
}

// sync makes durable the changes that had returned before it began.
func (d *disk) sync(e event) {
	d.pending = slices.DeleteFunc(d.pending, func(n name) bool {
		if filepath.Dir(n.path) != e.path || n.end >= e.begin {
			return false
		}
		n.put(d.durable)
		return true
	})
	f := d.now[e.path]
	if f == nil {
		return
	}
	f.pending = slices.DeleteFunc(f.pending, func(w event) bool {
		if w.end >= e.begin {
			return false
		}
		f.durable = w.on(f.durable)
		return true
	})
}

func (n name) put(names map[string]*file) {
	switch n.call {
	case unlink:
		delete(names, n.path)
	case rename:
		delete(names, n.path)
		names[n.to] = n.file
	case link:
		names[n.to] = n.file
	default:
		names[n.path] = n.file
	}
}

// on returns a file's content after a write or a truncation.
func (e event) on(content []byte) []byte {
	end := e.offset + int64(len(e.data))
	if e.call == truncate && int64(len(content)) > end {
		return content[:end]
	}
	if missing := end - int64(len(content)); missing > 0 {
		content = append(content, make([]byte, missing)...)
	}
	copy(content[e.offset:], e.data)
	return content
}

// lose decides which pending changes survive, and writes the files.
func (d *disk) lose(root string, loss Loss, r *rand.Rand, into string) error {
	names := maps.Clone(d.durable)
	for _, n := range d.pending {
		if loss == Nothing || loss == Some && r.IntN(2) == 0 {
			n.put(names)
		}
	}
	contents := map[*file][]byte{}
	for _, path := range slices.Sorted(maps.Keys(names)) { // folders come before their files
		f := names[path]
		if parent := filepath.Dir(path); f == nil || parent != root && (names[parent] == nil || !names[parent].folder) {
			delete(names, path)
			continue
		}
		target := filepath.Join(into, strings.TrimPrefix(path, root))
		if f.folder {
			if err := os.Mkdir(target, 0o700); err != nil {
				return err
			}
			continue
		}
		if _, known := contents[f]; !known {
			contents[f] = f.after(path, loss, r)
		}
		if err := os.WriteFile(target, contents[f], 0o600); err != nil {
			return err
		}
	}
	return nil
}

// after returns the content of a file after the loss.
func (f *file) after(path string, loss Loss, r *rand.Rand) []byte {
	content := slices.Clone(f.durable)
	for _, w := range f.pending {
		switch {
		case loss == Nothing || loss == Some && r.IntN(3) == 0:
			content = w.on(content)
		case loss == Some && w.call == write && r.IntN(2) == 0:
			content = w.torn(content, r)
		}
	}
	if strings.HasSuffix(path, "-shm") { // written through memory, never synced: random content
		for i := range content {
			content[i] = byte(r.UintN(256)) //nolint:gosec // below 256
		}
	}
	return content
}

// torn returns the content after a write of which only some sectors reached the disk.
func (e event) torn(content []byte, r *rand.Rand) []byte {
	for start := e.offset; start < e.offset+int64(len(e.data)); {
		end := min(start-start%sector+sector, e.offset+int64(len(e.data)))
		if r.IntN(2) == 0 {
			part := event{call: write, offset: start, data: e.data[start-e.offset : end-e.offset]}
			content = part.on(content)
		}
		start = end
	}
	return content
}

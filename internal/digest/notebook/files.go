package notebook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/lang/lexical"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// Between these lines a file belongs to the sidecar, everything else to people.
const (
	beginMark = "<!-- memsidecar:begin -->"
	endMark   = "<!-- memsidecar:end -->"
)

// FileName is that of the notebook.
const FileName = "MEMORY.md"

// maxFileBytes is how much of a file is read: more was not written by a person.
const maxFileBytes = 4 << 20

// Digests makes the digests that are written.
type Digests interface {
	Get(ctx context.Context, v digest.Viewer, date, language string) (digest.Day, error)
	Markdown(d *digest.Day) (string, error)
}

// Files keeps the digests and the notebook of each user in a folder of Markdown files: <dir>/<namespace>/<user>/. What a person
// writes into them outside of the marks stays, and is imported as explicit memories. They hold what a direct chat with the
// user may see.
type Files struct {
	Dir        string
	MaxEntries int // of the notebook
	Digests    Digests
	Memories   Memories
	Vectors    decide.Vectors
	Settings   Settings
	Location   *time.Location // for dates, for users who set no time zone
	Log        *slog.Logger

	mu     sync.Mutex               // files are written one after the other
	taken  map[memory.User][32]byte // hash of what was taken in last, so that reading a notebook costs nothing
	missed map[memory.User][]string // days that could not be written: they are with the next
}

// Write imports what people wrote into the files, then writes the digests of the days and the notebook.
func (f *Files) Write(ctx context.Context, user memory.User, days []string) error {
	err := f.TakeIn(ctx, user)
	if err != nil { // their words stay where they are, and nobody needs to wait for the rest
		err = fmt.Errorf("taking in what people wrote: %w", err)
	}
	return errors.Join(err, f.write(ctx, user, days))
}

func (f *Files) write(ctx context.Context, user memory.User, days []string) error {
	v := digest.Viewer{User: user, Seen: digest.Seen{Audience: memory.Everything()}}
	days = f.withMissed(user, days)
	for i, day := range days {
		if err := f.writeDay(ctx, v, day); err != nil {
			f.miss(user, days[i:])
			return err
		}
	}
	k := Keeper{Memories: f.Memories, Settings: f.Settings, Location: f.Location}
	n, err := k.read(ctx, v, f.MaxEntries, "")
	if err != nil {
		return err
	}
	return f.put(user, FileName, n.Markdown())
}

func (f *Files) writeDay(ctx context.Context, v digest.Viewer, day string) error {
	d, err := f.Digests.Get(ctx, v, day, "")
	if err != nil {
		return err
	}
	text, err := f.Digests.Markdown(&d)
	if err != nil {
		return err
	}
	return f.put(v.User, day+".md", text)
}

// withMissed adds the days that could not be written before.
func (f *Files) withMissed(user memory.User, days []string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	days = slices.Concat(f.missed[user], days)
	delete(f.missed, user)
	slices.Sort(days)
	return slices.Compact(days)
}

func (f *Files) miss(user memory.User, days []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.missed == nil || len(f.missed) >= maxTaken {
		f.missed = map[memory.User][]string{}
	}
	f.missed[user] = slices.Concat(f.missed[user], days)
}

// Rewrite writes all files of the user again, because something that they may contain was deleted.
func (f *Files) Rewrite(ctx context.Context, user memory.User) error {
	names, err := os.ReadDir(f.folder(user))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var days []string
	for _, file := range names {
		if dayFile.MatchString(file.Name()) {
			days = append(days, strings.TrimSuffix(file.Name(), ".md"))
		}
	}
	return f.Write(ctx, user, days)
}

// put writes the sidecar's part of a file and leaves the rest as it is. The file is the old one or the new one, never a part.
func (f *Files) put(user memory.User, name, text string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	dir := f.folder(user)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	after := renewed(string(before), text)
	if after == string(before) {
		return nil
	}
	file, err := os.CreateTemp(dir, "."+name+".*.partial")
	if err != nil {
		return err
	}
	_, err = file.WriteString(after)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	if d, err := os.Open(dir); err == nil { // not every platform can make a renaming durable
		_ = d.Sync()
		_ = d.Close()
	}
	return nil
}

// renewed is a file with a new text between the marks. A file without them gets them at its end; where the end is missing,
// everything after the beginning is kept as a person's.
func renewed(before, text string) string {
	part := beginMark + "\n" + strings.TrimRight(text, "\n") + "\n" + endMark
	if begin := strings.Index(before, beginMark); begin >= 0 {
		if length := strings.Index(before[begin:], endMark); length >= 0 {
			return before[:begin] + part + before[begin+length+len(endMark):]
		}
		return before[:begin] + part + before[begin+len(beginMark):]
	}
	if before == "" {
		return part + "\n"
	}
	return strings.TrimRight(before, "\n") + "\n\n" + part + "\n"
}

// outside is what a person wrote into a file.
func outside(text string) string {
	begin := strings.Index(text, beginMark)
	if begin < 0 {
		return text
	}
	length := strings.Index(text[begin:], endMark)
	if length < 0 { // the end was deleted: nobody can tell whose lines follow
		return text[:begin]
	}
	return text[:begin] + "\n" + text[begin+length+len(endMark):]
}

var (
	dayFile = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}\.md$`)
	item    = regexp.MustCompile(`^(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?`)
	comment = regexp.MustCompile(`(?s)<!--.*?-->`)
	fenced  = regexp.MustCompile("(?ms)^(?:```|~~~).*?(?:^(?:```|~~~)\\s*$|\\z)") //nolint:gocritic // with m, ^ is the beginning of a line
)

// statements are the lines and list items that a person wrote, without headings, comments, rules and code.
func statements(text string) []string {
	text = fenced.ReplaceAllString(comment.ReplaceAllString(text, ""), "")
	var list []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") || strings.Trim(line, "-=*_ |") == "" {
			continue
		}
		line = memory.CleanText(item.ReplaceAllString(strings.TrimLeft(line, "> "), ""))
		if memory.TextProblem(line) == "" {
			list = append(list, line)
		}
	}
	return list
}

// TakeIn makes memories of what people wrote into the user's files, of each line once: also when the memory was changed or
// deleted since.
func (f *Files) TakeIn(ctx context.Context, user memory.User) error {
	settings, err := f.Settings.Get(ctx, user)
	if err != nil || settings.Paused {
		return err
	}
	dir := f.folder(user)
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var entries []vectorstore.Entry
	var texts []string
	for _, file := range names {
		own, err := f.writtenIn(user, file)
		if err != nil {
			return err
		}
		for _, e := range own {
			if !slices.Contains(texts, e.Memory.Text) {
				entries, texts = append(entries, e), append(texts, e.Memory.Text)
			}
		}
	}
	if len(entries) == 0 {
		return nil
	}
	hash := sha256.Sum256([]byte(strings.Join(texts, "\n")))
	if f.same(user, hash) {
		return nil
	}
	embeddings, err := f.Vectors.Embeddings(ctx, texts)
	if err != nil {
		return err
	}
	for i := range entries {
		entries[i].Embedding = embeddings[i]
	}
	if _, err = f.Memories.Apply(ctx, user, entries); err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.taken == nil || len(f.taken) >= maxTaken {
			f.taken = map[memory.User][32]byte{}
		}
		f.taken[user] = hash
	}
	return err
}

// maxTaken is of how many users it is known what was taken in, and what could not be written.
const maxTaken = 10_000

// same reports whether the same text was imported before.
func (f *Files) same(user memory.User, hash [32]byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, ok := f.taken[user]
	return ok && before == hash
}

// writtenIn is what a person wrote into one file.
func (f *Files) writtenIn(user memory.User, file fs.DirEntry) (entries []vectorstore.Entry, err error) {
	if !file.Type().IsRegular() || file.Name() != FileName && !dayFile.MatchString(file.Name()) {
		return nil, nil
	}
	info, err := file.Info()
	if err != nil || info.Size() > maxFileBytes {
		return nil, nil //nolint:nilerr // deleted meanwhile, or no note of a person
	}
	data, err := os.ReadFile(filepath.Join(f.folder(user), file.Name()))
	if err != nil {
		return nil, err
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // of some editors
	for _, text := range statements(outside(string(bytes.ToValidUTF8(data, nil)))) {
		entries = append(entries, written(user, file.Name(), text, info.ModTime()))
	}
	return entries, nil
}

// written is a line of a person as a memory.
func written(user memory.User, name, text string, at time.Time) vectorstore.Entry {
	sum := sha256.Sum256([]byte(vectorstore.TextKey(text)))
	id := "file:" + hex.EncodeToString(sum[:12])
	now := time.Now()
	return vectorstore.Entry{StatementID: id, Memory: memory.Memory{
		ID: decide.MemoryID(user.Namespace, user.ID, id), Channel: memory.Channel{Kind: memory.ChannelDirect},
		Text: text, Language: lexical.Language(text), Kind: memory.KindFact, Importance: 0.9, Explicit: true,
		Provenance: memory.Provenance{
			Source: memory.SourceImport, SpeakerID: user.ID, Quote: text, Reason: "written into " + name,
		},
		CreatedAt: now, UpdatedAt: now, ObservedAt: at, Mentions: 1, LastSaidAt: at,
	}}
}

// Forget deletes the user's files, what a person wrote into them included, and returns how many there were.
func (f *Files) Forget(user memory.User) (n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.taken, user)
	delete(f.missed, user)
	dir := f.folder(user)
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for _, file := range names {
		if file.Type().IsRegular() {
			n++
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return 0, fmt.Errorf("deleting the files of a user: %w", err)
	}
	_ = os.Remove(filepath.Dir(dir)) // the namespace's goes when nobody else has files there
	return n, nil
}

// folder is that of a user. A namespace is one folder, however many segments it has: otherwise the folder of one user could
// be inside of another's.
func (f *Files) folder(user memory.User) string {
	return filepath.Join(f.Dir, escaped(user.Namespace), escaped(user.ID))
}

// maxNameBytes is how long a name of a file may be everywhere, with some room.
const maxNameBytes = 150

// escaped is an id as the name of a folder: letters of any script, digits, "-" and "_" as they are, capital letters and
// everything else as % and hexadecimal digits, because there are file systems that take A for a. What is too long ends in
// a hash.
func escaped(id string) string {
	var b strings.Builder
	for _, r := range id {
		if r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 0x4e00 <= r && r <= 0x9fff {
			b.WriteRune(r)
			continue
		}
		for _, c := range []byte(string(r)) {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	name := b.String()
	if len(name) <= maxNameBytes {
		return name
	}
	sum := sha256.Sum256([]byte(id))
	return strings.ToValidUTF8(name[:maxNameBytes-33], "") + "~" + hex.EncodeToString(sum[:16])
}

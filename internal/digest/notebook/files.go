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
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/lang/lexical"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// The part of a file between these lines belongs to the sidecar, the rest to people.
const (
	beginMark = "<!-- memsidecar:begin -->"
	endMark   = "<!-- memsidecar:end -->"
)

// FileName is the notebook's file name.
const FileName = "MEMORY.md"

// maxFileBytes limits how much of a file is read: no person writes more.
const maxFileBytes = 4 << 20

// Digests renders the digests to write.
type Digests interface {
	Get(ctx context.Context, v digest.Viewer, date, language string) (digest.Day, error)
	Markdown(d *digest.Day) (string, error)
}

// Files keeps the digests and the notebook of each user in a folder of Markdown files: <dir>/<namespace>/<user>/. What a person writes
// outside of the marks stays, and is imported as explicit memories. The files hold what a direct chat with the user may see.
type Files struct {
	Dir        string
	MaxEntries int // of the notebook
	Digests    Digests
	Memories   Memories
	Vectors    decide.Vectors
	Settings   Settings
	Location   *time.Location // for dates, for users who set no time zone
	Log        *slog.Logger

	mu     sync.Mutex               // serialises writing
	taken  map[memory.User][32]byte // hash of the text imported last, to skip unchanged files
	missed map[memory.User][]string // days that could not be written; the next Write includes them
}

// Write imports what people wrote into the files, then writes the digests of the days and the notebook.
func (f *Files) Write(ctx context.Context, user memory.User, days []string) error {
	err := f.TakeIn(ctx, user)
	if err != nil { // their text stays in the files; write the rest anyway
		err = fmt.Errorf("importing what people wrote: %w", err)
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
	k := Service{Memories: f.Memories, Settings: f.Settings, Location: f.Location}
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

// withMissed adds the days that could not be written earlier.
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

// put replaces the sidecar's part of a file. The file has either the old or the new content, never a part of it.
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
	if d, err := os.Open(dir); err == nil { // not every platform can sync a folder
		_ = d.Sync()
		_ = d.Close()
	}
	return nil
}

// renewed replaces the text between the marks. In a file without marks they are appended; if the end mark is missing, everything after
// the start mark is kept as a person's text.
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

// outside returns what a person wrote into a file.
func outside(text string) string {
	begin := strings.Index(text, beginMark)
	if begin < 0 {
		return text
	}
	length := strings.Index(text[begin:], endMark)
	if length < 0 { // the end was deleted: the owner of the lines that follow is unknown
		return text[:begin]
	}
	return text[:begin] + "\n" + text[begin+length+len(endMark):]
}

var (
	dayFile = lazyregexp.New(`^\d{4}-\d{2}-\d{2}\.md$`)
	item    = lazyregexp.New(`^(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?`)
	comment = lazyregexp.New(`(?s)<!--.*?-->`)
	fenced  = lazyregexp.New("(?ms)^(?:```|~~~).*?(?:^(?:```|~~~)\\s*$|\\z)")
)

// statements returns the lines and list items that a person wrote, without headings, comments, rules and code.
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

// TakeIn imports what people wrote into the user's files as memories. Each line is imported once, even if its memory was changed or
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

// maxTaken limits the users in each of the two maps.
const maxTaken = 10_000

// same reports whether the same text was imported before.
func (f *Files) same(user memory.User, hash [32]byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, ok := f.taken[user]
	return ok && before == hash
}

// writtenIn returns what a person wrote into one file.
func (f *Files) writtenIn(user memory.User, file fs.DirEntry) (entries []vectorstore.Entry, err error) {
	if !file.Type().IsRegular() || file.Name() != FileName && !dayFile.MatchString(file.Name()) {
		return nil, nil
	}
	info, err := file.Info()
	if err != nil || info.Size() > maxFileBytes {
		return nil, nil //nolint:nilerr // deleted in the meantime, or not a regular note
	}
	data, err := os.ReadFile(filepath.Join(f.folder(user), file.Name()))
	if err != nil {
		return nil, err
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // some editors write a byte order mark
	for _, text := range statements(outside(string(bytes.ToValidUTF8(data, nil)))) {
		entries = append(entries, written(user, file.Name(), text, info.ModTime()))
	}
	return entries, nil
}

// written makes a memory of a person's line.
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

// Forget deletes the user's files, including what people wrote into them, and returns how many there were.
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
	_ = os.Remove(filepath.Dir(dir)) // the namespace's folder, if no other user has files there
	return n, nil
}

// folder returns the user's folder. A namespace is one folder, even if it has several segments: otherwise the folder of one user could
// be inside another's.
func (f *Files) folder(user memory.User) string {
	return filepath.Join(f.Dir, escaped(user.Namespace), escaped(user.ID))
}

// maxNameBytes is a safe length of a file name on every platform.
const maxNameBytes = 150

// escaped returns an id as a folder name. Letters of any script, digits, "-" and "_" stay; capital letters and everything else become %
// and hexadecimal digits, because some file systems ignore case. A name that is too long ends in a hash.
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

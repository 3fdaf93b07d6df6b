package powerloss

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// x quotes a text as strace does.
func x(text string) string {
	var b strings.Builder
	for i := range len(text) {
		fmt.Fprintf(&b, `\x%02x`, text[i])
	}
	return b.String()
}

func fd(n int, path string) string { return fmt.Sprintf("%d<%s>", n, x(path)) }

func quoted(text string) string { return `"` + x(text) + `"` }

var block = strings.Repeat("a", 512) + strings.Repeat("b", 512)

// calls is a program that creates a folder and a file in it, writes 1,024 bytes, reports it, and syncs.
var calls = []string{
	/* 1 */ `1 mkdirat(AT_FDCWD<` + x("/") + `>, ` + quoted("/r/d") + `, 0700) = 0`,
	/* 2 */ `1 open(` + quoted("/r/d/f") + `, O_RDWR|O_CREAT, 0600) = 5` + `<` + x("/r/d/f") + `>`,
	/* 3 */ `1 pwrite64(` + fd(5, "/r/d/f") + `, ` + quoted(block) + `, 1024, 0) = 1024`,
	/* 4 */ `2 fsync(` + fd(5, "/r/d/f") + ` <unfinished ...>`,
	/* 5 */ `1 pwrite64(` + fd(5, "/r/d/f") + `, ` + quoted("late") + `, 4, 0) = 4`,
	/* 6 */ `2 <... fsync resumed>)           = 0`,
	/* 7 */ `1 fsync(` + fd(6, "/r/d") + `) = 0`,
	/* 8 */ `1 fsync(` + fd(7, "/r") + `) = 0`,
	/* 9 */ `1 write(` + fd(8, "socket:[1]") + `, ` + quoted("done!") + `, 5) = 5`,
	/* 10 */ `1 fsync(` + fd(5, "/r/d/f") + `) = -1 EIO (Input/output error)`,
	/* 11 */ `1 rename(` + quoted("/r/d/f") + `, ` + quoted("/r/d/g") + `) = 0`,
	/* 12 */ `1 ftruncate(` + fd(5, "/r/d/g") + `, 512) = 0`,
	/* 13 */ `1 fsync(` + fd(5, "/r/d/g") + `) = 0`,
	/* 14 */ `1 unlink(` + quoted("/r/d/g") + `) = 0`,
	/* 15 */ `1 pwrite64(` + fd(5, "/r/d/g") + `(deleted), ` + quoted("gone") + `, 4, 0) = 4`,
	/* 16 */ `1 fsync(` + fd(6, "/r/d") + `) = 0`,
	/* 17 */ `2 write(` + fd(8, "socket:[1]") + `, ` + quoted("killed in it") + `, 12) = ?`,
	/* 18 */ `2 write(` + fd(8, "socket:[1]") + `, ` + quoted("heard all the same") + `, 18 <unfinished ...>`,
	/* 19 */ `1 +++ killed by SIGKILL +++`,
}

func TestRebuildWritesDurableFiles(t *testing.T) {
	trace, err := Parse(strings.NewReader(strings.Join(calls, "\n")+"\n"), "/r")
	if err != nil {
		t.Fatal(err)
	}
	if said := trace.Said("done"); !slices.Equal(said, []int{9}) {
		t.Errorf("said at %v", said)
	}
	// A reader of the text may act on it, though the call never returned.
	if said := append(trace.Said("killed in it"), trace.Said("heard all")...); !slices.Equal(said, []int{17, 18}) {
		t.Errorf("said when killed at %v", said)
	}
	if syncs := trace.Syncs(); !slices.Equal(syncs, []int{6, 7, 8, 13, 16}) {
		t.Errorf("syncs at %v", syncs)
	}
	late := "late" + block[4:]
	for _, c := range []struct {
		moment int
		loss   Loss
		want   map[string]string
	}{
		{1, Everything, nil},
		{2, Nothing, map[string]string{"d/f": ""}},
		{3, Nothing, map[string]string{"d/f": block}},
		{6, Everything, nil}, // the file was synced, but not its name
		{7, Everything, nil}, // nor the name of its folder
		{8, Everything, map[string]string{"d/f": block}},
		{8, Nothing, map[string]string{"d/f": late}},
		{10, Everything, map[string]string{"d/f": block}}, // a sync that failed
		{11, Everything, map[string]string{"d/f": block}},
		{11, Nothing, map[string]string{"d/g": late}},
		{13, Everything, map[string]string{"d/f": late[:512]}}, // under the old name
		{13, Nothing, map[string]string{"d/g": late[:512]}},
		{15, Everything, map[string]string{"d/f": late[:512]}},
		{16, Everything, nil},
	} {
		dir := t.TempDir()
		if err := trace.Rebuild(c.moment, c.loss, rand.New(rand.NewPCG(1, 1)), dir); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, name := range []string{"d/f", "d/g"} {
			if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
				got[name] = string(data)
			}
		}
		if len(got) != len(c.want) || got["d/f"] != c.want["d/f"] || got["d/g"] != c.want["d/g"] {
			t.Errorf("at %d, loss %d: %.20q…, want %.20q…", c.moment, c.loss, got, c.want)
		}
	}
}

// TestUnsyncedDataMayBeLost: Unsynced data is on the disk completely, not at all, or in part.
func TestUnsyncedDataMayBeLost(t *testing.T) {
	trace, err := Parse(strings.NewReader(strings.Join([]string{calls[0], calls[1], calls[6], calls[7], calls[2]}, "\n")+"\n"), "/r")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		dir := t.TempDir()
		if err := trace.Rebuild(trace.End, Some, r, dir); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, "d", "f"))
		switch {
		case err != nil:
			t.Fatal(err)
		case len(data) == 0:
			seen["nothing"]++
		case string(data) == block:
			seen["everything"]++
		case string(data) == block[:512]:
			seen["the first sector"]++
		case bytes.Equal(data, append(make([]byte, 512), block[512:]...)):
			seen["the second sector"]++
		default:
			t.Fatalf("%q", data)
		}
	}
	if len(seen) != 4 {
		t.Errorf("seen: %v", seen)
	}
}

// TestEarlierFilesStayUntilSync: A file that is truncated and rewritten keeps its earlier content until it is synced. A second name needs a sync of
// its folder.
func TestEarlierFilesStayUntilSync(t *testing.T) {
	before := t.TempDir()
	if err := os.WriteFile(filepath.Join(before, "f"), []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	trace, err := Parse(strings.NewReader(strings.Join([]string{
		/* 1 */ `1 linkat(AT_FDCWD<` + x("/") + `>, ` + quoted("/r/f") + `, AT_FDCWD<` + x("/") + `>, ` + quoted("/r/g") + `, 0) = 0`,
		/* 2 */ `1 fsync(` + fd(6, "/r") + `) = 0`,
		/* 3 */ `1 rename(` + quoted("/r/f") + `, ` + quoted("/r/h") + `) = 0`,
		/* 4 */ `1 openat(AT_FDCWD<` + x("/") + `>, ` + quoted("/r/h") + `, O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, 0600) = 5<` + x("/r/h") + `>`,
		/* 5 */ `1 write(` + fd(5, "/r/h") + `, ` + quoted("one, ") + `, 5) = 5`,
		/* 6 */ `1 write(` + fd(5, "/r/h") + `, ` + quoted("two") + `, 3) = 3`,
		/* 7 */ `1 fsync(` + fd(5, "/r/h") + `) = 0`,
	}, "\n")+"\n"), "/r")
	if err != nil {
		t.Fatal(err)
	}
	if err := trace.Had(before); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		moment int
		loss   Loss
		want   map[string]string
	}{
		{0, Everything, map[string]string{"f": "before"}},
		{1, Everything, map[string]string{"f": "before"}},
		{1, Nothing, map[string]string{"f": "before", "g": "before"}},
		{6, Everything, map[string]string{"f": "before", "g": "before"}},
		{6, Nothing, map[string]string{"g": "one, two", "h": "one, two"}},
		{7, Everything, map[string]string{"f": "one, two", "g": "one, two"}},
	} {
		dir := t.TempDir()
		if err := trace.Rebuild(c.moment, c.loss, rand.New(rand.NewPCG(1, 1)), dir); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, name := range []string{"f", "g", "h"} {
			if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
				got[name] = string(data)
			}
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("at %d, loss %d: %q, want %q", c.moment, c.loss, got, c.want)
		}
	}
}

func TestUnknownTraceIsAnError(t *testing.T) {
	for _, line := range []string{
		`1 writev(` + fd(5, "/r/f") + `, ` + quoted("x") + `, 1) = 1`,
		`1 sendfile(` + fd(5, "/r/f") + `, 6, NULL, 1) = 1`,
		`1 mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, ` + fd(5, "/r/f") + `, 0) = 0x1`,
		`1 open(` + quoted("/r/f") + `, O_RDWR|O_CREAT|O_APPEND, 0600) = 5<` + x("/r/f") + `>`,
		`1 <... fsync resumed>) = 0`,
	} {
		if _, err := Parse(strings.NewReader(line+"\n"), "/r"); err == nil {
			t.Errorf("%s is accepted", line)
		}
	}
}

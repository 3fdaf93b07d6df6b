//go:build !race && unix

package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/sqlite"

	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestTruncatedWriteAheadLog: The write-ahead log of a killed sidecar is truncated or corrupted at its end. The database still opens, is
// sound, and holds all dialogues acknowledged up to some moment, without gaps or partial data.
func TestTruncatedWriteAheadLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sidecartest.ServeIn(t, dir).Stop() // moves the tables into the file, so that the log begins with the dialogues
	p := spawn(t, dir)
	const count = 15 // few enough to cause no checkpoint
	var sent []string
	var lengths []int // of the log, after each acknowledgement; each cut keeps a different number of dialogues
	for n := range count {
		id := fmt.Sprint("request-", n)
		sidecartest.Must(p.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
			Scope: sidecartest.Direct("u"), RequestId: id, Messages: []*memsidecarv1.Message{sidecartest.Said(fmt.Sprintf("请记住：我的暗号是%d号", n))},
		}))(t)
		sent = append(sent, id)
		lengths = append(lengths, int(sidecartest.Must(os.Stat(filepath.Join(dir, sidecartest.DatabaseFile+"-wal")))(t).Size()))
	}
	p.kill(t)
	file := sidecartest.Must(os.ReadFile(filepath.Join(dir, sidecartest.DatabaseFile)))(t)
	log := sidecartest.Must(os.ReadFile(filepath.Join(dir, sidecartest.DatabaseFile+"-wal")))(t)

	random := rand.New(rand.NewPCG(1, 2))
	kept := map[int]int{} // number of dialogues left, by length of the log
	try := func(what string, log []byte) int {
		t.Helper()
		held := dialoguesAfter(t, what, file, log)
		if len(held) > count || !slices.Equal(held, sent[:len(held)]) {
			t.Errorf("%s: %v are there, which are not the first of %v", what, held, sent)
		}
		return len(held)
	}
	if n := try("the whole log", log); n != count {
		t.Errorf("of %d acknowledged dialogues %d are there", count, n)
	}
	if n := try("a whole log and what was never written", append(slices.Clone(log), bytes.Repeat([]byte{0xa5}, 5000)...)); n != count {
		t.Errorf("with more behind the log, of %d acknowledged dialogues %d are there", count, n)
	}
	lengths = append(lengths, 0, 1, 31, 32, 33, len(log)-1, len(log)-4096, len(log)-4097)
	for i := range 8 {
		lengths = append(lengths, i*len(log)/8+random.IntN(len(log)/8))
	}
	slices.Sort(lengths)
	before := 0
	for _, length := range lengths {
		n := try(fmt.Sprintf("%d of %d bytes", length, len(log)), log[:length])
		if n < before {
			t.Errorf("%d bytes hold %d dialogues, fewer than a shorter log", length, n)
		}
		before, kept[n] = n, kept[n]+1
	}
	if len(kept) != count+1 {
		t.Errorf("the cuts are too much alike: %v", kept)
	}
	for range 8 {
		wrong := slices.Clone(log)
		at := len(log)/2 + random.IntN(len(log)/2)
		wrong[at] ^= 1 << random.IntN(8)
		if n, least := try(fmt.Sprintf("a bit of byte %d of %d", at, len(log)), wrong), try("what is before it", log[:at]); n < least {
			t.Errorf("with byte %d wrong %d dialogues are there, and %d without it and all after it", at, n, least)
		}
	}
}

// dialoguesAfter opens a copy and returns the request ids of its dialogues, in order.
func dialoguesAfter(t *testing.T, what string, file, log []byte) (held []string) {
	t.Helper()
	dir := t.TempDir()
	sidecartest.NoError(t, os.WriteFile(filepath.Join(dir, sidecartest.DatabaseFile), file, 0o600))
	sidecartest.NoError(t, os.WriteFile(filepath.Join(dir, sidecartest.DatabaseFile+"-wal"), log, 0o600))
	sidecartest.WithStorage(t, dir, func(s *sqlite.Storage) {
		if status := s.Status(); status.State != breaker.Closed {
			t.Fatalf("%s: %s", what, status.Reason)
		}
		var list string
		sidecartest.NoError(t, s.Read(t.Context(), func(q sqldb.Querier) error {
			return q.QueryRow(t.Context(), `SELECT coalesce(group_concat(request_id ORDER BY row), '') FROM dialogues
				WHERE EXISTS (SELECT 1 FROM considerations WHERE dialogue_row = row)`).Scan(&list)
		}))
		if list != "" {
			held = strings.Split(list, ",")
		}
	})
	report := sidecartest.Must(sqlite.Files{Checks: sqlstore.Checks()}.Check(t.Context(), sqlite.DatabasePath(dir), false))(t)
	for _, f := range report.Findings {
		if f.Problems > 0 {
			t.Errorf("%s: %s: %v", what, f.Check, f.Examples)
		}
	}
	return held
}

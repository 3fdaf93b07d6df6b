//go:build !race && linux

package main

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/secret/seal"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/testkit/powerloss"
	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// possibleState is a database that a power loss may leave: the one before a command, or the one after it.
type possibleState struct {
	when     string
	key      seal.Key
	memories int
}

// TestPowerLossOfKeys simulates power loss while a command changes the encryption of the database or restores a backup. Each possible
// disk holds the complete database from before or after the command; after the command has returned, the latter. A sidecar that starts on
// it removes all partial files, such as a half-decrypted database.
func TestPowerLossOfKeys(t *testing.T) {
	t.Parallel()
	needsStrace(t)
	disks := 8
	if n, err := strconv.Atoi(os.Getenv("POWER_LOSSES")); err == nil {
		disks = max(20, n/20)
	}
	plain, sealed, outside := t.TempDir(), t.TempDir(), t.TempDir()
	fill := func(dir string, memories int, environ ...string) {
		r := spawn(t, dir, environ...)
		for n := range memories {
			sidecartest.Must(r.CreateMemory(t.Context(), &memsidecarv1.CreateMemoryRequest{
				Scope: sidecartest.Direct("alice"), Memory: &memsidecarv1.Memory{Text: fmt.Sprintf("Alice has been in %d towns. %s", n, strings.Repeat("x", 1000))},
			}))(t)
		}
		r.kill(t) // leaves a log
	}
	fill(plain, 30)
	fill(sealed, 20, sidecartest.KeyEnviron)
	newKey, backup := filepath.Join(outside, "key"), filepath.Join(outside, "backup.db")
	sidecartest.NoError(t, seal.CreateKeyFile(newKey))
	other, key, none := sidecartest.Must(seal.ReadKeyFile(newKey))(t), sidecartest.TestKey(t), seal.Key{}
	sidecartest.Must(sqlite.MakeBackup(t.Context(), sealed, backup, sqlite.BackupOptions{Key: key}))(t)
	for _, c := range []struct {
		arguments     []string
		folder        string
		before, after possibleState
	}{
		{[]string{"key", "encrypt"}, plain, possibleState{"before", none, 30}, possibleState{"after", key, 30}},
		{[]string{"key", "decrypt"}, sealed, possibleState{"before", key, 20}, possibleState{"after", none, 20}},
		{[]string{"key", "rotate", newKey}, sealed, possibleState{"before", key, 20}, possibleState{"after", other, 20}},
		{[]string{"key", "rotate", newKey, "--data"}, sealed, possibleState{"before", key, 20}, possibleState{"after", other, 20}},
		{[]string{"restore", backup, "--replace"}, plain, possibleState{"before", none, 30}, possibleState{"after", key, 20}},
	} {
		t.Run(strings.ReplaceAll(strings.Join(c.arguments, " "), outside+"/", ""), func(t *testing.T) {
			root, recording := t.TempDir(), filepath.Join(t.TempDir(), "trace")
			before := t.TempDir()
			for _, to := range []string{root, before} {
				sidecartest.NoError(t, os.CopyFS(filepath.Join(to, "data"), os.DirFS(c.folder)))
			}
			arguments := append(append(powerloss.Arguments(recording), sidecartest.Binary(t)), c.arguments...)
			command := exec.CommandContext(t.Context(), "strace", append(arguments, "--data-dir", filepath.Join(root, "data"))...)
			command.Env = append(os.Environ(), sidecartest.KeyEnviron)
			if out, err := command.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			f := sidecartest.Must(os.Open(recording))(t)
			defer f.Close() //nolint:errcheck // only read
			trace := sidecartest.Must(powerloss.Parse(f, root))(t)
			sidecartest.NoError(t, trace.Had(before))

			r := rand.New(rand.NewPCG(20261122, uint64(len(c.arguments)))) //nolint:mnd // any
			points := []int{trace.End}
			for _, sync := range trace.Syncs() {
				points = append(points, sync-1, sync)
			}
			for len(points) < disks {
				points = append(points, r.IntN(trace.End))
			}
			left := map[string]int{}
			for i, moment := range points {
				disk, loss, allowed := t.TempDir(), powerloss.AnyLoss(r), []possibleState{c.before, c.after}
				sidecartest.NoError(t, trace.Rebuild(moment, loss, r, disk))
				if moment == trace.End {
					allowed = allowed[1:]
				} else if r.IntN(2) == 0 { // the order in which the keys are tried
					allowed[0], allowed[1] = allowed[1], allowed[0]
				}
				if left[currentState(t, filepath.Join(disk, "data"), allowed)]++; t.Failed() {
					t.Fatalf("after a loss of power at line %d of the trace, loss %d, disk %d", moment, loss, i)
				}
				sidecartest.NoError(t, os.RemoveAll(disk))
			}
			t.Logf("%d calls in the trace, %d syncs; of %d disks %d have the database of before, %d that of after",
				trace.End, len(trace.Syncs()), len(points), left["before"], left["after"])
		})
	}
}

// currentState opens the database with one key after the other, and returns the matching state.
func currentState(t *testing.T, dir string, allowed []possibleState) (when string) {
	t.Helper()
	var reasons []string
	for _, p := range allowed {
		s := sidecartest.Must(sqlite.Open(t.Context(), sqlite.Options{
			Dir: dir, Log: slog.New(slog.DiscardHandler), Key: func() (seal.Key, error) { return p.key, nil },
		}))(t)
		status, n := s.Status(), 0
		if status.State == breaker.Closed {
			sidecartest.NoError(t, s.Read(t.Context(), func(q sqldb.Querier) error { return q.QueryRow(t.Context(), `SELECT count(*) FROM memories`).Scan(&n) }))
		}
		sidecartest.NoError(t, s.Close())
		if status.State != breaker.Closed {
			reasons = append(reasons, status.Reason)
			continue
		}
		if n != p.memories {
			t.Errorf("there are %d memories and not %d", n, p.memories)
		}
		if r := sidecartest.Must(sqlite.Files{Key: p.key}.Check(t.Context(), sqlite.DatabasePath(dir), false))(t); !r.Sound() {
			t.Errorf("the database is damaged: %+v", r.Findings)
		}
		if parts := sidecartest.Must(filepath.Glob(filepath.Join(dir, ".*part*")))(t); len(parts) > 0 {
			t.Errorf("there are still %q", parts)
		}
		return p.when
	}
	t.Errorf("the database cannot be opened: %q", reasons)
	return ""
}

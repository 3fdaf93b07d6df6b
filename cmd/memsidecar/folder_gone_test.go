//go:build !race && linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// goneCase is a way in which the database of a running sidecar disappears, and how it returns. The paths are those of the data folder, of
// an unused name next to it, of a backup, and of another folder's database.
type goneCase struct {
	goes    func(t *testing.T, p gonePaths)
	returns func(t *testing.T, p gonePaths) // nil: the sidecar recovers without an operator
	// absent means that the database's path must not exist during the outage.
	absent bool
	// reason is a part of the status of storage.
	reason string
	// kept says which acknowledged dialogues must survive.
	kept keeping
	// environ is the sidecar's environment.
	environ []string
	// short cases run in every `go test`, the others in `make faults`.
	short bool
}

type gonePaths struct{ dir, aside, backup, other string }

func pathsIn(root, aside string) gonePaths {
	return gonePaths{filepath.Join(root, "data"), filepath.Join(root, aside), filepath.Join(root, "backup.db"), filepath.Join(root, "other.db")}
}

func (p gonePaths) database() string { return sqlite.DatabasePath(p.dir) }

type keeping int

const (
	keepsAll    keeping = iota
	keepsBackup         // dialogues acknowledged before the backup
	keepsNone
)

// moved is the reason when the database is no longer at its path.
const moved = "is no longer where it was opened"

func folderCases() map[string]goneCase {
	rename := func(t *testing.T, from, to string) {
		t.Helper()
		sidecartest.NoError(t, os.Rename(from, to))
	}
	garbage := func(t *testing.T, p gonePaths, content []byte) {
		t.Helper()
		sidecartest.NoError(t, os.WriteFile(p.aside, content, 0o600))
		rename(t, p.aside, p.database())
	}
	restore := func(t *testing.T, p gonePaths) {
		t.Helper()
		sidecartest.Must(sqlite.Files{}.Restore(context.Background(), p.backup, p.dir, true, time.Now()))(t)
	}
	absent := func(t *testing.T, p gonePaths) { t.Helper(); rename(t, p.dir, p.aside) }
	back := func(t *testing.T, p gonePaths) { t.Helper(); rename(t, p.aside, p.dir) }
	return map[string]goneCase{
		"the folder is removed": {
			goes: func(t *testing.T, p gonePaths) {
				t.Helper()
				sidecartest.Eventually(t, "the folder is removed", func() bool { return os.RemoveAll(p.dir) == nil })
			},
			returns: restore, absent: true, reason: moved, kept: keepsBackup,
		},
		"the folder is moved away and back":              {goes: absent, returns: back, absent: true, reason: moved, short: true},
		"the folder of an encrypted database moves away": {goes: absent, returns: back, absent: true, reason: moved, environ: []string{sidecartest.KeyEnviron}},
		"an empty folder takes its place": {
			goes: func(t *testing.T, p gonePaths) {
				t.Helper()
				absent(t, p)
				sidecartest.NoError(t, os.Mkdir(p.dir, 0o700))
			},
			returns: func(t *testing.T, p gonePaths) {
				t.Helper()
				sidecartest.NoError(t, os.Remove(p.dir)) // fails if a file was created in it
				back(t, p)
			},
			absent: true, reason: moved,
		},
		"the database alone is moved away and back": {
			goes:    func(t *testing.T, p gonePaths) { t.Helper(); rename(t, p.database(), p.aside) },
			returns: func(t *testing.T, p gonePaths) { t.Helper(); rename(t, p.aside, p.database()) },
			absent:  true, reason: moved,
		},
		"the database alone is removed": {
			goes:    func(t *testing.T, p gonePaths) { t.Helper(); sidecartest.NoError(t, os.Remove(p.database())) },
			returns: restore, absent: true, reason: moved, kept: keepsBackup, short: true,
		},
		"something else is renamed over the database": {
			goes:    func(t *testing.T, p gonePaths) { t.Helper(); garbage(t, p, bytes.Repeat([]byte("no database "), 1000)) },
			returns: func(t *testing.T, p gonePaths) { t.Helper(); rename(t, p.backup, p.database()) },
			kept:    keepsBackup,
		},
		"an empty file is renamed over the database": {
			goes:    func(t *testing.T, p gonePaths) { t.Helper(); garbage(t, p, nil) },
			returns: restore, reason: moved, kept: keepsBackup,
		},
		"the backup is renamed over the database": {
			goes: func(t *testing.T, p gonePaths) { t.Helper(); rename(t, p.backup, p.database()) },
			kept: keepsBackup,
		},
		"another sidecar's database is renamed over the database": {
			goes: func(t *testing.T, p gonePaths) { t.Helper(); rename(t, p.other, p.database()) },
			kept: keepsNone, short: true,
		},
		"the log is removed": {
			goes:  func(t *testing.T, p gonePaths) { t.Helper(); sidecartest.NoError(t, os.Remove(p.database()+"-wal")) },
			short: true,
		},
		"the log's index is removed": {goes: func(t *testing.T, p gonePaths) { t.Helper(); sidecartest.NoError(t, os.Remove(p.database()+"-shm")) }},
		"the lock file is removed": {goes: func(t *testing.T, p gonePaths) {
			t.Helper()
			sidecartest.NoError(t, os.Remove(filepath.Join(p.dir, "memsidecar.lock")))
		}},
		"another log takes the log's place": {
			goes: func(t *testing.T, p gonePaths) {
				t.Helper()
				sidecartest.NoError(t, os.WriteFile(p.aside, sidecartest.Must(os.ReadFile(p.database() + "-wal"))(t)[:32], 0o600))
				rename(t, p.aside, p.database()+"-wal")
			},
			short: true,
		},
	}
}

// TestLostDataFolderStopsAcknowledging: The data folder or the database disappears under load. Until it returns, nothing is acknowledged, the status says
// why, and no new database is created. Then everything works again without a restart, and acknowledged dialogues survive a SIGKILL.
func TestLostDataFolderStopsAcknowledging(t *testing.T) {
	t.Parallel()
	for name, c := range folderCases() {
		if !c.short && !allFaults() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each case waits for the next attempt to open the database
			root := t.TempDir()
			c.run(t, pathsIn(root, "aside"))
		})
	}
}

// TestVolumeUnmounted: A volume is unmounted while it is in use, and mounted again.
func TestVolumeUnmounted(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	paths := pathsIn(root, "volume")
	sidecartest.NoError(t, errors.Join(os.Mkdir(paths.dir, 0o700), os.Mkdir(paths.aside, 0o700)))
	mount := func() error { return syscall.Mount(paths.aside, paths.dir, "", syscall.MS_BIND, "") }
	unmount := func() error { return syscall.Unmount(paths.dir, syscall.MNT_DETACH) }
	if err := mount(); err != nil {
		t.Skip("no file system can be mounted here:", err)
	}
	t.Cleanup(func() { _ = unmount() })
	goneCase{
		goes:    func(t *testing.T, _ gonePaths) { t.Helper(); sidecartest.NoError(t, unmount()) },
		returns: func(t *testing.T, _ gonePaths) { t.Helper(); sidecartest.NoError(t, mount()) },
		absent:  true, reason: moved,
	}.run(t, paths)
}

func (c goneCase) run(t *testing.T, paths gonePaths) {
	t.Helper()
	sidecartest.WithStorage(t, filepath.Join(filepath.Dir(paths.other), "others"), func(*sqlite.Storage) {})
	sidecartest.NoError(t, os.Rename(sqlite.DatabasePath(filepath.Join(filepath.Dir(paths.other), "others")), paths.other))
	p := spawn(t, paths.dir, append(c.environ, "MEMSIDECAR_LOG_LEVEL=debug", "MEMSIDECAR_HTTP_LISTEN=127.0.0.1:0")...)
	l := &goneLoad{before: map[string]string{}, after: map[string]string{}, c: c}
	for n := range 5 {
		l.send(t, p, fmt.Sprint("first-", n))
	}
	if len(l.before) != 5 {
		t.Fatalf("of 5 dialogues %d are acknowledged", len(l.before))
	}
	saved := len(l.before)
	if c.environ == nil {
		sidecartest.Must(sqlite.MakeBackup(t.Context(), paths.dir, paths.backup, sqlite.BackupOptions{}))(t)
	}
	kept := maps.Clone(l.before)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var callers sync.WaitGroup
	for caller := range 4 {
		callers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				l.send(t, p, fmt.Sprintf("c%d-n%d", caller, n))
			}
		})
	}
	await := func(what string, is func() bool) {
		t.Helper()
		sidecartest.Eventually(t, what, func() bool { time.Sleep(5 * time.Millisecond); return is() })
	}
	await("dialogues are acknowledged", func() bool { return l.count(l.before) >= saved+40 })
	c.goes(t, paths)
	l.gone.Store(true)
	if c.returns != nil {
		await("storage is an outage", func() bool { return p.storage(t).GetBreaker() == memsidecarv1.BreakerState_BREAKER_STATE_OPEN })
		c.duringOutage(t, p, paths)
		refused := l.refused.Load()
		await("more is refused, also after storage was tried again", func() bool {
			return l.refused.Load() > refused+20 && strings.Count(p.log.String(), "storage is still unavailable") >= 2
		})
		if _, err := os.Lstat(paths.database()); c.absent && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a database was made: %v", err)
		}
		l.returned.Store(true)
		c.returns(t, paths)
	}
	l.returned.Store(true)
	await("dialogues are acknowledged again", func() bool { return l.count(l.after) >= 40 })
	stop()
	callers.Wait()
	p.servesAgain(t)
	if n := l.wrong.Load(); n > 0 {
		t.Errorf("%d dialogues were acknowledged that went nowhere", n)
	}
	t.Logf("%d acknowledged before, %d refused, %d acknowledged after", len(l.before), l.refused.Load(), len(l.after))

	switch c.kept {
	case keepsAll:
		kept = l.before
	case keepsBackup: // includes what kept includes
	case keepsNone:
		kept = nil
	}
	l.check(t, p, kept)
	p.kill(t)
	p = spawn(t, paths.dir, c.environ...)
	l.check(t, p, kept)
	p.kill(t)
	files := sqlite.Files{}
	if c.environ != nil {
		files.Key = sidecartest.TestKey(t)
	}
	for _, f := range sidecartest.Must(files.Check(t.Context(), paths.database(), false))(t).Findings {
		if f.Problems > 0 {
			t.Errorf("%s: %v", f.Check, f.Examples)
		}
	}
}

// duringOutage checks the answers during the outage.
func (c goneCase) duringOutage(t *testing.T, p *process, paths gonePaths) {
	t.Helper()
	resp := sidecartest.Must(p.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct("user"), Query: "暗号"}))(t)
	if d := resp.GetDegraded(); len(d) == 0 || d[0].GetComponent() != memsidecarv1.DegradedComponent_DEGRADED_COMPONENT_STORAGE {
		t.Errorf("Retrieve answers %s", resp)
	}
	if reason := p.storage(t).GetReason(); !strings.Contains(reason, c.reason) || !strings.Contains(reason, paths.dir) {
		t.Errorf("storage is down because of %q, want %q", reason, c.reason)
	}
	health := sidecartest.Must(healthpb.NewHealthClient(p.conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: "storage"}))(t)
	if health.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("storage's health is %s", health)
	}
	address := httpLine.FindStringSubmatch(p.log.String())
	if address == nil {
		t.Fatalf("no address in the log:\n%s", p.log)
	}
	r := &sidecartest.Sidecar{HTTP: address[1]}
	if code, text := r.GetOps(t, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "storage: ") {
		t.Errorf("/readyz is answered %d: %q", code, text)
	}
}

// goneLoad sends dialogues, and records what was acknowledged and when.
type goneLoad struct {
	c              goneCase
	gone, returned atomic.Bool
	refused, wrong atomic.Int64

	mu            sync.Mutex
	before, after map[string]string // request id → consideration id
}

func (l *goneLoad) count(of map[string]string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(of)
}

func (l *goneLoad) request(id string) *memsidecarv1.ConsiderMemorizingRequest {
	caller, _, _ := strings.Cut(id, "-")
	return &memsidecarv1.ConsiderMemorizingRequest{
		Scope: sidecartest.Direct(caller), RequestId: id, Messages: []*memsidecarv1.Message{sidecartest.Said("请记住：我的暗号是" + id + "号")},
	}
}

// send sends one dialogue. A dialogue sent during the outage must not be acknowledged before the database returns.
func (l *goneLoad) send(t *testing.T, p *process, id string) {
	t.Helper()
	gone := l.gone.Load()
	ctx, cancel := context.WithTimeout(t.Context(), sidecartest.Timeout)
	defer cancel()
	resp, err := p.ConsiderMemorizing(ctx, l.request(id))
	if err != nil {
		l.refused.Add(1)
		time.Sleep(5 * time.Millisecond) // leaves the processor to the sidecar
		if status.Code(err) != codes.Unavailable {
			t.Errorf("%s is refused with %v", id, err)
		}
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !gone:
		l.before[id] = resp.GetConsideration().GetId()
	case l.c.returns != nil && !l.returned.Load():
		l.wrong.Add(1)
	default:
		l.after[id] = resp.GetConsideration().GetId()
	}
}

// check waits until all acknowledged dialogues are remembered.
func (l *goneLoad) check(t *testing.T, p *process, kept map[string]string) {
	t.Helper()
	for _, acked := range []map[string]string{kept, l.after} {
		for id, consideration := range acked {
			request := l.request(id)
			request.Wait = sidecartest.LongWait()
			c := sidecartest.Must(p.ConsiderMemorizing(t.Context(), request))(t).GetConsideration()
			if c.GetId() != consideration || c.GetState() != sidecartest.Remembered {
				t.Errorf("%s was acknowledged as %s and is %s", id, consideration, c)
			}
		}
	}
}

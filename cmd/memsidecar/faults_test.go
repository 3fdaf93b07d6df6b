//go:build !race && linux

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// faults are system calls of the running sidecar that strace makes fail for a while.
var faults = map[string]struct {
	inject, file string
	// log is whether the write-ahead log cannot be written: then nothing may be acknowledged.
	log bool
	// key is whether the database is encrypted.
	key bool
}{
	"syncing the log fails":           {"fsync,fdatasync:error=EIO", "memsidecar.db-wal", true, false},
	"writing the log fails":           {"pwrite64:error=EIO", "memsidecar.db-wal", true, false},
	"no space for the log":            {"pwrite64:error=ENOSPC", "memsidecar.db-wal", true, false},
	"the log is read-only":            {"pwrite64:error=EROFS", "memsidecar.db-wal", true, false},
	"reading the log fails":           {"pread64:error=EIO", "memsidecar.db-wal", false, false},
	"truncating the log fails":        {"ftruncate:error=EIO", "memsidecar.db-wal", false, false},
	"reading the database fails":      {"pread64:error=EIO", "memsidecar.db", false, false},
	"writing the database fails":      {"pwrite64:error=EIO", "memsidecar.db", false, false},
	"no space for the database":       {"pwrite64:error=ENOSPC", "memsidecar.db", false, false},
	"syncing the database fails":      {"fsync,fdatasync:error=EIO", "memsidecar.db", false, false},
	"no space for the log's index":    {"pwrite64,ftruncate:error=ENOSPC", "memsidecar.db-shm", false, false},
	"all writes and syncs of it fail": {"pwrite64,fsync,ftruncate:error=EIO", "", true, false},
	"writing an encrypted log fails":  {"pwrite64:error=EIO", "memsidecar.db-wal", true, true},
	"reading an encrypted page fails": {"pread64:error=EIO", "memsidecar.db", false, true},
	"writing an encrypted page fails": {"pwrite64:error=EIO", "memsidecar.db", false, true},
}

// TestDiskFaults makes the disk fail under the running program. Writes that cannot be made durable are refused with UNAVAILABLE, Retrieve
// still answers, and after the fault everything recovers without a restart. After a kill, every acknowledged dialogue is stored, once.
func TestDiskFaults(t *testing.T) {
	t.Parallel()
	needsStrace(t)
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each case waits for the next attempt to open the database
			dir, environ, files := t.TempDir(), []string(nil), sqlite.Files{}
			if fault.key {
				environ, files = []string{sidecartest.KeyEnviron}, sqlite.Files{Key: sidecartest.TestKey(t)}
			}
			p := spawn(t, dir, environ...)
			l := &ledger{acked: map[string]string{}}
			try(t, p, l, 0, 5)
			if len(l.acked) != 5 {
				t.Fatalf("%d of 5 are acknowledged before the fault", len(l.acked))
			}
			paths := []string{filepath.Join(dir, fault.file)}
			if fault.file == "" {
				paths = []string{sqlite.DatabasePath(dir), sqlite.DatabasePath(dir) + "-wal"}
			}
			restore := injectFault(t, p.command.Process.Pid, fault.inject, paths...)
			try(t, p, l, 5, 15)
			_, _ = p.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: &memsidecarv1.Scope{UserId: "nobody"}}) // empties the log
			try(t, p, l, 15, 25)
			during := len(l.acked) - 5
			if fault.log && during > 0 {
				t.Errorf("%d dialogues were acknowledged that cannot be on disk", during)
			}
			if _, err := p.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct("user"), Query: "暗号"}); err != nil {
				t.Errorf("Retrieve does not go on: %v", err)
			}
			storage := p.storage(t)
			if fault.log && (storage.GetBreaker() == memsidecarv1.BreakerState_BREAKER_STATE_CLOSED || storage.GetReason() == "") {
				t.Errorf("the status of storage is %s", storage)
			}
			if fault.log { // stored memories are still returned
				_ = sidecartest.Must(p.ListMemories(t.Context(), &memsidecarv1.ListMemoriesRequest{Scope: sidecartest.Direct("user")}))(t)
				_ = sidecartest.Must(p.ListConsiderations(t.Context(), &memsidecarv1.ListConsiderationsRequest{Scope: sidecartest.Direct("user")}))(t)
			}
			restore()
			t.Logf("%d of 20 were acknowledged during the fault; storage was %s", during, storage)

			p.servesAgain(t)
			sidecartest.Eventually(t, "all are acknowledged", func() bool { // calls that began during the fault may fail a little later
				try(t, p, l, 0, 30)
				return len(l.acked) == 30
			})
			log := p.log.String()
			again := strings.Count(log, "circuit breaker closed") // also during the fault, if opening the database succeeds
			for _, text := range []string{"circuit breaker opened", "level=ERROR"} {
				if n := strings.Count(log, text); n > 2+again {
					t.Errorf("%q is logged %d times:\n%s", text, n, log)
				}
			}
			p.kill(t)
			p = spawn(t, dir, environ...)
			l.check(t, p)
			p.kill(t)
			report := sidecartest.Must(files.Check(t.Context(), sqlite.DatabasePath(dir), false))(t)
			for _, f := range report.Findings {
				if f.Problems > 0 {
					t.Errorf("%s: %v", f.Check, f.Examples)
				}
			}
		})
	}
}

// try sends those of the numbered dialogues that are not acknowledged yet.
func try(t *testing.T, p *process, l *ledger, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		id := "n" + strconv.Itoa(n)
		if _, known := l.acked[id]; known {
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), sidecartest.Timeout)
		resp, err := p.ConsiderMemorizing(ctx, &memsidecarv1.ConsiderMemorizingRequest{
			Scope: sidecartest.Direct("user"), RequestId: id, Messages: []*memsidecarv1.Message{sidecartest.Said("请记住：我的暗号是" + id + "号")},
		})
		cancel()
		switch {
		case err == nil:
			l.acknowledge(id, resp.GetConsideration().GetId())
		case status.Code(err) != codes.Unavailable:
			t.Errorf("%s is refused with %v", id, err)
		}
	}
}

// check waits until all acknowledged dialogues are remembered, and counts them.
func (l *ledger) check(t *testing.T, p *process) {
	t.Helper()
	for id, consideration := range l.acked {
		resp := sidecartest.Must(p.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
			Scope: sidecartest.Direct("user"), RequestId: id, Messages: []*memsidecarv1.Message{sidecartest.Said("请记住：我的暗号是" + id + "号")}, Wait: sidecartest.LongWait(),
		}))(t)
		if c := resp.GetConsideration(); c.GetId() != consideration || c.GetState() != sidecartest.Remembered {
			t.Errorf("%s was acknowledged as %s and is %s", id, consideration, c)
		}
	}
	found := map[string]int32{}
	for _, m := range sidecartest.AllMemories(t.Context(), t, p, sidecartest.Direct("user")) {
		_, id, _ := strings.Cut(m.GetText(), "暗号是")
		found[strings.TrimSuffix(id, "号")] += m.GetMentionCount()
	}
	for id := range l.acked {
		if found[id] != 1 {
			t.Errorf("%s is remembered %d times", id, found[id])
		}
	}
}

// storage returns the status of storage.
func (p *process) storage(t *testing.T) *memsidecarv1.ComponentStatus {
	t.Helper()
	return sidecartest.Must(p.GetStatus(t.Context(), &memsidecarv1.GetStatusRequest{}))(t).GetStorage().GetComponent()
}

// servesAgain waits until storage is serving again.
func (p *process) servesAgain(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), sidecartest.Timeout)
	defer cancel()
	watch := sidecartest.Must(healthpb.NewHealthClient(p.conn).Watch(ctx, &healthpb.HealthCheckRequest{Service: "storage"}))(t)
	for {
		state, err := watch.Recv()
		if err != nil {
			t.Fatalf("storage does not come back: %v\n%s", err, p.log)
		}
		if state.GetStatus() == healthpb.HealthCheckResponse_SERVING {
			return
		}
	}
}

// injectFault makes calls of a running process fail on some files until mend is called.
func injectFault(t *testing.T, pid int, inject string, paths ...string) (restore func()) {
	t.Helper()
	calls, _, _ := strings.Cut(inject, ":")
	args := []string{"-f", "-p", strconv.Itoa(pid), "-o", os.DevNull, "-e", "trace=" + calls, "-e", "inject=" + inject}
	for _, path := range paths {
		args = append(args, "-P", path)
	}
	command := exec.CommandContext(context.Background(), "strace", args...)
	stderr := sidecartest.Must(command.StderrPipe())(t)
	sidecartest.NoError(t, command.Start())
	t.Cleanup(func() { _ = command.Process.Kill() })
	lines := bufio.NewScanner(stderr)
	if attached := lines.Scan() && strings.Contains(lines.Text(), "attached"); !attached && strings.Contains(lines.Text(), "not permitted") {
		t.Skip("strace may start programs here, and not look into those that run:", lines.Text())
	} else if !attached {
		t.Fatalf("strace says %q", lines.Text())
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for lines.Scan() {
		}
	}()
	return func() {
		sidecartest.NoError(t, command.Process.Signal(syscall.SIGINT)) // detaches strace from the sidecar
		<-drained
		_ = command.Wait() // reports the signal
	}
}

// TestSmallDisk fills a real file system, and makes one read-only.
func TestSmallDisk(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=4m"); err != nil {
		t.Skip("no file system can be mounted here:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	p := spawn(t, filepath.Join(disk, "data"))
	l := &ledger{acked: map[string]string{}}
	try(t, p, l, 0, 3)
	filler := filepath.Join(disk, "filler")
	f := sidecartest.Must(os.Create(filler))(t)
	for err := error(nil); err == nil; {
		_, err = f.Write(make([]byte, 4096))
	}
	_ = f.Close() // the disk is full
	for n := 3; ; n++ {
		if n > 2000 {
			t.Fatal("a full disk refuses nothing")
		}
		if before := len(l.acked); true {
			try(t, p, l, n, n+1)
			if len(l.acked) == before {
				break
			}
		}
	}
	more := 10_000
	sidecartest.Eventually(t, "Retrieve says that the disk is full", func() bool { // the probe may have succeeded meanwhile, if only longer writes fail
		more++
		try(t, p, l, more, more+1)
		resp := sidecartest.Must(p.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct("user"), Query: "暗号"}))(t)
		return strings.Contains(fmt.Sprint(resp.GetDegraded()), "full")
	})
	sidecartest.NoError(t, os.Remove(filler))
	p.servesAgain(t)
	full := len(l.acked)
	sidecartest.Eventually(t, "with room again all are acknowledged", func() bool {
		try(t, p, l, 2001, 2005)
		return len(l.acked) == full+4
	})
	p.kill(t)

	sidecartest.NoError(t, syscall.Mount("", disk, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	p = spawn(t, filepath.Join(disk, "data"))
	storage := p.storage(t)
	if !strings.Contains(storage.GetReason(), "read-only file system") {
		t.Errorf("on a read-only file system storage is %s", storage)
	}
	sidecartest.NoError(t, syscall.Mount("", disk, "", syscall.MS_REMOUNT, ""))
	p.servesAgain(t)
	l.check(t, p)
	p.kill(t)
}

//go:build !race && unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// process is `memsidecar serve` in its own process.
type process struct {
	sidecartest.Stubs
	command *exec.Cmd
	conn    *grpc.ClientConn
	log     *sidecartest.Log
}

var readyLine = regexp.MustCompile(`memsidecar is ready.* address=(\S+)`)

// spawn starts the real binary on the folder and waits until it answers.
func spawn(t testing.TB, dir string, environ ...string) *process {
	t.Helper()
	return spawnBy(t, nil, dir, environ...)
}

// spawnBy starts the binary through another program with these arguments.
func spawnBy(t testing.TB, wrapper []string, dir string, environ ...string) *process {
	t.Helper()
	arguments := append(slices.Clone(wrapper), sidecartest.Binary(t), "serve", "--listen", "127.0.0.1:0", "--data-dir", dir)
	p := &process{command: exec.CommandContext(context.Background(), arguments[0], arguments[1:]...), log: &sidecartest.Log{}}
	p.command.Env = sidecartest.Environ()
	for _, setting := range sidecartest.RelaxedSettings(t) {
		key, value, _ := strings.Cut(setting, "=")
		p.command.Env = append(p.command.Env, "MEMSIDECAR_"+strings.ToUpper(strings.ReplaceAll(key, ".", "_"))+"="+value)
	}
	p.command.Env = append(p.command.Env, environ...)
	stderr, err := p.command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.command.Process.Kill()
		_ = p.command.Wait() // before its folder is removed; reports the signal
	})
	address := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			fmt.Fprintln(p.log, lines.Text())
			if found := readyLine.FindStringSubmatch(lines.Text()); found != nil {
				address <- found[1]
			}
		}
		close(address)
	}()
	addr, ok := <-address
	if !ok {
		t.Fatalf("serve ended before it was ready:\n%s", p.log)
	}
	p.conn = sidecartest.Dial(t, addr)
	p.Stubs = sidecartest.NewStubs(p.conn)
	return p
}

// kill ends the process with SIGKILL: it can neither flush nor close files.
func (p *process) kill(t testing.TB) {
	t.Helper()
	if err := p.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.command.Wait() // reports the signal
}

// ledger records what was sent, and what was acknowledged under which id.
type ledger struct {
	mu    sync.Mutex
	sent  []*memsidecarv1.ConsiderMemorizingRequest
	acked map[string]string // request id → consideration id
}

func (l *ledger) acknowledge(requestID, considerationID string) (count int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked[requestID] = considerationID
	return len(l.acked)
}

// send sends dialogues, without waiting for outcomes, until the process is killed.
func (l *ledger) send(p *process, round, caller int, enough func(acked int)) {
	for n := 0; ; n++ {
		id := fmt.Sprintf("r%d-c%d-n%d", round, caller, n)
		request := &memsidecarv1.ConsiderMemorizingRequest{
			Scope: sidecartest.Direct(fmt.Sprintf("user-%d", caller)), RequestId: id,
			Messages: []*memsidecarv1.Message{sidecartest.Said("请记住：我的暗号是" + id + "号")},
		}
		l.mu.Lock()
		l.sent = append(l.sent, request)
		l.mu.Unlock()
		resp, err := p.ConsiderMemorizing(context.Background(), request)
		if err != nil {
			return
		}
		enough(l.acknowledge(id, resp.GetConsideration().GetId()))
	}
}

// TestKilledWhileAcknowledging repeatedly kills serve with SIGKILL while it acknowledges dialogues. Every acknowledged dialogue must be
// processed, and every dialogue at most once. The page cache survives a SIGKILL, so this test does not cover power loss.
func TestKilledWhileAcknowledging(t *testing.T) {
	t.Parallel()
	const (
		rounds      = 4
		callers     = 6
		acksARound  = 60
		finalUserID = callers
	)
	dir := t.TempDir()
	l := &ledger{acked: map[string]string{}}
	for round := range rounds {
		p := spawn(t, dir)
		target := len(l.acked) + acksARound + 7*round // at different points of the log
		reached := make(chan struct{})
		once := sync.OnceFunc(func() { close(reached) })
		var callersDone sync.WaitGroup
		for caller := range callers {
			callersDone.Go(func() {
				l.send(p, round, caller, func(acked int) {
					if acked >= target {
						once()
					}
				})
			})
		}
		<-reached
		p.kill(t)
		callersDone.Wait()
	}

	p := spawn(t, dir)
	ctx := t.Context()
	// Repeating a request with its id returns the same consideration, now with its outcome.
	for _, request := range l.sent {
		acked, ok := l.acked[request.GetRequestId()]
		if !ok {
			continue
		}
		request.Wait = sidecartest.LongWait()
		resp, err := p.ConsiderMemorizing(ctx, request)
		if err != nil {
			t.Fatal(err)
		}
		if got := resp.GetConsideration(); got.GetId() != acked {
			t.Errorf("%s was acknowledged as %s and is now %s", request.GetRequestId(), acked, got.GetId())
		} else if got.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED {
			t.Errorf("%s is %s: %s %s", request.GetRequestId(), got.GetState(), got.GetReason(), got.GetError())
		}
	}
	found := map[string]int{}
	for caller := range finalUserID {
		for _, m := range sidecartest.AllMemories(ctx, t, p, sidecartest.Direct(fmt.Sprintf("user-%d", caller))) {
			id := m.GetText()
			if i := strings.Index(id, "暗号是"); i >= 0 {
				id = strings.TrimSuffix(id[i+len("暗号是"):], "号")
			}
			found[id]++
			if m.GetMentionCount() != 1 {
				t.Errorf("%q is counted %d times", m.GetText(), m.GetMentionCount())
			}
		}
	}
	for id := range l.acked {
		if found[id] != 1 {
			t.Errorf("%s was acknowledged and is stored %d times", id, found[id])
		}
	}
	for id, n := range found {
		if n > 1 {
			t.Errorf("%s is stored %d times", id, n)
		}
	}
	t.Logf("%d dialogues sent, %d acknowledged, %d memories after %d kills", len(l.sent), len(l.acked), len(found), rounds)
}

//go:build !race && linux

package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/secret/seal"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/testkit/powerloss"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// operation is a request to the sidecar, with the text that acknowledges it on the wire.
type operation struct {
	what, user, text string
	id               string // of the consideration, the memory or the message
	acknowledged     string
	moment           int // of the acknowledgement
	request          *memsidecarv1.ConsiderMemorizingRequest
}

// operations makes requests one after the other.
type operations struct {
	p     *process
	key   seal.Key // of the database, if it is encrypted
	list  []*operation
	marks []*operation // memories that mark can retrieve
}

func (d *operations) add(one operation) *operation {
	d.list = append(d.list, &one)
	return &one
}

func (d *operations) consider(t *testing.T, user string, n int) {
	t.Helper()
	text := fmt.Sprintf("%s-%d号", user, n)
	request := &memsidecarv1.ConsiderMemorizingRequest{
		Scope: sidecartest.Direct(
			user,
		), RequestId: text, Messages: []*memsidecarv1.Message{sidecartest.Said("请记住：我的暗号是" + text + strings.Repeat("。没有别的", 100))},
	}
	c := sidecartest.Must(d.p.ConsiderMemorizing(t.Context(), request))(t).GetConsideration()
	d.add(operation{what: "considered", user: user, text: text, id: c.GetId(), acknowledged: c.GetId(), request: request})
}

func (d *operations) create(t *testing.T, user string, n int) *operation {
	t.Helper()
	text := fmt.Sprintf("%s keeps %d secrets.", user, n)
	m := sidecartest.Must(d.p.CreateMemory(t.Context(), &memsidecarv1.CreateMemoryRequest{
		Scope: sidecartest.Direct(user), Memory: &memsidecarv1.Memory{Text: text, Kind: memsidecarv1.MemoryKind_MEMORY_KIND_FACT},
	}))(t).GetMemory()
	return d.add(operation{what: "created", user: user, text: text, id: m.GetId(), acknowledged: m.GetId()})
}

func (d *operations) appendTwo(t *testing.T, user string, n int) {
	t.Helper()
	question, answer := sidecartest.Said(fmt.Sprintf("What about %d?", n)), sidecartest.Answered(fmt.Sprintf("Not %d, please.", n))
	question.Id, answer.Id = fmt.Sprintf("%s-q%d", user, n), fmt.Sprintf("%s-a%d", user, n)
	sidecartest.Must(memsidecarv1.NewSessionServiceClient(d.p.conn).AppendMessages(t.Context(), &memsidecarv1.AppendMessagesRequest{
		Scope: sidecartest.InSession(sidecartest.Direct(user), "session-"+user), Messages: []*memsidecarv1.Message{question, answer},
	}))(t)
	d.add(operation{what: "appended", user: user, text: fmt.Sprintf("%s-_%d", user, n), acknowledged: d.mark(t)})
}

func (d *operations) remove(t *testing.T, m *operation) {
	t.Helper()
	sidecartest.Must(d.p.DeleteMemory(t.Context(), &memsidecarv1.DeleteMemoryRequest{Scope: sidecartest.Direct(m.user), MemoryId: m.id}))(t)
	d.add(operation{what: "deleted", user: m.user, id: m.id, acknowledged: d.mark(t)})
}

func (d *operations) forget(t *testing.T, user string) {
	t.Helper()
	sidecartest.Must(d.p.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: &memsidecarv1.Scope{UserId: user}}))(t)
	d.add(operation{what: "forgotten", user: user, acknowledged: d.mark(t)})
}

// mark makes the sidecar send a unique text without writing anything. Answers before it were sent before this moment.
func (d *operations) mark(t *testing.T) string {
	t.Helper()
	m := d.marks[0]
	d.marks = d.marks[1:]
	sidecartest.Must(d.p.GetMemory(t.Context(), &memsidecarv1.GetMemoryRequest{Scope: sidecartest.Direct(m.user), MemoryId: m.id}))(t)
	return m.id
}

// TestPowerLoss runs the real program under strace, and rebuilds the disk that a power loss would leave: at every sync, at every
// acknowledgement, and at some moments between. On each disk the database opens without help and is sound, every acknowledged change is
// stored once, and forgotten users are absent.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	losePower(t, 20)
}

func TestPowerLossEncrypted(t *testing.T) {
	t.Parallel()
	losePower(t, 10, sidecartest.KeyEnviron)
}

func losePower(t *testing.T, moments int, environ ...string) {
	t.Helper()
	needsStrace(t)
	if n, err := strconv.Atoi(os.Getenv("POWER_LOSSES")); err == nil {
		moments = n
	}
	root := t.TempDir()
	recording := filepath.Join(t.TempDir(), "trace")
	p, pid := wrap(t, filepath.Join(root, "new", "data"), environ, append([]string{"strace"}, powerloss.Arguments(recording)...)...)
	d := &operations{p: p}
	if len(environ) > 0 {
		d.key = sidecartest.TestKey(t)
	}
	for n := range 40 {
		d.marks = append(d.marks, d.create(t, "marker", n))
	}
	for round := range 6 {
		gone := fmt.Sprintf("gone%d", round)
		for n := range 4 {
			user := fmt.Sprintf("user%d", n%2)
			d.consider(t, user, 10*round+n)
			m := d.create(t, user, 10*round+n)
			d.appendTwo(t, user, 10*round+n)
			d.consider(t, gone, n)
			d.create(t, gone, n)
			if n == 2 {
				d.remove(t, m)
			}
		}
		if round%2 == 1 { // empties the log, too
			d.forget(t, gone)
		}
	}
	sidecartest.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	_ = p.command.Wait() // strace exits with the sidecar's status

	f := sidecartest.Must(os.Open(recording))(t)
	defer f.Close() //nolint:errcheck // only read
	trace := sidecartest.Must(powerloss.Parse(f, root))(t)
	points := []int{trace.End}
	for _, one := range d.list {
		said, nth := trace.Said(one.acknowledged), 0
		if one.id != one.acknowledged { // a mark: the text was also sent when the memory was created
			nth = 1
		}
		if len(said) <= nth {
			t.Fatalf("nothing on the wire acknowledges that %s was %s", one.user, one.what)
		}
		one.moment = said[nth]
		points = append(points, one.moment)
	}
	for _, sync := range trace.Syncs() {
		points = append(points, sync-1, sync)
	}
	seed := uint64(20261121) //nolint:mnd // any
	r := rand.New(rand.NewPCG(seed, 1))
	for range 50 {
		points = append(points, r.IntN(trace.End))
	}
	r.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	t.Logf(
		"%d calls in the trace, %d syncs, %d acknowledged deeds, %d moments of which %d are looked at",
		trace.End,
		len(trace.Syncs()),
		len(d.list),
		len(points),
		moments,
	)
	for i := range moments {
		moment, loss := points[i%len(points)], powerloss.AnyLoss(r)
		disk := t.TempDir()
		sidecartest.NoError(t, trace.Rebuild(moment, loss, r, disk))
		if d.check(t, filepath.Join(disk, "new", "data"), moment); t.Failed() {
			t.Fatalf("after a loss of power at line %d of the trace, loss %d, disk %d", moment, loss, i)
		}
		if i%40 == 0 {
			d.finish(t, filepath.Join(disk, "new", "data"), moment, environ)
		}
		sidecartest.NoError(t, os.RemoveAll(disk))
	}
}

// check opens the folder as the sidecar does.
func (d *operations) check(t *testing.T, dir string, moment int) {
	t.Helper()
	key := func() (seal.Key, error) { return d.key, nil }
	s := sidecartest.Must(sqlite.Open(t.Context(), sqlite.Options{Dir: dir, Log: slog.New(slog.DiscardHandler), Key: key}))(t)
	if status := s.Status(); status.State != breaker.Closed {
		sidecartest.NoError(t, s.Close())
		t.Errorf("the database cannot be opened: %s", status.Reason)
		return
	}
	count := func(query string, args ...any) (n int) {
		sidecartest.NoError(t, s.Read(t.Context(), func(q sqldb.Querier) error { return q.QueryRow(t.Context(), query, args...).Scan(&n) }))
		return n
	}
	removed := func(one *operation) bool { // or may have been
		return slices.ContainsFunc(d.list, func(other *operation) bool {
			return other.what == "deleted" && other.id == one.id || other.what == "forgotten" && other.user == one.user
		})
	}
	for _, one := range d.list {
		acknowledged := one.moment <= moment
		var n, whole int
		switch one.what {
		case "considered":
			n, whole = count(`SELECT count(*) FROM dialogues d JOIN considerations c ON c.dialogue_row = d.row
				WHERE d.id = ? AND instr(d.messages, ?) > 0`, one.id, one.text), 1
		case "created":
			n, whole = count(`SELECT count(*) FROM memories WHERE id = ? AND text = ?`, one.id, one.text), 1
		case "appended":
			n, whole = count(`SELECT count(*) FROM session_messages WHERE id LIKE ?`, one.text), 2
		case "deleted":
			if n := count(`SELECT count(*) FROM memories WHERE id = ?`, one.id); acknowledged && n > 0 {
				t.Errorf("the deleted memory %s is back", one.id)
			}
			continue
		case "forgotten":
			if n := count(`SELECT count(*) FROM users WHERE user_id = ?1`, one.user) +
				count(`SELECT count(*) FROM considerations WHERE user_id = ?1`, one.user); acknowledged && n > 0 {
				t.Errorf("the forgotten user %s is back", one.user)
			}
			continue
		}
		if n != 0 && n != whole || n == 0 && acknowledged && !removed(one) {
			t.Errorf(
				"what %s %s (%s %s) is there %d times; it was acknowledged at %d, the power went at %d",
				one.user,
				one.what,
				one.id,
				one.text,
				n,
				one.moment,
				moment,
			)
		}
	}
	sidecartest.NoError(t, s.Close())
	report := sidecartest.Must(sqlite.Files{Key: d.key}.Check(t.Context(), sqlite.DatabasePath(dir), false))(t)
	for _, f := range report.Findings {
		if f.Problems > 0 {
			t.Errorf("%s: %v", f.Check, f.Examples)
		}
	}
}

// finish runs a sidecar on the folder: acknowledged dialogues are remembered, once.
func (d *operations) finish(t *testing.T, dir string, moment int, environ []string) {
	t.Helper()
	r := sidecartest.ServeWith(t, dir, environ)
	sidecartest.Must(healthpb.NewHealthClient(r.Conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: "storage"}))(t)
	for _, one := range d.list {
		if one.what != "considered" || one.moment > moment || strings.HasPrefix(one.user, "gone") {
			continue
		}
		one.request.Wait = sidecartest.LongWait()
		c := sidecartest.Must(r.ConsiderMemorizing(context.WithoutCancel(t.Context()), one.request))(t).GetConsideration()
		if c.GetId() != one.id || c.GetState() != sidecartest.Remembered {
			t.Errorf("%s was acknowledged and is %s", one.id, c)
		}
	}
	for _, user := range []string{"user0", "user1"} {
		found := map[string]int32{}
		for _, m := range sidecartest.AllMemories(t.Context(), t, &process{Stubs: sidecartest.Stubs{MemoryServiceClient: r}}, sidecartest.Direct(user)) {
			found[m.GetText()] += m.GetMentionCount()
			if n := found[m.GetText()]; n != 1 {
				t.Errorf("%q is remembered %d times", m.GetText(), n)
			}
		}
	}
	r.Stop()
}

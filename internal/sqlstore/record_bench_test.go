package sqlstore_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
)

// recordUsers is the number of users whose dialogues are recorded in turn. All have a session.
const recordUsers = 1000

// BenchmarkRecord measures the storage part of acknowledging a dialogue: processor time, allocations, and disk writes, checkpoints
// included. Counts of writes and allocations do not depend on other load.
func BenchmarkRecord(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			s, err := sqlite.Open(b.Context(), sqlite.Options{Dir: b.TempDir(), Log: discard})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() {
				if err := s.Close(); err != nil {
					b.Error(err)
				}
			})
			sessions := sqlstore.NewSessions(s, sqlstore.NewQueue(s))
			recordAll(b, sessions, 64, 0, recordUsers)
			b.ReportAllocs()
			b.ResetTimer()
			cpu, bytes, calls := spent(b)
			recordAll(b, sessions, callers, recordUsers, b.N)
			cpuAfter, bytesAfter, callsAfter := spent(b)
			n := float64(b.N)
			b.ReportMetric(float64((cpuAfter-cpu).Microseconds())/n, "cpu-µs/op")
			b.ReportMetric(float64(bytesAfter-bytes)/n/1024, "written-KiB/op")
			b.ReportMetric(float64(callsAfter-calls)/n, "writes/op")
		})
	}
}

// recordAll records dialogues, starting with the first, by this many concurrent callers.
func recordAll(b *testing.B, sessions *sqlstore.Sessions, callers, first, count int) {
	b.Helper()
	var next atomic.Int64
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < count; i = int(next.Add(1)) - 1 {
				if _, _, err := sessions.Record(context.Background(), record(first+i)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

// record is the n-th dialogue, as ConsiderMemorizing stores it.
func record(n int) session.Record {
	at := time.UnixMicro(1_790_000_000_000_000 + int64(n)*1000).UTC()
	user := fmt.Sprintf("user-%d", n%recordUsers)
	messages := []memory.Message{
		{Role: memory.RoleUser, Speaker: user, Time: at, Content: fmt.Sprintf("I moved to number %d in our street, and would like to tell you about it.", n)},
		{Role: memory.RoleAssistant, Time: at, Content: "Thank you for telling me. I will keep that in mind when we talk about it again."},
	}
	scope := memory.Scope{Namespace: memory.DefaultNamespace, UserID: user, Channel: memory.Channel{Kind: memory.ChannelDirect}}
	return session.Record{
		Append: session.Append{
			Scope: scope, NewID: fmt.Sprintf("ses_01a1faee-a5c8-7b54-bff9-%012d", n), Messages: messages,
			Hashes: [][]byte{make([]byte, 32), make([]byte, 32)}, Excluded: make([]session.Exclusion, 2), At: at,
			Rules:   session.Rules{TTL: 24 * time.Hour, MemorizeEvery: 10, Idle: time.Hour, SummarizeAfter: 1000},
			Digests: map[string]session.DigestRule{user: {DayEnd: time.UnixMicro(1_800_000_000_000_000)}},
		},
		Acceptance: queue.Acceptance{
			ID: fmt.Sprintf("con_01a1faee-a5c8-7b54-bff9-%012d", n), Dialogue: memory.Dialogue{Scope: scope, Messages: messages},
			Speakers: []string{user}, At: at, MaxPending: 1 << 20, MaxPendingTotal: 1 << 30, MaxPendingBytes: 1 << 40,
		},
	}
}

// spent returns the processor time of this process, and the bytes and calls of its writes.
func spent(b *testing.B) (cpu time.Duration, bytes, calls int64) {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	cpu = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		b.Skip("what is written is counted on Linux alone")
	}
	for line := range strings.Lines(string(text)) {
		_, _ = fmt.Sscanf(line, "wchar: %d", &bytes)
		_, _ = fmt.Sscanf(line, "syscw: %d", &calls)
	}
	return cpu, bytes, calls
}

package main

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/load"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// dialogueUsers is the number of users. Their dialogues do not wait for each other.
const dialogueUsers = 1000

func considerRequest(n int64) *memsidecarv1.ConsiderMemorizingRequest {
	return &memsidecarv1.ConsiderMemorizingRequest{Scope: sidecartest.Direct(benchUser(int(n % dialogueUsers)).ID), Messages: load.Dialogue(n)}
}

// durableInserts is the alternative to a sidecar: a table, one row per dialogue, one commit per row, equally safe against power loss.
func durableInserts(b *testing.B) (insert func(payload []byte)) {
	b.Helper()
	const pragmas = "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "bare.db")+pragmas)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(b.Context(), `CREATE TABLE dialogues (row INTEGER PRIMARY KEY, payload BLOB NOT NULL)`); err != nil {
		b.Fatal(err)
	}
	statement, err := db.PrepareContext(b.Context(), `INSERT INTO dialogues (payload) VALUES (?)`)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = statement.Close() })
	return func(payload []byte) {
		if _, err := statement.ExecContext(b.Context(), payload); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAcknowledge compares the latency of ConsiderMemorizing with a durable insert of the same bytes. The sides are measured in
// turn: accepted dialogues are considered before the other side runs.
func BenchmarkAcknowledge(b *testing.B) {
	s := startOn(b, b.TempDir(), nil)
	client := memsidecarv1.NewMemoryServiceClient(sidecartest.Dial(b, s.Addr.String()))
	insert := durableInserts(b)
	var acknowledged, inserted []time.Duration
	for n := int64(0); b.Loop(); n++ {
		request := considerRequest(n)
		payload, err := proto.Marshal(request)
		if err != nil {
			b.Fatal(err)
		}
		started := time.Now()
		resp, err := client.ConsiderMemorizing(b.Context(), request)
		acknowledged = append(acknowledged, time.Since(started))
		if err != nil {
			b.Fatal(err)
		}
		untilFinal(b, client, request.GetScope(), resp.GetConsideration().GetId())
		started = time.Now()
		insert(payload)
		inserted = append(inserted, time.Since(started))
	}
	report(b, "acknowledgement, 1 caller / bare durable insert", 3, median(acknowledged), median(inserted))
}

// untilFinal waits until a consideration is final. It polls rarely, to add no load.
func untilFinal(b *testing.B, client memsidecarv1.MemoryServiceClient, scope *memsidecarv1.Scope, id string) {
	b.Helper()
	for {
		resp, err := client.GetConsideration(b.Context(), &memsidecarv1.GetConsiderationRequest{Scope: scope, ConsiderationId: id})
		if err != nil {
			b.Fatal(err)
		}
		switch resp.GetConsideration().GetState() {
		case memsidecarv1.ConsiderationState_CONSIDERATION_STATE_FAILED:
			b.Fatal(resp.GetConsideration().GetError())
		case memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED, memsidecarv1.ConsiderationState_CONSIDERATION_STATE_SKIPPED:
			return
		default:
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// BenchmarkAcknowledge64 measures how many dialogues a second 64 callers can send while earlier ones are being considered.
func BenchmarkAcknowledge64(b *testing.B) {
	s := startOn(b, b.TempDir(), nil)
	client := sidecartest.NewStubs(sidecartest.Dial(b, s.Addr.String()))
	b.ReportAllocs()
	b.ResetTimer()
	stats := load.Run(b.Context(), load.Limits{Callers: 64, Calls: int64(b.N)}, func(ctx context.Context, n int64) (load.Answer, error) {
		_, err := client.ConsiderMemorizing(ctx, considerRequest(n))
		return load.Answer{}, err
	})
	b.StopTimer()
	status, err := client.GetStatus(b.Context(), &memsidecarv1.GetStatusRequest{})
	if err != nil {
		b.Fatal(err)
	}
	meanwhile := float64(stats.Calls-status.GetQueue().GetPendingCount()) / stats.Elapsed.Seconds()
	b.ReportMetric(meanwhile, "considered/s")
	reportLoad(b, "acknowledgements, 64 callers", 5000, stats)
	benchmarks.add(benchRow{name: "considerations meanwhile", measured: fmt.Sprintf("%.0f/s", meanwhile)})
}

// BenchmarkConsider measures how many accepted dialogues a second are decided, summarised, embedded and stored in the background. They
// are accepted before the sidecar starts.
func BenchmarkConsider(b *testing.B) {
	dir := b.TempDir()
	acceptDialogues(b, dir, b.N)
	b.ReportAllocs()
	b.ResetTimer()
	started := time.Now()
	s := startOn(b, dir, nil)
	client := sidecartest.NewStubs(sidecartest.Dial(b, s.Addr.String()))
	for n := max(0, b.N-dialogueUsers); n < b.N; n++ { // the last dialogue of each user
		untilFinal(b, client, considerRequest(int64(n)).GetScope(), acceptedID(int64(n)))
	}
	b.StopTimer()
	rate := float64(b.N) / time.Since(started).Seconds()
	b.ReportMetric(rate, "considered/s")
	benchmarks.add(benchRow{name: "considerations in the background", measured: fmt.Sprintf("%.0f/s", rate)})
}

func acceptedID(n int64) string { return fmt.Sprintf("con_bench_%d", n) }

// acceptDialogues stores dialogues as pending.
func acceptDialogues(b *testing.B, dir string, count int) {
	b.Helper()
	withQueue(b, dir, func(q *sqlstore.Queue) load.Stats {
		return load.Run(b.Context(), load.Limits{Callers: 64, Calls: int64(count)}, func(ctx context.Context, n int64) (load.Answer, error) {
			_, err := q.Accept(ctx, acceptance(n, benchUser(int(n%dialogueUsers))))
			return load.Answer{}, err
		})
	})
}

// withQueue gives access to the queue of a data folder that no sidecar uses.
func withQueue(b *testing.B, dir string, run func(*sqlstore.Queue) load.Stats) {
	b.Helper()
	storage, err := sqlite.Open(b.Context(), sqlite.Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	if stats := run(sqlstore.NewQueue(storage)); stats.Errors > 0 {
		b.Fatal(stats.FirstError)
	}
	if err := storage.Close(); err != nil {
		b.Fatal(err)
	}
}

// acceptance is the n-th dialogue as ConsiderMemorizing passes it to the queue.
func acceptance(n int64, user memory.User) queue.Acceptance {
	now := time.Now()
	d := memory.Dialogue{Scope: memory.Scope{
		Namespace: user.Namespace, UserID: user.ID, Channel: memory.Channel{Kind: memory.ChannelDirect},
	}}
	for _, m := range load.Dialogue(n) {
		role, speaker := memory.RoleUser, user.ID
		if m.GetRole() == memsidecarv1.Role_ROLE_ASSISTANT {
			role, speaker = memory.RoleAssistant, ""
		}
		d.Messages = append(d.Messages, memory.Message{Role: role, Speaker: speaker, Content: m.GetContent(), Time: now})
	}
	return queue.Acceptance{ID: acceptedID(n), Dialogue: d, Speakers: []string{user.ID}, At: now, MaxPending: 1_000_000}
}

// BenchmarkLongHistory compares a whole consideration of a user with 20,000 earlier considerations and 5,000 memories with that of a new
// user.
func BenchmarkLongHistory(b *testing.B) {
	dir := b.TempDir()
	const established, newcomer = "veteran", "novice"
	withQueue(b, dir, func(q *sqlstore.Queue) load.Stats {
		return load.Run(b.Context(), load.Limits{Callers: 64, Calls: 20_000}, func(ctx context.Context, n int64) (load.Answer, error) {
			a := acceptance(n, memory.User{Namespace: memory.DefaultNamespace, ID: established})
			a.Skip = map[string]string{established: "long ago"} // stored as final
			_, err := q.Accept(ctx, a)
			return load.Answer{}, err
		})
	})
	s := startOn(b, dir, nil)
	client := sidecartest.NewStubs(sidecartest.Dial(b, s.Addr.String()))
	stream, err := client.ImportMemories(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	items := []*memsidecarv1.ImportMemoriesRequest{{Item: &memsidecarv1.ImportMemoriesRequest_Scope{Scope: sidecartest.Direct(established)}}}
	for n := range 5000 {
		items = append(items, &memsidecarv1.ImportMemoriesRequest{Item: &memsidecarv1.ImportMemoriesRequest_Memory{
			Memory: &memsidecarv1.Memory{Text: load.Statement(n), Kind: memsidecarv1.MemoryKind_MEMORY_KIND_FACT},
		}})
	}
	for _, item := range items {
		if err := stream.Send(item); err != nil {
			b.Fatal(err)
		}
	}
	if resp, err := stream.CloseAndRecv(); err != nil || resp.GetAddedCount() != 5000 {
		b.Fatal(resp, err)
	}
	consider := func(user string) side {
		return func(n int) {
			resp, err := client.ConsiderMemorizing(b.Context(), &memsidecarv1.ConsiderMemorizingRequest{
				Scope: sidecartest.Direct(user), Messages: load.Dialogue(int64(n)), Wait: durationpb.New(30 * time.Second),
			})
			if state := resp.GetConsideration().GetState(); err != nil || state != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED {
				b.Fatal(state, err)
			}
		}
	}
	compare(b, "consideration, user of long standing / new user", 1.2, consider(established), consider(newcomer))
}

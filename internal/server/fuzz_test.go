package server_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// everyMethod returns the calls of all registered services by name.
func everyMethod() []protoreflect.MethodDescriptor {
	var all []protoreflect.MethodDescriptor
	protoregistry.GlobalFiles.RangeFilesByPackage(
		memsidecarv1.File_memsidecar_v1_scope_proto.Package(),
		func(file protoreflect.FileDescriptor) bool {
			for i := range file.Services().Len() {
				all = append(all, sidecartest.MethodsIn(file.Services().Get(i).Methods())...)
			}
			return true
		},
	)
	slices.SortFunc(all, func(a, b protoreflect.MethodDescriptor) int {
		return strings.Compare(string(a.FullName()), string(b.FullName()))
	})
	return all
}

// documented are the codes that the API documentation lists for callers' mistakes.
var documented = []codes.Code{
	codes.InvalidArgument, codes.NotFound, codes.FailedPrecondition, codes.OutOfRange, codes.ResourceExhausted,
}

// fuzzed is a sidecar whose answers are checked.
type fuzzed struct {
	*sidecartest.Sidecar
	db    *sql.DB
	known map[string]string // ids of existing objects by kind
}

// startFuzzed starts a sidecar without background work, with an object of each kind.
func startFuzzed(f testing.TB) *fuzzed {
	f.Helper()
	r := sidecartest.Serve(
		f,
		"session.memorize_every=0",
		"session.summary_max_chars=0",
		"history.vectors=0",
		"trace.retention=0",
		"digest.enabled=false",
		"log.level=error",
	)
	db, err := sql.Open(
		"sqlite",
		"file:"+filepath.Join(r.Dir, sidecartest.DatabaseFile)+"?_pragma=busy_timeout(5000)&_pragma=query_only(1)",
	)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = db.Close() })
	z := &fuzzed{Sidecar: r, db: db, known: map[string]string{}}
	if err := z.prepare(); err != nil {
		f.Fatal(err)
	}
	return z
}

// prepare stores an object of each kind for u0, again if a call has deleted it.
func (z *fuzzed) prepare() error {
	ctx, scope := context.Background(), sidecartest.Direct("u0")
	scope.SessionId = "s0"
	var problem error
	check := func(err error) { problem = errors.Join(problem, err) }
	considered, err := z.ConsiderMemorizing(ctx, &memsidecarv1.ConsiderMemorizingRequest{
		Scope: scope, Messages: []*memsidecarv1.Message{
			sidecartest.Said("I like tea, and I live in Berlin."), sidecartest.Answered("Noted."),
		}, Wait: sidecartest.LongWait(),
	})
	check(err)
	z.known["consideration_id"] = considered.GetConsideration().GetId()
	for _, text := range []string{"Likes tea", "Likes coffee", "喜欢喝茶"} {
		made, err := z.CreateMemory(
			ctx,
			&memsidecarv1.CreateMemoryRequest{Scope: sidecartest.Direct("u0"), Memory: &memsidecarv1.Memory{Text: text}},
		)
		check(err)
		z.known["memory_id"] = made.GetMemory().GetId()
	}
	page, err := z.ListMemories(ctx, &memsidecarv1.ListMemoriesRequest{Scope: sidecartest.Direct("u0"), PageSize: 1})
	check(err)
	z.known["page_token"] = page.GetNextPageToken()
	revisions, err := z.ListMemoryRevisions(
		ctx,
		&memsidecarv1.ListMemoryRevisionsRequest{Scope: sidecartest.Direct("u0"), MemoryId: z.known["memory_id"]},
	)
	check(err)
	for _, revision := range revisions.GetRevisions() {
		z.known["revision_id"] = revision.GetId()
	}
	_, err = memsidecarv1.NewNumberedListServiceClient(z.Conn).PutItems(ctx, &memsidecarv1.PutItemsRequest{
		Scope: sidecartest.Direct("u0"), Items: []*memsidecarv1.RegistryItem{{Key: "k0", Title: "one"}, {Key: "k1", Title: "two"}},
	})
	check(err)
	return problem
}

// backgroundTables are tables that the background writes after a call.
var backgroundTables = []string{
	"message_indexes", "message_postings", "message_embeddings", "message_progress", "embeddings", "fingerprints", "model_choices",
	"model_usage", "token_counts", "traces", "digest_progress",
}

// stored counts the rows of every table when no work is pending.
func (z *fuzzed) stored(t *testing.T) map[string]int {
	t.Helper()
	query := func(query string, args ...any) int {
		var n int
		if err := z.db.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for deadline := time.Now().Add(sidecartest.Timeout); query("SELECT count(*) FROM considerations WHERE state IN ('pending', 'running')") > 0; {
		if time.Now().After(deadline) {
			t.Fatal("considerations do not end")
		}
	}
	rows, err := z.db.QueryContext(t.Context(), "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, name := range names {
		if !slices.Contains(backgroundTables, name) {
			counts[name] = query(`SELECT count(*) FROM "` + name + `"`)
		}
	}
	return counts
}

// call makes a call and reads its whole answer.
func (z *fuzzed) call(ctx context.Context, method protoreflect.MethodDescriptor, messages [][]byte) error {
	stream, err := z.Conn.NewStream(
		ctx,
		&grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		sidecartest.FullName(method),
		grpc.ForceCodecV2(sidecartest.RawCodec{}),
	)
	if err != nil {
		return err
	}
	for _, m := range messages {
		if stream.SendMsg(m) != nil {
			break // RecvMsg says why
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	output, err := protoregistry.GlobalTypes.FindMessageByName(method.Output().FullName())
	for err == nil {
		err = stream.RecvMsg(output.New().Interface())
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// try makes a call and checks that the answer is documented. After an error, nothing may have been written.
func (z *fuzzed) try(t *testing.T, method protoreflect.MethodDescriptor, messages [][]byte) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), sidecartest.Timeout)
	defer cancel()
	before := z.stored(t)
	err := z.call(ctx, method, messages)
	if err == nil {
		if name := string(method.Name()); strings.HasPrefix(name, "Delete") || strings.HasPrefix(name, "Forget") {
			return z.prepare()
		}
		return nil
	}
	code := status.Code(err)
	if !slices.Contains(documented, code) {
		t.Errorf("%s: %v\n%s", method.Name(), err, z.Log)
	}
	if code == codes.InvalidArgument && len(sidecartest.WrongFields(err)) == 0 {
		t.Errorf("%s names no field: %v", method.Name(), err)
	}
	if size := len(err.Error()); size > 4000 {
		t.Errorf("%s: the error has %d bytes", method.Name(), size)
	}
	if method.IsStreamingClient() {
		return err // messages before the error are stored, as documented
	}
	if after := z.stored(t); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("%s failed (%v) and wrote: %v became %v", method.Name(), err, before, after)
	}
	return err
}

// FuzzRawCalls sends arbitrary bytes to each call.
func FuzzRawCalls(f *testing.F) {
	z, methods := startFuzzed(f), everyMethod()
	for i, method := range methods {
		f.Add(uint16(i), []byte{})
		f.Add(uint16(i), []byte("\x0a\x04\x12\x02u0\x12\x02\xff\xfe\x1a\x00")) // a scope, and invalid UTF-8
		m := z.made(method.Input(), []byte{200, 1, 200, 1, 200, 1, 200, 1, 200, 1})
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint16(i), data)
	}
	f.Fuzz(func(t *testing.T, method uint16, data []byte) {
		_ = z.try(t, methods[int(method)%len(methods)], [][]byte{data})
	})
}

// FuzzCalls sends messages that are built from the input, with valid and hostile fields.
func FuzzCalls(f *testing.F) {
	z, methods := startFuzzed(f), everyMethod()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range methods {
		for wild := range 6 {
			data := make([]byte, 200)
			for j := range data {
				data[j] = byte(random.IntN(256))
			}
			data[0] = byte(wild % 3)
			f.Add(uint16(i), data)
		}
	}
	f.Fuzz(func(t *testing.T, number uint16, data []byte) {
		method := methods[int(number)%len(methods)]
		source := z.startChoices(data)
		count := 1
		if method.IsStreamingClient() {
			count += source.below(4)
		}
		var messages [][]byte
		for range count {
			m := newOf(method.Input())
			source.fill(m, 0)
			source.later = true
			encoded, err := proto.Marshal(m.Interface())
			if err != nil {
				t.Skip(err)
			}
			messages = append(messages, encoded)
		}
		_ = z.try(t, method, messages)
	})
}

func TestEveryMethodIsFuzzed(t *testing.T) {
	t.Parallel()
	services := map[string]bool{}
	for _, method := range everyMethod() {
		services[string(method.Parent().Name())] = true
	}
	for _, service := range []string{"MemoryService", "SessionService", "DigestService", "TraceService", "NumberedListService"} {
		if !services[service] {
			t.Errorf("%s is not fuzzed", service)
		}
	}
}

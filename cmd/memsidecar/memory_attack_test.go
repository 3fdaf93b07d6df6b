//go:build !race && linux

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	enc "encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/memsidecar/memsidecar/internal/access"
	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// attackAllowance is how much more resident memory than an idle process an attack may cause.
const attackAllowance = 256 << 20

// attack is a client that tries to make the server allocate memory. It returns when it has sent all that the server accepts. Its
// connections stay open until the test ends.
type attack struct {
	name  string
	short bool // included in a plain `go test`
	play  func(a *attacker)
}

// attacker opens connections and counts sent bytes.
type attacker struct {
	*testing.T
	grpc, http  string
	token       string
	sent        atomic.Int64
	opened      []io.Closer
	mu          sync.Mutex
	ctx         context.Context //nolint:containedctx // that of the attack
	connections int
}

// TestMemoryAttacks runs each attack against its own process, while a normal caller must be served as usual. MEMORY_ATTACKS=all runs all
// of them (make attacks).
func TestMemoryAttacks(t *testing.T) {
	sidecartest.Binary(t)
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens")
	reader := sidecartest.AddToken(t, tokens, "reader", access.Grant{Namespace: "*", Level: access.Read})
	writer := sidecartest.AddToken(t, tokens, "writer", access.Grant{Namespace: "*", Level: access.Write})
	data := filepath.Join(dir, "data")
	environ := []string{
		"MEMSIDECAR_AUTH_TOKENS_FILE=" + tokens, "MEMSIDECAR_API_LISTEN=127.0.0.1:0", "MEMSIDECAR_API_MCP=true",
		"MEMSIDECAR_SESSION_MEMORIZE_EVERY=0", "MEMSIDECAR_DIGEST_ENABLED=false", "MEMSIDECAR_SESSION_SUMMARY_MAX_CHARS=0", // no background work
	}
	fillForAttacks(t, spawn(t, data, environ...), writer)
	all := os.Getenv("MEMORY_ATTACKS")
	for _, one := range memoryAttacks {
		if all == "" && !one.short || all != "" && all != "all" && !regexp.MustCompile(all).MatchString(one.name) {
			continue
		}
		t.Run(one.name, func(t *testing.T) { playAttack(t, one, data, reader, environ) })
	}
}

// apiLine finds the address of the API over HTTP in the log.
var apiLine = regexp.MustCompile(`calls are answered as JSON over HTTP.* address=(\S+)`)

func playAttack(t *testing.T, one attack, data, token string, environ []string) {
	p := spawn(t, data, environ...)
	defer p.kill(t)
	api := ""
	sidecartest.Eventually(t, "the API's address is logged", func() bool {
		found := apiLine.FindStringSubmatch(p.log.String())
		if found != nil {
			api = found[1]
		}
		return found != nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	a := &attacker{T: t, grpc: p.conn.Target(), http: api, token: token, ctx: ctx}
	bot := startBot(t, p, token)
	bot.call()
	a.settle(p)
	// From here on, the peak excludes the start.
	sidecartest.NoError(t, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.command.Process.Pid), []byte("5"), 0o600))
	idle := statusBytes(t, p.command.Process.Pid, "VmRSS")
	bot.longest = 0 // the first call includes one-time work
	go bot.run()
	one.play(a)
	a.settle(p)
	bot.stop()
	peak := statusBytes(t, p.command.Process.Pid, "VmHWM")
	for _, c := range a.opened {
		_ = c.Close()
	}
	bot.call() // once more after the attack
	t.Logf("%-55s | sent %6.1f MiB over %d connections | idle %d MiB | peak +%d MiB | Retrieve: %d calls, %d failed, longest %v",
		one.name, float64(a.sent.Load())/(1<<20), a.connections, idle>>20, (peak-idle)>>20, bot.calls, bot.failed, bot.longest.Round(time.Millisecond))
	if peak > idle+attackAllowance {
		t.Errorf("%d MiB resident, more than %d above the %d of before", peak>>20, attackAllowance>>20, idle>>20)
	}
	if bot.failed > 0 {
		t.Errorf("%d of %d Retrieve of another caller failed: %v", bot.failed, bot.calls, bot.err)
	}
}

// settle waits until the server's memory stops growing.
func (a *attacker) settle(p *process) {
	last, quiet := int64(0), 0
	for quiet < 10 && a.ctx.Err() == nil {
		now := statusBytes(a.T, p.command.Process.Pid, "VmHWM")
		if quiet++; now > last+1<<20 {
			last, quiet = now, 0
		}
		select {
		case <-a.ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// bot is a well-behaved caller.
type bot struct {
	t             *testing.T
	client        sidecartest.Stubs
	ctx           context.Context //nolint:containedctx // that of the test, with its token
	calls, failed int
	longest       time.Duration
	err           error
	quit, done    chan struct{}
}

func startBot(t *testing.T, p *process, token string) *bot {
	return &bot{
		t: t, client: p.Stubs, ctx: metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token),
		quit: make(chan struct{}), done: make(chan struct{}),
	}
}

func (b *bot) call() {
	started := time.Now()
	_, err := b.client.Retrieve(b.ctx, &memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct("bot"), Query: "What tea do I like?"})
	b.longest = max(b.longest, time.Since(started))
	if b.calls++; err != nil {
		b.failed, b.err = b.failed+1, err
	}
}

func (b *bot) run() {
	defer close(b.done)
	for {
		select {
		case <-b.quit:
			return
		case <-time.After(20 * time.Millisecond):
			b.call()
		}
	}
}

func (b *bot) stop() {
	close(b.quit)
	<-b.done
}

// fillForAttacks stores data for the attackers to read, and stops the process.
func fillForAttacks(t *testing.T, p *process, token string) {
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
	sidecartest.Must(
		p.CreateMemory(ctx, &memsidecarv1.CreateMemoryRequest{Scope: sidecartest.Direct("bot"), Memory: &memsidecarv1.Memory{Text: "Likes green tea"}}),
	)(
		t,
	)
	stream := sidecartest.Must(p.ImportMemories(ctx))(t)
	sidecartest.NoError(t, stream.Send(&memsidecarv1.ImportMemoriesRequest{Item: &memsidecarv1.ImportMemoriesRequest_Scope{Scope: sidecartest.Direct("much")}}))
	memories := 100
	if os.Getenv("MEMORY_ATTACKS") == "" {
		memories = 20 // no attack lists them
	}
	for i := range memories {
		sidecartest.NoError(t, stream.Send(&memsidecarv1.ImportMemoriesRequest{Item: &memsidecarv1.ImportMemoriesRequest_Memory{
			Memory: &memsidecarv1.Memory{Text: fmt.Sprint(i, strings.Repeat("茶", 3900))},
		}}))
	}
	sidecartest.Must(stream.CloseAndRecv())(t)
	sessions := memsidecarv1.NewSessionServiceClient(p.conn)
	for i := range 4 {
		scope := sidecartest.Direct("much")
		scope.SessionId = "long"
		request := &memsidecarv1.AppendMessagesRequest{Scope: scope}
		for j := range 16 {
			request.Messages = append(request.Messages, sidecartest.Said(fmt.Sprint(i, j, strings.Repeat("x", 128<<10))))
		}
		sidecartest.Must(sessions.AppendMessages(ctx, request))(t)
	}
	// Background work should not run during the attacks.
	(&attacker{T: t, ctx: ctx}).settle(p)
	_ = p.conn.Close() // so that Stop does not wait for it
	sidecartest.NoError(t, p.command.Process.Signal(os.Interrupt))
	if err := p.command.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, p.log)
	}
}

// rawConn speaks HTTP/2 without the limits of a proper library.
type rawConn struct {
	net.Conn
	*http2.Framer
	attacker *attacker
	encoder  *hpack.Encoder
	block    bytes.Buffer
	next     uint32

	mu      sync.Mutex
	changed *sync.Cond
	window  int64            // of the connection
	windows map[uint32]int64 // per stream, relative to the initial window; ended streams have none
	initial int64
	ended   map[uint32]bool
	gone    bool
}

// count adds to the number of bytes sent.
func (a *attacker) count(n int) { a.sent.Add(int64(n)) }

type countingConn struct {
	net.Conn
	attacker *attacker
}

func (c countingConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.attacker.count(n)
	return n, err
}

func (a *attacker) dial(address string) net.Conn {
	conn, err := (&net.Dialer{}).DialContext(a.ctx, "tcp", address)
	if err != nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.opened = append(a.opened, conn)
	a.connections++
	deadline, _ := a.ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	return countingConn{conn, a}
}

// raw connects. If answers are not to be read, its receive window stops the server from sending.
func (a *attacker) raw(address string, unread bool) *rawConn {
	conn := a.dial(address)
	if conn == nil {
		return nil
	}
	c := &rawConn{
		Conn: conn, Framer: http2.NewFramer(conn, conn), attacker: a, next: 1,
		window: 65535, initial: 65535, windows: map[uint32]int64{}, ended: map[uint32]bool{},
	}
	c.changed = sync.NewCond(&c.mu)
	c.AllowIllegalWrites = true
	c.encoder = hpack.NewEncoder(&c.block)
	_, _ = io.WriteString(conn, http2.ClientPreface)
	if unread {
		_ = c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	} else {
		_ = c.WriteSettings()
	}
	go func() { // acknowledges settings and pings, to look alive
		for {
			frame, err := c.ReadFrame()
			c.note(frame, err)
			if err != nil {
				return
			}
			switch f := frame.(type) {
			case *http2.SettingsFrame:
				if !f.IsAck() {
					c.locked(func() { _ = c.WriteSettingsAck() })
				}
			case *http2.PingFrame:
				if !f.IsAck() {
					c.locked(func() { _ = c.WritePing(true, f.Data) })
				}
			}
		}
	}()
	return c
}

// note keeps track of the send windows.
func (c *rawConn) note(frame http2.Frame, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.changed.Broadcast()
	c.gone = c.gone || err != nil
	switch f := frame.(type) {
	case *http2.WindowUpdateFrame:
		if f.StreamID == 0 {
			c.window += int64(f.Increment)
		} else {
			c.windows[f.StreamID] += int64(f.Increment)
		}
	case *http2.SettingsFrame:
		if value, ok := f.Value(http2.SettingInitialWindowSize); ok {
			c.initial = int64(value)
		}
	case *http2.RSTStreamFrame:
		c.ended[f.StreamID] = true
	case *http2.HeadersFrame:
		c.ended[f.StreamID] = c.ended[f.StreamID] || f.StreamEnded()
	}
}

// maySend waits until sending is possible and returns how much of n bytes; 0 if the stream or connection has ended.
func (c *rawConn) maySend(id uint32, n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.gone && !c.ended[id] {
		if n := min(int64(n), c.window, c.initial+c.windows[id]); n > 0 {
			c.window -= n
			c.windows[id] -= n
			return int(n)
		}
		c.changed.Wait()
	}
	return 0
}

// open starts a call.
func (c *rawConn) open(method string, headers ...string) uint32 {
	id := c.next
	c.next += 2
	c.block.Reset()
	fields := []string{":method", "POST", ":scheme", "http", ":path", method, ":authority", "x", "content-type", "application/grpc", "te", "trailers"}
	if c.attacker.token != "" {
		fields = append(fields, "authorization", "Bearer "+c.attacker.token)
	}
	fields = append(fields, headers...)
	for i := 0; i < len(fields); i += 2 {
		_ = c.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	c.locked(func() {
		_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block.Bytes(), EndHeaders: true})
	})
	return id
}

func (c *rawConn) locked(write func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	write()
}

// send sends a message in frames, optionally without its last bytes.
func (c *rawConn) send(id uint32, compressed byte, message []byte, frame, leaveOut int) {
	data := framed(compressed, message)
	c.write(id, data[:len(data)-leaveOut], frame, leaveOut == 0)
}

// framed prefixes a message with its length, as gRPC does.
func framed(compressed byte, message []byte) []byte {
	data := append([]byte{compressed, 0, 0, 0, 0}, message...)
	enc.BigEndian.PutUint32(data[1:], uint32(len(message)))
	return data
}

func (c *rawConn) write(id uint32, data []byte, frame int, end bool) {
	for len(data) > 0 {
		n := c.maySend(id, min(len(data), frame))
		if n == 0 {
			return
		}
		c.mu.Lock()
		err := c.WriteData(id, end && n == len(data), data[:n])
		c.mu.Unlock()
		if err != nil {
			return
		}
		data = data[n:]
	}
}

// over runs an attack on several connections concurrently.
func (a *attacker) over(connections int, play func(i int)) {
	var group sync.WaitGroup
	for i := range connections {
		group.Go(func() { play(i) })
	}
	group.Wait()
}

const (
	retrieveMethod = "/memsidecar.v1.MemoryService/Retrieve"
	listMethod     = "/memsidecar.v1.MemoryService/ListMemories"
	messagesMethod = "/memsidecar.v1.SessionService/ListMessages"
	exportMethod   = "/memsidecar.v1.UserService/ExportUser"
)

func zipped(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(data)
	_ = w.Close()
	return b.Bytes()
}

// compressionBombs sends 200 messages that are small only while compressed.
func compressionBombs(size int) func(*attacker) {
	return func(a *attacker) {
		bomb := zipped(
			sidecartest.Must(proto.Marshal(&memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct("bot"), Query: strings.Repeat("x", size-64)}))(a.T),
		)
		a.over(4, func(int) {
			if c := a.raw(a.grpc, false); c != nil {
				for range 50 {
					c.send(c.open(retrieveMethod, "grpc-encoding", "gzip"), 1, bomb, 16<<10, 0)
				}
			}
		})
	}
}

// unreadAnswers requests answers and reads none.
func unreadAnswers(connections, streams int, method string, request proto.Message) func(*attacker) {
	return func(a *attacker) {
		message := sidecartest.Must(proto.Marshal(request))(a.T)
		a.over(connections, func(int) {
			if c := a.raw(a.grpc, true); c != nil {
				for range streams {
					c.send(c.open(method), 0, message, 16<<10, 0)
				}
			}
		})
	}
}

// incompleteMessages sends all of a message except its last byte.
func incompleteMessages(connections, streams, size, frame int) func(*attacker) {
	return func(a *attacker) {
		data := framed(0, make([]byte, size))
		a.over(connections, func(int) {
			if c := a.raw(a.grpc, false); c != nil {
				for range streams {
					id := c.open(retrieveMethod)
					go c.write(id, data[:len(data)-1], frame, false)
				}
			}
		})
	}
}

func withoutToken(play func(*attacker)) func(*attacker) {
	return func(a *attacker) {
		a.token = ""
		play(a)
	}
}

// endlessHeaders sends a header list that never ends.
func endlessHeaders(a *attacker) {
	a.token = ""
	a.over(60, func(int) {
		c := a.raw(a.grpc, false)
		if c == nil {
			return
		}
		c.block.Reset()
		for i := range 4 {
			_ = c.encoder.WriteField(hpack.HeaderField{Name: fmt.Sprint("x-", i), Value: strings.Repeat("h", 3900), Sensitive: true})
		}
		block := bytes.Clone(c.block.Bytes())
		if c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block}) != nil {
			return
		}
		for range 1000 {
			if c.WriteContinuation(1, false, block) != nil {
				return
			}
		}
	})
}

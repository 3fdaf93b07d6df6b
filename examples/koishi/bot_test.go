package koishi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/client"
	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// ignorant is the fake model's answer to a prompt without memories.
const ignorant = "I know nothing of you yet."

// chatModel is a fake chat model: it speaks OpenAI's chat completions, and answers with the memories in its prompt.
type chatModel struct {
	URL string

	mu     sync.Mutex
	asked  []string
	broken bool
}

func newChatModel(t *testing.T) *chatModel {
	t.Helper()
	m := &chatModel{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		m.mu.Lock()
		m.asked = append(m.asked, string(body))
		broken := m.broken
		m.mu.Unlock()
		var request struct {
			Model    string
			Messages []struct{ Role, Content string }
		}
		if err := json.Unmarshal(body, &request); err != nil || r.URL.Path != "/v1/chat/completions" || request.Model != "stand-in" ||
			r.Header.Get("Authorization") != "Bearer a-key" || len(request.Messages) != 2 || request.Messages[0].Role != "system" {
			t.Errorf("the model was asked %s %s: %s: %v", r.Method, r.URL, body, err)
		}
		if broken {
			http.Error(w, `{"error": {"message": "overloaded"}}`, http.StatusServiceUnavailable)
			return
		}
		answer := ignorant
		var known []string
		for line := range strings.Lines(request.Messages[0].Content) {
			if memory, found := strings.CutPrefix(line, "- ["); found {
				known = append(known, strings.TrimSpace(memory[len("2006-01-02] "):]))
			}
		}
		if len(known) > 0 {
			answer = "I know: " + strings.Join(known, " ")
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{
			"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": answer},
		}}})
	}))
	t.Cleanup(server.Close)
	m.URL = server.URL + "/v1"
	return m
}

// last returns the newest request.
func (m *chatModel) last() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked[len(m.asked)-1]
}

func (m *chatModel) fail(broken bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = broken
}

// config returns the plugin's configuration with a chat model, and with timeouts for slow machines.
func (m *chatModel) config(address string) map[string]any {
	return map[string]any{
		"address": address, "chatEndpoint": m.URL, "chatModel": "stand-in", "chatKey": "a-key",
		"retrieveTimeout": sidecartest.Timeout.Milliseconds(), "callTimeout": sidecartest.Timeout.Milliseconds(),
	}
}

// bot is a Koishi bot in its own process.
type bot struct {
	t       *testing.T
	command *exec.Cmd
	input   io.WriteCloser
	answers chan string
	done    chan struct{} // closed when all its output has been read

	mu  sync.Mutex
	log strings.Builder
}

func startBot(t *testing.T, config map[string]any, environ ...string) *bot {
	t.Helper()
	dir := buildPlugin(t)
	settings, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &bot{t: t, answers: make(chan string), done: make(chan struct{})}
	b.command = exec.CommandContext(ctx, "node", filepath.Join(dir, "test", "bot.cjs"))
	b.command.Env = append(append(sidecartest.Environ(), "BOT_CONFIG="+string(settings)), environ...)
	b.command.Dir = t.TempDir()
	b.input, err = b.command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := b.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	b.command.Stderr = b.command.Stdout
	if err := b.command.Start(); err != nil {
		t.Fatal(err)
	}
	go b.read(output)
	t.Cleanup(func() {
		cancel()
		for range b.answers { // reads to the end
		}
		_ = b.command.Wait()
		if t.Failed() {
			t.Logf("what the bot wrote:\n%s", b.written())
		}
	})
	return b
}

func (b *bot) read(output io.Reader) {
	defer close(b.done)
	defer close(b.answers)
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if answer, found := strings.CutPrefix(lines.Text(), "\x1e"); found {
			b.answers <- answer
			continue
		}
		b.mu.Lock()
		b.log.WriteString(lines.Text() + "\n")
		b.mu.Unlock()
	}
}

func (b *bot) written() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.String()
}

// order sends the bot an order, and returns its answers, one message a line.
func (b *bot) order(order map[string]any) string {
	b.t.Helper()
	line, err := json.Marshal(order)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(b.input, "%s\n", line); err != nil {
		b.t.Fatalf("%v\n%s", err, b.written())
	}
	select {
	case answer, open := <-b.answers:
		var messages []string
		if err := json.Unmarshal([]byte(answer), &messages); !open || err != nil {
			b.t.Fatalf("answered %q: %v\n%s", answer, err, b.written())
		}
		return strings.Join(messages, "\n")
	case <-time.After(sidecartest.Timeout):
		b.t.Fatalf("no answer after %s\n%s", sidecartest.Timeout, b.written())
		return ""
	}
}

// direct returns the answers to a message in a direct chat.
func (b *bot) direct(user, text string) string {
	b.t.Helper()
	return b.order(map[string]any{"user": user, "text": text})
}

// group returns the answers to a message in a group.
func (b *bot) group(channel, user, text string) string {
	b.t.Helper()
	return b.order(map[string]any{"user": user, "channel": channel, "text": text})
}

// flush returns when all messages have been sent to the sidecar.
func (b *bot) flush() {
	b.t.Helper()
	if b.order(map[string]any{"flush": sidecartest.Timeout.Milliseconds()}) != "true" {
		b.t.Fatalf("messages are not sent to the sidecar after %s\n%s", sidecartest.Timeout, b.written())
	}
}

// stop stops the bot as the end of Koishi does.
func (b *bot) stop() {
	b.t.Helper()
	if err := b.input.Close(); err != nil {
		b.t.Fatal(err)
	}
	<-b.done
	if err := b.command.Wait(); err != nil {
		b.t.Fatalf("%v\n%s", err, b.written())
	}
}

// kill kills the bot with SIGKILL.
func (b *bot) kill() {
	_ = b.command.Process.Kill()
	<-b.done
	_ = b.command.Wait()
}

func expect(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("answered %q, want %q", got, want)
	}
}

// socketPath returns an address that a restarted sidecar can use again.
func socketPath(t *testing.T) string {
	t.Helper()
	return "unix:" + filepath.Join(t.TempDir(), "s")
}

// settle returns when all messages of these users have been considered.
func settle(t *testing.T, addr, namespace string, users []string, options ...client.Option) {
	t.Helper()
	c, err := client.Dial(addr, options...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), sidecartest.Timeout)
	defer cancel()
	for _, user := range users {
		for pending := true; pending; {
			list, err := c.Memory.ListConsiderations(ctx, &memsidecarv1.ListConsiderationsRequest{
				Scope: &memsidecarv1.Scope{Namespace: namespace, UserId: "mock:" + user, ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT},
				States: []memsidecarv1.ConsiderationState{
					memsidecarv1.ConsiderationState_CONSIDERATION_STATE_PENDING, memsidecarv1.ConsiderationState_CONSIDERATION_STATE_RUNNING,
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			pending = len(list.GetConsiderations()) > 0
		}
	}
}

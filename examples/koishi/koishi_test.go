package koishi

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/client"
	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestMemorySurvivesARestart: After a restart of the bot, statements of users in Chinese and English are recalled for the same users in the same
// channels.
func TestMemorySurvivesARestart(t *testing.T) {
	buildPlugin(t)
	model := newChatModel(t)
	s := sidecartest.StartProcess(t, sidecartest.ProcessOptions{})

	b := startBot(t, model.config(s.Addr))
	expect(t, b.direct("alice", "Hi! I am allergic to peanuts. What can I cook tonight?"), ignorant)
	expect(t, b.direct("li", "你好，我对花生过敏，今晚做什么菜好？"), ignorant)
	expect(t, b.group("kitchen", "alice", `<at id="514"/> I live in Lisbon. Where can I buy rice?`), ignorant)
	expect(t, b.group("kitchen", "alice", "I have two cats."), "") // not addressed to the bot
	b.stop()                                                       // sends pending dialogues
	settle(t, s.Addr, "", []string{"alice", "li"})

	b = startBot(t, model.config(s.Addr))
	expect(t, b.direct("alice", "Can I have a peanut cookie?"), "I know: I am allergic to peanuts.")
	if !strings.Contains(model.last(), "I am allergic to peanuts.") || !strings.Contains(model.last(), "Can I have a peanut cookie?") {
		t.Errorf("the model was asked %s", model.last())
	}
	expect(t, b.direct("li", "我能吃花生酱吗？"), "I know: 你好，我对花生过敏")
	for _, ask := range []func() string{
		func() string { return b.direct("bob", "Can I have a peanut cookie?") },
		func() string { return b.group("kitchen", "alice", `<at id="514"/> Can I have a peanut cookie?`) },
		func() string { return b.group("garden", "alice", `<at id="514"/> Do I live in Lisbon?`) },
		func() string { return b.group("kitchen", "bob", `<at id="514"/> Do I live in Lisbon?`) },
	} {
		expect(t, ask(), ignorant)
		if asked := model.last(); strings.Contains(asked, "allergic") || strings.Contains(asked, "] I live in Lisbon") {
			t.Errorf("the model saw another user's or another channel's memories: %s", asked)
		}
	}
	expect(t, b.group("kitchen", "alice", `<at id="514"/> Do I live in Lisbon?`), "I know: I live in Lisbon.")
	expect(t, b.direct("alice", "Do I live in Lisbon?"), "I know: I am allergic to peanuts. I live in Lisbon.")
	expect(t, b.direct("alice", "recall How many cats do I have?"), `{"texts":["I am allergic to peanuts."],"reason":""}`)
	b.kill()
}

// TestConversationStaysInItsChat: The model sees the earlier messages of the same chat, also after a restart, and none of other chats.
func TestConversationStaysInItsChat(t *testing.T) {
	buildPlugin(t)
	model := newChatModel(t)
	s := sidecartest.StartProcess(t, sidecartest.ProcessOptions{})

	b := startBot(t, model.config(s.Addr))
	expect(t, b.direct("alice", "What is a risotto?"), ignorant)
	b.flush()
	b.kill()

	b = startBot(t, model.config(s.Addr))
	expect(t, b.direct("alice", "And with mushrooms?"), ignorant)
	if !strings.Contains(model.last(), "What is a risotto?") {
		t.Errorf("the model was asked %s", model.last())
	}
	expect(t, b.group("kitchen", "alice", `<at id="514"/> And with mushrooms?`), ignorant)
	if strings.Contains(model.last(), "risotto") {
		t.Errorf("the model saw a direct chat in a group: %s", model.last())
	}
	b.flush()
	expect(t, b.group("kitchen", "bob", `<at id="514"/> <at id="alice" name="Alice"/> is right.`), ignorant)
	if asked := model.last(); !strings.Contains(asked, "And with mushrooms?") || !strings.Contains(asked, "Alice is right.") || strings.Contains(asked, "514") {
		t.Errorf("the model was asked %s", asked)
	}
	b.flush()
	expect(t, b.group("kitchen", "alice", `<at id="514"/> Thank you!`), ignorant)
	if asked := model.last(); !strings.Contains(asked, "@Alice is right.") || strings.Contains(asked, "514") {
		t.Errorf("the model was asked %s", asked)
	}
}

// TestBotAnswersDuringAnOutage: Without its sidecar the bot answers, and logs why it has no memory. When the sidecar is back, memory works again, and the
// messages of the meantime are remembered.
func TestBotAnswersDuringAnOutage(t *testing.T) {
	buildPlugin(t)
	model := newChatModel(t)
	options := sidecartest.ProcessOptions{Dir: filepath.Join(t.TempDir(), "data"), Listen: socketPath(t)}
	s := sidecartest.StartProcess(t, options)
	config := model.config(s.Addr)
	config["callTimeout"] = 2000 // pending dialogues are retried
	b := startBot(t, config)
	expect(t, b.direct("alice", "Hi! I am allergic to peanuts. What can I cook tonight?"), ignorant)
	b.flush()
	settle(t, s.Addr, "", []string{"alice"})
	expect(t, b.direct("alice", "Can I have a peanut cookie?"), "I know: I am allergic to peanuts.")
	b.flush()

	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	before := len(b.written()) // on a busy machine a dialogue may have been pending before
	expect(t, b.direct("alice", "Can I have a peanut cookie?"), ignorant)
	expect(t, b.direct("alice", "I live in Lisbon. Where can I buy rice?"), ignorant)
	expect(t, b.direct("alice", "memory.list"), "现在无法访问记忆，请稍后再试。")
	if log := b.written(); strings.Count(log, "answering without the memory") != 1 || !strings.Contains(log, "UNAVAILABLE") {
		t.Errorf("the log does not say once why there is no memory:\n%s", log)
	}

	for giveUp := time.Now().Add(sidecartest.Timeout); !strings.Contains(b.written()[before:], "waits to be handed over"); {
		if b.order(map[string]any{"flush": 100}) != "false" || time.Now().After(giveUp) {
			t.Fatalf("messages sent during the outage are not queued:\n%s", b.written())
		}
	}

	s = sidecartest.StartProcess(t, options)
	b.flush()
	if !strings.Contains(b.written(), "is handed over: 2 dialogues") {
		t.Errorf("the log does not report that queued dialogues were sent:\n%s", b.written())
	}
	settle(t, s.Addr, "", []string{"alice"})
	expect(t, b.direct("alice", "Can I have a peanut cookie?"), "I know: I am allergic to peanuts.")
	expect(t, b.direct("alice", "Do I live in Lisbon?"), "I know: I am allergic to peanuts. I live in Lisbon.")
	if !strings.Contains(b.written(), "the memory is back") {
		t.Errorf("the log does not say that the memory is back:\n%s", b.written())
	}

	model.fail(true)
	expect(t, b.direct("alice", "Can I have a peanut cookie?"), "抱歉，我现在无法回答，请稍后再试。")
	model.fail(false)
	expect(t, b.direct("alice", "Can I have a peanut cookie?"), "I know: I am allergic to peanuts.")
}

// TestHangingSidecarDoesNotBlockAnswers: A sidecar that accepts calls and never answers does not block the bot's answers.
func TestHangingSidecarDoesNotBlockAnswers(t *testing.T) {
	buildPlugin(t)
	model := newChatModel(t)
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	config := model.config(silent.Addr().String())
	config["retrieveTimeout"] = 50
	b := startBot(t, config)
	expect(t, b.direct("alice", "Can I have a peanut cookie?"), ignorant)
	if !strings.Contains(b.written(), "DEADLINE_EXCEEDED") {
		t.Errorf("the log does not say why there is no memory:\n%s", b.written())
	}
	config["callTimeout"] = 50
	b = startBot(t, config)
	b.direct("alice", "Hi!")
	b.stop()
	if !strings.Contains(b.written(), "stopping with 1 dialogues") {
		t.Errorf("the log does not name the lost dialogues:\n%s", b.written())
	}
}

// TestOtherPluginsDialoguesAreRemembered: Dialogues answered by another plugin are remembered. That plugin uses ctx.memory directly.
func TestOtherPluginsDialoguesAreRemembered(t *testing.T) {
	buildPlugin(t)
	s := sidecartest.StartProcess(t, sidecartest.ProcessOptions{})
	timeout := sidecartest.Timeout.Milliseconds()
	b := startBot(t, map[string]any{"address": s.Addr, "retrieveTimeout": timeout, "callTimeout": timeout})
	expect(t, b.direct("dave", "I have two cats."), "") // unanswered
	expect(t, b.direct("carol", "I am allergic to peanuts."), "noted")
	b.flush()
	settle(t, s.Addr, "", []string{"carol"})
	expect(t, b.direct("carol", "recall Can I have a peanut cookie?"), `{"texts":["I am allergic to peanuts."],"reason":""}`)
	b.flush()
	settle(t, s.Addr, "", []string{"carol"})
	expect(t, b.direct("carol", "记忆列表"), "我记得：\n1. I am allergic to peanuts.")
	b.stop()

	b = startBot(t, map[string]any{"address": s.Addr, "namespace": "quiet", "retrieveTimeout": timeout, "callTimeout": timeout, "remember": false})
	expect(t, b.direct("carol", "I am allergic to peanuts."), "noted")
	b.flush()
	settle(t, s.Addr, "quiet", []string{"carol"})
	expect(t, b.direct("carol", "recall Can I have a peanut cookie?"), `{"texts":[],"reason":""}`)
}

// TestUsersForgetTheirMemories: Users list their memories, and have one or all forgotten.
func TestUsersForgetTheirMemories(t *testing.T) {
	buildPlugin(t)
	model := newChatModel(t)
	s := sidecartest.StartProcess(t, sidecartest.ProcessOptions{})
	b := startBot(t, model.config(s.Addr), "BOT_LOCALE=en-US")
	expect(t, b.direct("alice", "memory.list"), "I remember nothing of you yet.")
	for _, text := range []string{"I am allergic to peanuts.", "I live in Lisbon.", `My name is <b>Alice</b>.`} {
		b.direct("alice", text)
		b.flush()
		settle(t, s.Addr, "", []string{"alice"})
	}
	b.direct("bob", "I live in Porto.")
	b.group("kitchen", "alice", `<at id="514"/> I work as a cook.`)
	b.flush()
	settle(t, s.Addr, "", []string{"alice", "bob"})

	expect(t, b.group("kitchen", "alice", `<at id="514"/> memory.list`), "I remember:\n1. I work as a cook.")
	expect(t, b.direct("alice", "memory.list"), "I remember:\n1. I work as a cook.\n2. My name is Alice.\n"+
		"3. I live in Lisbon.\n4. I am allergic to peanuts.")
	expect(t, b.direct("alice", "memory.forget 3"), "Number 3 is forgotten.")
	expect(t, b.direct("alice", "memory.forget 9"), "There is no number 9. Look at memory.list first.")
	expect(t, b.direct("alice", "memory.list"), "I remember:\n1. I work as a cook.\n2. My name is Alice.\n"+
		"3. I am allergic to peanuts.")

	ask := func(text string) string { return b.order(map[string]any{"user": "alice", "text": text, "count": 1}) }
	const sure = "I will forget all about you, whatever the chat, and cannot undo it. Are you sure? (yes/no)"
	expect(t, ask("memory.forget"), sure)
	expect(t, b.direct("alice", "no"), "All right, nothing is forgotten.")
	expect(t, ask("忘记我"), sure)
	expect(t, b.direct("alice", "yes"), "All about you is forgotten, 3 memories.")
	expect(t, b.direct("alice", "memory.list"), "I remember nothing of you yet.")
	expect(t, b.direct("alice", "Can I have a peanut cookie?"), ignorant)
	if strings.Contains(model.last(), "allergic") {
		t.Errorf("the model saw forgotten memories: %s", model.last())
	}
	expect(t, b.direct("bob", "memory.list"), "I remember:\n1. I live in Porto.")
}

// TestAccess: Access works over TLS with a namespace token. Mistakes in the configuration are reported.
func TestAccess(t *testing.T) {
	buildPlugin(t)
	dir := t.TempDir()
	authority, err := sidecartest.NewAuthority(dir, "ca")
	if err := errors.Join(err, authority.Leaf("server", "localhost"), authority.Leaf("bot")); err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	token, err := sidecartest.Run(t.Context(), "token", "create", "--namespace", "yantian/main", "--file", in("tokens"))
	if err != nil {
		t.Fatal(err)
	}
	token = regexp.MustCompile(`memsidecar_\S+`).FindString(token)
	s := sidecartest.StartProcess(t, sidecartest.ProcessOptions{Listen: "localhost:0", Settings: []string{
		"auth.tokens_file=" + in("tokens"), "tls.cert_file=" + in("server.pem"), "tls.key_file=" + in("server.key"),
		"tls.client_ca_file=" + in("ca.pem"),
	}})
	_, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("localhost", port)
	config := newChatModel(t).config(address)
	maps.Copy(config, map[string]any{
		"security": "tls", "caFile": in("ca.pem"), "certFile": in("bot.pem"), "keyFile": in("bot.key"),
		"namespace": "yantian/main", "token": token,
	})
	b := startBot(t, config)
	b.direct("alice", "I am allergic to peanuts.")
	b.flush()
	settle(t, address, "yantian/main", []string{"alice"}, client.WithToken(token), client.WithTLS(tlsOf(t, dir)))
	expect(t, b.direct("alice", "Can I have a peanut cookie?"), "I know: I am allergic to peanuts.")
	if strings.Contains(b.written(), "without") {
		t.Errorf("the bot complains:\n%s", b.written())
	}
	config["token"] = "memsidecar_wrong"
	b = startBot(t, config)
	expect(t, b.direct("alice", "Can I have a peanut cookie?"), ignorant)
	b.stop()
	if log := b.written(); !strings.Contains(log, "UNAUTHENTICATED") || !strings.Contains(log, "a dialogue is not remembered") {
		t.Errorf("the log does not say that the token is wrong:\n%s", log)
	}

	for _, wrong := range []struct {
		config map[string]any
		want   string
	}{
		{map[string]any{"address": "memory.example:7420"}, "set security to tls"},
		{map[string]any{"address": "http://localhost:7420"}, "write host:port or unix:///path"},
		{map[string]any{"address": "localhost:7420", "caFile": "ca.pem"}, "are for security: tls"},
		{map[string]any{"security": "tls", "certFile": "bot.pem"}, "belong together"},
		{map[string]any{"security": "perhaps"}, "perhaps"},
		{map[string]any{"chatEndpoint": "http://localhost/v1"}, "set chatModel as well"},
	} {
		b := startBot(t, wrong.config)
		_ = b.input.Close()
		<-b.done
		if !strings.Contains(b.written(), wrong.want) {
			t.Errorf("with %v the log does not say %q:\n%s", wrong.config, wrong.want, b.written())
		}
	}
}

// tlsOf writes the authority and the bot's certificate.
func tlsOf(t *testing.T, dir string) *tls.Config {
	t.Helper()
	authority, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.LoadX509KeyPair(filepath.Join(dir, "bot.pem"), filepath.Join(dir, "bot.key"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13}
}

package examples

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/client"
	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// TestPython runs examples/python with stubs that are generated as its README says for Debian.
func TestPython(t *testing.T) {
	sidecartest.RequireTool(t, "python")
	python := pythonWithGRPC(t)
	stubs := t.TempDir()
	plugin, err := exec.LookPath("grpc_python_plugin")
	if err != nil {
		t.Fatalf("%v: install protobuf-compiler-grpc", err)
	}
	sources, err := filepath.Glob("../proto/memsidecar/v1/*.proto")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no proto files: %v", err)
	}
	run(t, "", "protoc", append([]string{
		"-I../proto", "--python_out=" + stubs, "--grpc_out=" + stubs, "--plugin=protoc-gen-grpc=" + plugin,
	}, sources...)...)
	bot, err := filepath.Abs("python/bot.py")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(read(t, bot), "\n"); lines >= 30 {
		t.Errorf("bot.py has %d lines", lines)
	}
	talk(t, func(ctx context.Context, args ...string) *exec.Cmd {
		command := exec.CommandContext(ctx, python, append([]string{bot}, args...)...)
		command.Env = append(sidecartest.Environ(), "PYTHONPATH="+stubs, "PYTHONDONTWRITEBYTECODE=1")
		return command
	})
}

// pythonWithGRPC returns the first Python that has grpcio: Debian's, or the one in PATH.
func pythonWithGRPC(t *testing.T) string {
	t.Helper()
	var tried strings.Builder
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		out, err := exec.CommandContext(t.Context(), python, "-c", "import grpc.aio, google.protobuf").CombinedOutput()
		if err == nil {
			return python
		}
		tried.WriteString(python + ": " + err.Error() + "\n" + string(out))
	}
	t.Fatalf("no Python has grpcio, install python3-grpcio:\n%s", &tried)
	return ""
}

// TestNode runs examples/node with the packages that its lock file names.
func TestNode(t *testing.T) {
	sidecartest.RequireTool(t, "node")
	if regexp.MustCompile(`"resolved"|://registry`).MatchString(read(t, "node/package-lock.json")) {
		t.Error("the lock file names hosts: make it with --omit-lockfile-registry-resolved")
	}
	dir := t.TempDir()
	bot := filepath.Join(dir, "examples", "node")
	if err := errors.Join(os.CopyFS(filepath.Join(dir, "proto"), os.DirFS("../proto")), os.MkdirAll(bot, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bot.mjs", "package.json", "package-lock.json"} {
		if err := os.WriteFile(filepath.Join(bot, name), []byte(read(t, filepath.Join("node", name))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, bot, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	talk(t, func(ctx context.Context, args ...string) *exec.Cmd {
		command := exec.CommandContext(ctx, "node", append([]string{filepath.Join(bot, "bot.mjs")}, args...)...)
		command.Env = sidecartest.Environ()
		return command
	})
}

// talk makes a bot talk with alice, whom it remembers; with bob, who is another user; and with alice again after its sidecar has stopped.
func talk(t *testing.T, bot func(ctx context.Context, args ...string) *exec.Cmd) {
	t.Helper()
	s := sidecartest.StartProcess(t, sidecartest.ProcessOptions{})
	say := func(user, text string) (answer, complaint string) {
		ctx, cancel := context.WithTimeout(t.Context(), sidecartest.Timeout)
		defer cancel()
		command := bot(ctx, user, text)
		command.Env = append(command.Env, "MEMSIDECAR_ADDR="+s.Addr, "MEMSIDECAR_TIMEOUT=60")
		var errs strings.Builder
		command.Stderr = &errs
		out, err := command.Output()
		if err != nil {
			t.Fatalf("%v\n%s%s", err, out, &errs)
		}
		why := regexp.MustCompile(`(?m)^(without memory: [A-Z_]+): .+$`) // the rest depends on the library
		return regexp.MustCompile(`\d{4}-\d\d-\d\d`).ReplaceAllString(string(out), "DAY"), why.ReplaceAllString(errs.String(), "$1")
	}
	expect := func(user, text, want, complaint string) {
		t.Helper()
		if got, complained := say(user, text); got != want+"\n" || complained != complaint {
			t.Errorf("%s said %q and was answered %q, want %q; complaints: %q, want %q", user, text, got, want, complained, complaint)
		}
	}
	expect("alice", "Hi! I am allergic to peanuts. What can I cook tonight?", "I know nothing of you yet.", "")
	settle(t, s.Addr, "alice")
	expect("alice", "Can I have a peanut cookie?", "I know: [DAY] I am allergic to peanuts.", "")
	expect("bob", "Can I have a peanut cookie?", "I know nothing of you yet.", "")
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	expect("alice", "Can I have a peanut cookie?", "I know nothing of you yet.", strings.Repeat("without memory: UNAVAILABLE\n", 2))
}

// TestDocumentedTurns: The messages that the documents suggest to newcomers are remembered, and found by their next messages.
func TestDocumentedTurns(t *testing.T) {
	s := sidecartest.StartProcess(t, sidecartest.ProcessOptions{Settings: []string{"retrieval.budget=1m"}})
	memory, err := client.Dial(s.Addr, client.WithRecallTimeout(sidecartest.Timeout), client.WithRememberTimeout(sidecartest.Timeout))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = memory.Close() }()
	turn := regexp.MustCompile(`(?m)^\S+ bot\.\w+ alice '(.+)'$`)
	for i, document := range []string{"../docs/integration.md", "python/README.md", "node/README.md"} {
		said := turn.FindAllStringSubmatch(read(t, document), -1)
		if len(said) == 0 || len(said)%2 != 0 {
			t.Fatalf("%s says %q", document, said)
		}
		for j := 0; j < len(said); j += 2 {
			user := fmt.Sprintf("%d-%d", i, j)
			scope := &memsidecarv1.Scope{UserId: user}
			if memory.Remember(t.Context(), scope, client.Said(said[j][1])) == nil {
				t.Fatal("it is not remembered")
			}
			settle(t, s.Addr, user)
			if r := memory.Recall(t.Context(), scope, said[j+1][1]); len(r.Standing)+len(r.Memories) == 0 {
				t.Errorf("%s: after %q, %q finds nothing: %+v", document, said[j][1], said[j+1][1], r)
			}
		}
	}
}

// settle returns when all messages of the user have been considered.
func settle(t *testing.T, addr, user string) {
	t.Helper()
	c, err := client.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), sidecartest.Timeout)
	defer cancel()
	for pending := true; pending; {
		list, err := c.Memory.ListConsiderations(ctx, &memsidecarv1.ListConsiderationsRequest{
			Scope: &memsidecarv1.Scope{UserId: user}, States: []memsidecarv1.ConsiderationState{
				memsidecarv1.ConsiderationState_CONSIDERATION_STATE_PENDING, memsidecarv1.ConsiderationState_CONSIDERATION_STATE_RUNNING,
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		pending = len(list.GetConsiderations()) > 0
	}
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir = dir
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

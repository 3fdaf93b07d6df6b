package deploy

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

const (
	// The image's root file system, unpacked. Without it these tests are skipped. .ci/run sets it.
	rootVariable = "MEMSIDECAR_ROOTFS"
	// The user of the Dockerfile.
	containerUser = 65532
	// The host of the model provider. Only the test's DNS server knows the name, and its certificate is valid only with the authorities
	// file of the container.
	providerName = "provider.example.com"
)

// container is what a container runtime provides: a read-only root, volumes, and the three files that runtimes mount.
type container struct {
	Root    string
	Mounts  []mount
	Args    []string
	Environ []string
}

type mount struct{ From, To string }

// TestContainer: The static binary runs in an empty read-only root, as an unprivileged user, as process 1. It finds names, authorities
// and time zones, remembers, recalls, backs up, reports its health, and stops on a signal.
func TestContainer(t *testing.T) {
	needNamespaces(t)
	c := image(t)
	data, run := writable(t), writable(t)
	c.Mounts = append(c.Mounts, mount{data, "/data"}, mount{run, "/run/memsidecar"})
	provider := c.world(t)
	c.Environ = []string{
		"MEMSIDECAR_DATA_DIR=/data", "MEMSIDECAR_LISTEN=unix:/run/memsidecar/memsidecar.sock", "MEMSIDECAR_TIME_ZONE=Asia/Shanghai",
		"MEMSIDECAR_LOG_FORMAT=json", "MEMSIDECAR_RETRIEVAL_BUDGET=1m", "MEMSIDECAR_EMBEDDING_PROVIDER=openai",
		"MEMSIDECAR_EMBEDDING_MODEL=model", "MEMSIDECAR_EMBEDDING_DIMENSIONS=8",
		"MEMSIDECAR_EMBEDDING_API_KEY=key", "MEMSIDECAR_EMBEDDING_ENDPOINT=" + provider.url,
	}
	if code, out := c.run(t, "health"); code != 3 {
		t.Fatalf("health without a sidecar: exit code %d\n%s", code, out)
	}

	sidecar := c.command(t.Context(), "serve")
	lines := start(t, sidecar)
	ready := false
	for !ready && lines.Scan() {
		var line struct{ Msg string }
		ready = json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "memsidecar is ready"
		t.Logf("%s", lines.Text())
	}
	if !ready {
		t.Fatal("it did not start")
	}
	var log bytes.Buffer
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		for lines.Scan() {
			log.WriteString(lines.Text() + "\n")
		}
	}()
	if code, out := c.run(t, "health"); code != 0 || strings.TrimSpace(out) != "SERVING" {
		t.Errorf("health: exit code %d\n%s", code, out)
	}

	talk(t, "unix:"+filepath.Join(run, "memsidecar.sock"))
	if len(provider.fake.Requests(providertest.Embedding)) == 0 {
		t.Error("no text was embedded: names or authorities are not found")
	}

	if code, out := c.run(t, "backup", "/data/backup.db"); code != 0 {
		t.Errorf("backup: exit code %d\n%s", code, out)
	}
	if code, out := c.run(t, "backup", "/backup.db"); code == 0 || !strings.Contains(out, "read-only") {
		t.Errorf("a backup into the root: exit code %d\n%s", code, out)
	}
	if code, out := c.run(t, "forget", "--user", "anna", "--yes"); code != 0 {
		t.Errorf("forget: exit code %d\n%s", code, out)
	}

	began := time.Now()
	if err := sidecar.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-logged // until its output ends, which Wait would cut off
	if err := sidecar.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, log.String())
	}
	if !strings.Contains(log.String(), `"msg":"stopped"`) {
		t.Errorf("it was not stopped but ended, after %s:\n%s", time.Since(began), log.String())
	}
	if code, out := c.run(t, "health"); code != 3 {
		t.Errorf("health afterwards: exit code %d\n%s", code, out)
	}
}

// TestStaticBinary: The binary needs no interpreter and no shared library, so an empty root is enough.
func TestStaticBinary(t *testing.T) {
	f, err := elf.Open(filepath.Join(image(t).Root, "memsidecar"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("it asks for an interpreter")
		}
	}
	if libraries, err := f.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("it needs %v (%v)", libraries, err)
	}
}

// image is the root of the image. A runtime may create mount points in it.
func image(t *testing.T) *container {
	t.Helper()
	root := os.Getenv(rootVariable)
	if root == "" {
		t.Skip("set " + rootVariable + " to the root of the image; .ci/run does")
	}
	return &container{Root: root}
}

// world provides what a runtime provides: DNS and processes, and authorities, which an operator may mount over those of the image. A fake
// model provider runs there.
func (c *container) world(t *testing.T) *world {
	t.Helper()
	w := &world{fake: providertest.Start(t, 8)}
	target, err := url.Parse(w.fake.URL)
	if err != nil {
		t.Fatal(err)
	}
	encrypted := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(target))
	t.Cleanup(encrypted.Close)
	w.url = strings.Replace(encrypted.URL, "127.0.0.1", providerName, 1) + target.Path

	dir := t.TempDir()
	for name, text := range map[string]string{
		"/etc/hosts":       "127.0.0.1 localhost\n",
		"/etc/resolv.conf": "nameserver " + nameServer(t, providerName) + "\n",
		"/etc/ssl/certs/ca-certificates.crt": string(pem.EncodeToMemory(&pem.Block{
			Type: "CERTIFICATE", Bytes: encrypted.Certificate().Raw,
		})),
	} {
		file := filepath.Join(dir, filepath.Base(name))
		makeFile(t, file, text)
		if _, err := os.Stat(filepath.Join(c.Root, name)); err != nil {
			makeFile(t, filepath.Join(c.Root, name), "")
		}
		c.Mounts = append(c.Mounts, mount{file, name})
	}
	makeDir(t, filepath.Join(c.Root, "proc"))
	return w
}

type world struct {
	fake *providertest.Server
	url  string
}

// talk makes the sidecar remember and recall.
func talk(t *testing.T, addr string) {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	memories, scope := memsidecarv1.NewMemoryServiceClient(conn), &memsidecarv1.Scope{UserId: "anna"}
	_, err = memories.ConsiderMemorizing(ctx, &memsidecarv1.ConsiderMemorizingRequest{
		Scope: scope, Wait: durationpb.New(timeout),
		Messages: []*memsidecarv1.Message{{Role: memsidecarv1.Role_ROLE_USER, Content: "I am allergic to peanuts."}},
	})
	if err != nil {
		t.Fatal(err)
	}
	recalled, err := memories.Retrieve(ctx, &memsidecarv1.RetrieveRequest{Scope: scope, Query: "peanuts"})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(recalled.GetPromptContext(), "allergic to peanuts") {
		t.Errorf("recalled: %v", recalled)
	}
}

// run runs a command in the container until it exits, as `docker exec` does.
func (c *container) run(t *testing.T, args ...string) (code int, output string) {
	t.Helper()
	out, err := c.command(t.Context(), args...).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), string(out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0, string(out)
}

// command is the program in its own namespaces. This process cannot enter them itself, so the test binary is started again (see TestMain)
// and enters.
func (c *container) command(ctx context.Context, args ...string) *exec.Cmd {
	inside := *c
	inside.Args = append([]string{"/memsidecar"}, args...)
	text, err := json.Marshal(inside)
	if err != nil {
		panic(err)
	}
	command := exec.CommandContext(ctx, "/proc/self/exe")
	command.Env = []string{enterVariable + "=" + string(text)}
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	return command
}

const enterVariable = "MEMSIDECAR_ENTER"

func TestMain(m *testing.M) {
	if text := os.Getenv(enterVariable); text != "" {
		fmt.Fprintln(os.Stderr, enter(text))
		os.Exit(125)
	}
	os.Exit(m.Run())
}

// enter becomes the program in the container. It returns only on an error.
func enter(text string) error {
	var c container
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	const readOnly = syscall.MS_REMOUNT | syscall.MS_BIND | syscall.MS_RDONLY | syscall.MS_NOSUID | syscall.MS_NODEV
	steps := []func() error{
		func() error { return syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "") },
		func() error { return syscall.Mount(c.Root, c.Root, "", syscall.MS_BIND, "") },
	}
	for _, m := range c.Mounts {
		steps = append(steps, func() error { return syscall.Mount(m.From, filepath.Join(c.Root, m.To), "", syscall.MS_BIND, "") })
	}
	steps = append(steps,
		func() error { return syscall.Mount("proc", filepath.Join(c.Root, "proc"), "proc", 0, "") },
		func() error { return syscall.Mount("", c.Root, "", readOnly, "") },
		func() error { return syscall.Chroot(c.Root) },
		func() error { return os.Chdir("/") },
		func() error { return syscall.Setgroups(nil) },
		func() error { return syscall.Setgid(containerUser) },
		func() error { return syscall.Setuid(containerUser) },
	)
	for i, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return syscall.Exec(c.Args[0], c.Args, c.Environ)
}

// needNamespaces skips the test where a process cannot have its own root and process namespace.
func needNamespaces(t *testing.T) {
	t.Helper()
	probe := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^$")
	probe.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	if err := probe.Run(); err != nil {
		t.Skipf("NOT RUN HERE: namespaces need more rights than there are: %v", err)
	}
}

// writable returns a folder of the container's user, as a volume would be.
func writable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chown(dir, containerUser, containerUser); err != nil {
		t.Fatal(err)
	}
	return dir
}

func makeDir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
}

func makeFile(t *testing.T, path, text string) {
	t.Helper()
	makeDir(t, filepath.Dir(path))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

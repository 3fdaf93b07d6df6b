// Package sidecartest starts sidecars for tests: [Serve] in the process of the test, and [StartProcess] the real program in a process of
// its own. It has clients for both, and short forms of calls that many tests make.
package sidecartest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/observe/logs/logstest"
)

// Patience is how long anything that should happen may take on a loaded machine, before a test says that it does not happen.
const Patience = 5 * time.Minute

// program is what is built.
const program = "github.com/memsidecar/memsidecar/cmd/memsidecar"

// Build builds the program and returns its path; its name is memsidecar. What is built stays in the go command's cache, so that the
// packages of one `go test ./...` build it once, and not at all when nothing changed.
var Build = sync.OnceValues(func() (path string, err error) {
	for range 2 { // the first time the path is that of a file that is gone; then it is the one in the cache
		if path, err = runnable(); err != nil {
			return "", err
		}
		if _, err = os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", err
})

// runnable returns where `go run` has the program.
func runnable() (string, error) {
	// Git refuses a checkout that another user owns, and with it the version stamp.
	command := exec.CommandContext(context.Background(), "go", "run", "-buildvcs=false", "-exec", "go version", program)
	var errs strings.Builder
	command.Stderr = &errs
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("go run %s: %w\n%s", program, err, &errs)
	}
	path, _, found := strings.Cut(strings.TrimSpace(string(out)), ": go")
	if !found {
		return "", fmt.Errorf("go run %s: go version printed %q", program, out)
	}
	return path, nil
}

// Binary is Build for a test.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := Build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// ProcessOptions is how a sidecar is started. The zero value starts one on a free port of loopback, with an empty folder.
type ProcessOptions struct {
	// Dir is the data folder. By default it is new and goes with the sidecar; one that is given stays.
	Dir string
	// Listen is the address, such as unix:/path. By default it is a free port of loopback.
	Listen string
	// Settings are KEY=VALUE, as for --set. Without one for retrieval.budget there is a minute for each Retrieve, so that what is
	// recalled does not depend on how busy the machine is.
	Settings []string
	// WorkDir is the folder from which relative paths in Settings begin; by default that of the test.
	WorkDir string
	// Environ is added to the environment, which has no settings and no providers' keys of the developer's.
	Environ []string
}

// Process is `memsidecar serve` in a process of its own.
type Process struct {
	// Addr is where it listens, as clients dial it: host:port, or unix:/path.
	Addr string
	// HTTP is the host:port of http.listen, when Settings have that.
	HTTP string
	// API is the host:port of api.listen, when Settings have that.
	API string
	// Dir is its data folder.
	Dir string

	command *exec.Cmd
	log     logstest.Log
	ended   func() error // waits for the end of the process, and says how it ended
	remove  string       // a folder to remove at the end
}

// StartProcess runs a sidecar until the test ends, or Stop or Kill is called. It returns when the sidecar answers.
func StartProcess(t testing.TB, options ProcessOptions) *Process {
	t.Helper()
	s, err := LaunchProcess(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("what the sidecar wrote:\n%s", s.Log())
		}
	})
	return s
}

// LaunchProcess is StartProcess for what is no test, such as an Example: the caller stops it.
func LaunchProcess(options ProcessOptions) (_ *Process, err error) {
	path, err := Build()
	if err != nil {
		return nil, err
	}
	s := &Process{Dir: options.Dir}
	if s.Dir == "" {
		if s.remove, err = os.MkdirTemp("", "memsidecar-data-"); err != nil {
			return nil, err
		}
		s.Dir = filepath.Join(s.remove, "data")
	}
	listen := options.Listen
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	args := []string{"serve", "--listen", listen, "--data-dir", s.Dir}
	wantHTTP, wantAPI := false, false
	for _, setting := range append([]string{"retrieval.budget=1m"}, options.Settings...) {
		args = append(args, "--set", setting)
		wantHTTP = wantHTTP || strings.HasPrefix(setting, "http.listen=")
		wantAPI = wantAPI || strings.HasPrefix(setting, "api.listen=")
	}
	s.command = exec.CommandContext(context.Background(), path, args...) //nolint:gosec // the program that was just built, with the test's own settings
	s.command.Env, s.command.Dir = append(Environ(), options.Environ...), options.WorkDir
	output, err := s.command.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	ready, read := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(read)
		s.read(output, wantHTTP, wantAPI, ready)
	}()
	s.ended = sync.OnceValue(func() error {
		<-read // to the end, which Wait would cut off
		err := s.command.Wait()
		if s.remove != "" {
			_ = os.RemoveAll(s.remove)
		}
		return err
	})
	select {
	case <-ready:
		return s, nil
	case <-read:
		return nil, fmt.Errorf("serve ended before it was ready: %w\n%s", s.ended(), s.Log())
	case <-time.After(Patience):
		s.Kill()
		return nil, fmt.Errorf("serve is not ready after %s\n%s", Patience, s.Log())
	}
}

// Run runs another command of the program, such as `token create`, and returns what it prints.
func Run(ctx context.Context, args ...string) (string, error) {
	path, err := Build()
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, path, args...) //nolint:gosec // the program that was just built
	command.Env = Environ()
	var errs strings.Builder
	command.Stderr = &errs
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("memsidecar %s: %w\n%s", strings.Join(args, " "), err, &errs)
	}
	return string(out), nil
}

// What the sidecar logs when it listens.
var (
	readyLine = regexp.MustCompile(`"?memsidecar is ready"?.*?\baddress"?[=:]("[^"]*"|\S+)`)
	apiLine   = regexp.MustCompile(`"?calls are answered as JSON over HTTP"?.*?\baddress"?[=:]("[^"]*"|\S+)`)
	httpLine  = regexp.MustCompile(`"?health checks and metrics are served"?.*?\baddress"?[=:]("[^"]*"|\S+)`)
)

// read collects what the sidecar writes, and closes ready when it listens.
func (s *Process) read(output io.Reader, wantHTTP, wantAPI bool, ready chan<- struct{}) {
	told := false
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fmt.Fprintln(&s.log, lines.Text())
		if told {
			continue
		}
		if found := readyLine.FindStringSubmatch(lines.Text()); found != nil {
			s.Addr = unquoted(found[1])
		}
		if found := httpLine.FindStringSubmatch(lines.Text()); found != nil {
			s.HTTP = unquoted(found[1])
		}
		if found := apiLine.FindStringSubmatch(lines.Text()); found != nil {
			s.API = unquoted(found[1])
		}
		if s.Addr != "" && (s.HTTP != "" || !wantHTTP) && (s.API != "" || !wantAPI) {
			told = true
			close(ready)
		}
	}
	_, _ = io.Copy(io.Discard, output) // after a line that is too long, so that nobody waits
}

func unquoted(s string) string {
	if u, err := strconv.Unquote(s); err == nil {
		return u
	}
	return s
}

// Stop ends the sidecar as SIGTERM or Ctrl-C does, and waits for it. The second time it does nothing.
func (s *Process) Stop() error {
	interrupt := s.command.Process.Signal
	if runtime.GOOS == "windows" { // it knows no signals
		s.Kill()
		return nil
	}
	if err := interrupt(os.Interrupt); errors.Is(err, os.ErrProcessDone) {
		_ = s.ended() // it was stopped or killed before
		return nil
	}
	late := time.AfterFunc(Patience, s.kill)
	defer late.Stop()
	if err := s.ended(); err != nil {
		return fmt.Errorf("serve ended with: %w\n%s", err, s.Log())
	}
	return nil
}

// Kill ends the sidecar as kill -9 does: it can neither flush nor close anything.
func (s *Process) Kill() {
	s.kill()
	_ = s.ended() // reports the signal
}

func (s *Process) kill() { _ = s.command.Process.Kill() }

// Log is what it has written so far.
func (s *Process) Log() string { return s.log.String() }

// Environ is this process's environment without the sidecar's settings, the providers' keys, and what sends spans elsewhere.
func Environ() []string {
	var kept []string
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "MEMSIDECAR_") || strings.HasPrefix(name, "OTEL_") || strings.HasSuffix(name, "_API_KEY") {
			continue
		}
		kept = append(kept, pair)
	}
	return kept
}

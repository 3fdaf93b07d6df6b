// Package sidecartest starts sidecars for tests: [Serve] in the process of the test, and [StartProcess] the real program in its own
// process. It has clients for both, and short forms of calls that many tests make.
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

// Timeout is how long a test waits on a loaded machine before it fails.
const Timeout = 5 * time.Minute

// program is the package that is built.
const program = "github.com/memsidecar/memsidecar/cmd/memsidecar"

// Build builds the program, memsidecar, and returns its path. The go command caches it, so that the packages of one `go test ./...` build
// it once, and not at all if nothing changed.
var Build = sync.OnceValues(func() (path string, err error) {
	for range 2 { // the first run may return a temporary path that is gone; the second returns the cached one
		if path, err = runnable(); err != nil {
			return "", err
		}
		if _, err = os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", err
})

// runnable returns the path from which `go run` runs the program.
func runnable() (string, error) {
	// Git refuses a checkout that another user owns, and then the version stamp fails.
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

// ProcessOptions are the options for starting a sidecar. The zero value uses a free port of loopback and an empty folder.
type ProcessOptions struct {
	// Dir is the data folder. The default is a new one that is removed with the sidecar. A given folder stays.
	Dir string
	// Listen is the address, such as unix:/path. The default is a free port of loopback.
	Listen string
	// Settings are KEY=VALUE, as for --set. Unless they set retrieval.budget it is a minute, so that answers do not depend on the
	// machine's load.
	Settings []string
	// WorkDir is the base of relative paths in Settings. The default is the test's folder.
	WorkDir string
	// Environ is added to the environment, without the developer's settings and providers' keys.
	Environ []string
}

// Process is `memsidecar serve` in its own process.
type Process struct {
	// Addr is its address as clients dial it: host:port, or unix:/path.
	Addr string
	// HTTP is the host:port of http.listen, if Settings have that.
	HTTP string
	// API is the host:port of api.listen, if Settings have that.
	API string
	// Dir is the data folder.
	Dir string

	command *exec.Cmd
	log     logstest.Log
	ended   func() error // waits for the exit of the process and returns its error
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

// LaunchProcess is StartProcess without a test, such as for an Example. The caller stops the process.
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
	case <-time.After(Timeout):
		s.Kill()
		return nil, fmt.Errorf("serve is not ready after %s\n%s", Timeout, s.Log())
	}
}

// Run runs another command of the program, such as `token create`, and returns its output.
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

// Log lines of a sidecar that listens.
var (
	readyLine = regexp.MustCompile(`"?memsidecar is ready"?.*?\baddress"?[=:]("[^"]*"|\S+)`)
	apiLine   = regexp.MustCompile(`"?calls are answered as JSON over HTTP"?.*?\baddress"?[=:]("[^"]*"|\S+)`)
	httpLine  = regexp.MustCompile(`"?health checks and metrics are served"?.*?\baddress"?[=:]("[^"]*"|\S+)`)
)

// read collects the sidecar's output, and closes ready when the sidecar listens.
func (s *Process) read(output io.Reader, wantHTTP, wantAPI bool, ready chan<- struct{}) {
	announced := false
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fmt.Fprintln(&s.log, lines.Text())
		if announced {
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
			announced = true
			close(ready)
		}
	}
	_, _ = io.Copy(io.Discard, output) // discards the rest after a line that is too long, so that the sidecar does not block
}

func unquoted(s string) string {
	if u, err := strconv.Unquote(s); err == nil {
		return u
	}
	return s
}

// Stop ends the sidecar as SIGTERM or Ctrl-C does, and waits for it. Later calls do nothing.
func (s *Process) Stop() error {
	interrupt := s.command.Process.Signal
	if runtime.GOOS == "windows" { // which has no signals
		s.Kill()
		return nil
	}
	if err := interrupt(os.Interrupt); errors.Is(err, os.ErrProcessDone) {
		_ = s.ended() // stopped or killed before
		return nil
	}
	late := time.AfterFunc(Timeout, s.kill)
	defer late.Stop()
	if err := s.ended(); err != nil {
		return fmt.Errorf("serve ended with: %w\n%s", err, s.Log())
	}
	return nil
}

// Kill ends the sidecar with SIGKILL: it can neither flush nor close files.
func (s *Process) Kill() {
	s.kill()
	_ = s.ended() // reports the signal
}

func (s *Process) kill() { _ = s.command.Process.Kill() }

// Log returns the output so far.
func (s *Process) Log() string { return s.log.String() }

// Environ returns this process's environment without settings of the sidecar, providers' keys, and exporters of spans.
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

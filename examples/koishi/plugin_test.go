package koishi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// built is a copy of the plugin, next to a copy of the proto files, installed and compiled.
var built struct {
	sync.Mutex
	dir string
	err error
}

// buildPlugin builds the plugin as its README says, once for all tests, and returns its folder.
func buildPlugin(t *testing.T) string {
	t.Helper()
	sidecartest.RequireTool(t, "koishi")
	built.Lock()
	defer built.Unlock()
	if built.dir == "" && built.err == nil {
		built.dir, built.err = os.MkdirTemp("", "memsidecar-koishi-") //nolint:usetesting // it outlives the test that builds it
		if built.err == nil {
			built.err = build(built.dir)
		}
	}
	if built.err != nil {
		t.Fatal(built.err)
	}
	return pluginIn(built.dir)
}

func pluginIn(dir string) string { return filepath.Join(dir, "examples", "koishi") }

func build(dir string) error {
	to := pluginIn(dir)
	err := errors.Join(
		os.CopyFS(filepath.Join(dir, "proto"), os.DirFS("../../proto")),
		os.CopyFS(filepath.Join(to, "src"), os.DirFS("src")),
		os.CopyFS(filepath.Join(to, "scripts"), os.DirFS("scripts")),
		os.CopyFS(filepath.Join(to, "test"), os.DirFS("test")),
	)
	for _, name := range []string{"package.json", "package-lock.json", "tsconfig.json"} {
		text, readErr := os.ReadFile(name)
		err = errors.Join(err, readErr, os.WriteFile(filepath.Join(to, name), text, 0o600))
	}
	if err != nil {
		return err
	}
	for _, args := range [][]string{{"ci", "--ignore-scripts", "--no-audit", "--no-fund"}, {"run", "build"}} {
		if _, err := npm(to, args...); err != nil {
			return err
		}
	}
	return nil
}

func npm(dir string, args ...string) (string, error) {
	command := exec.Command("npm", args...) //nolint:noctx // the test's own limit of time holds
	command.Dir = dir
	var errs strings.Builder
	command.Stderr = &errs
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", command, err, out, &errs)
	}
	return string(out), nil
}

// TestLockFileNamesNoHosts: The lock file names no hosts, so that npm uses the configured registry.
func TestLockFileNamesNoHosts(t *testing.T) {
	text, err := os.ReadFile("package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	if regexp.MustCompile(`"resolved"|://registry`).Match(text) {
		t.Error("the lock file names hosts: make it with --omit-lockfile-registry-resolved")
	}
}

// TestProtoIsCopied: The package has all proto files of the API, copied from the single place in this repository.
func TestProtoIsCopied(t *testing.T) {
	ignored, err := os.ReadFile(".gitignore")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(strings.Split(string(ignored), "\n"), "/proto/") {
		t.Error("the copy of the proto files would be committed: .gitignore has no /proto/")
	}
	dir := buildPlugin(t)
	packed, err := npm(dir, "pack", "--dry-run", "--json", "--ignore-scripts")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	err = fs.WalkDir(os.DirFS("../../proto"), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".proto") {
			return err
		}
		count++
		if !strings.Contains(packed, fmt.Sprintf("%q", "proto/"+path)) {
			t.Errorf("%s is not packed", entry.Name())
		}
		want, wantErr := os.ReadFile(filepath.Join("..", "..", "proto", path))
		got, gotErr := os.ReadFile(filepath.Join(dir, "proto", path))
		if string(got) != string(want) {
			t.Errorf("%s is not as in the repository", path)
		}
		return errors.Join(wantErr, gotErr)
	})
	if err != nil || count == 0 {
		t.Errorf("%d proto files: %v", count, err)
	}
	if !strings.Contains(packed, `"lib/index.js"`) || strings.Contains(packed, ".go\"") {
		t.Errorf("the package has the wrong files:\n%s", packed)
	}
}

// TestKoishiStart: The package is installed in an application, found by its name in koishi.yml, and configured there.
func TestKoishiStart(t *testing.T) {
	dir := buildPlugin(t)
	app := t.TempDir()
	if _, err := npm(dir, "pack", "--ignore-scripts", "--pack-destination", app); err != nil {
		t.Fatal(err)
	}
	modules, installed := filepath.Join(app, "node_modules"), filepath.Join(app, "node_modules", "koishi-plugin-memsidecar")
	unpack := exec.CommandContext(t.Context(), "tar", "-xzf", filepath.Join(app, "koishi-plugin-memsidecar-0.1.0.tgz"), "--strip-components=1", "-C", installed)
	if err := errors.Join(os.CopyFS(modules, os.DirFS(filepath.Join(dir, "node_modules"))), os.Mkdir(installed, 0o700), unpack.Run()); err != nil {
		t.Fatal(err)
	}
	// Koishi updates a package.json that has less than these.
	const manifest = `{"name": "app", "dependencies": {"@koishijs/plugin-http": "0.6.3", "@koishijs/plugin-proxy-agent": "0.3.3"}}`
	if err := os.WriteFile(filepath.Join(app, "package.json"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	start := func(address string) string {
		config := "plugins:\n  http: {}\n  memsidecar:\n    address: " + address + "\n"
		if err := os.WriteFile(filepath.Join(app, "koishi.yml"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), sidecartest.Timeout)
		defer cancel()
		command := exec.CommandContext(ctx, "node", filepath.Join(modules, "koishi", "bin.js"), "start")
		command.Dir, command.Env = app, sidecartest.Environ()
		out, err := command.CombinedOutput() // it exits, because no platform is configured
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	if log := start("127.0.0.1:7420"); !strings.Contains(log, "apply plugin memsidecar") || strings.Contains(log, "[E]") || strings.Contains(log, "[W]") {
		t.Errorf("it does not start:\n%s", log)
	}
	if log := start("memory.example:7420"); !strings.Contains(log, "set security to tls") {
		t.Errorf("koishi.yml is not read:\n%s", log)
	}
}

package examples

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestGRPCurl runs the commands of docs/grpcurl.md in order and compares the output with the document. With UPDATE_DOCS=1 it writes the
// differences into the file.
func TestGRPCurl(t *testing.T) { perform(t, "../docs/grpcurl.md", "$ grpcurl", "$ memsidecar") }

// TestGettingStarted does so with docs/getting-started.md.
func TestGettingStarted(t *testing.T) {
	perform(t, "../docs/getting-started.md", "$ memsidecar", "$ echo")
}

// TestReadme does so with the READMEs.
func TestReadme(t *testing.T) {
	for _, name := range []string{"README.md", "README.zh-CN.md"} {
		t.Run(name, func(t *testing.T) { perform(t, "../"+name, "$ ./memsidecar") })
	}
}

// perform runs the commands of a file's code blocks that begin in one of these ways.
func perform(t *testing.T, path string, begins ...string) {
	t.Helper()
	sidecartest.RequireTool(t, "grpcurl")
	s := newStage(t)
	doc := parse(only(read(t, path), begins))
	changed := map[*command][]string{}
	for _, c := range doc.commands {
		out, failed := s.run(c.text)
		if len(doc.output(c)) == 0 {
			if failed != nil {
				t.Errorf("%s: %v\n%s", c.text, failed, strings.Join(out, "\n"))
			}
			continue
		}
		if err := s.names.compare(doc.output(c), out); err != nil {
			changed[c] = s.names.update(doc.output(c), out)
			if os.Getenv("UPDATE_DOCS") == "" {
				t.Errorf("%s\nprints\n%s\n\n%v\n\nIf %s is to be changed, run this test with UPDATE_DOCS=1 as well", c.text, strings.Join(out, "\n"), err, path)
			}
		}
	}
	if len(doc.commands) == 0 {
		t.Errorf("%s shows no such command", path)
	}
	if os.Getenv("UPDATE_DOCS") != "" && len(changed) > 0 {
		if err := os.WriteFile(path, []byte(restore(doc.write(changed))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// hidden marks the fences of blocks that are skipped.
const hidden = "\x00"

// only hides the blocks that begin otherwise.
func only(text string, begins []string) string {
	lines := strings.Split(text, "\n")
	fenced, hide := false, false
	for i, line := range lines {
		if !strings.HasPrefix(line, "```") {
			continue
		}
		if fenced = !fenced; fenced {
			hide = !slices.ContainsFunc(begins, func(begin string) bool {
				return i+1 < len(lines) && strings.HasPrefix(lines[i+1], begin)
			})
		}
		if hide {
			lines[i] = hidden + line
		}
	}
	return strings.Join(lines, "\n")
}

func restore(text string) string { return strings.ReplaceAll(text, hidden, "") }

// stage is the environment of the commands: a folder with certificates, the programs, and the sidecars that were started.
type stage struct {
	t       *testing.T
	dir     string
	environ []string
	names   *names
	places  []string // documented texts and their replacements, in turn
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, dir: t.TempDir(), names: &names{actual: map[string]string{}, written: map[string]string{}}}
	bin := filepath.Join(s.dir, "bin")
	path, err := exec.CommandContext(t.Context(), "go", "tool", "-modfile=../tools/go.mod", "-n", "grpcurl").Output()
	if err != nil {
		t.Fatalf("building grpcurl: %v", err)
	}
	authority, err := sidecartest.NewAuthority(s.dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(authority.Leaf("server", "localhost"), os.Mkdir(bin, 0o700),
		os.Symlink(strings.TrimSpace(string(path)), filepath.Join(bin, "grpcurl")),
		os.Symlink(sidecartest.Binary(t), filepath.Join(bin, "memsidecar")),
		os.Symlink(sidecartest.Binary(t), filepath.Join(s.dir, "memsidecar")))
	if err != nil {
		t.Fatal(err)
	}
	s.environ = append(sidecartest.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	s.serve("127.0.0.1:7420", nil)
	s.environ = append(s.environ, "MEMSIDECAR_ADDR="+s.places[1])
	return s
}

// serve starts a sidecar for a documented address.
func (s *stage) serve(address string, settings []string) {
	s.t.Helper()
	written := ""
	for i, setting := range settings {
		if api, ok := strings.CutPrefix(setting, "api.listen="); ok {
			written, settings[i] = api, "api.listen=127.0.0.1:0"
		}
	}
	options := sidecartest.ProcessOptions{Settings: append(settings, "time_zone=UTC"), WorkDir: s.dir}
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		here := filepath.Join(s.t.TempDir(), "s") // a socket's path must be short
		options.Listen = "unix:" + here
		sidecartest.StartProcess(s.t, options)
		s.places = append(s.places, path, here)
		return
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		s.t.Fatal(err)
	}
	sidecar := sidecartest.StartProcess(s.t, options)
	_, here, err := net.SplitHostPort(sidecar.Addr)
	if err != nil {
		s.t.Fatal(err)
	}
	if written != "" {
		s.places = append(s.places, written, sidecar.API)
	}
	s.places = append(s.places, "127.0.0.1:"+port, "127.0.0.1:"+here, "localhost:"+port, "localhost:"+here)
}

// run returns the output of a command, errors included, and its error. A sidecar that it starts keeps running.
func (s *stage) run(text string) (printed []string, failed error) {
	s.t.Helper()
	if words := strings.Fields(strings.ReplaceAll(text, "\\\n", " ")); len(words) > 1 && words[0] == "memsidecar" && words[1] == "serve" {
		address, settings := "127.0.0.1:7420", []string(nil)
		for i := 2; i+1 < len(words); i += 2 {
			switch words[i] {
			case "--listen":
				address = words[i+1]
			case "--set":
				settings = append(settings, words[i+1])
			default:
				s.t.Fatalf("%s: this test knows no %s", text, words[i])
			}
		}
		s.serve(address, settings)
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), sidecartest.Timeout)
	defer cancel()
	// A dialogue may take longer on a busy machine than a person would wait.
	script := strings.Replace(s.names.translate(text), " --consider ", " --consider --wait "+sidecartest.Timeout.String()+" ", 1)
	shell := exec.CommandContext(ctx, "sh", "-c", strings.NewReplacer(s.places...).Replace(script))
	shell.Dir, shell.Env = s.dir, s.environ
	out, failed := shell.CombinedOutput()
	var back []string
	for i := 0; i < len(s.places); i += 2 {
		back = append(back, s.places[i+1], s.places[i])
	}
	text = strings.TrimRight(strings.NewReplacer(back...).Replace(string(out)), "\n")
	if text == "" {
		return nil, failed
	}
	return strings.Split(text, "\n"), failed
}

//go:build unix && !race

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

const scripts = "testdata/script"

// TestScripts runs the transcripts in testdata/script: the real binary against a real sidecar in its own process. Scripts can use
// scriptCommands in addition to testscript's commands. The binary is built without the race detector, so this test does not run with it.
func TestScripts(t *testing.T) {
	bin := filepath.Dir(sidecartest.Binary(t))
	testscript.Run(t, testscript.Params{
		Dir: scripts,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", bin+string(os.PathListSeparator)+e.Getenv("PATH"))
			e.Setenv("TZ", "UTC")
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("GOGC", "off") // each command is short; garbage collection would take a third of its time
			e.Setenv("ESC", "\x1b")
			e.Setenv("RLO", "\u202e")
			e.Setenv("C1", "\u009b")
			e.Values["processes"] = processes{}
			return nil
		},
		Cmds:               scriptCommands(t),
		RequireUniqueNames: true,
		UpdateScripts:      os.Getenv("UPDATE_SCRIPTS") != "",
	})
}

func scriptCommands(t *testing.T) map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		// sidecar [flag…] starts memsidecar serve on a free port and the folder "data". Clients find it by MEMSIDECAR_ADDR.
		"sidecar": func(ts *testscript.TestScript, _ bool, args []string) {
			p := start(ts, "sidecar", nil, append([]string{"serve", "--listen", "127.0.0.1:0", "--data-dir", "data"}, args...))
			addr, ok := p.ready()
			if !ok {
				ts.Fatalf("serve ended before it was ready:\n%s", p.stderr)
			}
			ts.Setenv("MEMSIDECAR_ADDR", addr)
		},
		// certificates writes ca.pem, another authority's other.pem, and server and client (.pem, .key) of the first.
		"certificates": func(ts *testscript.TestScript, _ bool, _ []string) {
			ca, err := sidecartest.NewAuthority(ts.MkAbs("."), "ca")
			ts.Check(err)
			ts.Check(errors.Join(ca.Leaf("server", "memsidecar.test"), ca.Leaf("client", "memsidecar.test")))
			_, err = sidecartest.NewAuthority(ts.MkAbs("."), "other")
			ts.Check(err)
		},
		// logged NAME PATTERN waits until a started program has written this to standard error.
		"logged": func(ts *testscript.TestScript, _ bool, args []string) {
			p, pattern := processesOf(ts)[args[0]], regexp.MustCompile(args[1])
			late := time.After(sidecartest.Timeout)
			for !pattern.MatchString(p.stderr.String()) {
				select {
				case <-p.wrote:
				case <-late:
					ts.Fatalf("it does not write %s:\n%s", pattern, p.stderr)
				case <-p.done:
					ts.Fatalf("it ended without writing %s:\n%s", pattern, p.stderr)
				}
			}
		},
		// signal NAME SIGNAL sends STOP, CONT, HUP or KILL to a started program.
		"signal": func(ts *testscript.TestScript, _ bool, args []string) {
			signals := map[string]syscall.Signal{"STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL}
			ts.Check(processesOf(ts)[args[0]].command.Process.Signal(signals[args[1]]))
		},
		// start NAME [-feed FILE] memsidecar ARG… runs a command in the background. Its standard input is the file and stays open.
		"start": func(ts *testscript.TestScript, _ bool, args []string) {
			name, rest := args[0], args[1:]
			var feed io.Reader
			if rest[0] == "-feed" {
				feed, rest = strings.NewReader(ts.ReadFile(rest[1])), rest[2:]
			}
			start(ts, name, feed, rest[1:])
		},
		// interrupt NAME CODE sends what Ctrl-C sends, and expects the exit code.
		"interrupt": func(ts *testscript.TestScript, _ bool, args []string) {
			p := processesOf(ts)[args[0]]
			ts.Check(p.command.Process.Signal(os.Interrupt))
			p.end(ts, args[1])
		},
		// await NAME CODE waits until a started program exits, and expects the exit code.
		"await": func(ts *testscript.TestScript, _ bool, args []string) { processesOf(ts)[args[0]].end(ts, args[1]) },
		// exists-soon GLOB waits until such a file exists.
		"exists-soon": func(ts *testscript.TestScript, _ bool, args []string) {
			sidecartest.Eventually(t, "there is a file "+args[0], func() bool {
				found, err := filepath.Glob(ts.MkAbs(args[0]))
				ts.Check(err)
				return len(found) > 0
			})
		},
		// exits CODE PROGRAM ARG… expects an exit code.
		"exits": func(ts *testscript.TestScript, _ bool, args []string) {
			err := ts.Exec(args[1], args[2:]...)
			if got := exitCode(err); strconv.Itoa(got) != args[0] {
				ts.Fatalf("exit code %d, want %s (%v)", got, args[0], err)
			}
		},
		// scrub replaces ids, times and the sidecar's address in the output by fixed texts.
		"scrub": func(ts *testscript.TestScript, _ bool, _ []string) {
			out, errs := scrubbed(ts, ts.ReadFile("stdout")), scrubbed(ts, ts.ReadFile("stderr"))
			_, err := io.WriteString(ts.Stdout(), out)
			ts.Check(err)
			_, err = io.WriteString(ts.Stderr(), errs)
			ts.Check(err)
		},
		// [!] json PATH VALUE expects the field, in every line of the output. json PATH > VARIABLE stores that of the first line.
		"json": func(ts *testscript.TestScript, neg bool, args []string) {
			out := ts.ReadFile("stdout")
			values := fieldOf(ts, out, args[0])
			if args[1] == ">" {
				ts.Setenv(args[2], values[0])
			} else if got := strings.Join(values, " "); (got == args[1]) == neg {
				ts.Fatalf("%s is %q, want %q: %v", args[0], got, args[1], !neg)
			}
			_, err := io.WriteString(ts.Stdout(), out)
			ts.Check(err)
		},
		// generate N FILE LINE writes numbered lines.
		"generate": func(ts *testscript.TestScript, _ bool, args []string) {
			n, err := strconv.Atoi(args[0])
			ts.Check(err)
			var b bytes.Buffer
			for i := range n {
				b.WriteString(strings.ReplaceAll(args[2], "NUMBER", strconv.Itoa(i)+strings.Repeat(" and others", 20)) + "\n")
			}
			ts.Check(os.WriteFile(ts.MkAbs(args[1]), b.Bytes(), 0o600))
		},
		// failed VARIABLE USER TEXT stores a failed consideration, before the sidecar starts.
		"failed": func(ts *testscript.TestScript, _ bool, args []string) {
			ts.Setenv(args[0], sidecartest.SeedConsideration(t, ts.MkAbs("data"), sidecartest.Direct(args[1]), args[2], sidecartest.Failed))
		},
		// spoil FOLDER SQL… changes the database of a folder that no sidecar uses.
		"spoil": func(ts *testscript.TestScript, _ bool, args []string) {
			for _, statement := range args[1:] {
				sidecartest.ExecuteSQL(t, ts.MkAbs(args[0]), statement)
			}
		},
		// spent DAYS MODEL IN OUT adds a model call of an earlier day, before the sidecar starts.
		"spent": func(ts *testscript.TestScript, _ bool, args []string) {
			var n [3]int
			for i, arg := range []string{args[0], args[2], args[3]} {
				var err error
				n[i], err = strconv.Atoi(arg)
				ts.Check(err)
			}
			sidecartest.SeedUsage(t, ts.MkAbs("data"), time.Now().UTC().AddDate(0, 0, -n[0]), args[1], n[1], n[2])
		},
	}
}

// processes are the programs that a script has started, by name.
type processes map[string]*scriptProcess

func processesOf(ts *testscript.TestScript) processes {
	p, _ := ts.Value("processes").(processes)
	return p
}

type scriptProcess struct {
	command        *exec.Cmd
	stdout, stderr *sidecartest.Log
	wrote          chan struct{} // signals output on standard error
	done           chan struct{} // closed when the process has ended; err is then set
	err            error
}

func start(ts *testscript.TestScript, name string, feed io.Reader, args []string) *scriptProcess {
	p := &scriptProcess{stdout: &sidecartest.Log{}, stderr: &sidecartest.Log{}, wrote: make(chan struct{}, 1), done: make(chan struct{})}
	p.command = exec.CommandContext(context.Background(), filepath.Join(filepath.SplitList(ts.Getenv("PATH"))[0], "memsidecar"), args...)
	p.command.Dir = ts.MkAbs(".")
	p.command.Env = []string{"HOME=" + ts.Getenv("HOME"), "TZ=UTC", "MEMSIDECAR_ADDR=" + ts.Getenv("MEMSIDECAR_ADDR"), "MEMSIDECAR_RETRIEVAL_BUDGET=1m"}
	p.command.Stdout, p.command.Stderr = p.stdout, signalWriter{p}
	stdin, err := p.command.StdinPipe()
	ts.Check(err)
	ts.Check(p.command.Start())
	go func() {
		p.err = p.command.Wait()
		close(p.done)
	}()
	ts.Defer(func() {
		_ = p.command.Process.Kill() // it may have exited already
		<-p.done
	})
	processesOf(ts)[name] = p
	if feed != nil {
		_, err := io.Copy(stdin, feed) // more than a pipe holds, so some of it was read when this returns
		ts.Check(err)
	}
	return p
}

// signalWriter keeps written text and signals each write.
type signalWriter struct{ p *scriptProcess }

func (n signalWriter) Write(b []byte) (int, error) {
	defer func() {
		select {
		case n.p.wrote <- struct{}{}:
		default:
		}
	}()
	return n.p.stderr.Write(b)
}

var readyAddress = regexp.MustCompile(`memsidecar is ready.* address=(\S+)`)

// ready waits for the log line with the address of serve.
func (p *scriptProcess) ready() (addr string, ok bool) {
	for {
		if found := readyAddress.FindStringSubmatch(p.stderr.String()); found != nil {
			return found[1], true
		}
		select {
		case <-p.wrote:
		case <-p.done:
			return "", false
		}
	}
}

// end waits for the exit code, and makes the output the last command's output in the script.
func (p *scriptProcess) end(ts *testscript.TestScript, want string) {
	select {
	case <-p.done:
	case <-time.After(sidecartest.Timeout):
		ts.Fatalf("it does not end:\n%s", p.stderr)
	}
	err := p.err
	_, err1 := io.WriteString(ts.Stdout(), p.stdout.String())
	_, err2 := io.WriteString(ts.Stderr(), p.stderr.String())
	ts.Check(errors.Join(err1, err2))
	if got := exitCode(err); strconv.Itoa(got) != want {
		ts.Fatalf("exit code %d, want %s (%v)\n%s", got, want, err, p.stderr)
	}
}

func exitCode(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

var changing = []struct {
	pattern *regexp.Regexp
	same    string
}{
	{regexp.MustCompile(`mem_[a-z2-7]{24}`), "mem_xxxxxxxxxxxxxxxxxxxxxxxx"},
	{regexp.MustCompile(`(con|trc|ses|rev)_[0-9a-f-]{36}`), "${1}_xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"},
	{regexp.MustCompile(`\(\d+ %\): ".*"`), `(xx %): "…"`}, // what weighs most changes with the weights
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d`), "2026-xx-xx xx:xx"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`), "TIME"},
	{regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\d `), "2026-xx-xx "},
	{regexp.MustCompile(`:\d\d\.\d{3}\b`), ":xx.xxx"},
	{regexp.MustCompile(` in [\d.]+m?s`), " in TIME"},
	{regexp.MustCompile(` +[\d.]+[mµ]?s\b| +TOOK`), " TIME"}, // with the padding before it, which depends on the longest duration
	{regexp.MustCompile(`(?m)^retention   0\.\d\d$`), "retention   0.xx"},
	{regexp.MustCompile(`(?m)^version .*$`), "version    VERSION"},
}

func scrubbed(ts *testscript.TestScript, text string) string {
	for _, c := range changing {
		text = c.pattern.ReplaceAllString(text, c.same)
	}
	if addr := ts.Getenv("MEMSIDECAR_ADDR"); addr != "" {
		text = strings.ReplaceAll(text, addr, "ADDRESS")
	}
	return text
}

// fieldOf returns a field of each line, by a path such as scope.user_id or memories.0.score.
func fieldOf(ts *testscript.TestScript, lines, path string) []string {
	var values []string
	for text := range strings.Lines(lines) {
		var at any
		ts.Check(json.Unmarshal([]byte(text), &at))
		for name := range strings.SplitSeq(path, ".") {
			switch in := at.(type) {
			case map[string]any:
				at = in[name]
			case []any:
				i, err := strconv.Atoi(name)
				ts.Check(err)
				at = in[i]
			}
		}
		values = append(values, fmt.Sprint(at))
	}
	if len(values) == 0 {
		ts.Fatalf("there is no output")
	}
	return values
}

// TestEveryCommandHasATranscript: The same holds for every flag of a command.
func TestEveryCommandHasATranscript(t *testing.T) {
	t.Parallel()
	files := sidecartest.Must(filepath.Glob(filepath.Join(scripts, "*.txtar")))(t)
	var lines []string
	for _, file := range files {
		script, _, _ := strings.Cut(string(sidecartest.Must(os.ReadFile(file))(t)), "\n-- ")
		script = strings.NewReplacer(" -u ", " --user ", " -n ", " --namespace ", " -k ", " --top-k ", " -c ", " --config ", " -y", " --yes").Replace(script)
		for line := range strings.Lines(script) {
			line = strings.TrimSpace(strings.ReplaceAll(line, "sidecar --", "memsidecar serve --"))
			if !strings.HasPrefix(line, "#") {
				lines = append(lines, line+" ")
			}
		}
	}
	var c commands
	parser := sidecartest.Must(kong.New(&c, Main{}.optionsFor(t, &c)...))(t)
	sidecartest.NoError(t, kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		command, ok := node.(*kong.Node)
		if !ok || !command.Leaf() || command.Hidden {
			return next(nil)
		}
		var own []string
		for _, line := range lines {
			if strings.Contains(line, "memsidecar "+command.Path()+" ") {
				own = append(own, line)
			}
		}
		if len(own) == 0 {
			t.Errorf("memsidecar %s is in no transcript: add it to one in %s", command.Path(), scripts)
		}
		for _, flag := range command.Flags {
			if used := strings.Join(own, "\n"); !flag.Hidden && !strings.Contains(used, "--"+flag.Name) && len(own) > 0 && flag.Group == nil {
				t.Errorf("memsidecar %s --%s is in no transcript: add it to one in %s", command.Path(), flag.Name, scripts)
			}
		}
		return next(nil)
	}))
}

// optionsFor returns the parser's options.
func (m Main) optionsFor(t *testing.T, c *commands) []kong.Option {
	t.Helper()
	exit := 0
	return m.options(t.Context(), c, &exit)
}

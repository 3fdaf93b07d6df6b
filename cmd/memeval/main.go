// Command memeval measures memory with known answers: how much of the messages is found again (locomo), and whether exactly those that
// are worth remembering are remembered (gate). It starts its own sidecar on a temporary folder.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
	_ "time/tzdata" // containers may lack time zones

	"github.com/alecthomas/kong"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/memsidecar/memsidecar/cmd/memeval/internal/eval"
	"github.com/memsidecar/memsidecar/cmd/memeval/internal/train"
	"github.com/memsidecar/memsidecar/internal/config"
	"github.com/memsidecar/memsidecar/internal/decide/classify"
	"github.com/memsidecar/memsidecar/internal/sidecar"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Exit codes, the same as those of memsidecar.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// commands is the command line.
type commands struct {
	Config string            `short:"c" placeholder:"FILE" help:"YAML configuration file of the sidecar that is measured."`
	Set    map[string]string `placeholder:"KEY=VALUE" help:"Set any configuration key, for example --set retrieval.top_k=5."`

	Locomo locomoCommand `cmd:"" help:"Measure how much of what was said is found again, with a file in LoCoMo's format."`
	Talk   talkCommand   `cmd:"" help:"Measure what is kept, forgotten and answered in conversations, with files in the talk format."`
	Gate   gateCommand   `cmd:"" help:"Measure what is remembered against labels, with files in Memora's or the zh_gate format."`
	Train  trainCommand  `cmd:"" help:"Train the classifier of sentences, and measure it."`
}

const description = `Measure a memory with known answers.

It starts a sidecar of its own on a temporary folder. The environment does not change the result; only --config and --set do,
so that configurations can be compared.

Exit codes: 0 done; 1 failed; 2 the command line or a file is wrong; 130 interrupted.`

// usageError is a mistake on the command line or in a file.
type usageError struct{ error }

// run runs the command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := parse(ctx, args, stdout, stderr)
	if err == nil {
		return 0
	}
	var (
		usage   usageError
		wrong   *config.InvalidError
		refused sidecar.ConfigError
		code    = exitFailed
	)
	switch {
	case ctx.Err() != nil:
		err, code = errors.New("interrupted before everything was measured"), exitInterrupted
	case errors.As(err, &usage), errors.As(err, &wrong), errors.As(err, &refused):
		code = exitUsage
	}
	fmt.Fprintln(stderr, "memeval:", err)
	return code
}

func parse(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c := commands{}
	exited := false
	parser, err := kong.New(&c, kong.Name("memeval"), kong.Description(description), kong.Writers(stdout, stderr),
		kong.Exit(func(int) { exited = true }), kong.BindTo(ctx, (*context.Context)(nil)))
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(args)
	switch {
	case exited: // --help
		return nil
	case err != nil:
		return usageError{fmt.Errorf("%w; see memeval --help", err)}
	}
	return parsed.Run(&c, &streams{stdout, stderr})
}

type streams struct{ stdout, stderr io.Writer }

type locomoCommand struct {
	File    string   `arg:"" help:"A JSON array of conversations with questions, whose evidence are turns."`
	Sources []string `enum:"messages,memories,both" default:"messages,memories,both" placeholder:"SOURCE,…" help:"Only messages, memories or both (${default})."`

	outputFlags
}

// Help implements kong.HelpProvider.
func (locomoCommand) Help() string {
	return `Examples:

    memeval locomo locomo10.json --json before.json
    memeval locomo locomo10.json --set retrieval.vector_weight=0.5 --compare before.json`
}

// Run measures recall.
func (l locomoCommand) Run(ctx context.Context, c *commands, s *streams) error {
	return l.measure(ctx, c, s, eval.KindLoCoMo, func(fresh *eval.Sidecar, misses eval.Misses) (eval.Report, error) {
		return eval.LoCoMo(ctx, fresh, eval.LoCoMoOptions{File: l.File, Sources: l.Sources, Misses: misses})
	})
}

type gateCommand struct {
	Files []string `arg:"" name:"file" help:"JSONL, all of one format: a Memora session or a labelled turn a line."`

	outputFlags
}

// Help implements kong.HelpProvider.
func (gateCommand) Help() string {
	return `The questions of a Memora file PERSONA.jsonl are read from PERSONA.questions.json in the same folder, if that file exists.

Examples:

    memeval gate personas/*.jsonl --json before.json --misses misses.jsonl
    memeval gate turns.jsonl --compare before.json`
}

// Run measures what is remembered.
func (g gateCommand) Run(ctx context.Context, c *commands, s *streams) error {
	return g.measure(ctx, c, s, eval.KindGate, func(fresh *eval.Sidecar, misses eval.Misses) (eval.Report, error) {
		return eval.Gate(ctx, fresh, eval.GateOptions{Files: g.Files, Misses: misses})
	})
}

type talkCommand struct {
	Files []string `arg:"" name:"file" help:"JSONL: a user a line, with the hand-overs and questions in order."`
	TopK  int32    `default:"3" help:"Hits of a question (${default})."`

	Together time.Duration `placeholder:"DURATION" help:"Wait for no outcome; calls within this time are considered together, as by session.idle."`

	outputFlags
}

// Help implements kong.HelpProvider.
func (talkCommand) Help() string {
	return `Examples:

    memeval talk people.jsonl --misses misses.jsonl
    memeval talk people.jsonl --config model.yaml --compare before.json`
}

// Run measures conversations.
func (t talkCommand) Run(ctx context.Context, c *commands, s *streams) error {
	settings := map[string]string{}
	if t.Together > 0 { // calls are held back until one waits for its outcome
		settings["session.memorize_every"], settings["session.idle"] = "10", "1h"
	}
	return t.measure(ctx, c, s, eval.KindTalk, func(fresh *eval.Sidecar, misses eval.Misses) (eval.Report, error) {
		return eval.Talk(ctx, fresh, eval.TalkOptions{Files: t.Files, TopK: t.TopK, Misses: misses, Together: t.Together})
	}, settings)
}

type trainCommand struct {
	Files []string `arg:"" name:"file" help:"JSONL to learn from: labelled messages, or conversations in the talk format."`
	Dev   []string `placeholder:"FILE,…" help:"Measure with these labelled messages."`
	Out   string   `placeholder:"FILE" help:"Write the weights to a file."`
	Share int      `default:"100" placeholder:"PERCENT" help:"Learn from a part of the examples, for a learning curve (${default})."`
}

// Help implements kong.HelpProvider.
func (trainCommand) Help() string {
	return `Examples:

    memeval train dataset/messages/train/*.jsonl --dev dataset/messages/dev/en2.jsonl,dataset/messages/dev/zh2.jsonl
    memeval train dataset/messages/*/*.jsonl dataset/talk/train/*.jsonl --out internal/decide/classify/weights.gz`
}

// Run trains and measures.
func (t trainCommand) Run(_ context.Context, _ *commands, s *streams) error {
	examples, err := train.ReadFiles(t.Files)
	if err != nil {
		return usageError{err}
	}
	dev, err := train.ReadFiles(t.Dev)
	if err != nil {
		return usageError{err}
	}
	weights := classify.Train(train.Part(examples, t.Share))
	if t.Out != "" {
		err := s.writeFile(t.Out, func(w io.Writer) error {
			_, err := weights.WriteTo(w)
			return err
		})
		if err != nil {
			return err
		}
	}
	var stored bytes.Buffer // what is measured is what is stored, rounded to bytes
	if _, err := weights.WriteTo(&stored); err != nil {
		return err
	}
	fmt.Fprintf(s.stdout, "%d sentences to learn from, %d to measure with, %d bytes\n", len(train.Part(examples, t.Share)), len(dev), stored.Len())
	model, err := classify.Read(&stored)
	if err != nil {
		return err
	}
	for _, table := range train.Measure(model, dev) {
		fmt.Fprintln(s.stdout)
		if err := printTable(s.stdout, table); err != nil {
			return err
		}
	}
	return nil
}

// outputFlags select where the results go.
type outputFlags struct {
	JSON    string `name:"json" placeholder:"FILE" help:"Also write the numbers to a file, as one flat JSON object; \"-\" is standard output."`
	Compare string `placeholder:"FILE" help:"Show the differences to an earlier run, as its --json wrote it."`
	Misses  string `placeholder:"FILE" help:"Write what was judged wrongly to a file, a JSON object a line; \"-\" is standard output."`
}

// measure runs do with a fresh sidecar and shows its report.
func (o outputFlags) measure(
	ctx context.Context, c *commands, s *streams, kind eval.Kind, do func(*eval.Sidecar, eval.Misses) (eval.Report, error), extra ...map[string]string,
) error {
	if err := o.check(); err != nil {
		return err
	}
	var earlier eval.Report
	if o.Compare != "" {
		var err error
		if earlier, err = eval.ReadReport(o.Compare, kind); err != nil {
			return inputMistake(err)
		}
	}
	misses := eval.Misses{}
	if o.Misses != "" {
		misses = eval.NewMisses()
	}
	var report eval.Report
	err := withFreshSidecar(ctx, c, s, func(fresh *eval.Sidecar) (err error) {
		report, err = do(fresh, misses)
		return err
	}, extra...)
	if err != nil {
		return inputMistake(err)
	}
	report.Describe(sidecar.Version(), c.settings())
	return o.show(s, report, earlier, misses)
}

// inputMistake converts an error in a file to a usage error.
func inputMistake(err error) error {
	if wrong, ok := errors.AsType[*eval.InputError](err); ok {
		return usageError{wrong}
	}
	return err
}

func (o outputFlags) show(s *streams, report, earlier eval.Report, misses eval.Misses) error {
	if o.Misses != "" {
		if err := s.writeFile(o.Misses, misses.WriteLines); err != nil {
			return err
		}
	}
	if o.JSON != "" {
		indent := "  "
		if o.JSON == "-" {
			indent = ""
		}
		if err := s.writeFile(o.JSON, func(w io.Writer) error { return report.WriteJSON(w, indent) }); err != nil {
			return err
		}
	}
	for _, difference := range report.Differs(earlier) {
		fmt.Fprintln(s.stderr, "not the same:", difference)
	}
	tables := s.stdout
	if o.JSON == "-" || o.Misses == "-" {
		tables = s.stderr
	}
	for i, t := range report.Tables(earlier) {
		if i > 0 {
			fmt.Fprintln(tables)
		}
		if err := printTable(tables, t); err != nil {
			return err
		}
	}
	return nil
}

// printTable writes a table with aligned columns.
func printTable(w io.Writer, t eval.Table) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	headings := make([]string, len(t.Columns))
	for i, name := range t.Columns {
		headings[i] = strings.ToUpper(name)
	}
	for _, row := range append([][]string{headings}, t.Rows...) {
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	return tw.Flush()
}

// check finds mistakes before the measurement that would otherwise show only after it.
func (o outputFlags) check() error {
	if o.JSON == "-" && o.Misses == "-" {
		return usageError{errors.New("--json and --misses cannot both be standard output")}
	}
	for _, path := range []string{o.JSON, o.Misses} {
		if path == "" || path == "-" {
			continue
		}
		if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
			return usageError{fmt.Errorf("%s cannot be written: the folder %s does not exist", path, filepath.Dir(path))}
		}
	}
	return nil
}

// writeFile writes a complete file or none; "-" is standard output.
func (s *streams) writeFile(path string, write func(io.Writer) error) (err error) {
	if path == "-" {
		return write(s.stdout)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if err := errors.Join(write(f), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// progress shows a progress bar on a terminal.
func (s *streams) progress(total int, what string) (step, done func()) {
	w := io.Discard
	if f, ok := s.stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		w = f
	}
	bar := progressbar.NewOptions(cmp.Or(total, -1), progressbar.OptionSetWriter(w), progressbar.OptionShowCount(),
		progressbar.OptionSetDescription(what), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	return func() { _ = bar.Add(1) }, func() { _ = bar.Finish() }
}

// settings returns the settings of the command line.
func (c *commands) settings() map[string]string {
	settings := maps.Clone(c.Set)
	if c.Config != "" {
		if settings == nil {
			settings = map[string]string{}
		}
		settings["config"] = filepath.Base(c.Config)
	}
	return settings
}

// fixed are settings that make runs comparable: background work with its own timing is off, and answers are not cut short.
var fixed = map[string]string{
	"listen": "127.0.0.1:0", "digest.enabled": "false", "session.memorize_every": "0", "retrieval.budget": "1m", "memories.max_per_user": "0",
	"auth.tokens_file": "", "tls.cert_file": "", "tls.key_file": "", "tls.client_ca_file": "",
	"limits.namespace_rps": "0", "limits.user_rps": "0", "queue.max_pending_per_namespace": "0",
	"queue.max_pending": "0", "queue.max_pending_bytes": "0",
}

// withFreshSidecar runs do with a sidecar on a temporary folder. extra are settings beside the fixed ones.
func withFreshSidecar(ctx context.Context, c *commands, s *streams, do func(*eval.Sidecar) error, extra ...map[string]string) (err error) {
	for key := range c.Set {
		if _, ok := fixed[key]; ok || key == "data_dir" {
			return usageError{fmt.Errorf("memeval sets %s itself, so that runs can be compared: leave it out of --set", key)}
		}
	}
	dir, err := os.MkdirTemp("", "memeval-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	settings := map[string]string{}
	maps.Copy(settings, c.Set)
	maps.Copy(settings, fixed)
	for _, more := range extra {
		maps.Copy(settings, more)
	}
	settings["data_dir"] = dir
	loaded, err := config.Load(config.Sources{File: c.Config, Flags: settings})
	if err != nil {
		return err
	}
	fresh, err := sidecar.Start(ctx, loaded.Config, sidecar.Options{
		Log: slog.New(slog.NewTextHandler(s.stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return err
	}
	defer fresh.Stop(context.WithoutCancel(ctx))
	conn, err := grpc.NewClient("passthrough:///"+fresh.Addr.String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	return do(&eval.Sidecar{
		Memories: memsidecarv1.NewMemoryServiceClient(conn), Sessions: memsidecarv1.NewSessionServiceClient(conn),
		Users: memsidecarv1.NewUserServiceClient(conn), Admin: memsidecarv1.NewAdminServiceClient(conn),
		WaitIdle: func(ctx context.Context) error {
			fresh.CatchUp(ctx)
			return ctx.Err()
		},
		Progress: s.progress,
	})
}

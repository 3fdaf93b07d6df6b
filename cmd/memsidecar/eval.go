package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/cli"
	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/eval"
	"github.com/memsidecar/memsidecar/internal/config"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type evalCommands struct {
	Locomo evalLocomo `cmd:"" help:"Measure how much of what was said is found again, with a file of LoCoMo's format."`
	Gate   evalGate   `cmd:"" help:"Measure what is remembered against labels, with files of Memora's or the zh_gate format."`
}

type evalLocomo struct {
	File    string   `arg:"" complete:"file" help:"A JSON array of conversations with questions, whose evidence are turns."`
	Sources []string `enum:"messages,memories,both" default:"messages,memories,both" placeholder:"SOURCE,…" help:"Only messages, memories or both (${default})."`

	evalOutput
}

type evalGate struct {
	Files []string `arg:"" name:"file" complete:"file" help:"JSONL, all of one format: a Memora session or a labelled turn a line."`

	evalOutput
}

// evalOutput says where the results go.
type evalOutput struct {
	JSON    string `name:"json" placeholder:"FILE" complete:"file" help:"Also write the numbers to a file, as one flat JSON object; \"-\" is standard output."`
	Compare string `placeholder:"FILE" complete:"file" help:"Show the differences to an earlier run, as its --json wrote it."`
	Misses  string `placeholder:"FILE" complete:"file" help:"Write what was judged wrongly to a file, a JSON object a line."`
}

const evalHelp = `It starts a sidecar of its own on a temporary folder. Nothing of the environment changes the result: only --config and --set do, for comparing configurations.

`

// Help has examples.
func (evalLocomo) Help() string {
	return evalHelp + `Examples:

    memsidecar eval locomo locomo10.json --json before.json
    memsidecar eval locomo locomo10.json --set retrieval.vector_weight=0.5 --compare before.json`
}

// Help has examples.
func (evalGate) Help() string {
	return evalHelp + `The questions of a Memora file PERSONA.jsonl are read from PERSONA.questions.json beside it, where there is one.

Examples:

    memsidecar eval gate personas/*.jsonl --json before.json --misses misses.jsonl
    memsidecar eval gate turns.jsonl --compare before.json`
}

// Run measures recall.
func (e evalLocomo) Run(ctx context.Context, c *commands, p *cli.Program) error {
	return e.run(ctx, c, p, eval.KindLoCoMo, func(s *eval.Sidecar, misses eval.Misses) (eval.Report, error) {
		return eval.LoCoMo(ctx, s, eval.LoCoMoOptions{File: e.File, Sources: e.Sources, Misses: misses})
	})
}

// Run measures what is remembered.
func (e evalGate) Run(ctx context.Context, c *commands, p *cli.Program) error {
	return e.run(ctx, c, p, eval.KindGate, func(s *eval.Sidecar, misses eval.Misses) (eval.Report, error) {
		return eval.Gate(ctx, s, eval.GateOptions{Files: e.Files, Misses: misses})
	})
}

// run measures a sidecar of its own and shows the report.
func (o evalOutput) run(ctx context.Context, c *commands, p *cli.Program, kind eval.Kind, measure func(*eval.Sidecar, eval.Misses) (eval.Report, error)) error {
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
	if err := withFreshSidecar(ctx, c, p, func(s *eval.Sidecar) (err error) {
		report, err = measure(s, misses)
		return err
	}); err != nil {
		if ctx.Err() != nil {
			return &cli.Error{Code: cli.ExitInterrupted, Message: "interrupted before everything was measured"}
		}
		return inputMistake(err)
	}
	report.Describe(version(), evalSettings(c))
	return o.show(p, report, earlier, misses)
}

// inputMistake is a usage error when a file is wrong.
func inputMistake(err error) error {
	if wrong, ok := errors.AsType[*eval.InputError](err); ok {
		return usageError{wrong}
	}
	return err
}

func (o evalOutput) show(p *cli.Program, report, earlier eval.Report, misses eval.Misses) error {
	if o.Misses != "" {
		if err := p.WriteFile(o.Misses, misses.WriteLines); err != nil {
			return err
		}
	}
	if o.JSON != "" {
		indent := "  "
		if o.JSON == "-" {
			indent = "" // a line, as other commands answer
		}
		if err := p.WriteFile(o.JSON, func(w io.Writer) error { return report.WriteJSON(w, indent) }); err != nil {
			return err
		}
	}
	for _, difference := range report.Differs(earlier) {
		p.Note("not the same: %s", difference)
	}
	people := *p
	if o.JSON == "-" || o.Misses == "-" {
		people.Stdout = p.Stderr
	}
	for i, t := range report.Tables(earlier) {
		if i > 0 {
			fmt.Fprintln(people.Stdout)
		}
		people.Table(t.Columns, t.Words, t.Rows)
	}
	return nil
}

// check finds what would fail only after everything was measured.
func (o evalOutput) check() error {
	if o.JSON == "-" && o.Misses == "-" {
		return usageError{errors.New("--json and --misses cannot both be standard output")}
	}
	for _, path := range []string{o.JSON, o.Misses} {
		if path == "" || path == "-" {
			continue
		}
		if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
			return usageError{fmt.Errorf("%s cannot be written: there is no folder %s", path, filepath.Dir(path))}
		}
	}
	return nil
}

// evalSettings are those that the command line says.
func evalSettings(c *commands) map[string]string {
	settings := maps.Clone(c.Set)
	if c.Config != "" {
		if settings == nil {
			settings = map[string]string{}
		}
		settings["config"] = filepath.Base(c.Config)
	}
	return settings
}

// evalFixed are settings without which two runs would not measure the same: what works in the background, at its own pace,
// has no part in it, and no answer is cut short.
var evalFixed = map[string]string{
	"listen": "127.0.0.1:0", "digest.enabled": "false", "session.memorize_every": "0", "retrieval.budget": "1m", "memories.max_per_user": "0",
	"auth.tokens_file": "", "tls.cert_file": "", "tls.key_file": "", "tls.client_ca_file": "",
	"limits.namespace_rps": "0", "limits.user_rps": "0", "queue.max_pending_per_namespace": "0",
	"queue.max_pending": "0", "queue.max_pending_bytes": "0",
}

// withFreshSidecar starts a sidecar on a folder that is gone afterwards.
func withFreshSidecar(ctx context.Context, c *commands, p *cli.Program, do func(*eval.Sidecar) error) (err error) {
	if c.Listen != "" || c.DataDir != "" {
		return usageError{errors.New("eval starts a sidecar of its own: leave --listen and --data-dir out")}
	}
	for key := range evalFixed {
		if _, set := c.Set[key]; set {
			return usageError{errors.New("eval sets " + key + " itself, so that runs can be compared: leave it out of --set")}
		}
	}
	dir, err := os.MkdirTemp("", "memsidecar-eval-")
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, os.RemoveAll(dir)) }()
	flags := map[string]string{}
	maps.Copy(flags, c.Set)
	maps.Copy(flags, evalFixed)
	flags["data_dir"] = dir
	loaded, err := config.Load(config.Sources{File: c.Config, Flags: flags})
	if err != nil {
		return err
	}
	sidecar, err := Start(ctx, loaded.Config, nil, slog.New(slog.NewTextHandler(p.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	if err != nil {
		return err
	}
	defer sidecar.Stop(context.WithoutCancel(ctx))
	conn, err := grpc.NewClient("passthrough:///"+sidecar.Addr.String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, conn.Close()) }()
	return do(&eval.Sidecar{
		Memories: memsidecarv1.NewMemoryServiceClient(conn), Sessions: memsidecarv1.NewSessionServiceClient(conn),
		Settled: func(ctx context.Context) error {
			sidecar.talks.worker.CatchUp()
			return ctx.Err()
		},
		Progress: p.Progress,
	})
}

// Command memsidecar gives any chat bot a long-term memory over gRPC.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"strings"
	"syscall"
	_ "time/tzdata" // containers have no time zones of their own

	"github.com/alecthomas/kong"

	"github.com/memsidecar/memsidecar/internal/config"
)

// Exit codes.
const (
	exitFailure = 1 // it was tried and failed
	exitUsage   = 2 // the command line or the configuration is wrong
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := Main{Args: os.Args[1:], Environ: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr}.Run(ctx)
	stop()
	os.Exit(code)
}

// Main is the program with everything it takes from outside, so that a test can run it.
type Main struct {
	Args           []string
	Environ        []string
	Stdout, Stderr io.Writer
	// Started, when set, is called by serve once calls are answered.
	Started func(*Sidecar)
}

// commands is the command line.
type commands struct {
	Config string            `short:"c" placeholder:"FILE" help:"YAML configuration file; also MEMSIDECAR_CONFIG."`
	Set    map[string]string `placeholder:"KEY=VALUE" help:"Set any configuration key, for example --set retrieval.top_k=5."`

	Listen   string `placeholder:"ADDRESS" help:"Address to listen on; the same as --set listen=ADDRESS."`
	DataDir  string `placeholder:"DIR" help:"Data folder; the same as --set data_dir=DIR."`
	LogLevel string `placeholder:"LEVEL" help:"debug, info, warn or error; the same as --set log.level=LEVEL."`

	Version kong.VersionFlag `help:"Print the version."`

	Serve    serveCommand  `cmd:"" default:"1" help:"Run the sidecar (the default)."`
	Demo     demoCommand   `cmd:"" help:"Start a sidecar on a temporary folder, play a short dialogue, and show what it remembers."`
	Replay   replayCommand `cmd:"" help:"Feed a file of real messages to a running sidecar."`
	Bench    benchCommand  `cmd:"" help:"Measure a running sidecar with made-up users."`
	Settings configCommand `cmd:"" name:"config" help:"Check, print or explain the configuration."`
}

// usageError is a mistake in how the program was called.
type usageError struct{ error }

// Run parses the command line, runs the command and returns the exit code.
func (m Main) Run(ctx context.Context) int {
	var c commands
	exit := -1
	parser, err := kong.New(&c,
		kong.Name("memsidecar"),
		kong.Description("Long-term memory for chat bots, over gRPC."),
		kong.Vars{"version": version()},
		kong.Writers(m.Stdout, m.Stderr),
		kong.Exit(func(code int) { exit = code }),
		kong.UsageOnError(),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if err != nil {
		return m.fail(err)
	}
	parsed, err := parser.Parse(m.Args)
	if exit >= 0 {
		return exit // --help and --version
	}
	if err != nil {
		return m.fail(usageError{err})
	}
	return m.fail(parsed.Run(&m, &c))
}

func (m Main) fail(err error) int {
	var usage usageError
	var wrong *config.InvalidError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage), errors.As(err, &wrong):
		fmt.Fprintln(m.Stderr, "memsidecar:", err)
		return exitUsage
	}
	fmt.Fprintln(m.Stderr, "memsidecar:", err)
	return exitFailure
}

// load reads the configuration from everything that was given.
func (m *Main) load(c *commands) (*config.Loaded, error) {
	flags := map[string]string{}
	maps.Copy(flags, c.Set)
	for key, value := range map[string]string{"listen": c.Listen, "data_dir": c.DataDir, "log.level": c.LogLevel} {
		if value != "" {
			flags[key] = value
		}
	}
	file := c.Config
	if file == "" {
		file = getenv(m.Environ, "MEMSIDECAR_CONFIG")
	}
	return config.Load(config.Sources{File: file, Environ: m.Environ, Flags: flags})
}

func getenv(environ []string, name string) string {
	for _, e := range environ {
		if key, value, _ := strings.Cut(e, "="); key == name {
			return value
		}
	}
	return ""
}

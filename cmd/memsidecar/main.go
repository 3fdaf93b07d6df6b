// Command memsidecar gives any chat bot a long-term memory over gRPC.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	_ "time/tzdata" // containers may lack time zones

	"github.com/alecthomas/kong"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/cli"
	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/completion"
	"github.com/memsidecar/memsidecar/internal/config"
	"github.com/memsidecar/memsidecar/internal/sidecar"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := Main{Args: os.Args[1:], Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}.Run(ctx)
	stop()
	os.Exit(code)
}

// Main is the program with its environment, so that tests can run it.
type Main struct {
	Args           []string
	Environ        []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Started, if set, is called by serve when it is ready for calls.
	Started func(*sidecar.Sidecar)
}

// commands is the command line.
type commands struct {
	Config string            `short:"c" group:"configuration" placeholder:"FILE" complete:"file" help:"YAML configuration file; also MEMSIDECAR_CONFIG."`
	Set    map[string]string `group:"configuration" placeholder:"KEY=VALUE" help:"Set any configuration key, for example --set retrieval.top_k=5."`

	Listen   string `group:"configuration" placeholder:"ADDRESS" help:"Address to listen on; the same as --set listen=ADDRESS."`
	DataDir  string `group:"configuration" placeholder:"DIR" complete:"file" help:"Data folder; the same as --set data_dir=DIR."`
	Insecure bool   `group:"configuration" help:"Listen outside of loopback without TLS or tokens; the same as --set insecure=true."`
	LogLevel string `group:"configuration" placeholder:"LEVEL" help:"debug, info, warn or error; the same as --set log.level=LEVEL."`

	Version kong.VersionFlag `help:"Print the version."`

	Serve serveCommand `cmd:"" default:"1" group:"run" help:"Run the sidecar (the default)."`
	Demo  demoCommand  `cmd:"" group:"run" help:"Start a temporary sidecar, play short dialogues, and show what it remembers."`
	cli.Commands
	Token         tokenCommands      `cmd:"" group:"tend" help:"Create, list and revoke access tokens."`
	Backup        backupCommand      `cmd:"" group:"tend" help:"Back up the database to a file, also while the sidecar runs."`
	Restore       restoreCommand     `cmd:"" group:"tend" help:"Restore a backup into the data folder of a stopped sidecar."`
	Check         checkCommand       `cmd:"" group:"tend" help:"Check the database or a backup for damage."`
	Reindex       reindexCommand     `cmd:"" group:"tend" help:"Rebuild derived data (keyword index, vectors) of a stopped sidecar."`
	Key           keyCommands        `cmd:"" group:"tend" help:"Encrypt the database; create and rotate its keys."`
	Configuration configCommand      `cmd:"" name:"config" group:"tend" help:"Check, print or document the configuration."`
	Completion    completion.Command `cmd:"" group:"tend" help:"Print a script for shell completion."`
	Complete      completion.Words   `cmd:"" name:"__complete" hidden:""`
}

const description = `Long-term memory for chat bots, over gRPC.

Exit codes: 0 done; 1 tried and failed; 2 the command line, the configuration or a file is wrong;
3 no sidecar, or it cannot do that now; 4 not found; 130 interrupted.`

func groups() []kong.Group {
	return []kong.Group{
		{Key: "run", Title: "Run a sidecar"},
		{Key: "use", Title: "Use a running sidecar"},
		{Key: "tend", Title: "Administration"},
		{Key: "scope", Title: "User and channel"},
		{Key: "output", Title: "Output"},
		{Key: "sidecar", Title: "Connection"},
		{Key: "configuration", Title: "Configuration"},
	}
}

// usageError is a mistake on the command line.
type usageError struct{ error }

// Run parses the command line, runs the command and returns the exit code.
func (m Main) Run(ctx context.Context) int {
	var c commands
	exit := -1
	parser, err := kong.New(&c, m.options(ctx, &c, &exit)...)
	if err != nil {
		return m.fail(err)
	}
	parsed, err := parser.Parse(asFlags(m.Args))
	if exit >= 0 {
		return exit // --help and --version
	}
	if err != nil {
		return m.fail(usageError{withHelpHint(err)})
	}
	return m.fail(parsed.Run(&m, &c))
}

func (m *Main) options(ctx context.Context, c *commands, exit *int) []kong.Option {
	program := &cli.Program{
		Stdin: m.Stdin, Stdout: m.Stdout, Stderr: m.Stderr, Version: sidecar.Version(),
		Getenv: func(name string) string { return config.Getenv(m.Environ, name) },
		Sidecar: func() (cli.Sidecar, error) {
			sources := *c
			// A client needs no data folder and no home folder, and does not listen.
			sources.DataDir, sources.Insecure = cmp.Or(c.DataDir, "."), true
			loaded, err := m.load(&sources)
			if err != nil {
				return cli.Sidecar{}, err
			}
			return cli.Sidecar{Listen: loaded.Config.Listen, CertFile: loaded.Config.TLS.CertFile}, nil
		},
	}
	return append(program.Options(),
		kong.Name("memsidecar"),
		kong.Description(description),
		kong.ExplicitGroups(groups()),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.Vars{"version": sidecar.Version()},
		kong.Writers(m.Stdout, m.Stderr),
		kong.Exit(func(code int) { *exit = code }),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
}

// asFlags translates "help COMMAND" and "version", common in other programs, into flags.
func asFlags(args []string) []string {
	if len(args) == 0 {
		return args
	}
	switch args[0] {
	case "help":
		return append(slices.Clone(args[1:]), "--help")
	case "version":
		return append([]string{"--version"}, args[1:]...)
	}
	return args
}

// withHelpHint adds how to get help.
func withHelpHint(err error) error {
	command := "memsidecar"
	// An optional choice also accepts the empty value, which the message omits.
	what := strings.Replace(err.Error(), `must be one of "",`, "must be one of ", 1)
	if parsing := (*kong.ParseError)(nil); errors.As(err, &parsing) {
		for _, step := range parsing.Context.Path {
			if step.Command != nil && !step.Command.Hidden {
				command = "memsidecar " + strings.TrimPrefix(step.Command.Path(), "memsidecar ")
			}
		}
	}
	return fmt.Errorf("%s; see %s --help", what, command)
}

func (m Main) fail(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(m.Stderr, "memsidecar:", err)
	var usage usageError
	var wrong *config.InvalidError
	var refused sidecar.ConfigError
	if errors.As(err, &usage) || errors.As(err, &wrong) || errors.As(err, &refused) {
		return cli.ExitUsage
	}
	return cli.ExitCode(err)
}

// load reads the configuration from all its sources.
func (m *Main) load(c *commands) (*config.Loaded, error) {
	flags := map[string]string{}
	maps.Copy(flags, c.Set)
	insecure := ""
	if c.Insecure {
		insecure = "true"
	}
	for key, value := range map[string]string{
		"listen": c.Listen, "data_dir": c.DataDir, "log.level": c.LogLevel, "insecure": insecure,
	} {
		if value != "" {
			flags[key] = value
		}
	}
	file := c.Config
	if file == "" {
		file = config.Getenv(m.Environ, "MEMSIDECAR_CONFIG")
	}
	return config.Load(config.Sources{File: file, Environ: m.Environ, Flags: flags})
}

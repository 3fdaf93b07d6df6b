package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/migrate"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type importCommands struct {
	Mem0       importMem0       `cmd:"" name:"mem0" help:"Import from mem0: the output of get_all, or an export."`
	Nanobot    importNanobot    `cmd:"" help:"Import a nanobot workspace, or some of its files: MEMORY.md, daily notes, history, sessions."`
	Lancedb    importLanceDB    `cmd:"" name:"lancedb" help:"Import rows of LanceDB or another vector database, as JSONL."`
	Jsonl      importJSONL      `cmd:"" name:"jsonl" help:"Import any JSON records; flags name the fields."`
	History    importHistory    `cmd:"" help:"Import conversations as JSON: session_YYYYMMDD_ID.json."`
	SeenMovies importSeenMovies `cmd:"" name:"seen-movies" help:"Import a film bot's seen_movies.json."`
}

// importHelp is the help that all import commands share.
const importHelp = `Records that exist already, by source id or by text, are not changed. Importing twice therefore adds nothing, and running an
interrupted import again completes it. Files are read completely before anything is sent: one that is truncated, or not UTF-8,
stores nothing. A record with a mistake is skipped and reported with its line; the exit code is then 1.
`

// importFlags are the flags that all import commands share.
type importFlags struct {
	DryRun bool `help:"Show what would be imported, and store nothing."`

	zoneFlag
	place
	agentFlag
	sidecarFlag
	output
}

// fileUsers assign the memories of a file to users.
type fileUsers struct {
	Users    string `enum:",all" default:"" placeholder:"all" help:"all: store each memory for the user that the file names, instead of --user."`
	FromUser string `placeholder:"ID" help:"Import only records of this user in the file."`
}

const stdinName = "-"

type importMem0 struct {
	Files []string `arg:"" name:"file" complete:"file" help:"JSON or JSONL. \"-\" is standard input."`

	fileUsers
	importFlags
}

// Help implements kong.HelpProvider.
func (importMem0) Help() string {
	return importHelp + `
Examples:

    memsidecar import mem0 -u alice --dry-run mem0.json
    memsidecar import mem0 --users all mem0.json
    memsidecar import mem0 -u alice --from-user telegram:42 mem0.json`
}

// Run imports the memories of a mem0 export.
func (c importMem0) Run(ctx context.Context, p *Program) error {
	return c.memories(ctx, p, "mem0", c.fileUsers, c.Files, migrate.Mem0)
}

type importLanceDB struct {
	Files []string `arg:"" name:"file" complete:"file" help:"JSONL, one row per line, or a JSON list. \"-\" is standard input."`

	fileUsers
	importFlags
}

// Help implements kong.HelpProvider.
func (importLanceDB) Help() string {
	return importHelp + `Columns are recognized by their usual names, also inside metadata; import jsonl accepts other names. Vectors are not imported,
because vectors of another model cannot be compared. docs/importing.md says how to export the rows.

Examples:

    memsidecar import lancedb -u alice rows.jsonl
    memsidecar import lancedb --users all rows.jsonl`
}

// Run imports the rows of a LanceDB table.
func (c importLanceDB) Run(ctx context.Context, p *Program) error {
	return c.memories(ctx, p, "lancedb", c.fileUsers, c.Files, func(in io.Reader, o migrate.Options, sink migrate.Sink) error {
		return migrate.Rows(in, "LanceDB", migrate.LanceDB, false, o, sink)
	})
}

type importJSONL struct {
	Files []string `arg:"" name:"file" complete:"file" help:"JSONL, one record per line, or a JSON list. \"-\" is standard input."`

	TextField       string `default:"text" placeholder:"NAME" help:"Field with the statement (${default}). A name may be a path, such as metadata.text."`
	IDField         string `name:"id-field" default:"id" placeholder:"NAME" help:"Field with the record's id (${default})."`
	TimeField       string `default:"time" placeholder:"NAME" help:"Field with the time (${default}): RFC 3339, a date, or seconds since 1970."`
	UserField       string `default:"user" placeholder:"NAME" help:"Field with the user id (${default})."`
	KindField       string `default:"kind" placeholder:"NAME" help:"Field with the kind (${default})."`
	ImportanceField string `default:"importance" placeholder:"NAME" help:"Field with the importance, 0 to 1 (${default})."`
	AgentField      string `default:"agent" placeholder:"NAME" help:"Field with the bot or persona (${default})."`
	SessionField    string `default:"session" placeholder:"NAME" help:"Field with the conversation (${default})."`

	fileUsers
	importFlags
}

// Help implements kong.HelpProvider.
func (importJSONL) Help() string {
	return importHelp + `Fields that no flag names are kept in the provenance of each memory.

Examples:

    memsidecar import jsonl -u alice --text-field fact --time-field meta.when facts.jsonl
    memsidecar import jsonl --users all --user-field owner facts.jsonl`
}

// Run imports statements from JSONL.
func (c importJSONL) Run(ctx context.Context, p *Program) error {
	fields := migrate.Fields{
		Text: []string{c.TextField}, ID: []string{c.IDField}, Time: []string{c.TimeField}, User: []string{c.UserField},
		Kind: []string{c.KindField}, Importance: []string{c.ImportanceField}, Agent: []string{c.AgentField}, Session: []string{c.SessionField},
	}
	return c.memories(ctx, p, "jsonl", c.fileUsers, c.Files, func(in io.Reader, o migrate.Options, sink migrate.Sink) error {
		return migrate.Rows(in, "JSONL", fields, true, o, sink)
	})
}

// reader reads memories of a format.
type reader func(io.Reader, migrate.Options, migrate.Sink) error

// source is a file and its reader.
type source struct {
	path string
	read reader
}

// memories imports files that contain only memories.
func (f importFlags) memories(ctx context.Context, p *Program, format string, users fileUsers, paths []string, read reader) error {
	m, err := f.importer(p, format, users)
	if err != nil {
		return err
	}
	sources := make([]source, len(paths))
	for i, path := range paths {
		sources[i] = source{path, read}
	}
	if err := m.check(ctx, sources); err != nil {
		return err
	}
	return m.do(ctx, func() error { return m.memories(ctx, sources) })
}

// importer is an import in progress.
type importer struct {
	importFlags
	users   fileUsers
	p       *Program
	format  string
	options migrate.Options
	scope   *memsidecarv1.Scope // without a user if each item has its own
	conn    *connection
	report  report
	total   int // number of records, or -1

	owner    string // user that the files name, if any
	existing map[string]*existingMemories
	batches  []*userBatch
	queued   int
	bytes    int
	stored   int
}

func (f importFlags) importer(p *Program, format string, users fileUsers) (*importer, error) {
	zone, err := f.zone()
	if err != nil {
		return nil, err
	}
	var scope *memsidecarv1.Scope
	switch {
	case users.Users != "" && f.User != "":
		return nil, usage("use either --user %s (or MEMSIDECAR_USER) or --users all, not both", line(f.User))
	case users.Users != "":
		scope, err = f.withChannel(f.optionalScope(), memsidecarv1.ChannelKind_CHANNEL_KIND_UNSPECIFIED)
	case f.User == "" && users != (fileUsers{}) || f.User == "" && format != "nanobot" && format != "history":
		return nil, usage("name the user with --user ID (or MEMSIDECAR_USER), or use --users all when the file names the users")
	default:
		scope, err = f.writeScope()
	}
	if err != nil {
		return nil, err
	}
	return &importer{
		importFlags: f, users: users, p: p, format: format, scope: scope, existing: map[string]*existingMemories{},
		options: migrate.Options{Zone: zone, Now: time.Now()}, report: report{format: format, dryRun: f.DryRun},
	}, nil
}

// do runs the import and always reports the outcome.
func (m *importer) do(ctx context.Context, run func() error) (err error) {
	if m.conn, err = m.dial(m.p, 0); err != nil {
		return err
	}
	defer m.conn.close()
	err = run()
	if err == nil || !m.report.empty() {
		if showErr := m.report.show(m.p, m.output); err == nil {
			err = showErr
		}
	}
	switch {
	case ctx.Err() != nil && m.stored == 0:
		return interrupted("; nothing was stored")
	case ctx.Err() != nil:
		return interrupted(" after %s; run it again to complete it, nothing is stored twice", m.done())
	case err != nil && m.stored > 0:
		return m.stopped(err)
	case err != nil:
		return err
	}
	if bad := m.report.bad(); bad > 0 {
		return failure("%s skipped because of mistakes; the others are imported", count(bad, "record was", "records were"))
	}
	return nil
}

// done returns the number of stored records.
func (m *importer) done() string {
	return count(m.stored, "record, which is", "records, which are") + " stored"
}

// stopped adds the number of stored records and a remedy to an error, unless it has them.
func (m *importer) stopped(err error) error {
	message, again := err.Error(), "; correct this and run it again, nothing is stored twice"
	if isFatal(err) {
		again = "; run it again to complete it, nothing is stored twice"
	}
	if !strings.Contains(message, "nothing is stored twice") {
		message += again
	}
	return &Error{Code: ExitCode(err), Message: "stopped after " + m.done() + ": " + message, cause: err}
}

// open opens a file from its beginning.
func (m *importer) open(ctx context.Context, path string, read func(io.Reader) error) (err error) {
	in, err := m.p.open(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	stop := errors.New("")
	err = read(readerFunc(func(b []byte) (int, error) {
		n, err := in.Read(b)
		if err != nil && !errors.Is(err, io.EOF) {
			stop = err
		}
		return n, err
	}))
	var own *Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil || errors.As(err, &own):
		return err
	case errors.Is(err, stop):
		return wrapError(err, "%s", inputName(path)) // an error of the disk, not of the file
	}
	return usage("%s: %s", inputName(path), line(err.Error()))
}

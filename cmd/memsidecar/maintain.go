package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/cli"
	"github.com/memsidecar/memsidecar/internal/observe/logs"
	"github.com/memsidecar/memsidecar/internal/sidecar"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// Commands for the administration of a data folder. They work on the files without a sidecar, for users who may read the folder.

type backupCommand struct {
	File    string `arg:"" complete:"file" help:"The file to create."`
	Replace bool   `help:"Replace an existing file when the new one is complete."`
	JSON    bool   `group:"output" help:"Print JSON."`
}

// Help implements kong.HelpProvider.
func (backupCommand) Help() string {
	return `The file is a snapshot of the database without deleted data. It gets its name after it was verified and synced to disk.
A backup still holds users who are forgotten later. Exported files of digests and notebooks are not included; they are
regenerated from the database.

Examples:

    memsidecar backup /backups/memsidecar-$(date +%F).db
    memsidecar backup --replace /backups/memsidecar.db`
}

// Run makes the backup.
func (b backupCommand) Run(ctx context.Context, m *Main, c *commands) error {
	dir, key, err := m.encryptionKey(c)
	if err != nil {
		return err
	}
	started := time.Now()
	bar := m.bar("copying")
	made, err := sqlite.MakeBackup(ctx, dir, b.File, sqlite.BackupOptions{
		Key: key, Replace: b.Replace, Progress: func(written, total int64) { bar.show("copying", written, total) },
	})
	bar.end()
	if err != nil {
		return maintenance(ctx, err)
	}
	plain := ""
	if !made.Encrypted && !key.IsZero() {
		plain = "; it is not encrypted, because the database is not: see memsidecar key encrypt"
	}
	return m.printResult(b.JSON, made, "%s is a backup of %s: %.1f MiB, verified, in %s%s\n",
		made.File, dir, float64(made.Bytes)/mebibyte, time.Since(started).Round(time.Millisecond), plain)
}

type restoreCommand struct {
	File    string `arg:"" complete:"file" help:"A file from memsidecar backup."`
	Replace bool   `help:"Replace an existing database; the old one stays in the folder under another name."`
	JSON    bool   `group:"output" help:"Print JSON."`
}

// Help implements kong.HelpProvider.
func (restoreCommand) Help() string {
	return `Stop the sidecar first. Changes made after the backup are lost. Users who were forgotten after the backup return: forget them
again.

Examples:

    memsidecar restore --data-dir /var/lib/memsidecar /backups/memsidecar.db
    memsidecar restore --replace /backups/memsidecar.db`
}

// Run restores the backup.
func (r restoreCommand) Run(ctx context.Context, m *Main, c *commands) error {
	dir, key, err := m.encryptionKey(c)
	if err != nil {
		return err
	}
	restored, err := sqlite.Files{Key: key}.Restore(ctx, r.File, dir, r.Replace, time.Now())
	if err != nil {
		return maintenance(ctx, err)
	}
	aside := ""
	if restored.Aside != "" {
		aside = "; the old one is kept as " + filepath.Base(restored.Aside) + ": delete it when you no longer need it"
	}
	return m.printResult(r.JSON, restored, "%s has the database of %s%s\n", restored.Dir, r.File, aside)
}

type checkCommand struct {
	File string `arg:"" optional:"" complete:"file" help:"A backup to check, instead of the data folder."`
	JSON bool   `group:"output" help:"Print JSON."`
}

// Help implements kong.HelpProvider.
func (checkCommand) Help() string {
	return `It reads everything and changes nothing; the sidecar may run. The exit code is 0 only if nothing is wrong.

Examples:

    memsidecar check
    memsidecar check /backups/memsidecar.db`
}

// checkedJSON is the output of check --json.
type checkedJSON struct {
	File   string        `json:"file"`
	Schema int64         `json:"schema"`
	Sound  bool          `json:"sound"`
	Checks []findingJSON `json:"checks"`
}

type findingJSON struct {
	Check    string   `json:"check"`
	Problems int64    `json:"problems"`
	Examples []string `json:"examples,omitempty"`
	Remedy   string   `json:"remedy,omitempty"`
}

// Run checks the database and prints what it found.
func (k checkCommand) Run(ctx context.Context, m *Main, c *commands) error {
	dir, key, err := m.encryptionKey(c)
	if err != nil {
		return err
	}
	file := k.File
	if file == "" {
		file = sqlite.DatabasePath(dir)
	}
	r, err := sqlite.Files{Key: key, Checks: sqlstore.Checks()}.Check(ctx, file, k.File != "")
	if err != nil {
		return maintenance(ctx, err)
	}
	answer := checkedJSON{File: r.File, Schema: r.Schema, Sound: r.Sound()}
	var text strings.Builder
	for _, f := range r.Findings {
		one := findingJSON{Check: f.Check, Problems: f.Problems, Examples: f.Examples}
		if f.Problems == 0 {
			fmt.Fprintf(&text, "%-14s ok      %s\n", f.Check, f.About)
		} else {
			one.Remedy = f.Remedy
			fmt.Fprintf(&text, "%-14s BROKEN  problems: %d\n", f.Check, f.Problems)
			for _, example := range f.Examples {
				fmt.Fprintf(&text, "    %s\n", example)
			}
			fmt.Fprintf(&text, "  what to do: %s\n", f.Remedy)
		}
		answer.Checks = append(answer.Checks, one)
	}
	if r.Schema != r.Known && r.Schema != 0 {
		fmt.Fprintf(&text, "Other checks were skipped: the schema is %d, and this memsidecar supports %d.\n", r.Schema, r.Known)
	}
	if err := m.printResult(k.JSON, answer, "%s", text.String()); err != nil {
		return err
	}
	if !r.Sound() {
		return &cli.Error{Code: cli.ExitFailure, Message: file + " is damaged"}
	}
	return nil
}

type reindexCommand struct {
	KeepVectors bool `help:"Keep the vectors: a provider's model takes time and money to compute them again."`
	JSON        bool `group:"output" help:"Print JSON."`
}

// Help implements kong.HelpProvider.
func (reindexCommand) Help() string {
	return `Stop the sidecar first. Messages and memories do not change: the database's indexes and the keyword index are rebuilt, and vectors
are dropped. The next sidecar computes the vectors in the background; until then recall uses keywords, and memsidecar status
shows the progress. If reindex is interrupted, the next sidecar completes it.

Examples:

    memsidecar reindex
    memsidecar reindex --keep-vectors --data-dir /var/lib/memsidecar`
}

// Run rebuilds the indexes.
func (r reindexCommand) Run(ctx context.Context, m *Main, c *commands) error {
	loaded, err := m.load(c)
	if err != nil {
		return err
	}
	key, err := sidecar.EncryptionKey(loaded.Config.Encryption)()
	if err != nil {
		return usageError{err}
	}
	bar := m.bar("reindexing")
	var done sqlstore.Rebuilt
	err = sqlite.Reindex(
		ctx,
		loaded.Config.DataDir,
		logs.New(m.Stderr, loaded.Config.Log.Level, loaded.Config.Log.Format),
		key,
		func(ctx context.Context, db sqldb.Access) (err error) {
			done, err = sqlstore.Rebuild(ctx, db, sqlstore.RebuildOptions{KeepVectors: r.KeepVectors, Progress: bar.show})
			return err
		},
	)
	bar.end()
	if err != nil {
		return maintenance(ctx, err)
	}
	vectors := "; the vectors were kept"
	if !r.KeepVectors {
		vectors = fmt.Sprintf("; %d vectors were dropped, and the next sidecar computes them again", done.Vectors)
	}
	return m.printResult(r.JSON, done, "the keyword index has %d messages; the newest of each user need no index%s\n", done.Postings, vectors)
}

// printResult prints the result as JSON or text.
func (m *Main) printResult(asJSON bool, answer any, format string, args ...any) error {
	if asJSON {
		return json.NewEncoder(m.Stdout).Encode(answer)
	}
	_, err := fmt.Fprintf(m.Stdout, format, args...)
	return err
}

// workBar is a progress bar on a terminal.
type workBar struct{ *progressbar.ProgressBar }

func (m *Main) bar(what string) workBar { return workBar{cli.Progress(m.Stderr, -1, what)} }

func (b workBar) show(what string, done, total int64) {
	b.Describe(what)
	b.ChangeMax64(max(1, total))
	_ = b.Set64(done) // a lost terminal does not matter
}

func (b workBar) end() { _ = b.Finish() }

// maintenance adds the exit code and a remedy to an error.
func maintenance(ctx context.Context, err error) error {
	code, advice := cli.ExitFailure, ""
	switch {
	case ctx.Err() != nil:
		return &cli.Error{Code: cli.ExitInterrupted, Message: "interrupted; the next sidecar continues with a consistent database"}
	case errors.Is(err, sqlite.ErrLocked):
		return &cli.Error{
			Code:    cli.ExitUnavailable,
			Message: "a sidecar uses this data folder: stop it first, or name another folder with --data-dir",
		}
	case errors.Is(err, sqlite.ErrInUse):
		code = cli.ExitUnavailable
	case errors.Is(err, sqlite.ErrExists):
		code, advice = cli.ExitUsage, "choose another name, or add --replace"
	case errors.Is(err, sqlite.ErrOccupied):
		code, advice = cli.ExitUsage, "add --replace to keep the old one under another name"
	case errors.Is(err, sqlite.ErrNoDatabase):
		code, advice = cli.ExitNotFound, "name the folder of the sidecar with --data-dir"
	case errors.Is(err, fs.ErrNotExist):
		code = cli.ExitNotFound
	case errors.Is(err, sqlite.ErrForeign), errors.Is(err, sqlite.ErrIncomplete), errors.Is(err, sqlite.ErrNewer),
		errors.Is(err, sqlite.ErrEncrypted), errors.Is(err, sqlite.ErrNotEncrypted), errors.Is(err, sqlite.ErrKey), errors.Is(err, sqlite.ErrUnchanged):
		code = cli.ExitUsage
	}
	if advice != "" {
		return &cli.Error{Code: code, Message: err.Error() + "; " + advice}
	}
	return &cli.Error{Code: code, Message: err.Error()}
}

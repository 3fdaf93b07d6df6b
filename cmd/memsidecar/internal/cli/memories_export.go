package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/encoding/protojson"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type memoriesExport struct {
	File string `arg:"" optional:"" default:"-" complete:"file" help:"The file to write; \"-\" (the default) is standard output."`

	person
	sidecarFlag
}

// Help implements kong.HelpProvider.
func (memoriesExport) Help() string {
	return `One record per line: the settings, the memories, their revisions, the considerations with their dialogues, the sessions, each
followed by its messages, the traces, the findings of digests, and the numbered lists. memsidecar sessions export writes a
single session.
The file is created only when it is complete, and only its owner can read it.

Examples:

    memsidecar memories export -u alice alice.jsonl
    memsidecar memories export -u alice | gzip > alice.jsonl.gz`
}

// Run writes all records.
func (c memoriesExport) Run(ctx context.Context, p *Program) error {
	scope, err := c.userScope()
	if err != nil {
		return err
	}
	conn, err := c.dial(p, 0)
	if err != nil {
		return err
	}
	defer conn.close()
	e := &export{p: p, conn: conn, scope: scope}
	if c.File == "-" {
		err = e.write(ctx, p.Stdout)
	} else {
		err = replaceFile(c.File, func(w io.Writer) error { return e.write(ctx, w) })
	}
	switch {
	case err == nil:
	case ExitCode(err) == ExitInterrupted && c.File == "-":
		return interrupted("; what was written is not complete")
	case ExitCode(err) == ExitInterrupted:
		return interrupted("; %s was not written", line(c.File))
	default:
		return err
	}
	history := ""
	if e.revisions > 0 {
		history = count(e.revisions, "change of them", "changes of them") + ", "
	}
	items := ""
	if e.items > 0 {
		items = ", and " + count(e.items, "registry item", "registry items")
	}
	p.note(
		"exported %s, %s%s, %s with %s, %s, and %s",
		count(e.memories, "memory", "memories"),
		history,
		count(e.considerations, "consideration", "considerations"),
		count(e.sessions, "session", "sessions"),
		count(e.messages, "message", "messages"),
		count(e.traces, "trace", "traces"),
		count(e.findings, "finding of digests", "findings of digests")+items,
	)
	return nil
}

// export is an export in progress with its counts.
type export struct {
	p     *Program
	conn  *connection
	scope *memsidecarv1.Scope

	memories, revisions, considerations, sessions, messages, traces, findings, items int
}

func (e *export) write(ctx context.Context, w io.Writer) (err error) {
	stream, err := e.conn.ExportUser(ctx, &memsidecarv1.ExportUserRequest{Scope: e.scope})
	if err != nil {
		return err
	}
	bar := e.p.progress(-1, "records")
	defer func() { err = errors.Join(err, bar.Finish()) }()
	buffered := bufio.NewWriter(w)
	for {
		record, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return buffered.Flush()
		}
		if err != nil {
			return err
		}
		switch record.GetRecord().(type) {
		case *memsidecarv1.ExportUserResponse_Memory:
			e.memories++
		case *memsidecarv1.ExportUserResponse_MemoryRevision:
			e.revisions++
		case *memsidecarv1.ExportUserResponse_Consideration:
			e.considerations++
		case *memsidecarv1.ExportUserResponse_Session:
			e.sessions++
		case *memsidecarv1.ExportUserResponse_Message:
			e.messages++
		case *memsidecarv1.ExportUserResponse_Trace:
			e.traces++
		case *memsidecarv1.ExportUserResponse_RegistryItem:
			e.items++
		case *memsidecarv1.ExportUserResponse_DigestFinding:
			e.findings++
		}
		data, err := jsonLine(record, protojson.MarshalOptions{UseProtoNames: true})
		if err != nil {
			return err
		}
		if _, err := buffered.Write(data); err != nil {
			return err
		}
		if err := bar.Add(1); err != nil {
			return err
		}
	}
}

// replaceFile writes a complete file or none: it writes a temporary file in the same folder, syncs it and renames it.
func replaceFile(path string, write func(io.Writer) error) (err error) {
	dir, name := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return usage("%s is not a file: name one, or use - for standard output", line(path))
	}
	file, err := os.CreateTemp(dir, "."+name+".*.partial")
	if err != nil {
		return usage("%v", err)
	}
	defer func() {
		if err != nil {
			_ = file.Close()
			_ = os.Remove(file.Name())
		}
	}()
	if err := write(file); err != nil {
		return err
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	syncDir(dir)
	return nil
}

// syncDir makes the renaming durable where the platform can; the file is complete either way.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}

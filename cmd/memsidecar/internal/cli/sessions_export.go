package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/migrate/sessionfile"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// zoneFlag is the zone of files without zones.
type zoneFlag struct {
	TimeZone string `default:"UTC" placeholder:"ZONE" help:"IANA time zone of times without a zone (${default})."`
}

func (f zoneFlag) zone() (*time.Location, error) {
	zone, err := time.LoadLocation(f.TimeZone)
	if err != nil || f.TimeZone == "" {
		return nil, usage("--time-zone %s: write an IANA time zone, for example Asia/Shanghai", line(f.TimeZone))
	}
	return zone, nil
}

type sessionsExport struct {
	File    string `arg:"" optional:"" default:"-" complete:"file" help:"A file, a folder, or \"-\" (the default), standard output."`
	Format  string `enum:",json,jsonl" default:"" placeholder:"FORMAT" help:"json or jsonl. By default the ending of the file's name, else json."`
	Session string `group:"scope" placeholder:"ID" help:"The session."`

	zoneFlag
	conversation
	agentFlag
	sidecarFlag
}

// Help implements kong.HelpProvider.
func (sessionsExport) Help() string {
	return sessionsHelp + `Without --session, the current session of the channel is exported.
json is one object with its messages; jsonl is one line for the session and then one line per message (docs/cli.md).
In a folder, the file is named session_YYYYMMDD_ID.json.
The file names speakers unless --user is the only one, and agents other than --agent. The file is created only when it is
complete, and only its owner can read it.

Examples:

    memsidecar sessions export -u alice --session chat-1 chat-1.json
    memsidecar sessions export -u 小林 --session chat-1 --time-zone Asia/Shanghai history/`
}

// Run writes the session.
func (c sessionsExport) Run(ctx context.Context, p *Program) error {
	scope, err := c.sessionScope(c.Session)
	if err != nil {
		return err
	}
	zone, err := c.zone()
	if err != nil {
		return err
	}
	conn, err := c.dial(p, 0)
	if err != nil {
		return err
	}
	defer conn.close()
	stream, err := conn.ExportSession(ctx, &memsidecarv1.ExportSessionRequest{Scope: scope})
	if err != nil {
		return err
	}
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	e := &sessionExport{c: c, p: p, stream: stream, session: first.GetSession(), zone: zone}
	path := e.path()
	if path == "-" {
		err = e.toStdout()
	} else {
		err = replaceFile(path, e.write)
	}
	switch {
	case err == nil:
	case ExitCode(err) == ExitInterrupted && path == "-":
		return interrupted("; what was written is not complete")
	case ExitCode(err) == ExitInterrupted:
		return interrupted("; %s was not written", line(path))
	default:
		return err
	}
	to := ""
	if path != c.File {
		to = " to " + path
	}
	p.note("exported %s of %s%s", count(e.messages, "message", "messages"), e.session.GetId(), to)
	return nil
}

// sessionExport is an export in progress.
type sessionExport struct {
	c        sessionsExport
	p        *Program
	stream   grpc.ServerStreamingClient[memsidecarv1.ExportSessionResponse]
	session  *memsidecarv1.Session
	zone     *time.Location
	messages int
}

func (e *sessionExport) format(path string) sessionfile.Format {
	switch {
	case e.c.Format != "":
		return sessionfile.Format(e.c.Format)
	case filepath.Ext(path) == ".jsonl":
		return sessionfile.JSONL
	}
	return sessionfile.JSON
}

// path returns the file to write. In a folder the name has the day and the id.
func (e *sessionExport) path() string {
	info, err := os.Stat(e.c.File)
	if e.c.File == "-" || err != nil || !info.IsDir() {
		return e.c.File
	}
	day := e.session.GetCreateTime().AsTime().In(e.zone).Format("20060102")
	return filepath.Join(e.c.File, fmt.Sprintf("session_%s_%s.%s", day, fileName(e.session.GetId()), e.format("")))
}

// fileName encodes an id as a part of a file name for any system. Special characters are encoded as in a URL.
func fileName(id string) string {
	var b strings.Builder
	for _, r := range id {
		if r < ' ' || strings.ContainsRune(`/\:*?"<>|%`, r) || dangerous(r) {
			for _, c := range []byte(string(r)) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func (e *sessionExport) write(w io.Writer) (err error) {
	buffered := bufio.NewWriter(w)
	file, err := sessionfile.NewWriter(buffered, e.format(e.c.File), e.zone, e.session)
	if err != nil {
		return err
	}
	if people := e.session.GetParticipantIds(); len(people) == 1 && people[0] == e.c.User {
		file.Speaker = e.c.User
	}
	file.Agent = e.c.Agent
	bar := e.p.progress(int(e.session.GetMessageCount()), "messages")
	defer func() { err = errors.Join(err, bar.Finish()) }()
	for {
		record, err := e.stream.Recv()
		if errors.Is(err, io.EOF) {
			return errors.Join(file.Close(), buffered.Flush())
		}
		if err != nil {
			return err
		}
		if err := file.Write(record.GetMessage().GetMessage()); err != nil {
			return err
		}
		e.messages++
		if err := bar.Add(1); err != nil {
			return err
		}
	}
}

// toStdout writes the bytes unchanged, but escapes control characters on a terminal.
func (e *sessionExport) toStdout() error {
	if _, ok := terminal(e.p.Stdout); !ok {
		return e.write(e.p.Stdout)
	}
	var b bytes.Buffer
	if err := e.write(&b); err != nil {
		return err
	}
	_, err := e.p.Stdout.Write(harmless(b.Bytes()))
	return err
}

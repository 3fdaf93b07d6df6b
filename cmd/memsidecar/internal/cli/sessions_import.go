package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"github.com/schollz/progressbar/v3"
	"google.golang.org/grpc"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/migrate"
	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/migrate/sessionfile"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type sessionsImport struct {
	File     string `arg:"" complete:"file" help:"JSON or JSONL: the output of export, or a list of messages. \"-\" is standard input."`
	Session  string `group:"scope" placeholder:"ID" help:"The session. By default the one that the file names."`
	Consider bool   `help:"Let the sidecar create memories from the messages. By default they are history only."`

	zoneFlag
	conversation
	agentFlag
	sidecarFlag
	output
}

// Help implements kong.HelpProvider.
func (sessionsImport) Help() string {
	return sessionsHelp + `The file is read completely before anything is sent: one with a mistake stores nothing, and the error names the line.
Messages that exist already, by id or else by position, are not added again, so importing twice adds nothing.
User messages without a speaker get --user, and answers without an agent get --agent.

Examples:

    memsidecar sessions import -u alice chat-1.json
    memsidecar sessions import -u 小林 --time-zone Asia/Shanghai --session telegram_1 telegram_1.jsonl`
}

// Run sends the file's session.
func (c sessionsImport) Run(ctx context.Context, p *Program) error {
	scope, err := c.writeScope()
	if err != nil {
		return err
	}
	file, err := c.read(ctx, p)
	if err != nil {
		return err
	}
	name := inputName(c.File)
	scope.SessionId, scope.AgentId = c.Session, c.Agent
	if c.Session == "" && file.Session.GetId() == "" {
		return usage("%s does not say which session it is: say it with --session", name)
	}
	if len(file.Messages) == 0 {
		return usage("%s has no messages", name)
	}
	conn, err := c.dial(p, 0)
	if err != nil {
		return err
	}
	defer conn.close()
	s := &sendingSession{name: name, lines: file.Lines, bar: p.progress(len(file.Messages), "messages")}
	resp, err := s.send(ctx, conn, &memsidecarv1.ImportedSession{Scope: scope, Session: file.Session, Consider: c.Consider}, file.Messages)
	if barErr := s.bar.Finish(); err == nil {
		err = barErr
	}
	if err != nil {
		return s.explain(ctx, err)
	}
	if err := c.show(p, resp, func(out *screen) {
		out.fields("session", cell{resp.GetSession().GetId(), bold}, "added", cell{strconv.FormatInt(resp.GetAddedCount(), 10), green},
			"there already", resp.GetSkippedCount(), "has now", count(resp.GetSession().GetMessageCount(), "message", "messages"))
	}); err != nil {
		return err
	}
	if ctx.Err() != nil && s.sent < len(file.Messages) {
		return interrupted(" after %s, which %s stored; run it again to complete it, nothing is stored twice",
			count(s.sent, "message", "messages"), isAre(s.sent))
	}
	return nil
}

func (c sessionsImport) read(ctx context.Context, p *Program) (_ *sessionfile.File, err error) {
	zone, err := c.zone()
	if err != nil {
		return nil, err
	}
	in, err := p.open(ctx, c.File)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	text, err := migrate.Text(in)
	if err != nil {
		return nil, usage("%s: %s", inputName(c.File), line(err.Error()))
	}
	file, err := sessionfile.Read(text, zone)
	switch {
	case ctx.Err() != nil:
		return nil, interrupted("; nothing was sent")
	case err != nil:
		return nil, usage("%s: %s", inputName(c.File), line(err.Error()))
	}
	return file, nil
}

// sendingSession is an import in progress.
type sendingSession struct {
	name  string // of the file, for errors
	lines []int  // line numbers of the messages
	bar   *progressbar.ProgressBar
	sent  int // messages
}

func (s *sendingSession) send(
	ctx context.Context,
	conn *connection,
	about *memsidecarv1.ImportedSession,
	messages []*memsidecarv1.Message,
) (*memsidecarv1.ImportSessionResponse, error) {
	// An interruption ends the sending, not the call: the answer says how much was stored.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { afterGrace(running, cancel) })
	defer stop()
	stream, err := conn.ImportSession(running)
	if err != nil {
		return nil, err
	}
	err = stream.Send(&memsidecarv1.ImportSessionRequest{Item: &memsidecarv1.ImportSessionRequest_Session{Session: about}})
	if err == nil {
		err = s.messages(ctx, stream, messages)
	}
	if err != nil && !errors.Is(err, io.EOF) { // io.EOF: the answer has the error
		return nil, err
	}
	return stream.CloseAndRecv()
}

func (s *sendingSession) messages(
	ctx context.Context,
	stream grpc.ClientStreamingClient[memsidecarv1.ImportSessionRequest, memsidecarv1.ImportSessionResponse],
	messages []*memsidecarv1.Message,
) error {
	for _, m := range messages {
		select {
		case <-ctx.Done():
			return nil
		default:
		}
		if err := stream.Send(&memsidecarv1.ImportSessionRequest{Item: &memsidecarv1.ImportSessionRequest_Message{Message: m}}); err != nil {
			return err
		}
		s.sent++
		if err := s.bar.Add(1); err != nil {
			return err
		}
	}
	return nil
}

// streamed matches the sidecar's name of a message of the stream.
var streamed = regexp.MustCompile(`(?:stream\.)?message\[(\d+)\](?: \((?:messages\[0\]\.)?([^)]*)\))?\.?`)

// explain replaces positions by lines, and adds how much is stored.
func (s *sendingSession) explain(ctx context.Context, err error) error {
	message := streamed.ReplaceAllStringFunc(err.Error(), func(found string) string {
		parts := streamed.FindStringSubmatch(found)
		i, err := strconv.Atoi(parts[1])
		if err != nil || i >= len(s.lines) {
			return found
		}
		return fmt.Sprintf("line %d: %s", s.lines[i], parts[2])
	})
	code := ExitCode(err)
	if ctx.Err() != nil {
		code = ExitInterrupted
	}
	again := ""
	if s.sent > 0 {
		again = "; what was stored before stays: run it again to complete it, nothing is stored twice"
	}
	if code == ExitUsage && again != "" {
		again = "; what was stored before stays: correct this and run it again, nothing is stored twice"
	}
	return &Error{Code: code, Message: s.name + ": " + message + again, cause: err}
}

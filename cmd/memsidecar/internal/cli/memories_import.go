package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/migrate"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type memoriesImport struct {
	File string `arg:"" complete:"file" help:"JSONL: the output of export, or one memory per line. \"-\" is standard input."`

	place
	sidecarFlag
	output
}

// Help implements kong.HelpProvider.
func (memoriesImport) Help() string {
	return `Memories that exist already, by id or by text, are not changed; imported memories keep their state. Importing twice adds nothing.
Withdrawn memories, settings, considerations, sessions, traces, digests and revisions are not imported; memsidecar sessions
import reads a session. A file is read completely before anything is sent: one with a mistake stores nothing.
Without --channel-kind, memories that name no channel belong to none.

Examples:

    memsidecar memories import -u alice alice.jsonl
    echo '{"text": "The user likes jazz."}' | memsidecar memories import -u alice -`
}

// Run sends the memories of the file.
func (c memoriesImport) Run(ctx context.Context, p *Program) (err error) {
	scope, err := c.writeScope()
	if err != nil {
		return err
	}
	total := -1
	if info, err := os.Stat(c.File); c.File != "-" && err == nil && info.Mode().IsRegular() {
		if total, err = c.check(ctx, p); err != nil {
			return err
		}
	}
	conn, err := c.dial(p, 0)
	if err != nil {
		return err
	}
	defer conn.close()

	// An interruption ends the reading, not the call: the answer says how much was stored.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { afterGrace(running, cancel) })
	defer stop()
	bar := p.progress(total, "memories")
	s := &sending{name: c.name(), bar: bar}
	if s.stream, err = conn.ImportMemories(running); err != nil {
		return err
	}
	if err := s.stream.Send(&memsidecarv1.ImportMemoriesRequest{Item: &memsidecarv1.ImportMemoriesRequest_Scope{Scope: scope}}); err != nil &&
		!errors.Is(err, io.EOF) {
		return err
	}
	// The answer is received concurrently, so that a lost sidecar ends the reading, too.
	reading, stopReading := context.WithCancel(ctx)
	defer stopReading()
	in, err := p.open(reading, c.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	resp, answer := &memsidecarv1.ImportMemoriesResponse{}, make(chan error, 1)
	go func() {
		answer <- s.stream.RecvMsg(resp)
		stopReading()
	}()
	stopped := records(in, s.name, func(n int, m *memsidecarv1.Memory) error {
		if err := reading.Err(); err != nil {
			return err
		}
		return s.send(n, m)
	})
	if errors.Is(stopped, io.EOF) { // the sidecar ended the call, and says why
		stopped = nil
	}
	err = s.stream.CloseSend()
	if answered := <-answer; answered != nil {
		err = answered
	}
	if barErr := bar.Finish(); err == nil {
		err = barErr
	}
	if err != nil {
		return s.explain(ctx, err)
	}
	if err := c.show(p, resp, func(out *screen) {
		out.fields("added", cell{strconv.FormatInt(resp.GetAddedCount(), 10), green}, "there already", resp.GetSkippedCount())
	}); err != nil {
		return err
	}
	if n := s.others; n > 0 {
		p.note(
			"left out %s of settings, considerations, sessions, traces and digests: only memories are imported",
			count(n, "line", "lines"),
		)
	}
	switch {
	case ctx.Err() != nil:
		return interrupted(" after %s, which %s stored; run it again to complete it, nothing is stored twice",
			count(len(s.lines), "memory", "memories"), isAre(len(s.lines)))
	case stopped != nil && len(s.lines) > 0:
		return wrapError(stopped, "%s before %s stored; correct this and run it again, nothing is stored twice",
			count(len(s.lines), "memory", "memories"), isAre(len(s.lines)))
	}
	return stopped
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// afterGrace cancels the context when the work has not finished in time.
func afterGrace(running context.Context, cancel func()) {
	select {
	case <-running.Done():
	case <-time.After(grace):
		cancel()
	}
}

func (c memoriesImport) name() string {
	if c.File == "-" {
		return "standard input"
	}
	return c.File
}

// check reads the whole file and counts its memories.
func (c memoriesImport) check(ctx context.Context, p *Program) (memories int, err error) {
	in, err := p.open(ctx, c.File)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	err = records(in, c.name(), func(_ int, m *memsidecarv1.Memory) error {
		if m != nil {
			memories++
		}
		return ctx.Err()
	})
	return memories, err
}

// records calls do for each line. The memory is nil for other records. Errors name the line.
func records(in io.Reader, name string, do func(n int, m *memsidecarv1.Memory) error) error {
	in, err := migrate.Text(in)
	if err != nil {
		return usage("%s: %s", name, line(err.Error()))
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxRecordBytes)
	n := 1
	for ; lines.Scan(); n++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		m, err := memoryOf(lines.Bytes())
		if err != nil {
			return usage("%s: line %d: %s", name, n, line(err.Error()))
		}
		if err := do(n, m); err != nil {
			return err
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return usage("%s: line %d is longer than %d bytes", name, n, maxRecordBytes)
	case errors.As(err, new(*migrate.NotTextError)):
		return usage("%s: %v", name, err)
	case err != nil:
		return wrapError(err, "%s: line %d", name, n)
	}
	return nil
}

// maxRecordBytes limits a line. A consideration's dialogue is a record, too, and is at most as long as a request; JSON may escape a byte
// as six.
const maxRecordBytes = 6 * 64 << 20

// memoryOf reads a record of an export, or a plain memory.
func memoryOf(data []byte) (*memsidecarv1.Memory, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("is not a JSON object: %w", err)
	}
	kinds := (&memsidecarv1.ExportUserResponse{}).ProtoReflect().Descriptor().Fields()
	for name := range fields {
		if name != "memory" && kinds.ByName(protoreflect.Name(name)) != nil {
			return nil, nil
		}
	}
	if m, ok := fields["memory"]; ok && len(fields) == 1 {
		data = m
	}
	m := &memsidecarv1.Memory{}
	if err := protojson.Unmarshal(data, m); err != nil {
		return nil, errors.New(jsonMistake(err))
	}
	return m, nil
}

// jsonMistake returns protojson's error with its column.
func jsonMistake(err error) string {
	text := strings.TrimSpace(strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto:"))
	return jsonPosition.ReplaceAllString(text, "column $1: ")
}

// jsonPosition matches the position in protojson's error.
var jsonPosition = regexp.MustCompile(`^(?:syntax error )?\(line 1:(\d+)\): `)

// sending is an import in progress.
type sending struct {
	name   string
	stream grpc.ClientStreamingClient[memsidecarv1.ImportMemoriesRequest, memsidecarv1.ImportMemoriesResponse]
	bar    *progressbar.ProgressBar
	lines  []int // of the memories sent, by their position in the stream
	others int   // lines that are not memories
}

func (s *sending) send(n int, m *memsidecarv1.Memory) error {
	if m == nil {
		s.others++
		return nil
	}
	s.lines = append(s.lines, n)
	if err := s.stream.Send(&memsidecarv1.ImportMemoriesRequest{Item: &memsidecarv1.ImportMemoriesRequest_Memory{Memory: m}}); err != nil {
		return err
	}
	return s.bar.Add(1)
}

// position matches the sidecar's name of a memory of the stream.
var position = regexp.MustCompile(`memory\[(\d+)\]\.?`)

// explain replaces positions by lines, and adds how much is stored.
func (s *sending) explain(ctx context.Context, err error) error {
	message := position.ReplaceAllStringFunc(err.Error(), func(found string) string {
		i, err := strconv.Atoi(position.FindStringSubmatch(found)[1])
		if err != nil || i >= len(s.lines) {
			return found
		}
		return fmt.Sprintf("line %d: ", s.lines[i])
	})
	code := ExitCode(err)
	if ctx.Err() != nil {
		code = ExitInterrupted
	}
	again := ""
	if len(s.lines) > 0 {
		again = "; what was stored before stays: run it again to complete it, nothing is stored twice"
		if code == ExitUsage {
			again = strings.Replace(again, "run it again", "correct this and run it again", 1)
		}
	}
	return &Error{Code: code, Message: s.name + ": " + message + again, cause: err}
}

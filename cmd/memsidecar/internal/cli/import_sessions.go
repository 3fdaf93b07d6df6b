package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/migrate"
	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/migrate/sessionfile"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// conversationFlags are the flags of commands that import conversations.
type conversationFlags struct {
	Consider      bool   `help:"Let the sidecar create memories from the messages. By default they are history only."`
	SessionPrefix string `placeholder:"TEXT" help:"Prefix for session ids, which are unique in a namespace."`
}

type importHistory struct {
	Files []string `arg:"" name:"file" complete:"file" help:"Files, or folders with session_*.json in them. \"-\" is standard input."`

	conversationFlags
	importFlags
}

// Help implements kong.HelpProvider.
func (importHistory) Help() string {
	return importHelp + `A file is one conversation, as sessions import reads it; messages without an id are identified by their position.

Examples:

    memsidecar import history -u alice storage/history
    memsidecar import history -u alice --dry-run session_20251231_abc.json`
}

// Run imports conversations.
func (c importHistory) Run(ctx context.Context, p *Program) error {
	paths, err := historyFiles(c.Files)
	if err != nil {
		return err
	}
	m, err := c.importer(p, "history", fileUsers{})
	if err != nil {
		return err
	}
	var conversations []conversationSource
	for _, path := range paths {
		conversations = append(conversations, conversationSource{path, func(in io.Reader, _ func(migrate.Skipped)) (*sessionfile.File, error) {
			text, err := migrate.Text(in)
			if err != nil {
				return nil, err
			}
			file, err := sessionfile.Read(text, m.options.Zone)
			if err != nil {
				return nil, err
			}
			for i, message := range file.Messages { // otherwise a dry run would count messages that the sidecar refuses
				if problem := migrate.MessageProblem(message); problem != "" {
					return nil, fmt.Errorf("line %d: %s", file.Lines[i], problem)
				}
			}
			return file, nil
		}})
	}
	if err := m.checkConversations(ctx, conversations); err != nil {
		return err
	}
	return m.do(ctx, func() error { return m.conversations(ctx, conversations, c.conversationFlags) })
}

// historyFiles returns the files, and those in the folders.
func historyFiles(paths []string) (files []string, err error) {
	for _, path := range paths {
		if info, err := os.Stat(path); path == stdinName || err != nil || !info.IsDir() {
			files = append(files, path) // opening it reports the error
			continue
		}
		found, err := filepath.Glob(filepath.Join(path, "session_*.json"))
		if err != nil || len(found) == 0 {
			return nil, usage("%s has no session_*.json: name the files", line(path))
		}
		files = append(files, found...)
	}
	return files, nil
}

// conversationSource is a file with one conversation.
type conversationSource struct {
	path string
	read func(io.Reader, func(migrate.Skipped)) (*sessionfile.File, error)
}

func (m *importer) conversation(ctx context.Context, s conversationSource, leave func(migrate.Skipped)) (file *sessionfile.File, err error) {
	err = m.open(ctx, s.path, func(in io.Reader) error {
		file, err = s.read(in, leave)
		return err
	})
	return file, err
}

// checkConversations reads all files completely, and counts.
func (m *importer) checkConversations(ctx context.Context, sources []conversationSource) error {
	for _, s := range sources {
		if s.path == stdinName {
			m.total = -1
			continue
		}
		file, err := m.conversation(ctx, s, func(migrate.Skipped) {})
		switch {
		case ctx.Err() != nil:
			return interrupted("; nothing was sent")
		case err != nil:
			return err
		case file.Session.GetId() == "":
			return usage("%s does not say which session it is: import it with sessions import --session ID", inputName(s.path))
		}
		if m.total >= 0 {
			m.total += len(file.Messages)
		}
	}
	return nil
}

// conversations imports the files one by one.
func (m *importer) conversations(ctx context.Context, sources []conversationSource, how conversationFlags) error {
	bar := m.p.progress(m.total, "messages")
	for _, s := range sources {
		to := m.report.part(inputName(s.path), "messages")
		file, err := m.conversation(ctx, s, to.skip)
		if err != nil {
			return errors.Join(err, bar.Finish())
		}
		if len(file.Messages) == 0 {
			continue
		}
		if file.Session.GetId() == "" {
			return errors.Join(usage("%s does not say which session it is: import it with sessions import --session ID", inputName(s.path)), bar.Finish())
		}
		scope := proto.CloneOf(m.scope)
		scope.SessionId, scope.AgentId = how.SessionPrefix+file.Session.GetId(), m.Agent
		about := &memsidecarv1.ImportedSession{Scope: scope, Session: file.Session, Consider: how.Consider}
		if m.DryRun {
			err = m.compare(ctx, to, about, file)
		} else {
			sending := &sendingSession{name: inputName(s.path), lines: file.Lines, bar: bar}
			err = m.sendConversation(ctx, to, sending, about, file)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return errors.Join(err, bar.Finish())
		}
	}
	return bar.Finish()
}

func (m *importer) sendConversation(ctx context.Context, to *part, s *sendingSession, about *memsidecarv1.ImportedSession, file *sessionfile.File) error {
	resp, err := s.send(ctx, m.conn, about, file.Messages)
	if err != nil {
		if status.Code(err) == codes.FailedPrecondition {
			err = &Error{Code: ExitUsage, Message: err.Error() + "; --session-prefix gives the sessions ids of their own", cause: err}
		}
		return s.explain(ctx, err)
	}
	to.added, to.there = int(resp.GetAddedCount()), int(resp.GetSkippedCount())
	m.stored += to.added
	return nil
}

// compare counts the messages that the sidecar would add: those it lacks, by id or else by position.
func (m *importer) compare(ctx context.Context, to *part, about *memsidecarv1.ImportedSession, file *sessionfile.File) error {
	ids, texts := map[string]bool{}, []string{}
	request := &memsidecarv1.ListMessagesRequest{Scope: about.GetScope(), PageSize: 1000}
	for more := true; more; more = request.GetPageToken() != "" {
		resp, err := m.conn.ListMessages(ctx, request)
		if isNotFound(err) {
			break
		}
		if err != nil {
			return err
		}
		for _, message := range resp.GetMessages() {
			ids[message.GetMessage().GetId()] = true
			texts = append(texts, message.GetMessage().GetContent())
		}
		request.PageToken = resp.GetNextPageToken()
	}
	for i, message := range file.Messages {
		id := message.GetId()
		if id != "" && ids[id] || id == "" && i < len(texts) && texts[i] == message.GetContent() {
			to.there++
		} else {
			to.added++
		}
	}
	return nil
}

type importNanobot struct {
	Paths []string `arg:"" name:"path" complete:"file" help:"The workspace (or ~/.nanobot), or files of it."`

	conversationFlags
	importFlags
}

// Help implements kong.HelpProvider.
func (importNanobot) Help() string {
	return importHelp + `MEMORY.md and daily notes (YYYY-MM-DD.md) become memories; headings decide their kind. Sessions (*.jsonl) become
sessions. HISTORY.md and history.jsonl become the session nanobot-history:USER, which is searched with the messages.
nanobot has one memory for all users, so --user names the owner.

Examples:

    memsidecar import nanobot -u alice --dry-run ~/.nanobot
    memsidecar import nanobot -u 小林 --time-zone Asia/Shanghai ~/.nanobot/workspace/memory`
}

// Run imports the memories and conversations of nanobot.
func (c importNanobot) Run(ctx context.Context, p *Program) error {
	files, err := nanobotFiles(c.Paths)
	if err != nil {
		return err
	}
	if c.User == "" {
		return usage("name the user with --user ID (or MEMSIDECAR_USER): nanobot's files do not name one")
	}
	m, err := c.importer(p, "nanobot", fileUsers{})
	if err != nil {
		return err
	}
	notes, conversations := m.nanobot(files)
	if err := m.check(ctx, notes); err != nil {
		return err
	}
	memories := m.total
	m.total = 0
	if err := m.checkConversations(ctx, conversations); err != nil {
		return err
	}
	messages := m.total
	return m.do(ctx, func() error {
		m.total = memories
		if err := m.memories(ctx, notes); err != nil || ctx.Err() != nil {
			return cmp.Or(err, ctx.Err())
		}
		m.total = messages
		return m.conversations(ctx, conversations, c.conversationFlags)
	})
}

// nanobot returns the reader of each file.
func (m *importer) nanobot(files []string) (notes []source, conversations []conversationSource) {
	for _, path := range files {
		name := filepath.Base(path)
		switch migrate.NanobotFile(name) {
		case migrate.NanobotNotes:
			notes = append(notes, source{path, func(in io.Reader, o migrate.Options, sink migrate.Sink) error {
				return migrate.Notes(in, name, migrate.DayOf(name, o), o, sink)
			}})
		case migrate.NanobotLog:
			conversations = append(conversations, conversationSource{path, func(in io.Reader, leave func(migrate.Skipped)) (*sessionfile.File, error) {
				return migrate.NanobotHistory(in, m.logSession(), strings.HasSuffix(name, ".jsonl"), m.options, leave)
			}})
		case migrate.NanobotConversation:
			conversations = append(conversations, conversationSource{path, func(in io.Reader, leave func(migrate.Skipped)) (*sessionfile.File, error) {
				return migrate.NanobotSession(in, strings.TrimSuffix(name, ".jsonl"), m.options, leave)
			}})
		}
	}
	return notes, conversations
}

// logSession returns the session id of the log. Ids are unique in a namespace, and each bot has one log.
func (m *importer) logSession() string {
	id := "nanobot-history:" + m.User
	if m.Channel != "" {
		id += "@" + m.Channel
	}
	return id
}

// nanobotFiles returns the files, and those in memory/ and sessions/ of the given folders.
func nanobotFiles(paths []string) (files []string, err error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, usage("%v", err)
		}
		if !info.IsDir() {
			if migrate.NanobotFile(filepath.Base(path)) == "" {
				return nil, usage("%s is not MEMORY.md, YYYY-MM-DD.md, HISTORY.md or *.jsonl", line(path))
			}
			files = append(files, path)
			continue
		}
		found, err := walkNanobot(path)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, usage("%s has no memory/MEMORY.md, no daily notes and no sessions/*.jsonl: name the workspace", line(path))
		}
		files = append(files, found...)
	}
	return files, nil
}

func walkNanobot(path string) (files []string, err error) {
	err = filepath.WalkDir(path, func(at string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return usage("%v", err)
		case entry.IsDir() && at != path && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		// Resolves ".", because the folder's own name counts, too.
		folder, err := filepath.Abs(filepath.Dir(at))
		if err != nil {
			return err
		}
		switch kind := migrate.NanobotFile(entry.Name()); filepath.Base(folder) {
		case "memory":
			if kind == migrate.NanobotNotes || kind == migrate.NanobotLog {
				files = append(files, at)
			}
		case "sessions":
			if kind == migrate.NanobotConversation {
				files = append(files, at)
			}
		}
		return nil
	})
	slices.Sort(files)
	return files, err
}

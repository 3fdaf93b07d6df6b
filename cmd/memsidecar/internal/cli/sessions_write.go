package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type sessionsAppend struct {
	Text     []string `arg:"" optional:"" help:"The text of the message. \"-\" is standard input."`
	Role     string   `enum:"user,assistant,system,tool" default:"user" placeholder:"ROLE" help:"Who spoke: user, assistant, system or tool (${default})."`
	Speaker  string   `placeholder:"ID" help:"The user id of who spoke, in a group. By default --user."`
	ID       string   `placeholder:"ID" help:"The message's id: the same id is added once."`
	Time     timeArg  `placeholder:"TIME" help:"When it was said. By default now."`
	Metadata string   `placeholder:"JSON" help:"A JSON object to store with the message."`
	File     string   `complete:"file" placeholder:"FILE" help:"Instead of a text, JSONL with one message of the API per line; \"-\" is standard input."`
	Session  string   `group:"scope" placeholder:"ID" help:"The session; by default the current one, or a new one."`

	conversation
	agentFlag
	calls
	output
}

// Help implements kong.HelpProvider.
func (sessionsAppend) Help() string {
	return sessionsHelp + `A session that does not exist is created. Without --channel-kind, it belongs to no channel.

Examples:

    memsidecar sessions append -u alice --session chat-1 "What may I cook tonight?"
    memsidecar sessions append -u alice --session chat-1 --role assistant --agent cook "Try the soup."
    echo '{"role": "ROLE_USER", "content": "Hello"}' | memsidecar sessions append -u alice --file -`
}

// Run appends the messages and shows how many were added.
func (c sessionsAppend) Run(ctx context.Context, p *Program) error {
	scope, err := c.writeScope()
	if err != nil {
		return err
	}
	scope.SessionId, scope.AgentId = c.Session, c.Agent
	request := &memsidecarv1.AppendMessagesRequest{Scope: scope}
	var lines []int
	if request.Messages, lines, err = c.messages(ctx, p); err != nil {
		return err
	}
	conn, err := c.dial(p)
	if err != nil {
		return err
	}
	defer conn.close()
	resp, err := conn.AppendMessages(ctx, request)
	if err != nil && c.File != "" && ExitCode(err) == ExitUsage {
		return usage("%s: %s", inputName(c.File), linesFor(block(serverMessage(err)), lines))
	}
	if err != nil {
		return err
	}
	return c.show(p, resp, func(s *screen) {
		created := ""
		if resp.GetCreated() {
			created = "the new "
		}
		added := s.paint("added "+count(int64(resp.GetAddedCount()), "message", "messages"), green)
		s.say("%s to %ssession %s, which has %d\n", added, created, line(resp.GetSession().GetId()), resp.GetSession().GetMessageCount())
	})
}

// messages returns the messages to add; for a file, with their lines.
func (c sessionsAppend) messages(ctx context.Context, p *Program) (list []*memsidecarv1.Message, lines []int, err error) {
	one := len(c.Text) > 0
	if one == (c.File != "") {
		return nil, nil, usage("say what to add: a text, or --file")
	}
	if one {
		text, err := p.text(ctx, c.Text)
		return []*memsidecarv1.Message{{
			Id: c.ID, Role: memsidecarv1.Role(valueOf(memsidecarv1.Role_value, "ROLE_", c.Role)), SpeakerId: c.Speaker, Content: text,
			SendTime: c.Time.timestamp(), MetadataJson: c.Metadata,
		}}, nil, err
	}
	if c.Role != "user" || c.Speaker != "" || c.ID != "" || !c.Time.IsZero() || c.Metadata != "" {
		return nil, nil, usage("with --file each line has its own role, speaker_id, id, send_time and metadata_json: remove the flags")
	}
	in, err := p.open(ctx, c.File)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	list, lines, err = readMessages(in)
	switch {
	case err != nil:
		return nil, nil, wrapError(err, "%s", inputName(c.File))
	case len(list) == 0:
		return nil, nil, usage("%s has no messages", inputName(c.File))
	case len(list) > maxAppendBatch:
		return nil, nil, usage("%s has more than %d messages: import them with memsidecar sessions import", inputName(c.File), maxAppendBatch)
	}
	return list, lines, nil
}

// maxAppendBatch is the limit of one call.
const maxAppendBatch = 1000

// readMessages reads one message of the API per line.
func readMessages(in io.Reader) (list []*memsidecarv1.Message, numbers []int, err error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxRecordBytes)
	for n := 1; lines.Scan() && len(list) <= maxAppendBatch; n++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		m := &memsidecarv1.Message{}
		if err := protojson.Unmarshal(lines.Bytes(), m); err != nil {
			return nil, nil, usage("line %d: %s", n, line(jsonMistake(err)))
		}
		list, numbers = append(list, m), append(numbers, n)
	}
	return list, numbers, lines.Err()
}

// listed matches the sidecar's name of a message of a list.
var listed = regexp.MustCompile(`messages\[(\d+)\]\.?`)

// linesFor replaces positions by lines.
func linesFor(message string, lines []int) string {
	message = strings.TrimPrefix(message, "invalid request: ")
	return listed.ReplaceAllStringFunc(message, func(found string) string {
		i, err := strconv.Atoi(listed.FindStringSubmatch(found)[1])
		if err != nil || i >= len(lines) {
			return found
		}
		return fmt.Sprintf("line %d: ", lines[i])
	})
}

// inputName returns the name of an input for messages.
func inputName(file string) string {
	if file == "-" {
		return "standard input"
	}
	return line(file)
}

// intervalArg is the number of user messages after which messages are considered automatically.
type intervalArg struct {
	given bool
	n     *int32 // nil: the default
}

// UnmarshalText reads a number, or "default".
func (e *intervalArg) UnmarshalText(text []byte) error {
	e.given, e.n = true, nil
	if string(text) == "default" {
		return nil
	}
	n, err := strconv.ParseInt(string(text), 10, 32)
	if err != nil || n < 0 {
		return errors.New(`write a number of messages, 0 for never, or "default"`)
	}
	value := int32(n)
	e.n = &value
	return nil
}

// everyName describes the interval of a session or a user.
func everyName(set bool, n int32, otherwise string) string {
	switch {
	case !set:
		return otherwise
	case n == 0:
		return "never automatically"
	case n == 1:
		return "after every user message"
	}
	return fmt.Sprintf("after %d user messages", n)
}

type sessionsUpdate struct {
	ID            string      `arg:"" optional:"" help:"The session's id."`
	Title         *string     `placeholder:"TITLE" help:"The new title; \"\" is none."`
	Metadata      *string     `placeholder:"JSON" help:"The new metadata: a JSON object; \"\" is none."`
	MemorizeEvery intervalArg `placeholder:"N" help:"Consider messages after every N user messages; 0 is never, \"default\" as configured."`

	conversation
	calls
	output
}

// Help implements kong.HelpProvider.
func (sessionsUpdate) Help() string {
	return currentHelp + `Only what is given is changed.

Examples:

    memsidecar sessions update -u alice chat-1 --title "Dinner" --metadata '{"mood": "hungry"}'
    memsidecar sessions update -u alice chat-1 --memorize-every default`
}

// Run changes the given fields and shows the session.
func (c sessionsUpdate) Run(ctx context.Context, p *Program) error {
	request := &memsidecarv1.UpdateSessionRequest{Session: &memsidecarv1.Session{}, UpdateMask: &fieldmaskpb.FieldMask{}}
	change := func(field string) { request.UpdateMask.Paths = append(request.UpdateMask.Paths, field) }
	if c.Title != nil {
		request.Session.Title = *c.Title
		change("title")
	}
	if c.Metadata != nil {
		request.Session.MetadataJson = *c.Metadata
		change("metadata_json")
	}
	if c.MemorizeEvery.given {
		request.Session.MemorizeEvery = c.MemorizeEvery.n
		change("memorize_every")
	}
	if len(request.GetUpdateMask().GetPaths()) == 0 {
		return usage("say what to change with --title, --metadata or --memorize-every")
	}
	conn, err := c.dial(p)
	if err != nil {
		return err
	}
	defer conn.close()
	if request.Scope, err = c.ownSessionScope(ctx, conn, c.ID); err != nil {
		return err
	}
	resp, err := conn.UpdateSession(ctx, request)
	if err != nil {
		return err
	}
	return c.show(p, resp.GetSession(), func(s *screen) { s.session(resp.GetSession(), nil) })
}

type sessionsDelete struct {
	ID       []string `arg:"" help:"The sessions' ids."`
	Memories bool     `help:"Also delete the memories from it, of all participants."`

	conversation
	calls
	output
}

// Help implements kong.HelpProvider.
func (sessionsDelete) Help() string {
	return sessionsHelp + `Deletes the messages, the summary and pending considerations; memories from the session stay without --memories.
With --json every line is the result for one session.

Examples:

    memsidecar sessions export -u alice --session chat-1 chat-1.json    # what would be lost
    memsidecar sessions delete -u alice chat-1`
}

// deleted shows what was deleted, with the session, because there may be several.
func (c sessionsDelete) deleted(p *Program, id string, resp *memsidecarv1.DeleteSessionResponse) error {
	name, err := json.Marshal(id)
	if err != nil {
		return err
	}
	data, err := jsonLine(resp, protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.Stdout, "{\"session_id\":%s,%s", harmless(name), data[1:])
	return err
}

// Run deletes the sessions one by one.
func (c sessionsDelete) Run(ctx context.Context, p *Program) error {
	conn, err := c.dial(p)
	if err != nil {
		return err
	}
	defer conn.close()
	return each(c.ID, func(id string) error {
		scope, err := c.ownSessionScope(ctx, conn, id)
		if err != nil {
			return err
		}
		resp, err := conn.DeleteSession(ctx, &memsidecarv1.DeleteSessionRequest{Scope: scope, DeleteMemories: c.Memories})
		if err != nil {
			return err
		}
		if c.JSON {
			return c.deleted(p, id, resp)
		}
		return c.show(p, resp, func(s *screen) {
			parts := []string{count(resp.GetMessageCount(), "message", "messages")}
			if n := resp.GetConsiderationCount(); n > 0 {
				parts = append(parts, count(n, "pending consideration", "pending considerations"))
			}
			if c.Memories {
				parts = append(parts, count(resp.GetMemoryCount(), "memory", "memories"))
			}
			s.say("deleted %s with %s\n", line(id), strings.Join(parts, ", "))
		})
	})
}

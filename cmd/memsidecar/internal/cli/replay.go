package cli

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type replayCommand struct {
	File string        `arg:"" complete:"file" help:"JSONL, one message per line (see below); \"-\" is standard input."`
	Wait time.Duration `default:"30s" placeholder:"DURATION" help:"How long to wait for the outcome of each dialogue (${default})."`

	namespaceFlag
	calls
	output
}

// Help implements kong.HelpProvider.
func (replayCommand) Help() string {
	return `A line has the fields user, session, speaker, role, content, time (RFC 3339), and optionally id, channel and channel_kind.
The messages of a user in one session and channel are one dialogue. In a group every line has the same user, and speaker
is the id of who wrote the message. Replaying a file twice adds nothing.

Examples:

    memsidecar replay messages.jsonl
    echo '{"user": "小林", "role": "user", "content": "我喜欢吃辣"}' | memsidecar replay -`
}

// replayedLine is one message of the file.
type replayedLine struct {
	User        string    `json:"user"`
	Session     string    `json:"session"`
	Speaker     string    `json:"speaker"`
	Role        string    `json:"role"`
	Content     string    `json:"content"`
	Time        time.Time `json:"time"`
	ID          string    `json:"id"`
	Channel     string    `json:"channel"`
	ChannelKind string    `json:"channel_kind"`
}

// maxLineBytes limits a line of the file. JSON may write each of the 256 KiB of a message's content as six characters.
const maxLineBytes = 2 << 20

// Run sends the file's dialogues: each user's in order, several users' concurrently.
func (c replayCommand) Run(ctx context.Context, p *Program) error {
	byUser, err := c.dialogues(ctx, p)
	if err != nil {
		return err
	}
	conn, err := c.dial(p)
	if err != nil {
		return err
	}
	defer conn.close()

	total := 0
	for _, requests := range byUser {
		total += len(requests)
	}
	r := &replay{
		client: conn, bar: p.progress(total, "dialogues"),
		states: map[memsidecarv1.ConsiderationState]int{}, actions: map[memsidecarv1.MemoryAction]int{},
	}
	started := time.Now()
	group, running := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, user := range slices.Sorted(maps.Keys(byUser)) {
		group.Go(func() error { return r.user(running, byUser[user]) })
	}
	err = group.Wait()
	if barErr := r.bar.Finish(); err == nil {
		err = barErr
	}
	switch {
	case ctx.Err() != nil:
		return interrupted(" after %d of %d dialogues; run it again to complete it; nothing is sent twice", r.done, total)
	case err != nil && r.done > 0:
		return wrapError(err, "stopped after %d of %d dialogues; run it again to complete it; nothing is sent twice", r.done, total)
	case err != nil:
		return err
	}
	if r.unrecorded > 0 {
		p.note("%s considered, but not recorded in a session; %s", count(r.unrecorded, "dialogue was", "dialogues were"), r.because)
	}
	if c.JSON {
		return r.json(p, len(byUser), total, time.Since(started))
	}
	return r.report(c.screen(p), len(byUser), total, time.Since(started))
}

// dialogues reads the file and returns its dialogues by user.
func (c replayCommand) dialogues(ctx context.Context, p *Program) (_ map[string][]*memsidecarv1.ConsiderMemorizingRequest, err error) {
	in, err := p.open(ctx, c.File)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	byUser, err := c.read(in)
	switch {
	case ctx.Err() != nil:
		return nil, interrupted("; nothing was sent")
	case err != nil:
		return nil, usage("%s: %s", c.File, line(err.Error()))
	}
	return byUser, nil
}

// read groups the messages into dialogues, one for each session of a user in a channel. Channels must not be mixed, because they have
// different audiences.
func (c replayCommand) read(in io.Reader) (map[string][]*memsidecarv1.ConsiderMemorizingRequest, error) {
	byUser := map[string][]*memsidecarv1.ConsiderMemorizingRequest{}
	type key struct{ user, session, channel, kind string }
	dialogues := map[key]*memsidecarv1.ConsiderMemorizingRequest{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLineBytes)
	n := 1
	for ; lines.Scan(); n++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var replayed replayedLine
		decoder := json.NewDecoder(strings.NewReader(lines.Text()))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&replayed); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if decoder.More() {
			return nil, fmt.Errorf("line %d: more text follows the message: write one message per line", n)
		}
		message, scope, err := c.message(replayed)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		k := key{replayed.User, replayed.Session, replayed.Channel, strings.ToLower(replayed.ChannelKind)}
		if dialogues[k] == nil {
			dialogues[k] = &memsidecarv1.ConsiderMemorizingRequest{Scope: scope, Wait: durationpb.New(c.Wait)}
			byUser[replayed.User] = append(byUser[replayed.User], dialogues[k])
		}
		dialogues[k].Messages = append(dialogues[k].Messages, message)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", n, err)
	}
	for _, requests := range byUser {
		for _, request := range requests {
			request.RequestId = requestID(request)
		}
	}
	return byUser, nil
}

func (c replayCommand) message(line replayedLine) (*memsidecarv1.Message, *memsidecarv1.Scope, error) {
	role, ok := memsidecarv1.Role_value["ROLE_"+strings.ToUpper(line.Role)]
	if !ok || role == 0 {
		return nil, nil, fmt.Errorf("role %q: use user, assistant, system or tool", line.Role)
	}
	kind := memsidecarv1.ChannelKind_CHANNEL_KIND_UNSPECIFIED
	if line.ChannelKind != "" {
		value, ok := memsidecarv1.ChannelKind_value["CHANNEL_KIND_"+strings.ToUpper(line.ChannelKind)]
		if !ok {
			return nil, nil, fmt.Errorf("channel_kind %q: use direct or group", line.ChannelKind)
		}
		kind = memsidecarv1.ChannelKind(value)
	}
	if line.User == "" {
		return nil, nil, errors.New("user is missing")
	}
	message := &memsidecarv1.Message{Id: line.ID, Role: memsidecarv1.Role(role), Content: line.Content}
	if message.GetRole() == memsidecarv1.Role_ROLE_USER {
		message.SpeakerId = line.Speaker
	}
	if !line.Time.IsZero() {
		message.SendTime = timestamppb.New(line.Time)
	}
	return message, &memsidecarv1.Scope{
		Namespace: c.Namespace, UserId: line.User, SessionId: line.Session, ChannelId: line.Channel, ChannelKind: kind,
	}, nil
}

// requestID is derived from the dialogue, so that replaying a file twice adds nothing.
func requestID(request *memsidecarv1.ConsiderMemorizingRequest) string {
	sum := sha256.New()
	scope := request.GetScope()
	fmt.Fprintf(sum, "%s\x00%s\x00%d\x00%s\x00", scope.GetUserId(), scope.GetSessionId(), scope.GetChannelKind(), scope.GetChannelId())
	for _, m := range request.GetMessages() {
		fmt.Fprintf(sum, "%s\x00%d\x00%s\x00%s\x00%s\x00", m.GetId(), m.GetRole(), m.GetSpeakerId(), m.GetContent(), m.GetSendTime().AsTime())
	}
	return "replay-" + hex.EncodeToString(sum.Sum(nil)[:16])
}

// replay sends dialogues and counts their outcomes.
type replay struct {
	client memsidecarv1.MemoryServiceClient
	bar    *progressbar.ProgressBar

	mu      sync.Mutex
	done    int
	states  map[memsidecarv1.ConsiderationState]int
	actions map[memsidecarv1.MemoryAction]int
	refused []string
	// of dialogues that were considered but not recorded, with the first reason
	unrecorded int
	because    string
}

// user sends the dialogues of one user. It returns only errors that end the replay; others are counted.
func (r *replay) user(ctx context.Context, requests []*memsidecarv1.ConsiderMemorizingRequest) error {
	for _, request := range requests {
		resp, err := r.client.ConsiderMemorizing(ctx, request)
		if err != nil && isFatal(err) {
			return err
		}
		if err := r.count(request, resp, err); err != nil {
			return err
		}
	}
	return nil
}

func (r *replay) count(request *memsidecarv1.ConsiderMemorizingRequest, resp *memsidecarv1.ConsiderMemorizingResponse, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	if err != nil {
		r.refused = append(r.refused, fmt.Sprintf("%s/%s: %v", request.GetScope().GetUserId(), request.GetScope().GetSessionId(), serverMessage(err)))
		return r.bar.Add(1)
	}
	if why := resp.GetNotRecordedReason(); why != "" {
		r.unrecorded++
		r.because = cmp.Or(r.because, fmt.Sprintf("%s/%s: %s", request.GetScope().GetUserId(), request.GetScope().GetSessionId(), why))
	}
	r.states[resp.GetConsideration().GetState()]++
	for _, change := range resp.GetConsideration().GetChanges() {
		r.actions[change.GetAction()]++
	}
	return r.bar.Add(1)
}

func (r *replay) report(s *screen, users, dialogues int, took time.Duration) error {
	t := &table{columns: []column{{}, {right: true}, {}}}
	t.row("users", users, "")
	t.row("dialogues", dialogues, "in "+took.Round(time.Millisecond).String())
	for _, state := range slices.Sorted(maps.Keys(r.states)) {
		t.row("  "+stateName(state), r.states[state], "")
	}
	t.row("memories added", r.actions[memsidecarv1.MemoryAction_MEMORY_ACTION_ADDED], "")
	t.row("memories reinforced", r.actions[memsidecarv1.MemoryAction_MEMORY_ACTION_REINFORCED], "")
	s.print(t)
	for _, problem := range r.refused {
		s.say("refused: %s\n", block(problem))
	}
	return r.failure()
}

// json prints what report prints, as JSON.
func (r *replay) json(p *Program, users, dialogues int, took time.Duration) error {
	states := map[string]int{}
	for state, n := range r.states {
		states[state.String()] = n
	}
	err := json.NewEncoder(p.Stdout).Encode(map[string]any{
		"users": users, "dialogues": dialogues, "seconds": took.Seconds(), "states": states, "refused": append([]string{}, r.refused...),
		"memories_added":      r.actions[memsidecarv1.MemoryAction_MEMORY_ACTION_ADDED],
		"memories_reinforced": r.actions[memsidecarv1.MemoryAction_MEMORY_ACTION_REINFORCED],
	})
	if err != nil {
		return err
	}
	return r.failure()
}

func (r *replay) failure() error {
	if n := len(r.refused); n > 0 {
		return failure("%s refused", count(n, "dialogue was", "dialogues were"))
	}
	return nil
}

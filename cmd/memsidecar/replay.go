package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type replayCommand struct {
	File      string        `arg:"" help:"JSONL, a message a line: user, session, speaker, role, content, time (RFC 3339); optionally id, channel, channel_kind. \"-\" is standard input."`
	Addr      string        `default:"127.0.0.1:7420" help:"Address of the running sidecar."`
	Namespace string        `help:"Namespace to remember in."`
	Wait      time.Duration `default:"30s" help:"How long to wait for the outcome of each dialogue."`
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

// maxLineBytes bounds a line of the file. JSON may write each of the 256 KiB of a message's content as six characters.
const maxLineBytes = 2 << 20

// Run sends the file's dialogues, each user's in order and several users' at once.
func (r replayCommand) Run(ctx context.Context, m *Main) (err error) {
	in := io.ReadCloser(os.Stdin)
	if r.File != "-" {
		if in, err = os.Open(r.File); err != nil {
			return err
		}
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	byUser, err := r.read(in)
	if err != nil {
		return fmt.Errorf("%s: %w", r.File, err)
	}
	conn, err := grpc.NewClient(r.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()

	total := 0
	for _, requests := range byUser {
		total += len(requests)
	}
	p := &replay{
		client: memsidecarv1.NewMemoryServiceClient(conn), addr: r.Addr, wait: r.Wait,
		bar: progressbar.NewOptions(total, progressbar.OptionSetWriter(m.Stderr), progressbar.OptionShowCount(),
			progressbar.OptionSetDescription("dialogues"), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionOnCompletion(func() { fmt.Fprintln(m.Stderr) })),
		states: map[memsidecarv1.ConsiderationState]int{}, actions: map[memsidecarv1.MemoryAction]int{},
	}
	started := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, user := range slices.Sorted(maps.Keys(byUser)) {
		group.Go(func() error { return p.user(ctx, byUser[user]) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return p.report(m.Stdout, len(byUser), total, time.Since(started))
}

// read groups the messages into dialogues: a session of a user in one channel is one. What is said in one channel must not
// count as said in another, because others may see it there.
func (r replayCommand) read(in io.Reader) (map[string][]*memsidecarv1.ConsiderMemorizingRequest, error) {
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
		var line replayedLine
		decoder := json.NewDecoder(strings.NewReader(lines.Text()))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if decoder.More() {
			return nil, fmt.Errorf("line %d: there is more after the message: write one message a line", n)
		}
		message, scope, err := r.message(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		k := key{line.User, line.Session, line.Channel, strings.ToLower(line.ChannelKind)}
		if dialogues[k] == nil {
			dialogues[k] = &memsidecarv1.ConsiderMemorizingRequest{Scope: scope, Wait: durationpb.New(r.Wait)}
			byUser[line.User] = append(byUser[line.User], dialogues[k])
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

func (r replayCommand) message(line replayedLine) (*memsidecarv1.Message, *memsidecarv1.Scope, error) {
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
		message.Time = timestamppb.New(line.Time)
	}
	return message, &memsidecarv1.Scope{
		Namespace: r.Namespace, UserId: line.User, SessionId: line.Session, ChannelId: line.Channel, ChannelKind: kind,
	}, nil
}

// requestID is derived from the dialogue, so that replaying a file twice adds nothing.
func requestID(request *memsidecarv1.ConsiderMemorizingRequest) string {
	sum := sha256.New()
	scope := request.GetScope()
	fmt.Fprintf(sum, "%s\x00%s\x00%d\x00%s\x00", scope.GetUserId(), scope.GetSessionId(), scope.GetChannelKind(), scope.GetChannelId())
	for _, m := range request.GetMessages() {
		fmt.Fprintf(sum, "%s\x00%d\x00%s\x00%s\x00%s\x00", m.GetId(), m.GetRole(), m.GetSpeakerId(), m.GetContent(), m.GetTime().AsTime())
	}
	return "replay-" + hex.EncodeToString(sum.Sum(nil)[:16])
}

// replay counts what became of the dialogues.
type replay struct {
	client memsidecarv1.MemoryServiceClient
	addr   string
	wait   time.Duration
	bar    *progressbar.ProgressBar

	mu      sync.Mutex
	states  map[memsidecarv1.ConsiderationState]int
	actions map[memsidecarv1.MemoryAction]int
	errors  []string
}

func (p *replay) user(ctx context.Context, requests []*memsidecarv1.ConsiderMemorizingRequest) error {
	for _, request := range requests {
		resp, err := p.client.ConsiderMemorizing(ctx, request)
		switch {
		case status.Code(err) == codes.Unavailable:
			return fmt.Errorf("the sidecar at %s is not available (%w); if none runs there, start one with: memsidecar serve", p.addr, err)
		case ctx.Err() != nil:
			return fmt.Errorf("interrupted; run it again to complete it, what is done is not done twice: %w", ctx.Err())
		}
		p.mu.Lock()
		if err != nil {
			p.errors = append(p.errors, fmt.Sprintf("%s/%s: %v", request.GetScope().GetUserId(), request.GetScope().GetSessionId(), err))
		} else {
			p.states[resp.GetConsideration().GetState()]++
			for _, change := range resp.GetConsideration().GetChanges() {
				p.actions[change.GetAction()]++
			}
		}
		err = p.bar.Add(1)
		p.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *replay) report(out io.Writer, users, dialogues int, took time.Duration) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "users\t%d\n", users)
	fmt.Fprintf(w, "dialogues\t%d\tin %s\n", dialogues, took.Round(time.Millisecond))
	for _, state := range slices.Sorted(maps.Keys(p.states)) {
		name := strings.ToLower(strings.TrimPrefix(state.String(), "CONSIDERATION_STATE_"))
		fmt.Fprintf(w, "  %s\t%d\n", name, p.states[state])
	}
	fmt.Fprintf(w, "memories added\t%d\n", p.actions[memsidecarv1.MemoryAction_MEMORY_ACTION_ADDED])
	fmt.Fprintf(w, "memories reinforced\t%d\n", p.actions[memsidecarv1.MemoryAction_MEMORY_ACTION_REINFORCED])
	if err := w.Flush(); err != nil {
		return err
	}
	for _, problem := range p.errors {
		fmt.Fprintln(out, "refused:", problem)
	}
	if n := len(p.errors); n > 0 {
		return fmt.Errorf("%d dialogues were refused", n)
	}
	return nil
}

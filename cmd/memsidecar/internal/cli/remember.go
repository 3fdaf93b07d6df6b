package cli

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type rememberCommand struct {
	Text       []string      `arg:"" help:"The statement. \"-\" is standard input."`
	Kind       string        `enum:",${kinds}" default:"" placeholder:"KIND" help:"Kind of the memory (fact): ${kindlist}."`
	Importance *float64      `placeholder:"X" help:"Importance, 0 to 1 (0.5)."`
	Standing   string        `enum:",${standings}" default:"" placeholder:"CLASS" help:"Make it part of every answer, as one of: ${standinglist}."`
	Time       timeArg       `placeholder:"TIME" help:"When the user said it. By default now."`
	RequestID  string        `placeholder:"ID" help:"Idempotency key: the same id stores once."`
	New        bool          `help:"Store a new memory even when an existing one says the same."`
	Consider   bool          `help:"Send the text as what the user said; the sidecar decides what to remember."`
	Wait       time.Duration `default:"30s" placeholder:"DURATION" help:"With --consider, how long to wait for the outcome (${default})."`

	place
	agentFlag
	Session string `group:"scope" placeholder:"ID" help:"The conversation."`
	calls
	output
}

// Help implements kong.HelpProvider.
func (rememberCommand) Help() string {
	return `Without --channel-kind, the memory belongs to no channel.

Examples:

    memsidecar remember -u alice --kind preference "The user likes jazz."
    memsidecar remember -u alice --standing safety "The user is allergic to nuts."
    memsidecar remember -u 小林 --consider 我对花生过敏，你有什么菜推荐吗？`
}

// Run stores the statement, or has it considered.
func (c rememberCommand) Run(ctx context.Context, p *Program) error {
	scope, err := c.writeScope()
	if err != nil {
		return err
	}
	scope.AgentId, scope.SessionId = c.Agent, c.Session
	if c.Consider && (c.Kind != "" || c.Importance != nil || c.New || c.Standing != "") {
		return usage("with --consider the sidecar decides: remove --kind, --importance, --standing and --new")
	}
	text, err := p.text(ctx, c.Text)
	if err != nil {
		return err
	}
	conn, err := c.dial(p)
	if err != nil {
		return err
	}
	defer conn.close()
	if c.Consider {
		return c.consider(ctx, p, conn, scope, text)
	}
	resp, err := conn.CreateMemory(ctx, &memsidecarv1.CreateMemoryRequest{Scope: scope, RequestId: c.RequestID, ForceNew: c.New, Memory: &memsidecarv1.Memory{
		Text: text, Kind: memsidecarv1.MemoryKind(valueOf(memsidecarv1.MemoryKind_value, kindPrefix, c.Kind)),
		Standing:   memsidecarv1.Standing(valueOf(memsidecarv1.Standing_value, standingPrefix, c.Standing)),
		Importance: c.Importance, ObserveTime: c.Time.timestamp(),
	}})
	if err != nil {
		return err
	}
	return c.show(p, resp.GetMemory(), func(s *screen) {
		outcome := "remembered"
		if resp.GetMerged() {
			outcome = "exists already, mentioned again"
		}
		s.say("%s %s\n", s.paint(outcome, green), line(resp.GetMemory().GetId()))
	})
}

func (c rememberCommand) consider(ctx context.Context, p *Program, conn *connection, scope *memsidecarv1.Scope, text string) error {
	if c.Wait < 0 {
		return usage("--wait %s: write a time of 0 or above", c.Wait)
	}
	resp, err := conn.ConsiderMemorizing(ctx, &memsidecarv1.ConsiderMemorizingRequest{
		Scope: scope, RequestId: c.RequestID, Wait: durationpb.New(c.Wait),
		Messages: []*memsidecarv1.Message{{Role: memsidecarv1.Role_ROLE_USER, Content: text, SendTime: c.Time.timestamp()}},
	})
	if err != nil {
		return err
	}
	outcome := resp.GetConsideration()
	if err := c.show(p, outcome, func(s *screen) { s.consideration(outcome) }); err != nil {
		return err
	}
	p.notRecorded(resp)
	switch outcome.GetState() {
	case memsidecarv1.ConsiderationState_CONSIDERATION_STATE_FAILED:
		return failure("the consideration failed; try again with: memsidecar considerations retry %s", outcome.GetId())
	case memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED, memsidecarv1.ConsiderationState_CONSIDERATION_STATE_SKIPPED:
	default:
		p.note("not decided yet; it is stored on disk. Show its outcome with: memsidecar considerations get %s", outcome.GetId())
	}
	return nil
}

// notRecorded prints a note if a dialogue was considered but not recorded.
func (p *Program) notRecorded(r *memsidecarv1.ConsiderMemorizingResponse) {
	if why := r.GetNotRecordedReason(); why != "" {
		p.note("not recorded in a session: %s", why)
	}
}

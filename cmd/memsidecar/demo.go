package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/memsidecar/memsidecar/internal/config"
	"github.com/memsidecar/memsidecar/internal/sidecar"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type demoCommand struct{}

// act is the conversation of one bot with one user.
type act struct {
	user, about string
	dialogues   [][]string // lines of a dialogue, alternating between the user and the bot
	questions   []string
}

func demoActs() []act {
	return []act{{
		user: "xiaolin", about: "a user who writes Chinese",
		dialogues: [][]string{
			{
				"你好呀！", "你好！今天过得怎么样？",
				"还不错。对了，我叫林晓，在杭州一家游戏公司做美术。", "很高兴认识你，林晓！",
				"我很喜欢吃辣，不过我对花生过敏，你有什么菜推荐吗？", "可以试试水煮鱼，记得不放花生。",
			},
			{"哈哈，谢谢！", "不客气！", "今天天气真好。", "是呀，适合出门走走。"},
			{"请记住：我女儿的生日是10月25日。", "好的，记住了。", "下周三下午三点我要去看牙医。", "祝一切顺利！"},
		},
		questions: []string{"今晚想吃点辣的，有什么过敏要避开吗？", "我女儿什么时候过生日？", "我下周有什么安排？"},
	}, {
		user: "alice", about: "a user who writes English",
		dialogues: [][]string{
			{
				"Hi there!", "Hello! How can I help?",
				"I just moved to Lisbon with my sister, and I work as a nurse. Any tips for rainy days?",
				"The tile museum is lovely when it rains.",
			},
			{"I'm allergic to shellfish, and I love jazz.", "Noted. Lisbon has great jazz bars."},
			{"Thanks, that was fun!", "Any time."},
		},
		questions: []string{"I feel like seafood tonight: am I allergic to anything?", "Who lives with me in Lisbon?", "Which jazz bar should I go to?"},
	}}
}

// demoTimeout limits the wait for a dialogue's outcome and for recall. It is long, so that the output does not depend on the machine's
// load.
const demoTimeout = time.Minute

// Run plays the demo over real gRPC, on a temporary folder.
func (demoCommand) Run(ctx context.Context, m *Main) (err error) {
	dir, err := os.MkdirTemp("", "memsidecar-demo-")
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, os.RemoveAll(dir)) }()
	loaded, err := config.Load(config.Sources{Flags: map[string]string{
		"data_dir": dir, "listen": "127.0.0.1:0", "retrieval.budget": demoTimeout.String(), "queue.max_wait": demoTimeout.String(),
	}})
	if err != nil {
		return err
	}
	running, err := sidecar.Start(ctx, loaded.Config, sidecar.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer running.Stop(context.WithoutCancel(ctx))
	conn, err := grpc.NewClient(running.Addr.String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, conn.Close()) }()

	d := demo{client: memsidecarv1.NewMemoryServiceClient(conn), out: m.Stdout}
	d.say("memsidecar is running on %s with an empty folder, no key and no model.\n", running.Addr)
	acts := demoActs()
	for _, a := range acts {
		if err := d.play(ctx, a); err != nil {
			return err
		}
	}
	if err := d.isolation(ctx, acts[0], acts[1]); err != nil {
		return err
	}
	d.say("\nThat is all a bot needs: ConsiderMemorizing after a dialogue, Retrieve before an answer.\n" +
		"Without a model, retrieval matches words and parts of words, not meaning.\n" +
		"Run it for real with: memsidecar serve\n")
	return nil
}

func firstError(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// demo prints the sidecar's answers.
type demo struct {
	client memsidecarv1.MemoryServiceClient
	out    io.Writer
}

func (d demo) say(format string, args ...any) { fmt.Fprintf(d.out, format, args...) }

func (d demo) play(ctx context.Context, a act) error {
	d.say("\n── %s (%s) ──\n", a.user, a.about)
	scope := &memsidecarv1.Scope{UserId: a.user, AgentId: "demo-bot", ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT}
	now := time.Now()
	for i, lines := range a.dialogues {
		d.say("\nDialogue %d, sent to ConsiderMemorizing:\n", i+1)
		var messages []*memsidecarv1.Message
		for j, line := range lines {
			role, name := memsidecarv1.Role_ROLE_USER, a.user
			if j%2 == 1 {
				role, name = memsidecarv1.Role_ROLE_ASSISTANT, "bot"
			}
			d.say("  %-8s %s\n", name+":", line)
			messages = append(messages, &memsidecarv1.Message{Role: role, Content: line, SendTime: timestamppb.New(now)})
		}
		resp, err := d.client.ConsiderMemorizing(ctx, &memsidecarv1.ConsiderMemorizingRequest{
			Scope: scope, Messages: messages, Wait: durationpb.New(demoTimeout),
		})
		if err != nil {
			return err
		}
		if err := d.showOutcome(ctx, scope, resp.GetConsideration()); err != nil {
			return err
		}
	}
	for i, question := range a.questions {
		resp, err := d.client.Retrieve(ctx, &memsidecarv1.RetrieveRequest{Scope: scope, Query: question})
		if err != nil {
			return err
		}
		d.say("\nRetrieve %q:\n", question)
		for _, m := range resp.GetStanding() {
			d.say("  always  %s\n", m.GetText())
		}
		for _, hit := range resp.GetMemories() {
			p := hit.GetParts()
			d.say("  %.2f  %s  (similarity %.2f, keyword %.2f, recency %.2f, importance %.2f)\n", hit.GetScore(),
				hit.GetMemory().GetText(), p.GetSimilarity(), p.GetKeyword(), p.GetRecency(), p.GetImportance())
		}
		if i == 0 {
			d.say("The block for the bot's system prompt:\n%s\n", indent(resp.GetPromptContext()))
		}
	}
	return nil
}

func (d demo) showOutcome(ctx context.Context, scope *memsidecarv1.Scope, c *memsidecarv1.Consideration) error {
	switch c.GetState() {
	case memsidecarv1.ConsiderationState_CONSIDERATION_STATE_SKIPPED:
		d.say("→ skipped: %s\n", c.GetReason())
		return nil
	case memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED:
	default:
		return fmt.Errorf("the consideration is %s: %s", c.GetState(), c.GetError())
	}
	d.say("→ remembered:\n")
	for _, change := range c.GetChanges() {
		resp, err := d.client.GetMemory(ctx, &memsidecarv1.GetMemoryRequest{Scope: scope, MemoryId: change.GetMemoryId()})
		if err != nil {
			return err
		}
		m := resp.GetMemory()
		kind := strings.ToLower(strings.TrimPrefix(m.GetKind().String(), "MEMORY_KIND_"))
		d.say("  + %s  [%s, importance %.2f]\n      because: %s\n      said as: “%s”\n", m.GetText(), kind, m.GetImportance(),
			m.GetProvenance().GetReason(), m.GetProvenance().GetQuote())
	}
	return nil
}

// isolation repeats one user's query as another user.
func (d demo) isolation(ctx context.Context, asked, asking act) error {
	question := asked.questions[1]
	resp, err := d.client.Retrieve(ctx, &memsidecarv1.RetrieveRequest{
		Scope: &memsidecarv1.Scope{UserId: asking.user, ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT},
		Query: question, ExcludeStanding: true,
	})
	if err != nil {
		return err
	}
	d.say("\nThe same question %q asked as %s finds nothing of %s's: %d memories.\n", question, asking.user, asked.user,
		len(resp.GetMemories()))
	return nil
}

func indent(text string) string { return "  │ " + strings.ReplaceAll(text, "\n", "\n  │ ") }

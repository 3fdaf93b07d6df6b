package session_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/testkit/leaks"
	"github.com/memsidecar/memsidecar/internal/trace"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// world is a service over a real database, in a bubble of its own.
type world struct {
	*testing.T
	*session.Service
	writing  session.WriterConfig
	parts    session.Deps
	options  session.Options
	mu       sync.Mutex
	policies map[string]session.Policy // by namespace; change them with policy
	store    *sqlstore.Sessions
	settings *sqlstore.Settings
	taker    *taker
	traces   *traces
}

const namespace = "test"

// bubble runs a test at midnight, 1 January 2000, with an injected clock.
func bubble(t *testing.T, run func(w *world)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		storage, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir, CheckEvery: time.Hour, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := storage.Close(); err != nil {
				t.Error(err)
			}
		}()
		w := &world{T: t, store: sqlstore.NewSessions(storage, sqlstore.NewQueue(storage)), settings: sqlstore.NewSettings(storage), traces: &traces{}}
		w.taker = &taker{store: w.store}
		w.policies = map[string]session.Policy{namespace: {Enabled: true, MemorizeEvery: 10, Idle: 30 * time.Minute, TTL: 24 * time.Hour}}
		w.writing = session.WriterConfig{
			Store: w.store, Settings: w.settings,
			Policies: func(namespace string) session.Policy {
				w.mu.Lock()
				defer w.mu.Unlock()
				return w.policies[namespace]
			},
		}
		w.parts = session.Deps{Considerer: w.taker, Traces: w.traces, Storage: problem("")}
		w.options = session.Options{
			Window: session.Limits{MaxMessages: 10, MaxTurns: 5, MaxRunes: 4000}, Budget: 800 * time.Millisecond,
			Wordings: session.DefaultWordings(), Workers: 2, BackoffMin: time.Second, BackoffMax: time.Minute, Log: log,
		}
		w.Service = w.newService()
		run(w)
	})
}

// problem is why the database cannot be read, or "".
type problem string

func (p problem) Problem() string { return string(p) }

func (problem) WriteProblem() string { return "" }

// policy sets what holds in a namespace.
func (w *world) policy(namespace string, p session.Policy) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.policies[namespace] = p
}

// newService returns a service of the test's parts and options.
func (w *world) newService() *session.Service {
	if w.parts.Summarizer != nil {
		w.writing.SummaryWindow = w.options.Window.MaxMessages
	}
	return session.NewService(session.NewWriter(w.writing), w.parts, w.options)
}

// restart begins with a new service, as a new process does, and sets it going until the test ends.
func (w *world) restart() {
	w.Service = w.newService()
	w.Start()
	synctest.Wait()
}

// stop gives what runs no time.
func (w *world) stop() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w.Stop(ctx)
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// taker takes what waits, and notes when. Errors come first.
type taker struct {
	store  session.Store
	mu     sync.Mutex
	errors []error
	calls  []time.Time
	taken  []string // the contents of what people said
}

func (c *taker) ConsiderPending(ctx context.Context, namespace, sessionID string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, time.Now())
	if len(c.errors) > 0 {
		err := c.errors[0]
		c.errors = c.errors[1:]
		return err
	}
	for {
		p, err := c.store.Unconsidered(ctx, namespace, sessionID)
		if err != nil || len(p.Speakers) == 0 {
			return err
		}
		page, err := c.store.Messages(ctx, viewer(p.Scope), p.Session.ID, session.MessageQuery{Limit: 1000})
		if err != nil {
			return err
		}
		taken, ok, err := c.store.Take(ctx, session.Take{Namespace: namespace, SessionID: sessionID, Last: p.Last, Acceptance: queue.Acceptance{
			ID: fmt.Sprint("con_", len(c.calls)), Dialogue: memory.Dialogue{Scope: p.Scope}, Speakers: p.Speakers, At: time.Now(), MaxPending: 100,
		}})
		if err != nil || !ok {
			return err
		}
		after, err := c.store.Messages(ctx, viewer(p.Scope), p.Session.ID, session.MessageQuery{Limit: 1000})
		if err != nil {
			return err
		}
		for i, m := range after.Messages {
			if m.Role == memory.RoleUser && m.ConsiderationID == taken.ID && page.Messages[i].ConsiderationID == "" {
				c.taken = append(c.taken, m.Content)
			}
		}
	}
}

// since is when it was called, after a time.
func (c *taker) since(start time.Time) []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	var after []time.Duration
	for _, at := range c.calls {
		after = append(after, at.Sub(start).Round(time.Second))
	}
	return after
}

func (c *taker) words() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.taken)
}

// traces keeps records.
type traces struct{ records []trace.Record }

func (*traces) Enabled() bool { return true }

func (r *traces) Record(record trace.Record) { r.records = append(r.records, record) }

// scope is that of a user's session in a direct chat.
func scope(userID, sessionID string) memory.Scope {
	return memory.Scope{Namespace: namespace, UserID: userID, SessionID: sessionID, Channel: memory.Channel{Kind: memory.ChannelDirect}}
}

func viewer(s memory.Scope) session.Viewer {
	return session.Viewer{Namespace: s.Namespace, UserID: s.UserID, Channel: s.Channel, Audience: memory.VisibilityChannel.AudienceOf(s.Channel)}
}

// talk makes messages of lines; "A: " begins one of the assistant, "T: " one of a tool, "S: " one of the system, and
// "name: " one of somebody; other lines are the scope's user's.
func talk(s memory.Scope, lines ...string) []memory.Message {
	var messages []memory.Message
	for _, l := range lines {
		m := memory.Message{Role: memory.RoleUser, Speaker: s.UserID, Content: l, Time: time.Now()}
		who, content, found := strings.Cut(l, ": ")
		if found {
			m.Content = content
			switch who {
			case "A":
				m.Role, m.Speaker, m.AgentID = memory.RoleAssistant, "", s.AgentID
			case "T":
				m.Role, m.Speaker = memory.RoleTool, ""
			case "S":
				m.Role, m.Speaker = memory.RoleSystem, ""
			default:
				m.Speaker = who
			}
		}
		messages = append(messages, m)
	}
	return messages
}

// say appends messages.
func (w *world) say(s memory.Scope, lines ...string) session.Appended {
	w.Helper()
	return w.append(s, talk(s, lines...)...)
}

func (w *world) append(s memory.Scope, messages ...memory.Message) session.Appended {
	w.Helper()
	done, err := w.Append(w.Context(), session.AppendRequest{Scope: s, Audience: viewer(s).Audience, Messages: messages})
	if err != nil {
		w.Fatal(err)
	}
	return done
}

// set changes a user's settings.
func (w *world) set(userID string, change func(*memory.Settings)) {
	w.Helper()
	_, err := w.settings.Update(w.Context(), memory.User{Namespace: namespace, ID: userID}, func(s *memory.Settings) {
		s.UpdatedAt = time.Now()
		change(s)
	})
	if err != nil {
		w.Fatal(err)
	}
}

// Context is the test's: the service's has another name.
func (w *world) Context() context.Context { return w.T.Context() }

// request asks for the usual window.
func (w *world) request(s memory.Scope) session.ContextRequest {
	return session.ContextRequest{Scope: s, Viewer: viewer(s), Limits: w.options.Window}
}

// window asks for the usual window.
func (w *world) window(s memory.Scope) session.Context {
	w.Helper()
	c := w.Service.Context(w.Context(), w.request(s))
	if len(c.Degraded) > 0 {
		w.Errorf("degraded: %v", c.Degraded)
	}
	return c
}

func contents(messages []session.Message) []string {
	var list []string
	for _, m := range messages {
		list = append(list, m.Content)
	}
	return list
}

// TestSeedDialogue: the block of the design that conversation memory comes from, to the letter.
func TestSeedDialogue(t *testing.T) {
	bubble(t, func(w *world) {
		w.options.Labels = map[string]string{"ancestor_yan": "严氏先祖"}
		w.Service = w.newService()
		s := memory.Scope{Namespace: namespace, AgentID: "ancestor_yan"}
		if c := w.window(s); c.PromptContext != "" || c.SessionID != "" || c.TraceID == "" {
			w.Errorf("before anything was said there is %+v", c)
		}
		first := w.say(s, "请问严氏家训有哪些？", "A: 后生问得好。老夫当年定下家训十则...")
		if !strings.HasPrefix(first.Session.ID, "ses_") || !first.Created {
			w.Errorf("%+v", first)
		}
		s.SessionID = first.Session.ID
		w.say(s, "第一条孝悌为本是什么意思？", "A: 孝悌为本，乃是说孝顺父母、敬爱兄长是做人的根本...")
		want := `【对话历史 - 仅供上下文参考，不作为事实依据】
以下是与用户的近期对话，帮助你理解用户的兴趣和问题背景。
注意：任何历史事实、人物、事件的信息必须从证据库中检索验证，不能仅凭对话历史回答。

用户: 请问严氏家训有哪些？
严氏先祖: 后生问得好。老夫当年定下家训十则...
用户: 第一条孝悌为本是什么意思？
严氏先祖: 孝悌为本，乃是说孝顺父母、敬爱兄长是做人的根本...

【对话历史结束】`
		c := w.window(s)
		if c.PromptContext != want {
			w.Errorf("the block is\n%s\nwant\n%s", c.PromptContext, want)
		}
		if len(c.Messages) != 4 || c.Dropped != 0 || c.Expired || c.NewestTooLong || c.Summary != nil {
			w.Errorf("the window is %+v", c)
		}
		record := w.traces.records[len(w.traces.records)-1]
		if d := record.Context; record.ID != c.TraceID || record.Scope.SessionID != s.SessionID || d == nil || d.First != 1 ||
			d.Last != 4 || d.Messages != 4 || d.MaxRunes != 4000 {
			w.Errorf("the trace is %+v", record)
		}
	})
}

// TestExpiry: after the time to live the window is empty, and the next message begins a fresh one; the history stays.
func TestExpiry(t *testing.T) {
	bubble(t, func(w *world) {
		s := scope("ann", "s")
		w.say(s, "one", "A: two")
		w.pass(24*time.Hour - time.Second)
		if c := w.window(s); c.Expired || len(c.Messages) != 2 {
			w.Errorf("just before it expires: %+v", c)
		}
		w.pass(time.Second)
		if c := w.window(s); !c.Expired || len(c.Messages) != 0 || c.PromptContext != "" || c.Dropped != 0 || c.SessionID != "s" {
			w.Errorf("expired: %+v", c)
		}
		w.say(s, "three")
		if c := w.window(s); c.Expired || !slices.Equal(contents(c.Messages), []string{"three"}) || c.Dropped != 0 {
			w.Errorf("a fresh window: %+v", c)
		}
		if page, err := w.store.Messages(w.Context(), viewer(s), "s", session.MessageQuery{Limit: 10}); err != nil || page.Total != 3 {
			w.Errorf("the history: %+v, %v", page, err)
		}
	})
}

// TestWindowOfRequest: what a request asks for, and what it may see.
func TestWindowOfRequest(t *testing.T) {
	bubble(t, func(w *world) {
		s := scope("ann", "s")
		s.AgentID = "one"
		call := memory.ToolCall{Name: "search", Arguments: `{"q":"tea"}`, Result: "green", Status: "ok"}
		messages := talk(s, "S: be brief", "what tea?", "A: looking", "T: raw", "A: green tea")
		messages[2].Tools = []memory.ToolCall{call}
		w.append(s, messages...)
		s.AgentID = "two"
		w.say(s, "and you?", "A: black tea")

		r := w.request(s)
		c := w.Service.Context(w.Context(), r)
		if got := contents(c.Messages); !slices.Equal(got, []string{"what tea?", "looking", "green tea", "and you?", "black tea"}) ||
			c.Dropped != 1 || c.Messages[1].Tools[0].Name != "search" || c.Messages[1].Tools[0].Result != "" ||
			strings.Contains(c.PromptContext, "search") || !strings.Contains(c.PromptContext, "\nAssistant two: black tea\n") {
			w.Errorf("%d dropped, %q\n%s", c.Dropped, got, c.PromptContext)
		}
		r.Tools, r.System, r.Labels = true, true, map[string]string{"ann": "Annie", "two": "Deux"}
		c = w.Service.Context(w.Context(), r)
		if got := contents(c.Messages); len(got) != 6 || c.Messages[1].Tools[0].Result != "green" ||
			!strings.Contains(c.PromptContext, "Annie: what tea?\nAssistant one: looking\n  [Tool search({\"q\":\"tea\"}): green (ok)]\nTool: raw\n") ||
			!strings.Contains(c.PromptContext, "Deux: black tea") {
			w.Errorf("with tools: %q\n%s", got, c.PromptContext)
		}
		agent := "two"
		r = w.request(s)
		r.AgentID, r.Language = &agent, "ZH-cn"
		c = w.Service.Context(w.Context(), r)
		if got := contents(c.Messages); !slices.Equal(got, []string{"and you?", "black tea"}) || !strings.Contains(c.PromptContext, "用户: and you?") {
			w.Errorf("with one agent: %q\n%s", got, c.PromptContext)
		}
		r = w.request(s)
		r.MaxRunes = 5
		if c = w.Service.Context(w.Context(), r); !c.NewestTooLong || len(c.Messages) != 1 || c.Dropped != 6 {
			w.Errorf("too long: %+v", c)
		}

		w.set("ann", func(s *memory.Settings) { s.Language = "zh" })
		if c = w.window(s); !strings.Contains(c.PromptContext, "用户: what tea?") {
			w.Errorf("in the user's language:\n%s", c.PromptContext)
		}
		for name, other := range map[string]memory.Scope{"ben": scope("ben", "s"), "nothing": scope("ann", "t"), "nobody": {Namespace: namespace, SessionID: "s"}} {
			if c := w.window(other); c.SessionID != "" || len(c.Messages) != 0 || c.PromptContext != "" {
				w.Errorf("%s sees %+v", name, c)
			}
		}
		w.policy(namespace, session.Policy{})
		if c := w.window(s); c.SessionID != "" || len(c.Messages) != 0 {
			w.Errorf("switched off: %+v", c)
		}
	})
}

// broken is a store whose windows cannot be read.
type broken struct {
	session.Store
	err error // nil: it does not answer
}

func (b broken) Window(ctx context.Context, _ session.Viewer, _ string, _ session.WindowQuery) (session.Window, error) {
	if b.err != nil {
		return session.Window{}, b.err
	}
	<-ctx.Done()
	return session.Window{}, ctx.Err()
}

// TestContextWithoutStorage: it is empty, in time, and says why.
func TestContextWithoutStorage(t *testing.T) {
	bubble(t, func(w *world) {
		for name, test := range map[string]struct {
			err           error
			problem, want string
			takes         time.Duration
		}{
			"down":    {err: fmt.Errorf("opening: %w", memory.ErrUnavailable), want: "opening: storage is unavailable"},
			"breaker": {err: memory.ErrUnavailable, problem: "the disk is full", want: "the disk is full"},
			"slow":    {want: "no answer within the budget (800ms)", takes: 800 * time.Millisecond},
			"bug":     {err: errors.New("secret detail"), want: "internal error"},
		} {
			writing, parts := w.writing, w.parts
			writing.Store, parts.Storage = broken{w.store, test.err}, problem(test.problem)
			start := time.Now()
			c := session.NewService(session.NewWriter(writing), parts, w.options).Context(w.Context(), w.request(scope("ann", "s")))
			if len(c.Degraded) != 1 || c.Degraded[0].Component != "storage" || c.Degraded[0].Reason != test.want || len(c.Messages) != 0 {
				w.Errorf("%s: %+v", name, c)
			}
			if d := time.Since(start); d != test.takes {
				w.Errorf("%s takes %s", name, d)
			}
			synctest.Wait()
		}
	})
}

// TestWithheld: a reply that looks like a failure is history and nothing else.
func TestWithheld(t *testing.T) {
	bubble(t, func(w *world) {
		w.writing.FailureMaxRunes, w.writing.FailurePhrases = 50, []string{"My Circuits"}
		w.Service = w.newService()
		s := scope("ann", "s")
		messages := talk(s, "查一下天气", "A: 抱歉，查询失败，请稍后再试。", "and now?", "A: Something went wrong.", "T: raw", "hm", "A: my circuits hurt",
			"ok?", "A: Fine: "+strings.Repeat("long ", 20)+"please try again")
		w.append(s, messages...)
		page, err := w.store.Messages(w.Context(), viewer(s), "s", session.MessageQuery{Limit: 20})
		if err != nil {
			w.Fatal(err)
		}
		var withheld []int64
		for _, m := range page.Messages {
			if m.Excluded == session.WithheldFailure {
				withheld = append(withheld, m.Position)
			}
		}
		if !slices.Equal(withheld, []int64{2, 7}) { // in the second turn a tool was called, and the last reply is long
			w.Errorf("withheld are %v", withheld)
		}
		if got := contents(w.window(s).Messages); slices.Contains(got, "my circuits hurt") || len(got) != 6 {
			w.Errorf("the window is %q", got)
		}
	})
}

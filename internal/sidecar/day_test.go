//go:build !race

package sidecar_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/memsidecar/memsidecar/internal/config"
	"github.com/memsidecar/memsidecar/internal/provider"
	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	"github.com/memsidecar/memsidecar/internal/secret"
	"github.com/memsidecar/memsidecar/internal/sidecar"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// In these tests nothing waits for a real clock. The whole sidecar, its clients and the provider are in one bubble, with connections in
// memory, because time in a bubble stops while a goroutine waits for a socket.

const pipeSize = 1 << 20

// dayUsers is the number of users.
const dayUsers = 12

// day is a sidecar in a bubble, with its model provider.
type day struct {
	*testing.T
	sidecartest.Stubs
	provider *providertest.Server
	wire     *callRecorder
	workers  int
	settings map[string]string
	log      sidecartest.Log
	stop     func() // the sidecar
}

// bubbles counts the bubbles.
var bubbles atomic.Int64

// runBubble runs a test in a bubble. Settings are KEY=VALUE pairs.
func runBubble(t *testing.T, protocol string, settings map[string]string, run func(d *day)) {
	t.Helper()
	runBubbleIn(t, t.TempDir(), protocol, settings, run)
}

// runBubbleIn runs a test in a bubble on a data folder that other bubbles may have used. Each bubble starts at the same time.
func runBubbleIn(t *testing.T, dir, protocol string, settings map[string]string, run func(d *day)) {
	t.Helper()
	var calls *pipes // created in the bubble, so that it can wait for them
	w := &callRecorder{spoken: map[int][]int{}, Transport: &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return calls.DialContext(ctx) },
		MaxIdleConnsPerHost: 16,
	}}
	before := http.DefaultTransport
	http.DefaultTransport = w
	defer func() { http.DefaultTransport = before }()
	key := secret.Value(fmt.Sprint("key of ", t.Name(), " ", bubbles.Add(1))) // unique for each bubble: the SDK's clients are cached by key
	if protocol == "gemini" {
		// Each SDK client has goroutines that never end, which a bubble does not allow: it is created outside.
		target := provider.Target{BaseURL: "http://pipe"}
		if _, err := provider.GeminiClient(target, key); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		calls = listenInMemory()
		d := &day{T: t, wire: w, provider: providertest.StartOn(t, calls, 768)}
		d.settings = map[string]string{"data_dir": dir, "log.level": "error", "session.idle": "0"}
		for _, part := range []string{"embedding", "decision", "summary"} {
			d.settings[part+".provider"], d.settings[part+".endpoint"], d.settings[part+".api_key"] = protocol, d.provider.URL, key.Reveal()
			d.settings[part+".model"] = "model-of-" + part
		}
		d.provider.Ignore(smallTalk)
		arrived := make(chan struct{})
		go func() { // the server blocks until its arrivals are received
			for {
				select {
				case <-d.provider.Arrived():
				case <-arrived:
					return
				}
			}
		}()
		defer close(arrived)
		d.start(settings)
		defer func() {
			d.stop()
			w.CloseIdleConnections()
			if t.Failed() {
				t.Logf("the log:\n%.5000s", d.log.String())
			}
		}()
		run(d)
	})
}

// start starts the sidecar with additional settings.
func (d *day) start(settings map[string]string) {
	d.Helper()
	maps.Copy(d.settings, settings)
	loaded, err := config.Load(config.Sources{Flags: d.settings})
	if err != nil {
		d.Fatal(err)
	}
	d.workers = loaded.Config.Queue.Workers
	listener := bufconn.Listen(pipeSize)
	running, err := sidecar.Start(d.Context(), loaded.Config, sidecar.Options{
		Listen: func(context.Context) (net.Listener, error) { return listener, nil },
		Log:    slog.New(slog.NewTextHandler(&d.log, nil)),
	})
	if err != nil {
		d.Fatal(err)
	}
	conn, err := grpc.NewClient("passthrough:///memsidecar", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		d.Fatal(err)
	}
	d.Stubs = sidecartest.NewStubs(conn)
	d.stop = func() {
		_ = conn.Close()
		running.Stop(d.Context())
	}
}

// callRecorder is the connection to the provider. It records calls.
type callRecorder struct {
	*http.Transport

	mu     sync.Mutex
	now    int // calls of text models in progress
	most   int
	all    []time.Time   // when they began
	spoken map[int][]int // decided dialogues of each user, in order
}

var numberedWords = regexp.MustCompile(`u(\d+)n(\d+)`)

// smallTalk is the text of two of three dialogues, which are not worth remembering.
const smallTalk = "今天天气不错"

func words(user, number int) string {
	if number%3 == 0 {
		return fmt.Sprintf("我平时爱喝点茶。u%dn%d", user, number)
	}
	return fmt.Sprintf("%s。u%dn%d", smallTalk, user, number)
}

func (w *callRecorder) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	text := !bytes.Contains([]byte(r.URL.Path), []byte("mbed"))
	w.mu.Lock()
	if text {
		w.all = append(w.all, time.Now())
		w.now++
		w.most = max(w.most, w.now)
	}
	w.mu.Unlock()
	resp, err := w.Transport.RoundTrip(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	if text {
		w.now--
	}
	if err == nil && resp.StatusCode == http.StatusOK && bytes.Contains(body, []byte("should_remember")) {
		if m := numberedWords.FindSubmatch(providertest.NewMessages(body)); m != nil {
			user, _ := strconv.Atoi(string(m[1]))
			number, _ := strconv.Atoi(string(m[2]))
			w.spoken[user] = append(w.spoken[user], number)
		}
	}
	return resp, err
}

// begin resets the records.
func (w *callRecorder) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.most, w.all = w.now, nil
}

// since counts the calls that began since a time.
func (w *callRecorder) since(from time.Time, during time.Duration) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.all {
		if !at.Before(from) && at.Before(from.Add(during)) {
			n++
		}
	}
	return n
}

func userName(u int) string { return fmt.Sprint("user", u) }

// talk sends one dialogue for each user, and returns the considerations' ids by user.
func (d *day) talk(users, number int, spread time.Duration) []string {
	d.Helper()
	ids := make([]string, users)
	var everybody sync.WaitGroup
	for u := range users {
		everybody.Go(func() {
			time.Sleep(rand.N(spread))
			resp, err := d.ConsiderMemorizing(d.Context(), &memsidecarv1.ConsiderMemorizingRequest{
				Scope: sidecartest.Direct(
					userName(u),
				), Messages: []*memsidecarv1.Message{sidecartest.Said(words(u, number)), sidecartest.Answered("好的。")},
			})
			if err != nil {
				d.Errorf("user %d was not acknowledged: %v", u, err)
				return
			}
			ids[u] = resp.GetConsideration().GetId()
		})
	}
	everybody.Wait()
	return ids
}

// TestDialoguesSurviveADayWithoutModels: The models fail for a day, in several ways, while users talk. They are called rarely meanwhile.
// After they recover, every dialogue is considered once, in each user's order, by all workers.
func TestDialoguesSurviveADayWithoutModels(t *testing.T) {
	for protocol, users := range map[string]int{"openai": dayUsers, "gemini": 6} {
		t.Run(protocol, func(t *testing.T) {
			runBubble(t, protocol, map[string]string{"breaker.open_for": openFor.String()}, func(d *day) { d.withoutModels(users) })
		})
	}
}

const (
	// openFor is how long a breaker stays open: longer than usual, because each attempt costs real time.
	openFor = 2 * time.Minute
	rounds  = 9 // number of dialogues during the outage
)

var textParts = []providertest.Part{providertest.Decision, providertest.Summary}

func (d *day) withoutModels(users int) {
	w := d.wire
	dialogues := [][]string{d.talk(users, 0, time.Second)}
	time.Sleep(10 * time.Minute)

	began := time.Now()
	w.begin()
	faults := []providertest.Fault{providertest.ServerError, providertest.Hang, providertest.Reset}
	for round := range rounds {
		d.provider.Fail(faults[round*len(faults)/rounds], textParts...)
		dialogues = append(dialogues, d.talk(users, round+1, time.Second))
		time.Sleep(time.Until(began.Add(time.Duration(round+1) * 24 * time.Hour / rounds)))
	}
	asked := w.since(began, 24*time.Hour)
	// Decisions, and summaries of conversations, have separate breakers.
	if limit := 2 * (int(24*time.Hour/openFor) + 20); asked > limit {
		d.Errorf("during the outage the models were asked %d times, want at most %d", asked, limit)
	}
	if status := sidecartest.Must(d.GetStatus(d.Context(), &memsidecarv1.GetStatusRequest{}))(d.T); status.GetQueue().
		GetPendingCount() !=
		int64(
			users*rounds,
		) {
		d.Errorf("%d dialogues wait, want %d", status.GetQueue().GetPendingCount(), users*rounds)
	}

	d.provider.Fail(providertest.NoFault, textParts...)
	back := time.Now()
	w.begin()
	time.Sleep(15 * time.Minute)
	if w.most > d.workers {
		d.Errorf("%d calls were under way at once, more than %d workers have", w.most, d.workers)
	}
	soon, all := w.since(back, openFor+time.Minute), w.since(back, 15*time.Minute)
	if soon < all/2 {
		d.Errorf("of %d calls only %d came soon after the recovery: the others waited for no reason", all, soon)
	}
	d.Logf("%d users, %d dialogues: %d calls of text models during the outage; after it %d, %d of them soon, at most %d at once",
		users, users*rounds, asked, all, soon, w.most)
	d.wantConsidered(dialogues)
}

// wantConsidered checks that each dialogue ended as expected, once, and that the models were called in each user's order.
func (d *day) wantConsidered(dialogues [][]string) {
	d.Helper()
	worth := int32(0)
	for number, ids := range dialogues {
		want := memsidecarv1.ConsiderationState_CONSIDERATION_STATE_SKIPPED
		if number%3 == 0 {
			want = sidecartest.Remembered
			worth++
		}
		for u, id := range ids {
			c := sidecartest.Must(d.GetConsideration(d.Context(), &memsidecarv1.GetConsiderationRequest{Scope: sidecartest.Direct(userName(u)), ConsiderationId: id}))(
				d.T,
			).GetConsideration()
			if c.GetState() != want {
				d.Errorf("dialogue %d of user %d: %v", number, u, c)
			}
		}
	}
	var order []int
	for number := range dialogues {
		order = append(order, number)
	}
	for u := range dialogues[0] {
		if !slices.Equal(d.wire.spoken[u], order) {
			d.Errorf("what user %d said was decided in the order %v", u, d.wire.spoken[u])
		}
		mentions := int32(0)
		for _, m := range sidecartest.Must(d.ListMemories(
			d.Context(),
			&memsidecarv1.ListMemoriesRequest{Scope: sidecartest.Direct(userName(u)), PageSize: 1000},
		))(d.T).GetMemories() {
			if m.GetProvenance().GetConsiderationId() != "" { // made by a consideration, not by a digest
				mentions += m.GetMentionCount()
			}
		}
		if mentions != worth {
			d.Errorf("user %d is remembered by %d mentions, want %d", u, mentions, worth)
		}
	}
}

// TestDialogueFailsAfterMaxAge: A dialogue that no model could consider within queue.max_age fails with the reason at its next attempt.
// It is kept, and can be retried.
func TestDialogueFailsAfterMaxAge(t *testing.T) {
	runBubble(t, "openai", map[string]string{"queue.max_age": "1h"}, func(d *day) {
		const users = 3
		d.provider.Fail(providertest.ServerError, textParts...)
		ids := d.talk(users, 0, time.Second)
		time.Sleep(50 * time.Minute)
		get := func(u int) *memsidecarv1.Consideration {
			return sidecartest.Must(d.GetConsideration(
				d.Context(),
				&memsidecarv1.GetConsiderationRequest{Scope: sidecartest.Direct(userName(u)), ConsiderationId: ids[u]},
			))(
				d.T,
			).GetConsideration()
		}
		for u := range users {
			if c := get(u); c.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_PENDING {
				d.Errorf("before its time is over: %v", c)
			}
		}
		time.Sleep(time.Hour)
		for u := range users {
			if c := get(u); c.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_FAILED ||
				!strings.Contains(c.GetError(), "500") {
				d.Errorf("when its time is over: %v", c)
			}
		}
		d.provider.Fail(providertest.NoFault, textParts...)
		for u := range users {
			sidecartest.Must(
				d.RetryConsideration(
					d.Context(),
					&memsidecarv1.RetryConsiderationRequest{Scope: sidecartest.Direct(userName(u)), ConsiderationId: ids[u]},
				),
			)(
				d.T,
			)
		}
		time.Sleep(time.Minute)
		for u := range users {
			if c := get(u); c.GetState() != sidecartest.Remembered {
				d.Errorf("after it was retried: %v", c)
			}
		}
	})
}

package sqlite_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/recall"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlite"
)

// history is a database with conversations.
type history struct {
	*testing.T
	db       sqlite.Access
	sessions *sqlite.Sessions
	recall   *sqlite.Recall
}

func newHistory(t *testing.T, db sqlite.Access) *history {
	t.Helper()
	return &history{T: t, db: db, sessions: sqlite.NewSessions(db), recall: sqlite.NewRecall(db)}
}

// listener is the user whose messages are searched.
var listener = memory.User{Namespace: "n", ID: "ann"}

// spoken is when the first message of a test was said.
var spoken = time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)

func by(user string, text string) memory.Message {
	return memory.Message{Role: memory.RoleUser, Speaker: user, Content: text, Time: spoken}
}

func answer(text string) memory.Message {
	return memory.Message{Role: memory.RoleAssistant, AgentID: "bot", Content: text, Time: spoken}
}

func scope(user, sessionID string) memory.Scope {
	return memory.Scope{Namespace: "n", UserID: user, SessionID: sessionID}
}

// say appends messages to a session.
func (h *history) say(s memory.Scope, messages ...memory.Message) {
	h.Helper()
	_, err := h.sessions.Append(h.Context(), session.Append{
		Scope: s, Audience: memory.VisibilityChannel.AudienceOf(s.Channel), Messages: messages, At: spoken,
	})
	if err != nil {
		h.Fatal(err)
	}
}

// index brings the index up to date.
func (h *history) index() {
	h.Helper()
	for more := true; more; {
		var err error
		if more, err = h.recall.IndexNext(h.Context()); err != nil {
			h.Fatal(err)
		}
	}
}

func query(user memory.User, limit int) recall.Query {
	return recall.Query{User: user, Limit: limit, Filter: recall.Filter{Audience: memory.Everything()}}
}

func (h *history) search(q recall.Query, text string) []recall.Hit {
	h.Helper()
	hits, err := h.recall.SearchKeyword(h.Context(), q, text)
	if err != nil {
		h.Fatal(err)
	}
	return hits
}

func contents(hits []recall.Hit) (texts []string) {
	for _, h := range hits {
		texts = append(texts, h.Message.Content)
	}
	slices.Sort(texts)
	return texts
}

func (h *history) finds(q recall.Query, text string, want ...string) {
	h.Helper()
	slices.Sort(want)
	if got := contents(h.search(q, text)); !slices.Equal(got, want) {
		h.Errorf("%q finds %q, want %q", text, got, want)
	}
}

// filler is enough talk of something else for a user's messages to be indexed.
func filler(user string) (messages []memory.Message) {
	for i := range 70 {
		messages = append(messages, by(user, fmt.Sprintf("filler number %d", i)))
	}
	return messages
}

// atOnceAndIndexed runs the test with messages as they come and after they were indexed.
func atOnceAndIndexed(t *testing.T, test func(t *testing.T, h *history, settle func())) {
	t.Run("at once", func(t *testing.T) {
		test(t, newHistory(t, open(t, sqlite.Options{Dir: t.TempDir()})), func() {})
	})
	t.Run("indexed", func(t *testing.T) {
		s := open(t, sqlite.Options{Dir: t.TempDir()})
		h := newHistory(t, s)
		test(t, h, func() {
			for _, user := range []string{"ann", "bob", "eve"} {
				h.say(scope(user, "filler of "+user), filler(user)...)
			}
			h.index()
			if value[int](t, s, `SELECT count(*) FROM message_postings WHERE term = 'filler'`) != 3 {
				t.Fatal("not everybody is indexed: this test shows nothing")
			}
		})
	})
}

func TestRecallFinds(t *testing.T) {
	atOnceAndIndexed(t, func(t *testing.T, h *history, settle func()) {
		s := scope("ann", "s")
		withheld := answer("tea withheld")
		_, err := h.sessions.Append(t.Context(), session.Append{
			Scope: s, Audience: memory.Everything(), At: spoken, Messages: []memory.Message{withheld}, Withheld: []bool{true},
		})
		if err != nil {
			t.Fatal(err)
		}
		h.say(s, by("ann", "I drink green tea"), answer("Tea is healthy"), by("ann", "我对花生过敏"), answer("那就不吃花生酱"),
			memory.Message{Role: memory.RoleSystem, Content: "tea system", Time: spoken},
			memory.Message{Role: memory.RoleTool, Content: "tea tool", Time: spoken})
		h.say(scope("bob", "b"), by("bob", "bob drinks tea, too"), answer("Tea for bob"))
		h.say(memory.Scope{Namespace: "other", UserID: "ann", SessionID: "s"}, by("ann", "tea elsewhere"))
		settle()

		h.finds(query(listener, 10), "Which teas do I like?", "I drink green tea", "Tea is healthy")
		h.finds(query(listener, 10), "我能吃花生吗", "我对花生过敏", "那就不吃花生酱")
		h.finds(query(memory.User{Namespace: "n", ID: "bob"}, 10), "tea", "bob drinks tea, too", "Tea for bob")
		h.finds(query(memory.User{Namespace: "other", ID: "ann"}, 10), "tea", "tea elsewhere")
		h.finds(query(memory.User{Namespace: "n", ID: "nobody"}, 10), "tea")
		h.finds(query(listener, 10), "xylophone")
		h.finds(query(listener, 10), "…")
		h.finds(recall.Query{User: listener, Limit: 10}, "tea") // the zero filter sees nothing

		hits := h.search(query(listener, 1), "green tea")
		if len(hits) != 1 || hits[0].Message.Content != "I drink green tea" || !(hits[0].Score > 0.5 && hits[0].Score <= 1) {
			t.Errorf("%+v", hits)
		}
		m := hits[0].Message
		if m.SessionID != "s" || m.Position != 2 || m.Speaker != "ann" || !m.Time.Equal(spoken) || !m.ReceivedAt.Equal(spoken) {
			t.Errorf("%+v", m)
		}
		for name, filter := range map[string]recall.Filter{
			"said later":      {SaidFrom: spoken.Add(time.Second)},
			"said earlier":    {SaidBefore: spoken},
			"with another":    {AgentID: new("other")},
			"seen by nobody":  {Audience: memory.Audience{}},
			"seen by a group": {Audience: memory.VisibilityChannel.AudienceOf(memory.Channel{Kind: memory.ChannelGroup, ID: "g"})},
		} {
			if name[:4] != "seen" {
				filter.Audience = memory.Everything()
			}
			if hits := h.search(recall.Query{User: listener, Limit: 10, Filter: filter}, "tea"); len(hits) != 0 {
				t.Errorf("%s: %q", name, contents(hits))
			}
		}
		h.finds(recall.Query{User: listener, Limit: 10, Filter: recall.Filter{
			Audience: memory.Everything(), AgentID: new("bot"), SaidFrom: spoken, SaidBefore: spoken.Add(1),
		}}, "tea", "Tea is healthy")
	})
}

// TestRecallDays: a day is found however it is written.
func TestRecallDays(t *testing.T) {
	atOnceAndIndexed(t, func(t *testing.T, h *history, settle func()) {
		for i, day := range []string{"2023-05-08", "2023-05-09", "2023-06-08", "2024-05-08"} {
			at, err := time.Parse(time.DateOnly, day)
			if err != nil {
				t.Fatal(err)
			}
			h.say(scope("ann", "s"), memory.Message{Role: memory.RoleUser, Speaker: "ann", Content: fmt.Sprintf("violin %c", 'a'+i), Time: at})
		}
		settle()
		for _, text := range []string{"2023-05-08", "2023/5/8", "2023年5月8日", "8 May 2023", "May 8, 2023", "the 8th of May, 2023"} {
			hits := h.search(query(listener, 3), "violin "+text)
			if len(hits) != 3 || hits[0].Message.Content != "violin a" || hits[1].Message.Content != "violin b" {
				t.Errorf("%s: %+v", text, hits)
			}
		}
		if hits := h.search(query(listener, 2), "What happened in May 2023?"); !slices.Equal(contents(hits), []string{"violin a", "violin b"}) {
			t.Errorf("%q", contents(hits))
		}
	})
}

// TestRecallVisibility: what was said in a direct chat stays out of groups, and what one group hears out of others.
func TestRecallVisibility(t *testing.T) {
	atOnceAndIndexed(t, func(t *testing.T, h *history, settle func()) {
		channels := map[string]memory.Channel{
			"unspecified": {}, "direct": {Kind: memory.ChannelDirect, ID: "d"},
			"group a": {Kind: memory.ChannelGroup, ID: "a"}, "group b": {Kind: memory.ChannelGroup, ID: "b"},
		}
		for name, channel := range channels {
			s := scope("ann", name)
			s.Channel = channel
			h.say(s, by("bob", "before "+name), by("ann", "tea in "+name), by("bob", "tea of bob in "+name), answer("after"))
		}
		settle()
		for name, want := range map[string][]string{
			"unspecified": {"tea in unspecified"},
			"direct":      {"tea in unspecified", "tea in direct", "tea in group a", "tea in group b"},
			"group a":     {"tea in group a"},
			"group b":     {"tea in group b"},
		} {
			q := query(listener, 10)
			q.Filter.Audience = memory.VisibilityChannel.AudienceOf(channels[name])
			h.finds(q, "tea", want...)
		}
		// Whatever a caller asks to be surrounded, only what the audience sees comes.
		hits := h.search(query(listener, 10), "tea")
		q := query(listener, 10)
		q.Filter.Audience = memory.VisibilityChannel.AudienceOf(channels["group a"])
		var of []session.Message
		for _, hit := range hits {
			of = append(of, hit.Message)
		}
		neighbors, err := h.recall.Neighbors(t.Context(), q, of, 1)
		if err != nil || len(neighbors) != 4 {
			t.Fatal(neighbors, err)
		}
		for i, n := range neighbors {
			switch {
			case of[i].Channel != channels["group a"] && (n.Before != nil || n.After != nil):
				t.Errorf("group a is shown what was said in %v: %+v", of[i].Channel, n)
			case of[i].Channel == channels["group a"] && (len(n.Before) != 1 || n.Before[0].Content != "before group a" || len(n.After) != 1 || n.After[0].Content != "tea of bob in group a"):
				t.Errorf("%+v", n)
			}
		}
	})
}

func TestRecallNeighbors(t *testing.T) {
	h := newHistory(t, open(t, sqlite.Options{Dir: t.TempDir()}))
	other := answer("other")
	other.AgentID = "other"
	h.say(scope("ann", "s"), by("ann", "1"), answer("2"), memory.Message{Role: memory.RoleTool, Content: "3", Time: spoken}, other, by("ann", "tea"),
		memory.Message{Role: memory.RoleSystem, Content: "6", Time: spoken}, answer("7"), by("ann", "8"), answer("9"))
	h.say(scope("ann", "t"), by("ann", "elsewhere"))
	of := []session.Message{h.search(query(listener, 1), "tea")[0].Message}
	for _, test := range []struct {
		count         int
		agent         *string
		before, after string
	}{{0, nil, "", ""}, {1, nil, "other", "7"}, {2, nil, "2 other", "7 8"}, {20, nil, "1 2 other", "7 8 9"}, {1, new("bot"), "2", "7"}} {
		q := query(listener, 0)
		q.Filter.AgentID = test.agent
		neighbors, err := h.recall.Neighbors(t.Context(), q, of, test.count)
		if err != nil {
			t.Fatal(err)
		}
		join := func(messages []session.Message) string {
			var texts []string
			for _, m := range messages {
				texts = append(texts, m.Content)
			}
			return strings.Join(texts, " ")
		}
		if before, after := join(neighbors[0].Before), join(neighbors[0].After); before != test.before || after != test.after {
			t.Errorf("%d of %v: %q and %q, want %q and %q", test.count, test.agent, before, after, test.before, test.after)
		}
	}
}

// document is a message with its terms.
type document struct {
	message session.Message
	terms   []string
}

// documents are all messages of ann's session s.
func (h *history) documents() (all []document) {
	h.Helper()
	for after := ""; ; {
		page, err := h.sessions.Messages(h.Context(), session.Viewer{Namespace: "n", UserID: "ann", Audience: memory.Everything()}, "s",
			session.MessageQuery{After: after, Limit: 1000})
		if err != nil {
			h.Fatal(err)
		}
		for _, m := range page.Messages {
			all = append(all, document{m, recall.Terms(&m.Message)})
		}
		if after = page.Next; after == "" {
			return all
		}
	}
}

// ranked is what a search over all documents would answer, without any index.
func ranked(all []document, text string) (hits []recall.Hit) {
	terms := recall.QueryTerms(text)
	holders := make([]int64, len(terms))
	var length int64
	for _, d := range all {
		length += int64(len(d.terms))
		for j, term := range terms {
			if slices.Contains(d.terms, term) {
				holders[j]++
			}
		}
	}
	scorer := recall.NewScorer(terms, holders, int64(len(all)), length)
	for _, d := range all {
		if score := scorer.Score(d.terms); score > 0 {
			hits = append(hits, recall.Hit{Message: d.message, Score: score})
		}
	}
	slices.SortFunc(hits, func(a, b recall.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Message.Position, a.Message.Position))
	})
	return hits
}

// sameAsWithoutIndex compares searches with what they would answer without an index.
func (h *history) sameAsWithoutIndex(texts ...string) {
	h.Helper()
	all := h.documents()
	for _, text := range texts {
		want := ranked(all, text)
		for _, limit := range []int{10_000, 10} {
			got := h.search(query(listener, limit), text)
			if len(got) != min(limit, len(want)) {
				h.Errorf("%q: %d hits of %d, want %d", text, len(got), limit, min(limit, len(want)))
				continue
			}
			for i, hit := range got {
				if math.Abs(hit.Score-want[i].Score) > 1e-9 || limit > 10 && hit.Message.Position != want[i].Message.Position {
					h.Errorf("%q: hit %d of %d is %d with %v, want %d with %v", text, i, limit, hit.Message.Position, hit.Score,
						want[i].Message.Position, want[i].Score)
					break
				}
			}
		}
	}
}

var randomWords = strings.Fields(`tea 茶 green 绿茶 花生 过敏 peanut piano 钢琴 violin 下雨 rain sunshine 北京 上海 Paris train 火车 flight 飞机
	book 书 reading 读书 mountain 爬山 swimming 游泳 cat 猫 dog 狗 birthday 生日 2026-03-05`)

func randomText(random *rand.Rand, most int) string {
	var words []string
	for range 1 + random.IntN(most) {
		words = append(words, randomWords[int(float64(len(randomWords))*math.Pow(random.Float64(), 2))])
	}
	return strings.Join(words, " ")
}

// TestRecallRanksAsWithoutIndex: whether a message is in the postings, waits for it, or was deleted again.
func TestRecallRanksAsWithoutIndex(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	h := newHistory(t, open(t, sqlite.Options{Dir: t.TempDir()}))
	talk := func(n int) {
		var messages []memory.Message
		for i := range n {
			m := by("ann", randomText(random, 12))
			if i%2 == 1 {
				m = answer(m.Content)
			}
			m.Time = spoken.Add(time.Duration(random.IntN(10*24)) * time.Hour)
			messages = append(messages, m)
		}
		h.say(scope("ann", "s"), messages...)
		h.say(scope("bob", "b"), by("bob", "tea and more tea")) // whose rows lie between
	}
	compare := func() {
		var texts []string
		for range 6 {
			texts = append(texts, randomText(random, 4))
		}
		h.sameAsWithoutIndex(texts...)
	}
	talk(50)
	h.index()
	compare() // all in the tail
	talk(30)
	h.index()
	compare() // all in the postings
	talk(40)
	h.index()
	compare() // some here, some there
	for range 3 {
		talk(100)
		h.index()
		compare()
	}
	if _, err := h.sessions.Expire(t.Context(), session.Expiry{Namespace: "n", Before: spoken, Limit: 100}); err != nil {
		t.Fatal(err)
	}
	compare()
}

// holds reports whether a term is in anybody's postings.
func (h *history) holds(term string) (found bool) {
	h.Helper()
	err := h.db.Read(h.Context(), func(q sqlite.Querier) error {
		return q.QueryRow(h.Context(), `SELECT EXISTS (SELECT 1 FROM message_postings WHERE term = ?)`, term).Scan(&found)
	})
	if err != nil {
		h.Fatal(err)
	}
	return found
}

// TestRecallForgetsWords: after a deletion no key of the index holds a deleted word, and no file a byte of it.
func TestRecallForgetsWords(t *testing.T) {
	for name, remove := range map[string]func(h *history) error{
		"session": func(h *history) error {
			viewer := session.Viewer{Namespace: "n", UserID: "ann", Audience: memory.Everything()}
			_, err := h.sessions.Delete(h.Context(), viewer, "secret")
			return err
		},
		"user": func(h *history) error {
			_, err := h.sessions.Forget(h.Context(), listener)
			return err
		},
		"retention": func(h *history) error {
			_, err := h.sessions.Expire(h.Context(), session.Expiry{Namespace: "n", Before: spoken.Add(-time.Hour), Limit: 10})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, sqlite.Options{Dir: dir})
			h := newHistory(t, s)
			h.say(scope("ann", "s"), append(filler("ann"), by("ann", "tea before"))...)
			h.say(scope("bob", "b"), append(filler("bob"), by("bob", "bob drinks tea"))...)
			h.index()
			for _, messages := range [][]memory.Message{
				append(filler("ann")[:64], by("ann", secret+" and tea")), // indexed
				{answer("xylophone music, tea and marimbas")},            // waits for it
			} {
				_, err := h.sessions.Append(t.Context(), session.Append{
					Scope: scope("ann", "secret"), Audience: memory.Everything(), Messages: messages, At: spoken.Add(-2 * time.Hour),
				})
				if err != nil {
					t.Fatal(err)
				}
				h.index()
			}
			err := h.recall.SetVectors(t.Context(), "m@1", []recall.Vector{{
				Row:     value[int64](t, s, `SELECT max(row) FROM session_messages`),
				UserRow: value[int64](t, s, `SELECT id FROM users WHERE user_id = 'ann'`), Vector: []float32{0.123456789},
			}}, 999, 1000)
			if err != nil {
				t.Fatal(err)
			}
			if !h.holds("xylophon") || value[int](t, s, `SELECT count(*) FROM message_embeddings`) != 1 {
				t.Fatal("the word is not indexed: this test shows nothing")
			}
			if err := remove(h); err != nil {
				t.Fatal(err)
			}
			for _, term := range []string{"xylophon", "music", "marimba", "allerg"} {
				if h.holds(term) {
					t.Errorf("%q is still in the index", term)
				}
			}
			if n := value[int](t, s, `SELECT count(*) FROM message_embeddings`); n != 0 {
				t.Errorf("%d vectors are left", n)
			}
			if _, err := s.Purge(t.Context()); err != nil {
				t.Fatal(err)
			}
			if names := holders(t, dir); names != nil {
				t.Errorf("the secret is still in %v", names)
			}
			h.finds(query(memory.User{Namespace: "n", ID: "bob"}, 10), "tea", "bob drinks tea")
			if name == "user" {
				h.finds(query(listener, 10), "tea")
				if n := value[int](t, s, `SELECT count(*) FROM message_postings WHERE user_row <> (SELECT id FROM users WHERE user_id = 'bob')`); n != 0 {
					t.Errorf("%d blocks are left", n)
				}
			} else {
				h.finds(query(listener, 10), "tea", "tea before")
				h.sameAsWithoutIndex("tea before", "filler number 7", "2026-03-05")
			}
		})
	}
}

// stopping is a database that stops in the middle of the work, or lets something happen there.
type stopping struct {
	sqlite.Access
	writes int
	before func(write int) error
}

func (a *stopping) Write(ctx context.Context, fn func(*sqlite.Tx) error) error {
	a.writes++
	if err := a.before(a.writes); err != nil {
		return err
	}
	return a.Access.Write(ctx, fn)
}

// manyWords are messages with so many different words that they are indexed in several transactions.
func manyWords() (messages []memory.Message) {
	for i := range 80 {
		var words []string
		for j := range 10 {
			words = append(words, fmt.Sprintf("%c%c%c%dz", 'a'+j, 'a'+i%26, 'a'+i/26, i*j%7))
		}
		messages = append(messages, by("ann", "tea "+strings.Join(words, " ")))
	}
	return messages
}

// TestRecallAfterCrash: whenever the indexing ends, searches find everything once, also after it has gone on, and what is
// deleted leaves no word.
func TestRecallAfterCrash(t *testing.T) {
	crash := errors.New("killed")
	s := open(t, sqlite.Options{Dir: t.TempDir()})
	h := newHistory(t, s)
	h.say(scope("ann", "s"), manyWords()...)
	h.index()
	for at := 1; ; at++ {
		h.say(scope("ann", "s"), manyWords()...)
		killed := sqlite.NewRecall(&stopping{Access: s, before: func(write int) error {
			if write >= at {
				return crash
			}
			return nil
		}})
		_, err := killed.IndexNext(t.Context())
		if err != nil && !errors.Is(err, crash) {
			t.Fatal(err)
		}
		h.sameAsWithoutIndex("aba1z tea")
		h.say(scope("ann", "x"), by("ann", "xylophone")) // the batch is another one when it is tried again
		h.recall = sqlite.NewRecall(s)                   // the next process
		h.index()
		viewer := session.Viewer{Namespace: "n", UserID: "ann", Audience: memory.Everything()}
		if _, err := h.sessions.Delete(t.Context(), viewer, "x"); err != nil {
			t.Fatal(err)
		}
		h.sameAsWithoutIndex("aba1z tea")
		if h.holds("xylophon") {
			t.Error("a deleted word is still in the index")
		}
		if err == nil {
			if at < 4 {
				t.Errorf("the indexing took %d writes: this test shows little", at-1)
			}
			break
		}
	}
	// Deleted right after a crash, with only a part of the batch in the postings.
	h.say(scope("ann", "y"), append(manyWords(), by("ann", "aaa marimba"))...)
	killed := sqlite.NewRecall(&stopping{Access: s, before: func(write int) error {
		if write > 1 {
			return crash
		}
		return nil
	}})
	if _, err := killed.IndexNext(t.Context()); !errors.Is(err, crash) || !h.holds("aaa") {
		t.Fatal(err)
	}
	if _, err := h.sessions.Delete(t.Context(), session.Viewer{Namespace: "n", UserID: "ann", Audience: memory.Everything()}, "y"); err != nil {
		t.Fatal(err)
	}
	if h.holds("aaa") {
		t.Error("a word of an interrupted batch is still in the index")
	}
	h.sameAsWithoutIndex("tea", "aba1z tea")
}

// TestRecallDeletedMeanwhile: messages that are deleted while their words are being indexed leave none.
func TestRecallDeletedMeanwhile(t *testing.T) {
	s := open(t, sqlite.Options{Dir: t.TempDir()})
	h := newHistory(t, s)
	for at := 1; at <= 4; at++ {
		h.say(scope("ann", "s"), manyWords()...)
		h.say(scope("ann", "x"), by("ann", "aaa marimba zzz"))
		h.recall = sqlite.NewRecall(&stopping{Access: s, before: func(write int) error {
			if write != at {
				return nil
			}
			_, err := h.sessions.Delete(t.Context(), session.Viewer{Namespace: "n", UserID: "ann", Audience: memory.Everything()}, "x")
			return err
		}})
		h.index()
		for _, term := range []string{"aaa", "marimba", "zzz"} {
			if h.holds(term) {
				t.Errorf("deleted before write %d: %q is in the index", at, term)
			}
		}
		h.sameAsWithoutIndex("aba1z tea")
	}
}

func TestRecallVectors(t *testing.T) {
	s := open(t, sqlite.Options{Dir: t.TempDir()})
	h := newHistory(t, s)
	for i := range 10 {
		h.say(scope("ann", "s"), by("ann", fmt.Sprint("hello ", i)), answer(" "), memory.Message{Role: memory.RoleTool, Content: "tool", Time: spoken})
	}
	h.say(scope("bob", "b"), by("bob", "hello bob"))
	ctx := t.Context()
	embed := func(fingerprint string, keep int) (embedded int) {
		after, err := h.recall.Progress(ctx, fingerprint)
		if err != nil {
			t.Fatal(err)
		}
		for {
			missing, next, err := h.recall.Missing(ctx, after, keep, 3)
			if err != nil {
				t.Fatal(err)
			}
			if next == after {
				return embedded
			}
			var vectors []recall.Vector
			for _, m := range missing {
				angle := float64(len(m.Text)) + float64(m.Text[len(m.Text)-1]-'0')/10
				vectors = append(vectors, recall.Vector{Row: m.Row, UserRow: m.UserRow, Vector: []float32{float32(math.Cos(angle)), float32(math.Sin(angle))}})
			}
			vectors = append(vectors, recall.Vector{Row: 9999, UserRow: 1, Vector: []float32{1, 0}}) // deleted meanwhile
			if err := h.recall.SetVectors(ctx, fingerprint, vectors, next, keep); err != nil {
				t.Fatal(err)
			}
			embedded, after = embedded+len(missing), next
		}
	}
	like := func(q recall.Query, fingerprint, text string) (found []string) {
		angle := float64(len(text)) + float64(text[len(text)-1]-'0')/10
		hits, err := h.recall.SearchVector(ctx, q, fingerprint, []float32{float32(math.Cos(angle)), float32(math.Sin(angle))})
		if err != nil {
			t.Fatal(err)
		}
		for i, hit := range hits {
			found = append(found, hit.Message.Content)
			if i == 0 && math.Abs(hit.Score-1) > 1e-6 || i > 0 && hit.Score > hits[i-1].Score {
				t.Errorf("%+v", hits)
			}
		}
		return found
	}
	if n := embed("m@1", 100); n != 11 {
		t.Errorf("%d messages got vectors, want those with words", n)
	}
	if n := embed("m@1", 100); n != 0 {
		t.Errorf("%d messages got vectors again", n)
	}
	if got := like(query(listener, 2), "m@1", "hello 0"); !slices.Equal(got, []string{"hello 0", "hello 1"}) {
		t.Errorf("%q", got)
	}
	if got := like(query(listener, 100), "m@1", "hello 0"); len(got) != 10 {
		t.Errorf("%q", got)
	}
	if got := like(query(listener, 100), "m@2", "hello 0"); got != nil {
		t.Errorf("vectors of another model are found: %q", got)
	}
	group := query(listener, 100)
	group.Filter.Audience = memory.VisibilityChannel.AudienceOf(memory.Channel{Kind: memory.ChannelGroup, ID: "g"})
	if got := like(group, "m@1", "hello 0"); got != nil {
		t.Errorf("a group finds %q", got)
	}

	// Another model: at first nothing is found, then everything again, and nothing is left of the first.
	if n := embed("m@2", 100); n != 11 {
		t.Errorf("%d messages got vectors of the new model", n)
	}
	for more := true; more; {
		var err error
		if more, err = h.recall.DropOthers(ctx, "m@2", 2); err != nil {
			t.Fatal(err)
		}
	}
	if n := value[int](t, s, `SELECT count(*) FROM message_embeddings WHERE fingerprint <> 'm@2'`); n != 0 {
		t.Errorf("%d old vectors are left", n)
	}
	// Only the newest are kept, per user.
	for i := range 4 {
		h.say(scope("ann", "s"), by("ann", fmt.Sprint("later ", i)))
	}
	embed("m@2", 5)
	if got := like(query(listener, 100), "m@2", "hello 0"); !slices.Equal(got, []string{"hello 9", "later 0", "later 1", "later 2", "later 3"}) && len(got) != 5 {
		t.Errorf("%q", got)
	}
	if got := like(query(memory.User{Namespace: "n", ID: "bob"}, 100), "m@2", "hello bob"); !slices.Equal(got, []string{"hello bob"}) {
		t.Errorf("%q", got)
	}
}

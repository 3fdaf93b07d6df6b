// Package tracetest is the conformance suite of trace.Store.
package tracetest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/trace"
	"github.com/memsidecar/memsidecar/internal/usage"
)

// Run runs the suite. The factory returns a store that is empty and lasts as long as its test.
func Run(t *testing.T, factory func(t *testing.T) trace.Store) {
	for _, c := range []struct {
		name string
		run  func(*suite)
	}{
		{"KeepsEverything", testKeepsEverything},
		{"Get", testGet},
		{"List", testList},
		{"ListPages", testListPages},
		{"Prune", testPrune},
		{"PruneWithGaps", testPruneWithGaps},
		{"Forget", testForget},
		{"ForgetSession", testForgetSession},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(&suite{T: t, store: factory(t)}) })
	}
}

var t0 = time.Date(2026, 11, 20, 8, 30, 0, 123_456_000, time.UTC)

var (
	ann       = memory.User{Namespace: "tenant/site", ID: "ann"}
	ben       = memory.User{Namespace: "tenant/site", ID: "ben"}
	elsewhere = memory.User{Namespace: "tenant/other", ID: "ann"}
	nobody    = memory.User{Namespace: "tenant/site"}
)

var (
	direct = memory.Channel{Kind: memory.ChannelDirect, ID: "dm"}
	lobby  = memory.Channel{Kind: memory.ChannelGroup, ID: "lobby"}
	attic  = memory.Channel{Kind: memory.ChannelGroup, ID: "attic"}
)

type suite struct {
	*testing.T
	store trace.Store
}

// record is that of a call of Retrieve so many minutes after t0.
func record(id string, user memory.User, minutes int) trace.Record {
	return trace.Record{
		ID: id, Scope: memory.Scope{Namespace: user.Namespace, UserID: user.ID}, At: t0.Add(time.Duration(minutes) * time.Minute),
		Retrieve: &trace.RetrieveDetail{Query: id},
	}
}

func (s *suite) append(records ...trace.Record) {
	s.Helper()
	if err := s.store.Append(s.Context(), records); err != nil {
		s.Fatal(err)
	}
}

// list is the ids that a query finds, all on one page.
func (s *suite) list(q trace.ListQuery) string {
	s.Helper()
	q.Limit = 1000
	records, next, err := s.store.List(s.Context(), q)
	if err != nil || next != "" {
		s.Fatalf("another page %q, %v", next, err)
	}
	return join(records)
}

func join(records []trace.Record) string {
	ids := make([]string, len(records))
	for i, r := range records {
		ids[i] = r.ID
	}
	return strings.Join(ids, " ")
}

// left is the ids of all that a user has, oldest first.
func (s *suite) left(user memory.User) string {
	s.Helper()
	return s.list(trace.ListQuery{User: user, Audience: memory.Everything(), OldestFirst: true})
}

func testKeepsEverything(s *suite) {
	took := 250 * time.Millisecond
	scope := memory.Scope{Namespace: ann.Namespace, UserID: "ann", AgentID: "nora", Channel: lobby, SessionID: "s1"}
	records := []trace.Record{
		{
			ID: "1", Scope: scope, TurnID: "turn <1>", OTelTraceID: "0af7651916cd43dd8448eb211c80319c", At: t0, Duration: 1500 * time.Microsecond,
			Degraded: []trace.Degradation{{Component: "embedding", Reason: "away"}},
			ModelCalls: []usage.Call{
				{At: t0.Add(time.Second), Part: "embedding", Model: "p/m", Error: "HTTP 500", Latency: time.Second, InputTokens: 7},
				{At: t0.Add(2 * time.Second), Part: "embedding", Model: "p/m", Latency: time.Second, OutputTokens: 9},
			},
			Retrieve: &trace.RetrieveDetail{
				Query: "喝茶 \"<b>\" \u2028", TopK: 6, MinRelevance: 0.25, Memories: 1, Messages: 1, Candidates: []trace.Candidate{
					{MemoryID: "mem_1", Score: 0.1234567890123, Relevance: 1, Similarity: 0.2, Keyword: 0.3, Recency: 0.4, Importance: 0.5, Returned: true},
					{SessionID: "s1", Position: 1 << 40, Score: 0.5, Neighbors: 0.25, Returned: true},
				},
			},
		},
		{
			ID: "2", Scope: scope, At: t0.Add(time.Minute), Error: "deciding: no",
			ToolCalls: []memory.ToolCall{{ID: "t", Name: "search", Arguments: `{"q":1e3}`, Result: "ok", Status: "done", Duration: &took, Time: t0}},
			Consider: &trace.ConsiderDetail{
				ConsiderationID: "con_1", Attempt: 2, Messages: 3, State: memory.StatePending, Reason: "r", DecidedBy: "rules",
				Changes: []memory.MemoryChange{{MemoryID: "mem_1", Action: memory.ActionAdded, Text: "Ann drinks tea."}},
				Prompts: []trace.Prompt{{Part: "summary", Version: "0123456789ab", Known: 2, Earlier: 4}},
			},
		},
		{
			ID: "3", Scope: scope, At: t0.Add(2 * time.Minute),
			Context: &trace.ContextDetail{MaxMessages: 10, MaxTurns: 5, MaxRunes: 4000, First: 3, Last: 9, Messages: 5, Dropped: 2, SummaryLast: 2},
		},
	}
	s.append(records...)
	got, _, err := s.store.List(s.Context(), trace.ListQuery{User: ann, Audience: memory.Everything(), OldestFirst: true, Limit: 10})
	if err != nil || !reflect.DeepEqual(got, records) {
		s.Errorf("listed %+v, %v", got, err)
	}
	for i, kind := range []trace.Kind{trace.KindRetrieve, trace.KindConsider, trace.KindContext} {
		r, err := s.store.Get(s.Context(), ann, records[i].ID, memory.Everything())
		if err != nil || !reflect.DeepEqual(r, records[i]) || r.Kind() != kind {
			s.Errorf("got %+v, %v", r, err)
		}
	}
}

// in places a record in a channel.
func in(r trace.Record, c memory.Channel) trace.Record {
	r.Scope.Channel = c
	return r
}

func testGet(s *suite) {
	s.append(record("1", ann, 0), in(record("2", ann, 0), lobby), record("3", nobody, 0))
	rule := memory.VisibilityChannel
	for _, test := range []struct {
		user  memory.User
		from  memory.Channel
		id    string
		found bool
	}{
		{ann, memory.Channel{}, "1", true},
		{ann, direct, "1", true},
		{ann, lobby, "1", false},
		{ann, lobby, "2", true},
		{ann, direct, "2", true},
		{ann, attic, "2", false},
		{ann, memory.Channel{}, "2", false},
		{ann, direct, "3", false},
		{nobody, direct, "3", true},
		{nobody, direct, "1", false},
		{ben, direct, "1", false},
		{elsewhere, direct, "1", false},
		{ann, direct, "4", false},
	} {
		r, err := s.store.Get(s.Context(), test.user, test.id, rule.AudienceOf(test.from))
		if found := err == nil && r.ID == test.id; found != test.found || !found && !errors.Is(err, memory.ErrNotFound) {
			s.Errorf("%+v: %+v, %v", test, r, err)
		}
	}
}

func testList(s *suite) {
	var records []trace.Record
	for i := range 8 {
		r := record(fmt.Sprint(i), ann, i)
		if i%2 == 1 {
			r = in(r, lobby)
		}
		if i >= 4 {
			r.Retrieve, r.Context = nil, &trace.ContextDetail{}
			r.Scope.SessionID = "s"
		}
		if i%3 == 0 {
			r.TurnID = "t"
		}
		records = append(records, r)
	}
	other := record("ben", ben, 3)
	other.TurnID, other.Scope.SessionID = "t", "s"
	s.append(append(records, other, record("elsewhere", elsewhere, 3), record("nobody", nobody, 3))...)
	everything, rule := memory.Everything(), memory.VisibilityChannel
	for name, test := range map[string]struct {
		q    trace.ListQuery
		want string
	}{
		"all":           {trace.ListQuery{User: ann, Audience: everything}, "7 6 5 4 3 2 1 0"},
		"oldest first":  {trace.ListQuery{User: ann, Audience: everything, OldestFirst: true}, "0 1 2 3 4 5 6 7"},
		"in a group":    {trace.ListQuery{User: ann, Audience: rule.AudienceOf(lobby)}, "7 5 3 1"},
		"unspecified":   {trace.ListQuery{User: ann, Audience: rule.AudienceOf(memory.Channel{})}, "6 4 2 0"},
		"elsewhere":     {trace.ListQuery{User: ann, Audience: rule.AudienceOf(attic)}, ""},
		"nothing":       {trace.ListQuery{User: ann}, ""},
		"kind":          {trace.ListQuery{User: ann, Audience: everything, Kind: trace.KindContext}, "7 6 5 4"},
		"other kind":    {trace.ListQuery{User: ann, Audience: everything, Kind: trace.KindConsider}, ""},
		"session":       {trace.ListQuery{User: ann, Audience: everything, SessionID: "s"}, "7 6 5 4"},
		"other session": {trace.ListQuery{User: ann, Audience: everything, SessionID: "x"}, ""},
		"turn":          {trace.ListQuery{User: ann, Audience: everything, TurnID: "t"}, "6 3 0"},
		"turn, session": {trace.ListQuery{User: ann, Audience: everything, TurnID: "t", SessionID: "s", OldestFirst: true}, "6"},
		"turn in group": {trace.ListQuery{User: ann, Audience: rule.AudienceOf(lobby), TurnID: "t"}, "3"},
		"from":          {trace.ListQuery{User: ann, Audience: everything, From: records[5].At}, "7 6 5"},
		"just after":    {trace.ListQuery{User: ann, Audience: everything, From: records[5].At.Add(1)}, "7 6"},
		"before":        {trace.ListQuery{User: ann, Audience: everything, Before: records[2].At}, "1 0"},
		"just before":   {trace.ListQuery{User: ann, Audience: everything, Before: records[2].At.Add(1)}, "2 1 0"},
		"between":       {trace.ListQuery{User: ann, Audience: everything, From: records[2].At, Before: records[4].At, Kind: trace.KindRetrieve}, "3 2"},
		"another's":     {trace.ListQuery{User: ben, Audience: everything}, "ben"},
		"nobody's":      {trace.ListQuery{User: nobody, Audience: everything}, "nobody"},
	} {
		if got := s.list(test.q); got != test.want {
			s.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// testListPages: pages hold every record once, also when several calls began at the same time.
func testListPages(s *suite) {
	var want []string
	for i := range 7 {
		s.append(record(fmt.Sprint(i), ann, i/3))
		want = append(want, fmt.Sprint(i))
	}
	for _, oldestFirst := range []bool{true, false} {
		q := trace.ListQuery{User: ann, Audience: memory.Everything(), OldestFirst: oldestFirst, Limit: 2}
		var got []string
		pages := 0
		for more := true; more; more = q.After != "" {
			page, next, err := s.store.List(s.Context(), q)
			if err != nil || len(page) == 0 || len(page) > 2 {
				s.Fatal(len(page), err)
			}
			for _, r := range page {
				got = append(got, r.ID)
			}
			q.After = next
			pages++
		}
		if !oldestFirst {
			slices.Reverse(got)
		}
		if !slices.Equal(got, want) || pages != 4 {
			s.Errorf("%d pages with %q", pages, got)
		}
	}
	_, _, err := s.store.List(s.Context(), trace.ListQuery{User: ann, Audience: memory.Everything(), Limit: 2, After: "x"})
	if invalid := (*memory.InvalidError)(nil); !errors.As(err, &invalid) {
		s.Errorf("a page token of nobody: %v", err)
	}
}

func (s *suite) prune(before time.Time, keep, limit int) int64 {
	s.Helper()
	n, err := s.store.Prune(s.Context(), before, keep, limit)
	if err != nil {
		s.Fatal(err)
	}
	return n
}

func testPrune(s *suite) {
	if n := s.prune(t0, 0, 10); n != 0 {
		s.Errorf("pruned %d of nothing", n)
	}
	// Not in the order in which they are stored.
	for _, i := range []int{3, 0, 5, 1, 4, 2} {
		user := ann
		if i%2 == 1 {
			user = ben
		}
		s.append(record(fmt.Sprint(i), user, i))
	}
	both := func(want string) {
		s.Helper()
		if got := s.left(ann) + "|" + s.left(ben); got != want {
			s.Errorf("left %q, want %q", got, want)
		}
	}
	if n := s.prune(t0, 6, 10); n != 0 {
		s.Errorf("pruned %d of what is neither old nor too much", n)
	}
	if n := s.prune(t0.Add(2*time.Minute), 6, 1); n != 1 {
		s.Errorf("pruned %d", n)
	}
	both("2 4|1 3 5")
	if n := s.prune(t0.Add(2*time.Minute), 6, 10); n != 1 {
		s.Errorf("pruned %d of what is too old", n)
	}
	both("2 4|3 5")
	if n := s.prune(t0, 3, 10); n != 1 {
		s.Errorf("pruned %d of what is too much", n)
	}
	both("4|3 5")
	if n := s.prune(t0.Add(5*time.Minute), 2, 10); n != 2 {
		s.Errorf("pruned %d for both reasons", n)
	}
	both("|5")
	if n := s.prune(t0.Add(time.Hour), 2, 10); n != 1 {
		s.Errorf("pruned %d", n)
	}
	both("|")
}

// testPruneWithGaps: deleted records do not count.
func testPruneWithGaps(s *suite) {
	for i := range 10 {
		user := ann
		if i >= 2 && i < 8 {
			user = ben
		}
		s.append(record(fmt.Sprint(i), user, i))
	}
	if _, err := s.store.Forget(s.Context(), ben); err != nil {
		s.Fatal(err)
	}
	if n := s.prune(t0, 4, 10); n != 0 {
		s.Errorf("pruned %d although there are no more than are kept", n)
	}
	if n := s.prune(t0, 3, 10); n != 1 || s.left(ann) != "1 8 9" {
		s.Errorf("pruned %d, left %q", n, s.left(ann))
	}
}

func testForget(s *suite) {
	var many []trace.Record
	for i := range 1200 { // more than fits into one step
		many = append(many, record(fmt.Sprint(i), ann, i))
	}
	s.append(many...)
	s.append(record("a", ben, 0), record("b", elsewhere, 0), record("c", nobody, 0))
	if n, err := s.store.Forget(s.Context(), ann); n != 1200 || err != nil {
		s.Errorf("forgot %d, %v", n, err)
	}
	if got := s.left(ann) + s.left(ben) + s.left(elsewhere) + s.left(nobody); got != "abc" {
		s.Errorf("left %q", got)
	}
	if n, err := s.store.Forget(s.Context(), ann); n != 0 || err != nil {
		s.Errorf("forgot %d again, %v", n, err)
	}
}

func testForgetSession(s *suite) {
	within := func(r trace.Record, session string) trace.Record {
		r.Scope.SessionID = session
		return r
	}
	s.append(
		within(in(record("1", ann, 0), lobby), "s"), within(in(record("2", ben, 0), lobby), "s"),
		within(in(record("3", ann, 0), lobby), "x"), within(in(record("4", ann, 0), attic), "s"),
		within(in(record("5", elsewhere, 0), lobby), "s"), in(record("6", nobody, 0), lobby),
	)
	if n, err := s.store.ForgetSession(s.Context(), ann.Namespace, "s", lobby); n != 2 || err != nil {
		s.Errorf("forgot %d, %v", n, err)
	}
	if n, err := s.store.ForgetSession(s.Context(), ann.Namespace, "", lobby); n != 0 || err != nil {
		s.Errorf("forgot %d of no session, %v", n, err)
	}
	if got := s.left(ann) + "|" + s.left(ben) + "|" + s.left(elsewhere) + "|" + s.left(nobody); got != "3 4||5|6" {
		s.Errorf("left %q", got)
	}
}

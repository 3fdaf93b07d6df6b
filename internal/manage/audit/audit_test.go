package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/manage/retention"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// users maps each user of a namespace to their memories, newest first.
type users map[string][]vectorstore.SurveyItem

// testOptions are the product's scoring options.
var testOptions = Options{Retention: retention.NewCurve(nil).Score}

func (u users) Users(_ context.Context, _, after string, limit int) (ids []string, err error) {
	for id := range u {
		if id > after {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids[:min(limit, len(ids))], nil
}

func (u users) Survey(_ context.Context, user memory.User, _, after string, limit int) ([]vectorstore.SurveyItem, string, error) {
	items := u[user.ID]
	start := 0
	if after != "" {
		if _, err := fmt.Sscan(after, &start); err != nil {
			return nil, "", err
		}
	}
	end, next := min(len(items), start+limit), ""
	if end < len(items) {
		next = fmt.Sprint(end)
	}
	return items[start:end], next, nil
}

// remembered returns an active memory of today with every field set.
func remembered(id, text string, change ...func(*memory.Memory)) vectorstore.SurveyItem {
	m := memory.Memory{
		ID: id, Text: text, Kind: memory.KindPlan, Importance: 0.5, Mentions: 1, ObservedAt: time.Now(), LastSaidAt: time.Now(),
		Provenance: memory.Provenance{Source: memory.SourceDialogue, MessageIDs: []string{"#0"}, Quote: text},
	}
	for _, c := range change {
		c(&m)
	}
	return vectorstore.SurveyItem{Memory: m, Vector: []float32{1}}
}

func run(t *testing.T, store users, q Query, options Options) *Report {
	t.Helper()
	options.Fingerprint = func() string { return "f" }
	report, err := New(store, options).Run(t.Context(), q, func(int64, int64) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// examples returns the findings as "finding id".
func examples(a *Account) (list []string) {
	for _, e := range a.Examples {
		found := string(e.Finding) + " " + e.MemoryID
		if e.OtherID != "" {
			found += " " + e.OtherID
		}
		list = append(list, found)
	}
	return list
}

func TestReportHasEachKindOfFinding(t *testing.T) {
	year := 365 * 24 * time.Hour
	group := func(m *memory.Memory) { m.Channel = memory.Channel{Kind: memory.ChannelGroup, ID: "g"} }
	old := func(m *memory.Memory) { m.ObservedAt, m.LastSaidAt = time.Now().Add(-year), time.Now().Add(-year) }
	bare := remembered("bare", "The user keeps bees.")
	bare.Vector = nil
	store := users{
		"ann": {
			remembered("tea", "The user drinks green tea every morning."),
			remembered("tea again", "the user drinks green tea every morning"),
			remembered("tea nearly", "The user really drinks green tea every morning!"),
			remembered("tea there", "The user drinks green tea every morning.", group),
			remembered("three", "The user has three cats."), remembered("four", "The user has four cats."),
			remembered("thanks", `The user said: "Thanks a lot!"`),
			remembered("old", "The user collects stamps of Peru.", old),
			remembered("old and asked for", "The user's door code is 4711.", old, func(m *memory.Memory) { m.Explicit = true }),
			remembered("old and used", "The user sings in a choir.", old, func(m *memory.Memory) { m.LastUsedAt = time.Now() }),
			remembered("imported", "The user paints.", func(m *memory.Memory) { m.Provenance = memory.Provenance{Source: memory.SourceImport} }),
			remembered("stored", "The user cooks.", func(m *memory.Memory) { m.Provenance = memory.Provenance{Source: memory.SourceAPI} }),
			bare,
			remembered("doubted", "The user thanks you.", func(m *memory.Memory) { m.Quarantine = "no such words" }),
			remembered("past", "The user drank coffee.", func(m *memory.Memory) { m.SupersededBy = "tea" }),
			remembered("over", "The user meets Tom.", func(m *memory.Memory) { m.ValidTo = time.Now().Add(-time.Hour) }),
			remembered("private", "The user is ill.", func(m *memory.Memory) { m.WithdrawnAt = time.Now() }),
		},
		"ben": {remembered("hm", "The user likes it.")},
		"al":  {remembered("fine", "The user is a nurse.")},
	}
	report := run(t, store, Query{Namespace: "n", MaxUsers: 2, MaxExamples: 2}, testOptions)
	if len(report.Users) != 2 || report.Users[0].UserID != "ann" || report.Users[1].UserID != "ben" {
		t.Fatalf("the worst users are %+v", report.Users)
	}
	ann := report.Users[0]
	if got, want := examples(ann), []string{
		"duplicate tea again tea", "near_duplicate tea nearly tea", "junk thanks", "quarantined doubted", "stale old", "unsupported imported",
		"without_vector bare",
	}; !slices.Equal(got, want) {
		t.Errorf("found\n%q, want\n%q", got, want)
	}
	for status, want := range map[memory.Status]int64{
		memory.StatusActive: 13, memory.StatusSuperseded: 1, memory.StatusExpired: 1, memory.StatusQuarantined: 1, memory.StatusWithdrawn: 1,
	} {
		if got := ann.Statuses[status]; got != want {
			t.Errorf("%d are %s, want %d", got, status, want)
		}
	}
	if ann.Doubtful != 3 || ann.Elsewhere != 2 || ann.Cut != "" {
		t.Errorf("doubtful %d, elsewhere %d, limits reached %q", ann.Doubtful, ann.Elsewhere, ann.Cut)
	}
	if total := report.Total; total.Users != 3 || total.Active() != 15 || total.Doubtful != 4 || len(total.Examples) != 0 {
		t.Errorf("the total is %+v", total)
	}
	for _, e := range ann.Examples {
		if e.Reason == "" || e.Text == "" {
			t.Errorf("%+v has no reason or no text", e)
		}
	}

	if report := run(t, store, Query{Namespace: "n", UserID: "al", MaxUsers: 1}, testOptions); report.Total.Users != 1 || report.Total.Active() != 1 {
		t.Errorf("the report of one user: %+v", report.Total)
	}
}

// TestVectorsFindParaphrases: Vectors find the same statement in other words. Statements with different numbers are not the same.
func TestVectorsFindParaphrases(t *testing.T) {
	report := run(t, users{"u": {
		remembered("a", "The user works as a nurse in a hospital."), remembered("b", "Nursing patients at the hospital is how this user earns a living."),
		remembered("c", "In the hospital, 2 of the user's brothers are on the nursing staff since 1999."),
	}}, Query{MaxUsers: 1, MaxExamples: 3}, testOptions)
	if got := examples(report.Users[0]); !slices.Equal(got, []string{"near_duplicate b a"}) {
		t.Errorf("found %q", got)
	}
}

// TestWorkIsBounded: The cost grows linearly with a user's memories, even if all are similar. An audit that reaches its limit ends and
// reports it.
func TestWorkIsBounded(t *testing.T) {
	cost := func(n int) int {
		u := &userAudit{query: &Query{}, account: newAccount("u")}
		for i := range n {
			item := remembered(fmt.Sprint(i), fmt.Sprintf("The user likes song %d", i))
			item.Vector = nil
			u.compared = append(u.compared, u.statement(&item, false))
		}
		work := maxWork
		if left, err := u.compareNear(t.Context(), u.compared, &work); left != 0 || err != nil {
			t.Errorf("%d memories: %d left, %v", n, left, err)
		}
		return maxWork - work
	}
	if small, large := cost(200), cost(800); small == 0 || large > 5*small {
		t.Errorf("200 memories cost %d, 800 cost %d", small, large)
	}

	store := users{}
	for i := range 50 {
		store["u"] = append(store["u"], remembered(fmt.Sprint(i), fmt.Sprintf("The user likes song number %d", i)))
	}
	for want, bound := range map[string]func(*Auditor){
		"":                            func(*Auditor) {},
		"7 of the 50 active memories": func(a *Auditor) { a.maxCompared = 43 },
		"of the 50 active memories":   func(a *Auditor) { a.maxWork = 20_000 },
	} {
		auditor := New(store, Options{Fingerprint: func() string { return "" }, Retention: testOptions.Retention})
		bound(auditor)
		report, err := auditor.Run(t.Context(), Query{MaxUsers: 1}, func(int64, int64) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		cut, all := report.Users[0].Cut, report.Total.Cut
		if (cut == "") != (want == "") || (all == "") != (want == "") || !strings.Contains(cut, want) {
			t.Errorf("the reports are %q and %q, want %q", cut, all, want)
		}
	}
}

// TestAuditCanBeCancelled: A caller can cancel an audit that waits for another one or is running.
func TestAuditCanBeCancelled(t *testing.T) {
	store := users{"u": {remembered("a", "The user is a nurse.")}}
	auditor := New(store, Options{Fingerprint: func() string { return "" }, Retention: testOptions.Retention})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := auditor.Run(t.Context(), Query{}, func(int64, int64) error {
		cancel()
		if _, err := auditor.Run(ctx, Query{}, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("the second: %v", err)
		}
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the first: %v", err)
	}
}

func BenchmarkAudit(b *testing.B) {
	words := strings.Fields("tea bees choir Lisbon jazz chess bread tiger river piano garden winter sister bakery train violin")
	store := users{}
	for i := range 10_000 {
		text := fmt.Sprintf("The user likes %s and %s on day %d of the %s.", words[i%16], words[i/16%16], i, words[i/256%16])
		item := remembered(fmt.Sprint(i), text)
		item.Vector = make([]float32, 768)
		item.Vector[i%768] = 1
		store["u"] = append(store["u"], item)
	}
	auditor := New(store, Options{Fingerprint: func() string { return "f" }, Retention: testOptions.Retention})
	for b.Loop() {
		report, err := auditor.Run(b.Context(), Query{MaxUsers: 1}, func(int64, int64) error { return nil })
		if err != nil || report.Total.Active() != 10_000 {
			b.Fatal(report, err)
		}
	}
}

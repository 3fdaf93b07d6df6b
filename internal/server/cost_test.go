package server_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/usage"
	"github.com/memsidecar/memsidecar/internal/usage/budget"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// cost returns the status of a namespace and one of its users, with the costs of a number of days.
func cost(t *testing.T, r *sidecartest.Sidecar, scope *memsidecarv1.Scope, days int32) *memsidecarv1.GetStatusResponse {
	t.Helper()
	return sidecartest.Must(r.GetStatus(t.Context(), &memsidecarv1.GetStatusRequest{Scope: scope, UsageDays: days}))(t)
}

// wantDecidedBy considers a dialogue that both the model and the rules remember.
func wantDecidedBy(t *testing.T, r *sidecartest.Sidecar, scope *memsidecarv1.Scope, by, reason string) *memsidecarv1.Consideration {
	t.Helper()
	c := r.Consider(t, scope, sidecartest.Said("我对花生过敏。"), sidecartest.Answered("好的。"))
	if c.GetState() != sidecartest.Remembered || c.GetDecidedBy() != by || !strings.Contains(c.GetReason(), reason) ||
		(by == "rules") != strings.Contains(c.GetFallbackReason(), "budget") {
		t.Errorf("decided by %s because %q, want by %s because of %q: %v", c.GetDecidedBy(), c.GetReason(), by, reason, c)
	}
	return c
}

const usedUp = "the daily token budget of the namespace is used up until "

// TestUsedUpTokenBudgetFallsBackToRules: When a namespace has used up its budget, rules replace the models and every answer says so.
// Other namespaces keep their models.
func TestUsedUpTokenBudgetFallsBackToRules(t *testing.T) {
	t.Parallel()
	for _, protocol := range sidecartest.Protocols() {
		t.Run(protocol, func(t *testing.T) {
			p := providertest.Start(t, 1000)
			p.Take(59_000, 1000)
			now := sidecartest.FromNoon()
			dir, model := t.TempDir(), protocol+"/model-of-summary"
			settings := append(
				sidecartest.UseProvider(protocol, p),
				"llm.daily_token_budget=100000",
				"namespaces=[{name: big, daily_token_budget: 0}]",
			)
			r := sidecartest.ServeAt(t, now, dir, settings...)
			wantDecidedBy(t, r, sidecartest.Direct("u"), model, "")
			if b := cost(t, r, nil, 0).GetUsage().GetTokenBudgets(); len(b) != 1 || b[0].GetUsedTokens() < 120_000 ||
				b[0].GetRefusedCallCount() != 0 {
				t.Errorf("after one dialogue: %v", b)
			}
			asked := len(p.Requests(providertest.Decision))
			wantDecidedBy(t, r, sidecartest.Direct("v"), "rules", usedUp)
			c := wantDecidedBy(t, r, sidecartest.Direct("u"), "rules", usedUp)
			if !strings.HasPrefix(c.GetReason(), "fact (") {
				t.Errorf("the rules' own reason is gone: %q", c.GetReason())
			}
			if m := r.Memory(t, sidecartest.Direct("u"), c.GetChanges()[0].GetMemoryId()); m.GetProvenance().GetDecidedBy() != "rules" {
				t.Errorf("where it comes from: %v", m.GetProvenance())
			}
			if n := len(p.Requests(providertest.Decision)); n != asked {
				t.Errorf("the model was asked %d more times", n-asked)
			}
			wantDecidedBy(t, r, sidecartest.InNamespace("big", sidecartest.Direct("u")), model, "")
			wantDegradedTrace(t, r, sidecartest.Direct("v"), memsidecarv1.DegradedComponent_DEGRADED_COMPONENT_DECISION)
			if resp := sidecartest.Must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct("u"), Query: "花生"}))(t); len(
				resp.GetDegraded(),
			) != 0 {
				t.Errorf("Retrieve is degraded: %v", resp.GetDegraded())
			}
			wantFallback(t, r, nil, "rules, for 2 calls today: "+usedUp)
			wantFallback(t, r, &memsidecarv1.Scope{Namespace: "big"}, "")
			if n := strings.Count(r.Log.String(), "a daily token budget is used up"); n != 1 {
				t.Errorf("%d lines in the log", n)
			}
			before := cost(t, r, nil, 0).GetUsage().GetTokenBudgets()[0]
			r.Stop()
			r = sidecartest.ServeAt(t, now, dir, settings...)
			wantSame(t, cost(t, r, nil, 0).GetUsage().GetTokenBudgets()[0], before)
			wantDecidedBy(t, r, sidecartest.Direct("u"), "rules", usedUp)
		})
	}
}

// wantFallback checks what the status says about the components that fell back to rules.
func wantFallback(t *testing.T, r *sidecartest.Sidecar, scope *memsidecarv1.Scope, want string) {
	t.Helper()
	for _, c := range sidecartest.ComponentsOf(cost(t, r, scope, 0)) {
		expected := want
		if c.GetName() == "storage" || c.GetName() == "embedding" {
			expected = ""
		}
		if !strings.HasPrefix(c.GetFallback(), expected) || expected == "" && c.GetFallback() != "" {
			t.Errorf("%s: %q, want %q", c.GetName(), c.GetFallback(), expected)
		}
		if c.GetBreaker() != memsidecarv1.BreakerState_BREAKER_STATE_CLOSED || c.GetReason() != "" {
			t.Errorf("%s is %v", c.GetName(), c)
		}
	}
}

// wantDegradedTrace checks the newest trace of a consideration for a degraded component.
func wantDegradedTrace(t *testing.T, r *sidecartest.Sidecar, scope *memsidecarv1.Scope, component memsidecarv1.DegradedComponent) {
	t.Helper()
	sidecartest.Eventually(t, "there is a trace", func() bool {
		list := sidecartest.Must(memsidecarv1.NewTraceServiceClient(r.Conn).ListTraces(t.Context(), &memsidecarv1.ListTracesRequest{
			Scope: scope, Kind: memsidecarv1.TraceKind_TRACE_KIND_CONSIDER,
		}))(t).GetTraces()
		if len(list) == 0 {
			return false
		}
		for _, d := range list[0].GetDegraded() {
			if d.GetComponent() == component && strings.Contains(d.GetReason(), "daily token budget") {
				return true
			}
		}
		t.Fatalf("the trace does not say that %s was missing: %v", component, list[0])
		return false
	})
}

// TestTokenBudgetOfAUser: Users have separate budgets. When the decision uses up the budget, rules replace the extraction. Export and
// erasure include the counts.
func TestTokenBudgetOfAUser(t *testing.T) {
	t.Parallel()
	p := providertest.Start(t, 1000)
	p.Take(60_000, 0)
	now := sidecartest.FromNoon()
	r := sidecartest.ServeAt(t, now, t.TempDir(), append(sidecartest.UseProvider("openai", p), "llm.daily_user_token_budget=50000")...)
	const own = "the daily token budget of the user is used up until "
	c := wantDecidedBy(t, r, sidecartest.Direct("u"), "rules", "; decided by rules: "+own)
	if texts := sidecartest.Texts(r.Memories(t, sidecartest.Direct("u"))); len(texts) != 1 || texts[0] != "我对花生过敏。" {
		t.Errorf("the rules remembered %q", texts)
	}
	if len(p.Requests(providertest.Summary)) != 0 {
		t.Error("the extractor was asked")
	}
	wantDegradedTrace(t, r, sidecartest.Direct("u"), memsidecarv1.DegradedComponent_DEGRADED_COMPONENT_SUMMARY)
	wantDecidedBy(t, r, sidecartest.Direct("u"), "rules", "; decided by rules: "+own)
	wantDecidedBy(t, r, sidecartest.Direct("v"), "rules", own)
	wantFallback(t, r, nil, "rules, for 2 users today: the daily token budget of a user is used up")

	status := cost(t, r, sidecartest.Direct("u"), 0)
	if b := status.GetUsage().GetTokenBudgets(); len(b) != 1 || b[0].GetUserId() != "u" || b[0].GetLimitTokens() != 50_000 ||
		b[0].GetUsedTokens() < 60_000 ||
		b[0].GetRefusedCallCount() != 2 ||
		!b[0].GetResetTime().AsTime().Equal(usage.DayAfter(now())) {
		t.Errorf("the user's budget is %v (%s)", b, c.GetId())
	}
	if b := cost(t, r, nil, 0).GetUsage().GetTokenBudgets(); len(b) != 0 {
		t.Errorf("the namespace has no budget, and shows %v", b)
	}
	records := r.Export(t, sidecartest.Direct("u")).Records
	if last := records[len(records)-1].GetTokenCount(); last.GetTokens() < 60_000 || last.GetRefusedCallCount() != 2 ||
		last.GetDay() != usage.Day(now()) {
		t.Errorf("exported at last: %v", records[len(records)-1])
	}
	if receipt := sidecartest.Must(r.ForgetUser(
		t.Context(), &memsidecarv1.ForgetUserRequest{Scope: sidecartest.WithoutChannel("u")},
	))(t); !receipt.GetTokenCountDeleted() {
		t.Errorf("the receipt is %v", receipt)
	}
	if len(r.Export(t, sidecartest.Direct("u")).Records) != 1 {
		t.Error("the count is not forgotten")
	}
	wantDecidedBy(t, r, sidecartest.Direct("u"), "rules", own)
}

// TestTokenBudgetCountsFromMidnightUTC: Tokens of the day before do not count. A budget that is used up at start remains used up.
func TestTokenBudgetCountsFromMidnightUTC(t *testing.T) {
	t.Parallel()
	p := providertest.Start(t, 1000)
	dir, now := t.TempDir(), sidecartest.FromNoon()
	taken := func(at time.Time) {
		sidecartest.WithStorage(t, dir, func(s *sqlite.Storage) {
			sidecartest.NoError(t, sqlstore.NewTokens(s).Add(t.Context(), []budget.Entry{{
				Day: usage.Day(at), User: memory.User{Namespace: "default"}, Count: budget.Count{Tokens: 1_000_000},
			}}))
		})
	}
	taken(now().Add(-24 * time.Hour))
	settings := append(sidecartest.UseProvider("openai", p), "llm.daily_token_budget=100000")
	r := sidecartest.ServeAt(t, now, dir, settings...)
	wantDecidedBy(t, r, sidecartest.Direct("u"), "openai/model-of-summary", "")
	r.Stop()
	taken(now())
	r = sidecartest.ServeAt(t, now, dir, settings...)
	wantDecidedBy(t, r, sidecartest.Direct("u"), "rules", usedUp)
}

// TestConversationIsSummarizedByRulesWithoutBudget: A summary made without the model says so.
func TestConversationIsSummarizedByRulesWithoutBudget(t *testing.T) {
	t.Parallel()
	p := providertest.Start(t, 1000)
	r := sidecartest.Serve(
		t,
		append(sidecartest.UseProvider("openai", p), "llm.daily_token_budget=10", "session.max_messages=2", "session.memorize_every=0")...)
	session := r.AppendTo(t, sidecartest.Direct("u"), sidecartest.Said("我对花生过敏，下周三要去成都出差。"), sidecartest.Answered("好的。"),
		sidecartest.Said("成都有什么好吃的？"), sidecartest.Answered("成都有火锅。"),
		sidecartest.Said("火锅里有花生酱吗？"), sidecartest.Answered("有的，可以不放。")).
		GetSession()
	sidecartest.Eventually(t, "there is a summary", func() bool {
		window := sidecartest.Must(
			r.Sessions().
				GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: sidecartest.InSession(sidecartest.Direct("u"), session.GetId())}),
		)(
			t,
		)
		if window.GetSummary() == nil {
			return false
		}
		if s := window.GetSummary(); s.GetMadeBy() != "extract" || !strings.Contains(s.GetText(), "花生过敏") {
			t.Errorf("the summary is %v", s)
		}
		return true
	})
	if len(p.Requests(providertest.Summary)) != 0 {
		t.Error("the model was asked")
	}
}

// TestStatusShowsTokensAndCosts: The status shows tokens and estimated costs for each model and day.
func TestStatusShowsTokensAndCosts(t *testing.T) {
	t.Parallel()
	p := providertest.Start(t, 1000)
	p.Take(1_000_000, 100_000)
	dir, now := t.TempDir(), sidecartest.FromNoon()
	for _, call := range []struct {
		daysAgo int
		model   string
	}{{1, "openai/old"}, {6, "openai/old"}, {7, "openai/old"}, {6, "free/m"}} {
		sidecartest.SeedUsage(t, dir, now().AddDate(0, 0, -call.daysAgo), call.model, 2_000_000, 1_000_000)
	}
	r := sidecartest.ServeAt(t, now, dir, append(
		sidecartest.UseProvider("openai", p),
		"llm.prices=[{model: openai/model-of-decision, input: 2, output: 10, currency: CNY}, {model: openai/old, input: 1, output: 3, "+
			"currency: USD}, {model: openai/model-of-embedding, currency: USD}]",
	)...)
	wantDecidedBy(t, r, sidecartest.Direct("u"), "openai/model-of-summary", "")
	var status *memsidecarv1.GetStatusResponse
	sidecartest.Eventually(t, "all is counted", func() bool {
		status = cost(t, r, nil, 7)
		return len(status.GetUsage().GetToday().GetModels()) == 3
	})
	for _, u := range status.GetUsage().GetToday().GetModels() {
		cost, want := u.GetEstimatedCost(), map[string]*memsidecarv1.Cost{"decision": {Amount: 3, Currency: "CNY"}, "embedding": {Currency: "USD"}}[u.GetPart()]
		if (cost == nil) != (want == nil) ||
			cost != nil && (math.Abs(cost.GetAmount()-want.GetAmount()) > 1e-9 || cost.GetCurrency() != want.GetCurrency()) {
			t.Errorf("%s cost %v, want %v", u.GetPart(), cost, want)
		}
	}
	wantCosts := func(name string, got []*memsidecarv1.Cost, cny, usd float64) {
		t.Helper()
		if len(got) != 2 || got[0].GetCurrency() != "CNY" || got[1].GetCurrency() != "USD" || math.Abs(got[0].GetAmount()-cny) > 1e-9 ||
			math.Abs(got[1].GetAmount()-usd) > 1e-9 {
			t.Errorf("%s cost %v, want %g CNY and %g USD", name, got, cny, usd)
		}
	}
	wantCosts("today", status.GetUsage().GetToday().GetCosts(), 3, 0)
	wantCosts("seven days", status.GetUsage().GetCosts(), 3, 10)
	days := status.GetUsage().GetDays()
	if len(days) != 3 || days[0].GetDay() != usage.Day(now()) || days[2].GetDay() != usage.Day(now().AddDate(0, 0, -6)) ||
		len(days[2].GetModels()) != 2 ||
		len(days[2].GetCosts()) != 1 ||
		days[2].GetCosts()[0].GetAmount() != 5 {
		t.Errorf("the days are %v", days)
	}
	if s := cost(t, r, nil, 0); len(s.GetUsage().GetDays()) != 0 || len(s.GetUsage().GetToday().GetModels()) != 3 {
		t.Errorf("without days: %v", s)
	}
	for _, days := range []int32{-1, 32} {
		_, err := r.GetStatus(t.Context(), &memsidecarv1.GetStatusRequest{UsageDays: days})
		sidecartest.WantInvalid(t, err, "usage_days")
	}
}

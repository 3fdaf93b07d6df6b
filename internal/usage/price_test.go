package usage_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/usage"
)

func TestPrices(t *testing.T) {
	prices := usage.Prices{
		{Model: "deepseek/deepseek-chat", Input: 2, Output: 8, Currency: "CNY"},
		{Model: "openai/gpt-4o-mini", Input: 0.15, Output: 0.6, Currency: "USD"},
		{Model: "openai/*", Input: 1, Output: 1, Currency: "USD"},
		{Model: "ollama/*", Currency: "USD"},
	}
	sum := func(model string, in, out int64) usage.Sum {
		return usage.Sum{Model: model, InputTokens: in, OutputTokens: out}
	}
	for _, test := range []struct {
		sum  usage.Sum
		want float64
		in   string // "" means without a price
	}{
		{sum("deepseek/deepseek-chat", 1_000_000, 500_000), 6, "CNY"},
		{sum("openai/gpt-4o-mini", 1000, 1000), 0.00075, "USD"},
		{sum("openai/another", 3, 4), 0.000007, "USD"},
		{sum("ollama/qwen", 1_000_000, 1_000_000), 0, "USD"},
		{sum("deepseek/deepseek-chat-2", 1, 1), 0, ""},
		{sum("openaix/m", 1, 1), 0, ""},
	} {
		got, ok := prices.Of(test.sum)
		if ok != (test.in != "") || got.Currency != test.in || math.Abs(got.Amount-test.want) > 1e-12 {
			t.Errorf("%s costs %+v, %t; want %g %s", test.sum.Model, got, ok, test.want, test.in)
		}
	}
	total := prices.Total([]usage.Sum{
		sum("openai/gpt-4o-mini", 1_000_000, 0), sum("deepseek/deepseek-chat", 1_000_000, 0), sum("openai/x", 0, 1_000_000), sum("unknown/m", 9, 9),
	})
	if want := []usage.Cost{{Amount: 2, Currency: "CNY"}, {Amount: 1.15, Currency: "USD"}}; !slices.Equal(total, want) {
		t.Errorf("the total is %v, want %v", total, want)
	}
	if total := prices.Total(nil); total != nil {
		t.Errorf("without usage the total is %v", total)
	}
}

// TestDayIsUTC: A day is one of UTC, whatever the machine's time zone is.
func TestDayIsUTC(t *testing.T) {
	at := time.Date(2026, 11, 21, 7, 30, 0, 0, time.FixedZone("Asia/Shanghai", 8*3600))
	if usage.Day(at) != "2026-11-20" || !usage.DayAfter(at).Equal(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("%s is on %s, which ends %s", at, usage.Day(at), usage.DayAfter(at))
	}
}

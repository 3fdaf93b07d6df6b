package cli

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// usage shows the costs of models on a day.
func (s *screen) usage(day string, list []*memsidecarv1.ModelUsage, costs []*memsidecarv1.Cost) {
	if len(list) == 0 {
		return
	}
	s.say("\n")
	t := &table{columns: []column{
		{name: day},
		{name: "model"},
		{name: "calls", right: true},
		{name: "failed", right: true},
		{name: "tokens in", right: true},
		{name: "tokens out", right: true},
		{name: "cost", right: true},
		{name: "mean time", right: true},
	}}
	unpriced := false
	for _, u := range list {
		failed := cell{text: fmt.Sprint(u.GetFailureCount())}
		if u.GetFailureCount() > 0 {
			failed.style = yellow
		}
		cost := "?"
		if u.GetEstimatedCost() != nil {
			cost = costText([]*memsidecarv1.Cost{u.GetEstimatedCost()})
		} else {
			unpriced = true
		}
		t.row(u.GetPart(), u.GetModel(), u.GetCallCount(), failed, u.GetInputTokenCount(), u.GetOutputTokenCount(), cost,
			u.GetMeanLatency().AsDuration().Round(time.Millisecond))
	}
	s.print(t)
	switch {
	case len(costs) == 0:
		s.say("(prices are unknown: set llm.prices)\n")
	case unpriced:
		s.say("total %s, without models of unknown price (llm.prices)\n", costText(costs))
	default:
		s.say("total %s\n", costText(costs))
	}
}

// budgets shows the token budgets.
func (s *screen) budgets(list []*memsidecarv1.TokenBudget) {
	if len(list) == 0 {
		return
	}
	s.say("\n")
	t := &table{columns: []column{
		{name: "token budget of"},
		{name: "used", right: true},
		{name: "a day", right: true},
		{name: "refused calls", right: true},
		{name: "renewed"},
	}}
	for _, b := range list {
		used, refused := cell{text: fmt.Sprint(b.GetUsedTokens())}, cell{text: fmt.Sprint(b.GetRefusedCallCount())}
		if b.GetUsedTokens() >= b.GetLimitTokens() {
			used.style = yellow
		}
		if b.GetRefusedCallCount() > 0 {
			refused.style = yellow
		}
		t.row(cmp.Or(b.GetUserId(), "the namespace"), used, b.GetLimitTokens(), refused, date(b.GetResetTime()))
	}
	s.print(t)
}

// costText formats amounts by currency. Small amounts have two significant digits, so that a low cost does not look like zero.
func costText(costs []*memsidecarv1.Cost) string {
	var parts []string
	for _, c := range costs {
		amount := strconv.FormatFloat(c.GetAmount(), 'f', 2, 64)
		if c.GetAmount() != 0 && c.GetAmount() < 0.1 {
			amount = strconv.FormatFloat(c.GetAmount(), 'f', decimals(c.GetAmount()), 64)
		}
		parts = append(parts, amount+" "+line(c.GetCurrency()))
	}
	return strings.Join(parts, " + ")
}

// decimals returns the decimal places that an amount below 0.1 needs for two digits, at most 8.
func decimals(amount float64) int {
	places := 2
	for amount < 0.1 && places < 8 {
		amount *= 10
		places++
	}
	return places
}

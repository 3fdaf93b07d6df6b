package server

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/usage"
	"github.com/memsidecar/memsidecar/internal/usage/budget"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// maxUsageDays is the largest number of days for which GetStatus returns model costs.
const maxUsageDays = 31

// usage adds the costs of models, for today and the requested days, and the state of the token budgets. note describes the work that rules
// did because a budget was used up, or is "".
func (s *adminService) usage(ctx context.Context, scope memory.Scope, days int) (_ *memsidecarv1.UsageStatus, note string, err error) {
	now := s.options.Now()
	sums, err := s.Status.Usage(ctx, scope.Namespace, now.AddDate(0, 0, 1-max(1, days)))
	if err != nil {
		return nil, "", err
	}
	status := &memsidecarv1.UsageStatus{}
	for rest := sums; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(u usage.Sum) bool { return u.Day != rest[0].Day })
		if n < 0 {
			n = len(rest)
		}
		day := &memsidecarv1.DailyUsage{Day: rest[0].Day, Costs: fromCosts(s.Prices.Total(rest[:n]))}
		for _, u := range rest[:n] {
			day.Models = append(day.Models, s.modelUsage(u))
		}
		if day.GetDay() == usage.Day(now) {
			status.Today = day
		}
		if days > 0 {
			status.Days = append(status.Days, day)
		}
		rest = rest[n:]
	}
	if days > 0 {
		status.Costs = fromCosts(s.Prices.Total(sums))
	}
	standings, err := s.Status.Budgets(ctx, scope.User())
	if err != nil || len(standings) == 0 {
		return status, "", err
	}
	for _, b := range standings {
		if b.Limit > 0 {
			status.TokenBudgets = append(status.TokenBudgets, &memsidecarv1.TokenBudget{
				UserId: b.User.ID, LimitTokens: b.Limit, UsedTokens: b.Tokens, RefusedCallCount: b.Refused,
				RefusedUserCount: b.RefusedUsers, ResetTime: fromTime(b.Until),
			})
		}
	}
	return status, fallback(standings[0]), nil
}

func (s *adminService) modelUsage(u usage.Sum) *memsidecarv1.ModelUsage {
	p := &memsidecarv1.ModelUsage{
		Part: u.Part, Model: u.Model, CallCount: u.Calls, FailureCount: u.Failures, InputTokenCount: u.InputTokens,
		OutputTokenCount: u.OutputTokens, MeanLatency: durationpb.New(u.Latency / time.Duration(max(1, u.Calls))),
	}
	if cost, ok := s.Prices.Of(u); ok {
		p.EstimatedCost = &memsidecarv1.Cost{Amount: cost.Amount, Currency: cost.Currency}
	}
	return p
}

func fromCosts(costs []usage.Cost) []*memsidecarv1.Cost {
	var list []*memsidecarv1.Cost
	for _, c := range costs {
		list = append(list, &memsidecarv1.Cost{Amount: c.Amount, Currency: c.Currency})
	}
	return list
}

// fallback describes what the rules did today because a budget of the namespace was used up, or is "".
func fallback(b budget.Standing) string {
	until := b.Until.Format(time.RFC3339)
	switch {
	case b.Refused > 0:
		return fmt.Sprintf("rules, for %s today: the daily token budget of the namespace is used up until %s", quantity(b.Refused, "call"), until)
	case b.RefusedUsers > 0:
		return fmt.Sprintf("rules, for %s today: the daily token budget of a user is used up until %s", quantity(b.RefusedUsers, "user"), until)
	}
	return ""
}

func quantity(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}

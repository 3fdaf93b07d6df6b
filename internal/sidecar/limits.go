package sidecar

import (
	"github.com/memsidecar/memsidecar/internal/config"
	"github.com/memsidecar/memsidecar/internal/usage/budget"
)

// tokenLimits returns the daily token budgets of each namespace and its users: the general configuration, changed by the first matching
// entry.
func tokenLimits(cfg config.Config) func(namespace string) budget.Limits {
	general := budget.Limits{Namespace: cfg.LLM.DailyTokenBudget, User: cfg.LLM.DailyUserTokenBudget}
	return func(namespace string) budget.Limits {
		limits := general
		for _, n := range cfg.Namespaces {
			if !n.Matches(namespace) {
				continue
			}
			if n.DailyTokenBudget != nil {
				limits.Namespace = *n.DailyTokenBudget
			}
			if n.DailyUserTokenBudget != nil {
				limits.User = *n.DailyUserTokenBudget
			}
			break
		}
		return limits
	}
}

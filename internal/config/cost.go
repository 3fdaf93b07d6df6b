package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/memsidecar/memsidecar/internal/usage"
)

// maxBudget is the largest token budget, the same as in the tags of LLM.
const maxBudget = 1_000_000_000_000

// maxPrice is the highest price of one million tokens.
const maxPrice = 1e9

// validateBudgets checks the token budgets of some namespaces.
func (n Namespace) validateBudgets(key string, check func(key, problem, fix string)) {
	for _, b := range []struct {
		name  string
		value *int64
	}{{"daily_token_budget", n.DailyTokenBudget}, {"daily_user_token_budget", n.DailyUserTokenBudget}} {
		if b.value != nil && (*b.value < 0 || *b.value > maxBudget) {
			check(key+"."+b.name, fmt.Sprintf("is %d", *b.value), fmt.Sprintf("use 0 (any number of tokens) to %d", int64(maxBudget)))
		}
	}
}

// checkPrices checks the price table. An entry that can never match is a mistake, too.
func checkPrices(prices usage.Prices, check func(key, problem, fix string)) {
	for i, p := range prices {
		key := fmt.Sprintf("llm.prices[%d]", i)
		if provider, model, ok := strings.Cut(p.Model, "/"); !ok || provider == "" || model == "" ||
			strings.Contains(strings.TrimSuffix(p.Model, "/*"), "*") {
			check(
				key+".model",
				fmt.Sprintf("is %q", p.Model),
				"name it as GetStatus does, provider/model such as deepseek/deepseek-chat, or all of a provider as ollama/*",
			)
		}
		for j, earlier := range prices[:i] {
			if earlier.Fits(p.Model) {
				check(
					key+".model",
					fmt.Sprintf("is %q, which llm.prices[%d] (%s) fits already", p.Model, j, earlier.Model),
					"remove one of them, or put this one first",
				)
				break
			}
		}
		for _, price := range []struct {
			name  string
			value float64
		}{{"input", p.Input}, {"output", p.Output}} {
			if math.IsNaN(price.value) || price.value < 0 || price.value > maxPrice {
				check(
					key+"."+price.name,
					"is "+strconv.FormatFloat(price.value, 'g', -1, 64),
					"use the price of a million tokens, 0 to 1000000000",
				)
			}
		}
		if c := p.Currency; c == "" || len(c) > 16 ||
			strings.ContainsFunc(c, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
			check(
				key+".currency",
				fmt.Sprintf("is %q", c),
				"write it as it is to be shown, such as USD, CNY or ¥: at most 16 bytes, without spaces",
			)
		}
	}
}

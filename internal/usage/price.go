package usage

import (
	"maps"
	"slices"
	"strings"
)

// Price is the price of a model's tokens.
type Price struct {
	Model    string  `koanf:"model"`  // as Call.Model names it, or "provider/*" for all models of a provider
	Input    float64 `koanf:"input"`  // a million tokens of prompts or texts
	Output   float64 `koanf:"output"` // a million tokens of answers
	Currency string  `koanf:"currency"`
}

// Fits reports whether the price applies to the model.
func (p Price) Fits(model string) bool {
	if below, ok := strings.CutSuffix(p.Model, "*"); ok {
		return strings.HasPrefix(model, below)
	}
	return p.Model == model
}

// Cost is an amount of money.
type Cost struct {
	Amount   float64
	Currency string
}

// Prices is a price table. The first entry that fits a model applies.
type Prices []Price

const million = 1_000_000

// Of returns the cost of the calls; ok is false if their model has no price.
func (p Prices) Of(s Sum) (Cost, bool) {
	i := slices.IndexFunc(p, func(price Price) bool { return price.Fits(s.Model) })
	if i < 0 {
		return Cost{}, false
	}
	return Cost{(float64(s.InputTokens)*p[i].Input + float64(s.OutputTokens)*p[i].Output) / million, p[i].Currency}, true
}

// Total returns the total cost of all calls with a price, one amount per currency, sorted by currency.
func (p Prices) Total(sums []Sum) []Cost {
	amounts := map[string]float64{}
	for _, s := range sums {
		if cost, ok := p.Of(s); ok {
			amounts[cost.Currency] += cost.Amount
		}
	}
	var total []Cost
	for _, currency := range slices.Sorted(maps.Keys(amounts)) {
		total = append(total, Cost{amounts[currency], currency})
	}
	return total
}

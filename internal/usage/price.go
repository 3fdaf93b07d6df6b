package usage

import (
	"maps"
	"slices"
	"strings"
)

// Price is what a model's tokens cost.
type Price struct {
	Model    string  `koanf:"model"`  // as Call.Model names it, or "provider/*" for all of a provider
	Input    float64 `koanf:"input"`  // a million tokens of prompts or texts
	Output   float64 `koanf:"output"` // a million tokens of answers
	Currency string  `koanf:"currency"`
}

// Fits reports whether this is the price of the model.
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

// Prices is a price table. The first entry that fits a model counts.
type Prices []Price

const million = 1_000_000

// Of is what the calls cost, or false when their model has no price.
func (p Prices) Of(s Sum) (Cost, bool) {
	i := slices.IndexFunc(p, func(price Price) bool { return price.Fits(s.Model) })
	if i < 0 {
		return Cost{}, false
	}
	return Cost{(float64(s.InputTokens)*p[i].Input + float64(s.OutputTokens)*p[i].Output) / million, p[i].Currency}, true
}

// Total is what all the calls that have a price cost together, an amount for each currency, sorted by that.
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

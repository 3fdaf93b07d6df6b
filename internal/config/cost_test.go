package config

import (
	"reflect"
	"testing"

	"github.com/memsidecar/memsidecar/internal/usage"
)

func TestCost(t *testing.T) {
	l := mustLoad(t, Sources{
		File: write(t, `
llm:
  daily_token_budget: 2000000
  prices:
    - {model: deepseek/deepseek-chat, input: 2, output: 8.5, currency: CNY}
    - {model: ollama/*, currency: USD}
namespaces:
  - name: big/*
    daily_token_budget: 0
    daily_user_token_budget: 50000
`),
		Environ: environ("MEMSIDECAR_LLM_DAILY_USER_TOKEN_BUDGET=30000"),
	})
	want := LLM{DailyTokenBudget: 2_000_000, DailyUserTokenBudget: 30_000, Prices: usage.Prices{
		{Model: "deepseek/deepseek-chat", Input: 2, Output: 8.5, Currency: "CNY"}, {Model: "ollama/*", Currency: "USD"},
	}}
	if !reflect.DeepEqual(l.Config.LLM, want) {
		t.Errorf("got %+v, want %+v", l.Config.LLM, want)
	}
	if n := l.Config.Namespaces[0]; *n.DailyTokenBudget != 0 || *n.DailyUserTokenBudget != 50_000 || n.MemorizeEvery != nil {
		t.Errorf("the namespace has %+v", n)
	}
	table := mustLoad(
		t,
		Sources{Environ: environ("MEMSIDECAR_LLM_PRICES=[{model: openai/gpt-4o-mini, input: 0.15, output: 0.6, currency: USD}]")},
	)
	if got, ok := table.Config.LLM.Prices.Of(usage.Sum{Model: "openai/gpt-4o-mini", InputTokens: 2_000_000}); !ok ||
		got != (usage.Cost{Amount: 0.3, Currency: "USD"}) {
		t.Errorf("by a variable: %+v, %t", got, ok)
	}
}

func TestWrongCost(t *testing.T) {
	got := wrong(t, Sources{Environ: environ(), File: write(t, `
llm:
  daily_token_budget: -1
  daily_user_token_budget: many
  prices:
    - {model: gpt, input: 1, output: 1, currency: USD}
    - {model: openai/*, input: -1, output: 1e12, currency: USD}
    - {model: openai/gpt, input: 1, currency: US dollars}
    - {model: "*/x", input: 1}
namespaces:
  - {name: a, daily_token_budget: -5, daily_user_token_budget: 1000000000001}
`)})
	want := []string{
		`llm.daily_token_budget (from FILE): is -1: use 0 to 1000000000000`,
		`llm.daily_user_token_budget (from FILE): is "many": use a whole number`,
		`llm.prices[0].model (from FILE): is "gpt": name it as GetStatus does, provider/model such as deepseek/deepseek-chat, or all of a provider as ollama/*`,
		`llm.prices[1].input (from FILE): is -1: use the price of a million tokens, 0 to 1000000000`,
		`llm.prices[1].output (from FILE): is 1e+12: use the price of a million tokens, 0 to 1000000000`,
		`llm.prices[2].currency (from FILE): is "US dollars": write it as it is to be shown, such as USD, CNY or ¥: at most 16 bytes, without spaces`,
		`llm.prices[2].model (from FILE): is "openai/gpt", which llm.prices[1] (openai/*) fits already: remove one of them, or put this one first`,
		`llm.prices[3].currency (from FILE): is "": write it as it is to be shown, such as USD, CNY or ¥: at most 16 bytes, without spaces`,
		`llm.prices[3].model (from FILE): is "*/x": name it as GetStatus does, provider/model such as deepseek/deepseek-chat, or all of a provider as ollama/*`,
		`namespaces[0].daily_token_budget (from FILE): is -5: use 0 (any number of tokens) to 1000000000000`,
		`namespaces[0].daily_user_token_budget (from FILE): is 1000000000001: use 0 (any number of tokens) to 1000000000000`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got")
		for _, line := range got {
			t.Error(line)
		}
	}
}

package cli

import (
	"testing"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

func TestCostText(t *testing.T) {
	for amount, want := range map[float64]string{
		0: "0.00 USD", 12.345: "12.35 USD", 0.1: "0.10 USD", 0.012: "0.012 USD", 0.00216: "0.0022 USD", 1e-12: "0.00000000 USD", 1234567: "1234567.00 USD",
	} {
		if got := costText([]*memsidecarv1.Cost{{Amount: amount, Currency: "USD"}}); got != want {
			t.Errorf("%g is shown as %q, want %q", amount, got, want)
		}
	}
	if got := costText([]*memsidecarv1.Cost{{Amount: 1, Currency: "¥"}, {Amount: 2, Currency: "US\x1bD"}}); got != `1.00 ¥ + 2.00 US\u{1b}D` {
		t.Errorf("two currencies are shown as %q", got)
	}
}

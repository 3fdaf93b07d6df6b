package sqlstore_test

import (
	"log/slog"
	"testing"

	"github.com/memsidecar/memsidecar/internal/testkit/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

var discard = slog.New(slog.DiscardHandler)

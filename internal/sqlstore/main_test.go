package sqlstore_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/testkit/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

var discard = slog.New(slog.DiscardHandler)

var (
	ann = memory.User{Namespace: "test", ID: "ann"}
	at  = time.Date(2026, 11, 20, 8, 30, 0, 123_456_000, time.UTC)
)

package sqlite_test

import (
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

var (
	ann = memory.User{Namespace: "test", ID: "ann"}
	at  = time.Date(2026, 11, 20, 8, 30, 0, 123_456_000, time.UTC)
)

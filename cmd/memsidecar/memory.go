package main

import (
	"log/slog"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/memsidecar/memsidecar/internal/config"
)

const (
	mebibyte = 1 << 20
	// heapHeadroom is for heap other than the indexes: calls in progress, background writes, and garbage.
	heapHeadroom = 128 * mebibyte
	// outsideHeap is memory that the runtime's limit does not include: SQLite's caches and the program itself.
	outsideHeap = 96 * mebibyte
)

// limitMemory keeps the process near the memory that index.budget_mib promises. Without a limit the runtime lets as much garbage
// accumulate again. The limit is soft: above it the collector works harder, and nothing fails. An operator's GOMEMLIMIT takes precedence.
// restore removes the limit.
func limitMemory(cfg config.Config, environ []string, log *slog.Logger) (restore func()) {
	if config.Getenv(environ, "GOMEMLIMIT") != "" {
		return func() {} // the runtime uses it
	}
	container, err := memlimit.FromCgroup()
	if err != nil {
		container = 0 // no limit, or it cannot be read
	}
	budget := int64(cfg.Index.BudgetMiB) * mebibyte
	limit := memoryLimit(budget, container)
	if limit < budget+heapHeadroom {
		log.Warn("index.budget_mib does not fit into this container's memory: lower it, or give the container more",
			"index_budget_mib", cfg.Index.BudgetMiB, "container_mib", container/mebibyte,
			"needed_mib", (budget+heapHeadroom+outsideHeap)/mebibyte)
	}
	log.Debug("memory limit of the runtime", "mib", limit/mebibyte)
	before := debug.SetMemoryLimit(limit)
	return func() { debug.SetMemoryLimit(before) }
}

// memoryLimit returns what the indexes need, at most what a container leaves; 0 means no container. A very small container gets half,
// because the collector would run all the time to keep an impossible limit.
func memoryLimit(budget int64, container uint64) int64 {
	limit := uint64(budget) + heapHeadroom //nolint:gosec // the configuration's budget is at least 1
	if container > 0 {
		limit = min(limit, max(container/2, container-min(container, outsideHeap)))
	}
	return int64(limit) //nolint:gosec // less than the budget's 2^40 MiB
}

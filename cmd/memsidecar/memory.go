package main

import (
	"log/slog"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/memsidecar/memsidecar/internal/config"
)

const (
	mebibyte = 1 << 20
	// heapHeadroom is what the runtime may use beside the indexes: calls under way, what is written in the background, and
	// garbage that is not collected yet.
	heapHeadroom = 128 * mebibyte
	// outsideHeap is what the runtime's limit does not see: SQLite's caches and the program itself.
	outsideHeap = 96 * mebibyte
)

// limitMemory keeps the process near the memory that index.budget_mib promises: without a limit the runtime lets as much
// garbage again accumulate. The limit is soft: with more in use than that the collector works harder, and nothing fails.
// An operator's GOMEMLIMIT comes before it. restore takes it back.
func limitMemory(cfg config.Config, environ []string, log *slog.Logger) (restore func()) {
	if config.Getenv(environ, "GOMEMLIMIT") != "" {
		return func() {} // the runtime has read it
	}
	container, err := memlimit.FromCgroup()
	if err != nil {
		container = 0 // none, or none that can be read
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

// memoryLimit is what the indexes need, and no more than a container leaves; 0 is no container. In a very small one half
// is taken, because a limit that cannot be kept would have the collector run all the time.
func memoryLimit(budget int64, container uint64) int64 {
	limit := uint64(budget) + heapHeadroom //nolint:gosec // the configuration's budget is at least 1
	if container > 0 {
		limit = min(limit, max(container/2, container-min(container, outsideHeap)))
	}
	return int64(limit) //nolint:gosec // less than the budget's 2^40 MiB
}

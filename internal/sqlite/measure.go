package sqlite

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
)

// Depths says how many considerations of all namespaces wait, run, and have failed. It reads partial indexes alone, which
// hold just those: it costs what is counted, however many have ended well. The oldest is the first in the queue.
func (s *Queue) Depths(ctx context.Context) (depths []queue.Depth, err error) {
	const running = `SELECT seq FROM considerations INDEXED BY considerations_running WHERE state = 'running'`
	err = s.db.Read(ctx, func(q Querier) error {
		depths = nil
		for _, of := range []struct {
			state memory.State
			where string
		}{
			{memory.StatePending, `INDEXED BY considerations_line WHERE state IN ('pending', 'running') AND seq NOT IN (` + running + `)`},
			{memory.StateRunning, `INDEXED BY considerations_running WHERE state = 'running'`},
			{memory.StateFailed, `INDEXED BY considerations_failed WHERE state = 'failed'`},
		} {
			d := queue.Depth{State: of.state}
			var oldest sql.NullInt64
			err := q.QueryRow(ctx, `WITH some AS (SELECT count(*) AS n, min(seq) AS first FROM considerations `+of.where+`)
				SELECT n, (SELECT accepted_at FROM considerations WHERE seq = first) FROM some`).Scan(&d.Count, &oldest)
			if err != nil {
				return err
			}
			d.Oldest = Time(oldest)
			depths = append(depths, d)
		}
		return nil
	})
	return depths, err
}

// Sizes are those of the database file and of its write-ahead log, in bytes; 0 for one that is not there.
func (s *Storage) Sizes() (database, log int64) {
	size := func(name string) int64 {
		info, err := os.Stat(filepath.Join(s.options.Dir, name))
		if err != nil {
			return 0
		}
		return info.Size()
	}
	return size(fileName), size(fileName + "-wal")
}

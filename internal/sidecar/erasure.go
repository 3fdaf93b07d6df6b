package sidecar

import (
	"github.com/memsidecar/memsidecar/internal/lists"
	"github.com/memsidecar/memsidecar/internal/manage"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/session"
)

// forgetters delete everything of a user. The order matters:
//  1. Traces and digests are written in the background. What is pending of them must not be written after the rest is deleted.
//  2. Sessions, before the jobs: until a session's messages are gone, a job may be made of them.
//  3. Jobs, of which memories and findings of digests are made.
//  4. Everything that jobs and sessions write, and what nothing else depends on. The findings are deleted again, because another user's
//     job may have added some about this user in the meantime.
//
// When a new store keeps something of users, add its forgetter to the stage after the last of what writes to it.
func (p *components) forgetters() [][]manage.Forgetter {
	digests := manage.NewForgetter("digests", p.days.store.Forget, func(r *manage.Receipt, n int64) { r.Digests += n })
	return [][]manage.Forgetter{
		{
			manage.NewForgetter("traces", p.traces.Forget, func(r *manage.Receipt, n int64) { r.Traces = n }),
			digests,
		},
		{manage.NewForgetter("sessions", p.sessions.Forget, func(r *manage.Receipt, f session.Forgotten) {
			r.SessionMessages, r.Sessions = f.Messages, f.Sessions
		})},
		{manage.NewForgetter("considerations", p.jobs.Forget, func(r *manage.Receipt, f queue.Forgotten) {
			r.Considerations, r.Messages = f.Considerations, f.Messages
		})},
		{
			digests,
			manage.NewForgetter("files of digests", p.days.forgetFiles, func(r *manage.Receipt, n int) { r.Files = n }),
			manage.NewForgetter("numbered lists", p.lists.Forget, func(r *manage.Receipt, f lists.Forgotten) { r.Lists = f }),
			manage.NewForgetter("settings", p.settings.Forget, func(r *manage.Receipt, deleted bool) { r.Settings = deleted }),
			manage.NewForgetter("token counts", p.meter.Forget, func(r *manage.Receipt, deleted bool) { r.Tokens = deleted }),
			manage.NewForgetter("memories", p.store.Forget, func(r *manage.Receipt, n int64) { r.Memories = n }),
		},
	}
}

// newManage returns the commands on memories, and what forgets and exports users.
func (p *components) newManage() (*manage.Service, *manage.Eraser, *manage.Exporter) {
	memories := manage.NewService(manage.Deps{
		Store:          p.store,
		Backfill:       p.store,
		Vectors:        p.vectorizer,
		Considerations: p.jobs,
		Traces:         p.traces,
		Purger:         p.storage,
		Rewrite:        p.days.rewriteFiles,
		Redactor:       writesRedactor(p.cfg, p.redactor),
		Now:            p.Now,
	})
	eraser := manage.NewEraser(manage.EraserConfig{
		Barriers:   []manage.Barrier{p.considerer, p.days.service},
		Forgetters: p.forgetters(),
		Purger:     p.storage,
		Memories:   memories,
		Sessions:   p.sessions,
		Policies:   p.writer,
		Traces:     p.traces,
		Lists:      p.lists,
	})
	return memories, eraser, &manage.Exporter{
		Store:    p.store,
		Settings: p.settings,
		Queue:    p.jobs,
		Sessions: p.sessions,
		Traces:   p.traces,
		Tokens:   p.meter,
		Lists:    p.lists,
		Digests:  p.days.store,
	}
}

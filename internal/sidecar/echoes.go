package sidecar

import (
	"maps"
	"slices"

	"github.com/memsidecar/memsidecar/internal/config"
	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/decide/echo"
	"github.com/memsidecar/memsidecar/internal/retrieve"
	"github.com/memsidecar/memsidecar/internal/session"
	storelocal "github.com/memsidecar/memsidecar/internal/vectorstore/local"
)

// newEchoes recognise the blocks for prompts in the configured wordings, and in those that memsidecar comes with: a block
// that was pasted before the wording changed is still one.
func newEchoes(cfg config.Config, memories *storelocal.Store) *decide.Echoes {
	var wordings []echo.Wording
	for _, prompts := range []retrieve.Prompts{cfg.Retrieval.Prompts, retrieve.DefaultPrompts()} {
		for _, language := range slices.Sorted(maps.Keys(prompts)) {
			p := prompts[language]
			wordings = append(wordings, echo.Wording{
				Header: p.Header, Footer: p.Footer, Notes: []string{p.Note, p.Standing, p.Messages}, Speakers: []string{p.User, p.Assistant},
			})
		}
	}
	for _, blocks := range []session.Wordings{cfg.Session.Wordings, session.DefaultWordings()} {
		for _, language := range slices.Sorted(maps.Keys(blocks)) {
			w := blocks[language]
			wordings = append(wordings, echo.Wording{
				Header: w.Header, Footer: w.Footer, Notes: []string{w.Note, w.SummaryTitle}, Speakers: []string{w.User, w.Assistant, w.System, w.Tool},
			})
		}
	}
	return &decide.Echoes{Filter: echo.NewFilter(wordings), Memories: memories, Visibility: cfg.Policy()}
}

package cli

import (
	"context"
	"errors"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type importSeenMovies struct {
	File string `arg:"" complete:"file" help:"The file. \"-\" is standard input."`
	Show bool   `help:"Also make the list that the bot showed last the current list."`

	DryRun bool `help:"Show what would be imported, and store nothing."`

	zoneFlag
	registryFlags
	numberedListScope
	calls
	output
}

// Help implements kong.HelpProvider.
func (importSeenMovies) Help() string {
	return importHelp + `The films become a registry of numbered lists, as with numbered-lists import.

Examples:

    memsidecar import seen-movies -u 小林 --show --time-zone Asia/Shanghai seen_movies.json
    memsidecar import seen-movies --registry namespace --dry-run seen_movies.json`
}

// Run imports a seen_movies.json.
func (c importSeenMovies) Run(ctx context.Context, p *Program) error {
	own := numberedListsImport{
		File:              c.File,
		Show:              c.Show,
		zoneFlag:          c.zoneFlag,
		registryFlags:     c.registryFlags,
		numberedListScope: c.numberedListScope,
		calls:             c.calls,
		output:            c.output,
	}
	scope, err := own.scope()
	if err != nil {
		return err
	}
	file, err := own.read(ctx, p)
	if err != nil {
		return err
	}
	conn, err := own.dial(p)
	if err != nil {
		return err
	}
	defer conn.close()
	r := &report{format: "seen-movies", dryRun: c.DryRun}
	to := r.part(inputName(c.File), "films")
	evicted := int32(0)
	if c.DryRun {
		err = own.unseen(ctx, conn, scope, file, to)
	} else {
		var total *memsidecarv1.ImportNumberedListResponse
		total, err = own.send(ctx, conn, scope, file)
		to.added, to.there, evicted = int(total.GetAddedCount()), int(total.GetSkippedCount()), total.GetEvictedCount()
	}
	err = errors.Join(err, r.show(p, c.output))
	evictedNote(p, evicted)
	return err
}

// unseen counts the films that the registry has not seen.
func (c numberedListsImport) unseen(ctx context.Context, conn *connection, scope *memsidecarv1.Scope, file movies, to *part) error {
	for movies := file.Movies; len(movies) > 0; {
		n := min(len(movies), maxImportBatch)
		request := &memsidecarv1.FilterUnseenRequest{Scope: scope, RegistryKind: c.kind(), List: c.Name}
		for _, movie := range movies[:n] {
			request.Keys = append(request.Keys, movie.URL)
		}
		resp, err := conn.FilterUnseen(ctx, request)
		if err != nil {
			return wrapError(err, "%s", inputName(c.File))
		}
		to.added += len(resp.GetUnseenKeys())
		to.there += n - len(resp.GetUnseenKeys())
		movies = movies[n:]
	}
	return nil
}

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// compose loads the file as docker compose does, against the schema and for consistency, and looks for what is promised of it.
func compose(ctx context.Context, root string) (problems []string, err error) {
	options, err := cli.NewProjectOptions([]string{filepath.Join(root, "deploy", "compose.yaml")}, cli.WithConsistency(true), cli.WithResolvedPaths(true))
	if err != nil {
		return nil, err
	}
	project, err := options.LoadProject(ctx)
	if err != nil {
		return nil, err
	}
	sockets := map[string]bool{}
	for name, s := range project.Services {
		if !s.ReadOnly || len(s.CapDrop) != 1 || s.CapDrop[0] != "ALL" || len(s.SecurityOpt) == 0 {
			problems = append(problems, name+": its root is writable, or it may do more than it needs")
		}
		if len(s.Ports) > 0 {
			problems = append(problems, name+": it publishes a port")
		}
		if s.Build != nil {
			problems = append(problems, built(name, s.Build)...)
		}
		for _, v := range s.Volumes {
			if v.Target == "/run/memsidecar" {
				sockets[v.Source] = true
			}
		}
	}
	if len(project.Services) < 2 || len(sockets) != 1 {
		problems = append(problems, fmt.Sprintf("%d services share %d sockets", len(project.Services), len(sockets)))
	}
	return problems, nil
}

// built complains about what would be built and is not there.
func built(service string, b *types.BuildConfig) (problems []string) {
	file := b.Dockerfile
	if !filepath.IsAbs(file) {
		file = filepath.Join(b.Context, file)
	}
	if _, err := os.Stat(file); err != nil {
		problems = append(problems, service+": "+err.Error())
	}
	return problems
}

package main

import (
	"context"
	"fmt"
	"os"

	"github.com/moby/buildkit/client/llb"
	"github.com/moby/buildkit/client/llb/sourceresolver"
	"github.com/moby/buildkit/frontend/dockerfile/dockerfile2llb"
	"github.com/moby/buildkit/solver/pb"
	"github.com/opencontainers/go-digest"
)

// dockerfiles does with the Dockerfiles what docker build --check does; no image is fetched.
func dockerfiles(ctx context.Context, root string) (problems []string, err error) {
	found := []string{}
	for _, pattern := range []string{"Dockerfile", "deploy/*Dockerfile"} {
		some, err := files(root, pattern)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	for _, file := range found {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		capabilities := pb.Caps.CapSet(pb.Caps.All())
		source := llb.NewSourceMap(nil, file, "Dockerfile", text)
		source.Definition = &llb.Definition{} // of where the file is from; nobody asks
		results, err := dockerfile2llb.DockerfileLint(ctx, text, dockerfile2llb.ConvertOpt{
			SourceMap: source, MetaResolver: noImages{}, LLBCaps: &capabilities,
		})
		if err != nil {
			return nil, err
		}
		for _, w := range results.Warnings {
			problems = append(problems, fmt.Sprintf("%s: %s: %s", file, w.RuleName, w.Detail))
		}
		if results.Error != nil {
			problems = append(problems, file+": "+results.Error.Message)
		}
	}
	return problems, nil
}

// noImages takes every base image for one that sets nothing.
type noImages struct{}

// ResolveImageConfig implements llb.ImageMetaResolver.
func (noImages) ResolveImageConfig(_ context.Context, ref string, _ sourceresolver.Opt) (string, digest.Digest, []byte, error) {
	return ref, "", []byte(`{"architecture": "amd64", "os": "linux", "config": {}}`), nil
}

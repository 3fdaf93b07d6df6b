package mcp

import (
	"context"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

const (
	notebookURI = "memsidecar://notebook"
	digestURI   = "memsidecar://digest/"
	today       = "today"
	markdown    = "text/markdown"
)

func (t *tools) addResources(server *sdk.Server) {
	server.AddResource(&sdk.Resource{
		URI: notebookURI, Name: "notebook", Title: "Notebook", MIMEType: markdown,
		Description: "All that is remembered about the user, by kind.",
	}, t.notebook)
	server.AddResource(&sdk.Resource{
		URI: digestURI + today, Name: "digest of today", Title: "Digest of today", MIMEType: markdown,
		Description: "What the user's day has been about so far.",
	}, t.digest)
	server.AddResourceTemplate(&sdk.ResourceTemplate{
		URITemplate: digestURI + "{day}", Name: "digest", Title: "Digest of a day", MIMEType: markdown,
		Description: "What a day of the user was about, such as memsidecar://digest/2026-11-20.",
	}, t.digest)
}

func (t *tools) notebook(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	resp, err := t.Digests.GetNotebook(ctx, &memsidecarv1.GetNotebookRequest{Scope: t.ReadScope})
	if err != nil {
		return nil, words(err)
	}
	return page(r, resp.GetNotebook().GetMarkdown(), "Nothing is remembered yet.\n"), nil
}

func (t *tools) digest(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	day := strings.TrimPrefix(r.Params.URI, digestURI)
	if day == today {
		day = ""
	}
	resp, err := t.Digests.GetDigest(ctx, &memsidecarv1.GetDigestRequest{Scope: t.ReadScope, Day: day})
	if err != nil {
		return nil, words(err)
	}
	return page(r, resp.GetDigest().GetMarkdown(), "There is no digest of this day.\n"), nil
}

// page returns a text below the notice, or the replacement when the text is empty.
func page(r *sdk.ReadResourceRequest, text, nothing string) *sdk.ReadResourceResult {
	if text == "" {
		text = nothing
	} else {
		text = "> " + notice + "\n\n" + text
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: markdown, Text: text}}}
}

package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/config"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

const (
	configurationPage = "../../docs/configuration.md"
	generatedFrom     = "<!-- Generated below: UPDATE_DOCS=1 go test -run TestConfigurationPage ./cmd/memsidecar -->\n"
)

// TestConfigurationPage: The configuration page lists every key of the program. With UPDATE_DOCS=1 the test writes the list.
func TestConfigurationPage(t *testing.T) {
	t.Parallel()
	page := string(sidecartest.Must(os.ReadFile(configurationPage))(t))
	introduction, before, found := strings.Cut(page, generatedFrom)
	if !found {
		t.Fatalf("%s has no line %q", configurationPage, generatedFrom)
	}
	const general = "General"
	order, sections := []string{general}, map[string]string{}
	for _, key := range config.Reference() {
		name, _, nested := strings.Cut(key.Key, ".")
		if !nested {
			name = general
		}
		if !slices.Contains(order, name) {
			order = append(order, name)
		}
		sections[name] += "| `" + cell(key.Key) + "` | " + strings.Join([]string{
			cell(key.Type), code(key.Default), cell(key.Allowed), markdown(cell(key.Doc)),
		}, " | ") + " |\n"
	}
	var b strings.Builder
	for _, name := range order {
		b.WriteString("\n## " + name + "\n\n| key | type | default | allowed | meaning |\n|---|---|---|---|---|\n" + sections[name])
	}
	if b.String() == before {
		return
	}
	if os.Getenv("UPDATE_DOCS") == "" {
		t.Fatal("docs/configuration.md is not what the program knows: run UPDATE_DOCS=1 go test ./cmd/memsidecar -run TestConfigurationPage")
	}
	sidecartest.NoError(t, os.WriteFile(configurationPage, append(bytes.Clone([]byte(introduction+generatedFrom)), b.String()...), 0o644))
}

// code formats a value as code. An empty value remains empty.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + cell(text) + "`"
}

// markdown escapes placeholders that would be HTML.
func markdown(text string) string { return strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(text) }

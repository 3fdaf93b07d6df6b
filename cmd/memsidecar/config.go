package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/memsidecar/memsidecar/internal/config"
	"github.com/memsidecar/memsidecar/internal/sidecar"
)

type configCommand struct {
	Check     configCheck     `cmd:"" help:"Check the configuration and list every mistake."`
	Print     configPrint     `cmd:"" help:"Print the values in use and their sources."`
	Reference configReference `cmd:"" help:"Print a Markdown table of all keys."`
}

type (
	configCheck     struct{}
	configPrint     struct{}
	configReference struct{}
)

// Run reads the configuration and reports its mistakes.
func (configCheck) Run(m *Main, c *commands) error {
	loaded, err := m.load(c)
	if err != nil {
		return err
	}
	if err := sidecar.Check(loaded.Config, m.Environ); err != nil {
		return err
	}
	_, err = fmt.Fprintln(m.Stdout, "the configuration is valid")
	return err
}

// Run prints the configuration as YAML.
func (configPrint) Run(m *Main, c *commands) error {
	loaded, err := m.load(c)
	if err != nil {
		return err
	}
	return loaded.WriteYAML(m.Stdout)
}

// Run prints every key.
func (configReference) Run(m *Main) error {
	w := &strings.Builder{}
	fmt.Fprint(w, "| key | environment | type | default | allowed | meaning |\n|---|---|---|---|---|---|\n")
	for _, key := range config.Reference() {
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s |\n", cell(key.Key), cell(key.Env), cell(key.Type), cell(key.Default), cell(key.Allowed), cell(key.Doc))
	}
	_, err := io.WriteString(m.Stdout, w.String())
	return err
}

// cell escapes a text for a cell of a Markdown table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", "<br>").Replace(text)
}

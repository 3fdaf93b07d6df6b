package main

import (
	"cmp"
	"runtime/debug"
)

// What make build links in. A plain go build leaves them empty, and what Go notes about the repository counts.
var (
	builtVersion string // such as v1.2.0
	builtCommit  string // of git, with -dirty behind it when files differ from it
)

// version is the program's version with the commit it was built from.
func version() string {
	v, commit := builtVersion, builtCommit
	if info, ok := debug.ReadBuildInfo(); ok {
		v = cmp.Or(v, info.Main.Version)
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = cmp.Or(commit, s.Value[:min(12, len(s.Value))])
			}
		}
	}
	v = cmp.Or(v, "(devel)")
	if commit != "" {
		v += " " + commit
	}
	return v
}

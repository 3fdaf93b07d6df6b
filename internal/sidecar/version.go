package sidecar

import (
	"cmp"
	"runtime/debug"
)

// make build sets these with the linker. After a plain go build they are empty, and the build information of Go is used.
var (
	builtVersion string // such as v1.2.0
	builtCommit  string // of git, with -dirty behind it when files differ from it
)

// Version is the program's version with the commit it was built from.
func Version() string {
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

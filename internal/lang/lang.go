// Package lang has what the packages below it share: sets of words and lists of phrases.
package lang

import (
	"io/fs"
	"strings"
)

// Set is the set of the words in lists, which are separated by spaces.
func Set(lists ...string) map[string]bool {
	set := map[string]bool{}
	for _, list := range lists {
		for word := range strings.FieldsSeq(list) {
			set[word] = true
		}
	}
	return set
}

// Lines lists the lines of a data file without surrounding spaces, blank lines, and comments, which begin with #.
func Lines(text string) []string {
	var list []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			list = append(list, line)
		}
	}
	return list
}

// Files lists the lines of the data files that match a pattern. Files are part of the program, so it panics when they cannot be read.
func Files(files fs.FS, pattern string) []string {
	names, err := fs.Glob(files, pattern)
	if err == nil && len(names) == 0 {
		err = fs.ErrNotExist
	}
	var list []string
	for _, name := range names {
		var data []byte
		if data, err = fs.ReadFile(files, name); err != nil {
			break
		}
		list = append(list, Lines(string(data))...)
	}
	if err != nil {
		panic(pattern + ": " + err.Error())
	}
	return list
}

// AnyOf is a regular expression that matches any of the given ones, or "" without captured groups of its own.
func AnyOf(expressions []string) string {
	return "(?:" + strings.Join(expressions, "|") + ")"
}

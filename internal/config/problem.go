package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one problem of the configuration.
type Problem struct {
	Key     string // the key, or what was written where a key was expected
	Source  string // a file's path, an environment variable's name, "--set" or "default"
	Problem string // completes a sentence that begins with the key
	Fix     string // what to do
}

// String returns the problem on one line.
func (p Problem) String() string {
	return fmt.Sprintf("%s (from %s): %s: %s", p.Key, p.Source, p.Problem, p.Fix)
}

// InvalidError lists all problems of a configuration, sorted by key.
type InvalidError struct{ Problems []Problem }

// Error returns one line for each problem.
func (e *InvalidError) Error() string {
	lines := make([]string, 1, 1+len(e.Problems))
	lines[0] = "the configuration is not valid:"
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n  ")
}

// problems collects problems.
type problems []Problem

func (p *problems) add(key, source, problem, fix string) {
	*p = append(*p, Problem{key, source, problem, fix})
}

// about reports whether there is a problem with a key or a part of it.
func (p problems) about(key string) bool {
	return slices.ContainsFunc(p, func(problem Problem) bool { return within(problem.Key, key) })
}

func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.Source, b.Source))
	})
	return &InvalidError{p}
}

// renamedKeys are the keys of today by the keys of the release before.
var renamedKeys = map[string]string{
	"retrieval.min_score": "retrieval.min_relevance",
	"queue.debounce":      "session.idle",
	"results":             "numbered_lists", // as a file has it
	"results.max_items":   "numbered_lists.max_items",
	"results.max_age":     "numbered_lists.max_age",
	"results.list_ttl":    "numbered_lists.list_ttl",
}

// renamed is what a key, or the variable of one, is called today, or "".
func renamed(name string) string {
	if now := renamedKeys[name]; now != "" {
		return now
	}
	for former, now := range renamedKeys {
		if envName(former) == name {
			return envName(now)
		}
	}
	return ""
}

// addUnknown reports an unknown name and suggests the known name that was probably meant.
func (p *problems) addUnknown(name, source, what string, known []string) {
	if now := renamed(name); now != "" {
		p.add(name, source, "has a new name", "write "+now)
		return
	}
	fix := "remove it; `memsidecar config reference` lists what there is"
	if suggestion := nearest(name, known); suggestion != "" {
		fix = "did you mean " + suggestion + "?"
	}
	p.add(name, source, "is not a known "+what, fix)
}

// nearest returns the known name that was probably meant, or "": the one that differs by a few letters, or the only one that ends in the
// last part of the name.
func nearest(name string, known []string) string {
	last := strings.TrimPrefix(name[strings.LastIndex(name, delim)+1:], prefix)
	best, limit := "", 1+len(name)/6
	var endings []string
	for _, k := range known {
		k = fill(k, name)
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d <= limit {
			best, limit = k, d-1
		}
		if strings.HasSuffix(k, delim+last) || strings.HasSuffix(k, "_"+last) {
			endings = append(endings, k)
		}
	}
	if best == "" && len(endings) == 1 {
		return endings[0]
	}
	return best
}

// fill replaces the placeholder of a pattern by the entry in the name.
func fill(pattern, name string) string {
	before, rest, isPattern := strings.Cut(pattern, "<")
	entry, ok := strings.CutPrefix(name, before)
	if !isPattern || !ok {
		return pattern
	}
	if end := strings.IndexAny(entry, "._"); end >= 0 {
		entry = entry[:end]
	}
	_, after, _ := strings.Cut(rest, ">")
	return before + entry + after
}

// distance returns the edit distance of a and b in bytes (optimal string alignment: insert, delete, replace, swap neighbours).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			differ := 1
			if a[i] == b[j] {
				differ = 0
			}
			row[j+1] = min(row[j]+1, last[j+1]+1, last[j]+differ)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

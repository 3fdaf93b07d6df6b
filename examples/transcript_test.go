package examples

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// transcript is a Markdown file. Its code blocks show commands, each after "$ ", and their output. An output line that is only an
// ellipsis matches any number of lines. A command without output may print anything, and must succeed.
type transcript struct {
	lines    []string
	commands []*command
}

type command struct {
	text       string // without "$ "
	begin, end int    // the lines of its output; end is exclusive
}

// parse finds the commands in the file's code blocks.
func parse(text string) *transcript {
	t := &transcript{lines: strings.Split(text, "\n")}
	var last *command
	fenced, continued := false, false
	for i, line := range t.lines {
		switch {
		case strings.HasPrefix(line, "```"):
			fenced, continued, last = !fenced, false, nil
		case fenced && strings.HasPrefix(line, "$ "):
			last = &command{text: line[2:], begin: i + 1, end: i + 1}
			t.commands = append(t.commands, last)
			continued = unfinished(last.text)
		case last != nil && continued:
			last.text += "\n" + line
			last.begin, last.end = i+1, i+1
			continued = unfinished(last.text)
		case last != nil:
			last.end = i + 1
		}
	}
	return t
}

// unfinished reports whether a shell would ask for another line.
func unfinished(text string) bool {
	return strings.Count(text, "'")%2 == 1 || strings.HasSuffix(text, `\`)
}

func (t *transcript) output(c *command) []string {
	out := slices.Clone(t.lines[c.begin:c.end])
	for len(out) > 0 && out[len(out)-1] == "" { // blank lines between two commands
		out = out[:len(out)-1]
	}
	return out
}

// write returns the file with other outputs; nil keeps an output.
func (t *transcript) write(outputs map[*command][]string) string {
	var b []string
	at := 0
	for _, c := range t.commands {
		b = append(b, t.lines[at:c.begin]...)
		at = c.begin
		if out, ok := outputs[c]; ok {
			b = append(b, out...)
			at += len(t.output(c))
		}
	}
	return strings.Join(append(b, t.lines[at:]...), "\n")
}

// names maps the ids in the file to those of this run.
type names struct{ actual, written map[string]string }

var idPattern = regexp.MustCompile(`\b(con|mem|ses|trc|rev|fnd)_[0-9a-z][0-9a-z-]*`)

// translate replaces the file's ids in a command by those of this run.
func (n *names) translate(text string) string {
	return idPattern.ReplaceAllStringFunc(text, func(id string) string {
		if actual, ok := n.actual[id]; ok {
			return actual
		}
		return id
	})
}

// rewrite replaces this run's ids in the output by those of the file. New ids stay, and are added.
func (n *names) rewrite(lines []string) []string {
	var out []string
	for _, line := range lines {
		out = append(out, idPattern.ReplaceAllStringFunc(line, func(id string) string {
			if written, ok := n.written[id]; ok {
				return written
			}
			n.actual[id], n.written[id] = id, id
			return id
		}))
	}
	return out
}

// update returns the output as a document shows it. Lines that did not change are kept as they are written, and so are ellipses, except
// next to a change.
func (n *names) update(written, actual []string) []string {
	var kept []string  // the written lines without ellipses
	var elided []bool  // whether there is an ellipsis before the line of that index
	var marks []string // that ellipsis
	elided, marks = append(elided, false), append(marks, "")
	for _, line := range written {
		if strings.TrimSpace(line) == "…" {
			elided[len(kept)], marks[len(kept)] = true, line
			continue
		}
		kept, elided, marks = append(kept, line), append(elided, false), append(marks, "")
	}
	var out []string
	w, a := 0, 0
	// gap writes what is between two lines that did not change.
	gap := func(nextW, nextA int) {
		n.pair(kept[w:nextW], actual[a:nextA])
		if nextW == w && elided[w] {
			out = append(out, marks[w])
		} else {
			out = append(out, n.rewrite(actual[a:nextA])...)
		}
	}
	for _, match := range common(kept, actual) {
		gap(match[0], match[1])
		if n.learn(kept[match[0]], actual[match[1]]) != nil {
			return n.rewrite(actual)
		}
		out = append(out, kept[match[0]])
		w, a = match[0]+1, match[1]+1
	}
	gap(len(kept), len(actual))
	return out
}

// pair pairs the ids of lines that changed, in their order, so that the commands below that use them still work.
func (n *names) pair(written, actual []string) {
	find := func(lines []string, known map[string]string) (ids []string) {
		for _, id := range idPattern.FindAllString(strings.Join(lines, "\n"), -1) {
			if _, ok := known[id]; !ok && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		return ids
	}
	unpaired := find(actual, n.written)
	for _, id := range find(written, n.actual) {
		kind, _, _ := strings.Cut(id, "_")
		if i := slices.IndexFunc(unpaired, func(other string) bool { return strings.HasPrefix(other, kind+"_") }); i >= 0 {
			n.actual[id], n.written[unpaired[i]] = unpaired[i], id
			unpaired = slices.Delete(unpaired, i, i+1)
		}
	}
}

// common returns the positions of a longest common subsequence of lines.
func common(a, b []string) (matches [][2]int) {
	longest := make([][]int, len(a)+1) // of a[i:] and b[j:]
	for i := range longest {
		longest[i] = make([]int, len(b)+1)
	}
	for i, x := range slices.Backward(a) {
		for j, y := range slices.Backward(b) {
			longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			if normal(x) == normal(y) {
				longest[i][j] = max(longest[i][j], longest[i+1][j+1]+1)
			}
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case normal(a[i]) == normal(b[j]) && longest[i][j] == longest[i+1][j+1]+1:
			matches = append(matches, [2]int{i, j})
			i, j = i+1, j+1
		case longest[i+1][j] >= longest[i][j+1]:
			i++
		default:
			j++
		}
	}
	return matches
}

// learn pairs the ids of two lines that are otherwise equal. The same id must always be paired with the same one.
func (n *names) learn(written, actual string) error {
	a, b := idPattern.FindAllString(written, -1), idPattern.FindAllString(actual, -1)
	for i := range a {
		if other, ok := n.actual[a[i]]; ok && other != b[i] {
			return fmt.Errorf("%s is another one here than above", a[i])
		}
		if other, ok := n.written[b[i]]; ok && other != a[i] {
			return fmt.Errorf("%s is called %s above", a[i], other)
		}
		n.actual[a[i]], n.written[b[i]] = b[i], a[i]
	}
	return nil
}

// Text that differs between runs, and its replacement before lines are compared.
var variable = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d`), "DAY"},
	{regexp.MustCompile(`"\d+(\.\d+)?s"`), "DURATION"},
	{regexp.MustCompile(`\b\d+\.\d{4,}(e-\d+)?\b`), "NUMBER"},
	{regexp.MustCompile(`"version": ".*"`), "VERSION"},
	{idPattern, "${1}_ID"},
}

func normal(line string) string {
	for _, v := range variable {
		line = v.pattern.ReplaceAllString(line, v.by)
	}
	return strings.TrimRight(line, " ")
}

// compare returns an error unless the lines match the document, except for ellipses and text that differs between runs.
func (n *names) compare(written, actual []string) error {
	at := 0
	parts := split(written)
	for i, part := range parts {
		begin, ok := at, false
		switch {
		case i == len(parts)-1 && i > 0: // after the last ellipsis: the end
			begin = len(actual) - len(part)
			ok = begin >= at && same(part, actual[begin:])
		case i == 0:
			ok = len(actual) >= len(part) && same(part, actual[:len(part)]) && (len(parts) > 1 || len(actual) == len(part))
		default:
			for ; begin+len(part) <= len(actual) && !ok; begin++ {
				ok = same(part, actual[begin:begin+len(part)])
			}
			begin--
		}
		if !ok {
			return fmt.Errorf("this is not there, in this place:\n%s", strings.Join(part, "\n"))
		}
		for j, line := range part {
			if err := n.learn(line, actual[begin+j]); err != nil {
				return err
			}
		}
		at = begin + len(part)
	}
	return nil
}

// split splits at the ellipses.
func split(lines []string) [][]string {
	parts := [][]string{nil}
	for _, line := range lines {
		if strings.TrimSpace(line) == "…" {
			parts = append(parts, nil)
			continue
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], line)
	}
	return parts
}

func same(a, b []string) bool {
	return slices.EqualFunc(a, b, func(x, y string) bool { return normal(x) == normal(y) })
}

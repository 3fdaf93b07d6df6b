package examples

import (
	"slices"
	"strings"
	"testing"
)

// TestCompare: Only differences that are expected between runs are accepted.
func TestCompare(t *testing.T) {
	const written = "{\n id: con_1-a\n at: 2026-11-22T00:13:09.5Z\n …\n of: con_1-a\n}"
	for name, test := range map[string]struct {
		actual string
		same   bool
	}{
		"the same":                   {written, true},
		"another run":                {"{\n id: con_7\n at: 2027-01-01T10:00:00Z\n more\n and more\n of: con_7\n}", true},
		"nothing for the ellipsis":   {"{\n id: con_7\n at: 2027-01-01T10:00:00Z\n of: con_7\n}", true},
		"another word":               {"{\n ID: con_7\n at: 2027-01-01T10:00:00Z\n of: con_7\n}", false},
		"a line more at the end":     {"{\n id: con_7\n at: 2027-01-01T10:00:00Z\n of: con_7\n}\n}", false},
		"a line more at the begin":   {"\n{\n id: con_7\n at: 2027-01-01T10:00:00Z\n of: con_7\n}", false},
		"a line less":                {"{\n id: con_7\n at: 2027-01-01T10:00:00Z\n}", false},
		"nothing":                    {"", false},
		"an id that means two":       {"{\n id: con_7\n at: 2027-01-01T10:00:00Z\n of: con_8\n}", false},
		"an id of another kind":      {"{\n id: mem_7\n at: 2027-01-01T10:00:00Z\n of: mem_7\n}", false},
		"a time that is none":        {"{\n id: con_7\n at: noon\n of: con_7\n}", false},
		"lines in another order":     {"{\n at: 2027-01-01T10:00:00Z\n id: con_7\n of: con_7\n}", false},
		"what follows comes earlier": {"{\n id: con_7\n of: con_7\n}", false},
	} {
		n := &names{actual: map[string]string{}, written: map[string]string{}}
		if err := n.compare(strings.Split(written, "\n"), strings.Split(test.actual, "\n")); (err == nil) != test.same {
			t.Errorf("%s: %v", name, err)
		}
		if got := n.translate("get con_1-a"); test.same && name != "the same" && got != "get con_7" {
			t.Errorf("%s: the next command is %q", name, got)
		}
	}
}

// TestUpdate: With UPDATE_DOCS=1 only what changed is written. Ids are kept, and ellipses that are not next to a change.
func TestUpdate(t *testing.T) {
	const written = "{\n id: con_1-a\n at: 2026-11-22T00:13:09.5Z\n …\n state: good\n trace: trc_1\n}"
	const head = "{\n id: con_7\n at: 2027-01-01T10:00:00Z\n more\n"
	for actual, want := range map[string]string{
		head + " state: good\n trace: trc_2\n}":             written,
		head + " state: good\n trace: trc_2,\n count: 1\n}": strings.Replace(written, "trc_1", "trc_1,\n count: 1", 1),
		"new\n" + head + " state: good\n trace: trc_2\n}":   "new\n" + written,
		head + " state: bad\n trace: trc_2\n}":              strings.Replace(written, "…\n state: good", "more\n state: bad", 1),
	} {
		n := &names{actual: map[string]string{}, written: map[string]string{}}
		got := n.update(strings.Split(written, "\n"), strings.Split(actual, "\n"))
		if !slices.Equal(got, strings.Split(want, "\n")) {
			t.Errorf("%s\nbecomes\n%s\nwant\n%s", actual, strings.Join(got, "\n"), want)
		}
		if command := n.translate("get trc_1"); command != "get trc_2" {
			t.Errorf("after\n%s\nthe next command is %q", actual, command)
		}
		if err := n.compare(got, strings.Split(actual, "\n")); err != nil {
			t.Errorf("the new document does not have the output: %v", err)
		}
	}
}

// TestParse: The parser separates commands, their continuation lines and their output.
func TestParse(t *testing.T) {
	const text = "# A\n```\n$ one\n1\n\n$ two '{\n  x}' \\\n  y\n2\n22\n```\n$ no\n```\nno\n```\n"
	doc := parse(text)
	var got []string
	for _, c := range doc.commands {
		got = append(got, c.text+"|"+strings.Join(doc.output(c), ","))
	}
	if want := []string{"one|1", "two '{\n  x}' \\\n  y|2,22"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if doc.write(nil) != text {
		t.Errorf("writing nothing changes it:\n%s", doc.write(nil))
	}
	changed := doc.write(map[*command][]string{doc.commands[0]: {"a", "b"}})
	if want := strings.Replace(text, "$ one\n1\n", "$ one\na\nb\n", 1); changed != want {
		t.Errorf("got\n%s", changed)
	}
	if hid := only("```\n$ a\n```\n```\n$ b\n```", []string{"$ b"}); len(parse(hid).commands) != 1 || parse(hid).commands[0].text != "b" {
		t.Errorf("%q", hid)
	}
}

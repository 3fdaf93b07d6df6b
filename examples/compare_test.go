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

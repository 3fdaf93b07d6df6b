package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
	"google.golang.org/protobuf/encoding/protojson"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

func TestWrap(t *testing.T) {
	for _, test := range []struct {
		text  string
		width int
		want  []string
	}{
		{"short", 20, []string{"short"}},
		{"The user lives in Lisbon.", 12, []string{"The user", "lives in", "Lisbon."}},
		{"用户喜欢吃辣，对花生过敏。", 9, []string{"用户喜欢", "吃辣，对", "花生过", "敏。"}}, // no line begins with punctuation
		{"用户喜欢jazz音乐", 8, []string{"用户喜欢", "jazz音乐"}},
		{"a mem_ixmff34jmcga2cmhdf6jbmhr", 10, []string{"a", "mem_ixmff3", "4jmcga2cmh", "df6jbmhr"}},
		{"👩‍👩‍👧‍👦👩‍👩‍👧‍👦", 3, []string{"👩‍👩‍👧‍👦", "👩‍👩‍👧‍👦"}}, // a family is one character
		{"宽宽", 1, []string{"宽", "宽"}},
	} {
		got := wrap(test.text, test.width)
		if !slices.Equal(got, test.want) {
			t.Errorf("%q in %d columns is %q, want %q", test.text, test.width, got, test.want)
		}
	}
}

// TestTableFitsTheTerminal: No line is wider than the terminal, columns are aligned, and no text is lost.
func TestTableFitsTheTerminal(t *testing.T) {
	text := "用户喜欢吃辣，住在杭州，在一家游戏公司做美术，下周三下午三点要去看牙医。"
	rows := &table{columns: []column{{name: "score", right: true}, {name: "text", wraps: true}, {name: "kind"}}}
	rows.row(cell{"0.25", green}, text, "fact")
	rows.row("10.25", "likes\ttea\nand coffee", "preference")
	for width, lines := range map[int]int{0: 3, 200: 3, 60: 4, 44: 5} {
		var out bytes.Buffer
		(&screen{w: &out, width: width}).print(rows)
		got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(got) != lines {
			t.Errorf("in %d columns there are %d lines, want %d:\n%s", width, len(got), lines, &out)
		}
		before, _, _ := strings.Cut(got[0], "KIND")
		column := uniseg.StringWidth(before)
		for _, l := range got {
			if width > 0 && uniseg.StringWidth(l) > width {
				t.Errorf("in %d columns %q is wider", width, l)
			}
			for _, kind := range []string{"fact", "preference"} {
				if i := strings.Index(l, kind); i >= 0 && uniseg.StringWidth(l[:i]) != column {
					t.Errorf("%s is not below its name:\n%s", kind, &out)
				}
			}
		}
		whole := strings.Join(strings.Fields(strings.NewReplacer("fact", "").Replace(out.String())), "")
		if !strings.Contains(whole, text) || !strings.Contains(whole, "10.25likestea") {
			t.Errorf("in %d columns text is lost:\n%s", width, &out)
		}
	}
	var out bytes.Buffer
	(&screen{w: &out, color: true}).print(rows)
	if !strings.Contains(out.String(), "\x1b[32m0.25\x1b[0m") {
		t.Errorf("the score is not green: %q", out.String())
	}
}

func TestTerminalOutputIsEscaped(t *testing.T) {
	evil := "a\x00\x07\b\x1b[2J\x1b]0;title\a\u009b31m\u202eb\u2066c\u200ed\u2028e\ufefff\U000E0041\x7f"
	for name, got := range map[string]string{"line": line("x\ny\r\nz\t" + evil), "block": block("x\ty\r\n" + evil)} {
		for _, r := range got {
			if dangerous(r) && r != '\n' {
				t.Errorf("%s lets %U through: %q", name, r, got)
			}
		}
	}
	if got := line("x\ny"); got != "x y" {
		t.Errorf("a line is %q", got)
	}
	for _, good := range []string{"用户喜欢吃辣🌶️", "👩‍👩‍👧‍👦", "אני אוהב חתולים", "e\u0301"} {
		if line(good) != good {
			t.Errorf("%q became %q", good, line(good))
		}
	}
	// JSON says the same in other words.
	data, err := jsonLine(&memsidecarv1.Memory{Text: evil}, protojson.MarshalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var back memsidecarv1.Memory
	if err := protojson.Unmarshal(data, &back); err != nil || back.GetText() != evil || bytes.ContainsFunc(bytes.TrimSpace(data), dangerous) {
		t.Errorf("%q, %v", data, err)
	}
}

// TestChangesNameMemoriesAndReasons: A change in the history names the memories and the reason. Empty columns are omitted.
func TestChangesNameMemoriesAndReasons(t *testing.T) {
	shown := func(changes ...*memsidecarv1.MemoryChange) string {
		var out bytes.Buffer
		(&screen{w: &out}).changes(changes)
		return strings.TrimSpace(out.String())
	}
	added := &memsidecarv1.MemoryChange{MemoryId: "mem_1", Action: memsidecarv1.MemoryAction_MEMORY_ACTION_ADDED, Text: "用户住在杭州"}
	if got, want := shown(added), "DONE   MEMORY  TEXT\nadded  mem_1   用户住在杭州"; got != want {
		t.Errorf("shown is\n%s\nwant\n%s", got, want)
	}
	updated := &memsidecarv1.MemoryChange{
		MemoryId: "mem_3", Action: memsidecarv1.MemoryAction_MEMORY_ACTION_UPDATED, Text: "用户喝茶", RelatedMemoryIds: []string{"mem_2", "mem_0"}, Reason: "said later",
	}
	if got, want := shown(added, updated), "DONE     MEMORY  TEXT          CONCERNS      WHY\n"+
		"added    mem_1   用户住在杭州\n"+
		"updated  mem_3   用户喝茶      mem_2, mem_0  said later"; got != want {
		t.Errorf("shown is\n%s\nwant\n%s", got, want)
	}
}

// TestConsiderationSaysWhatWasNotDone: Why rules decided, what was dropped, and a request to forget everything or nothing are shown.
func TestConsiderationSaysWhatWasNotDone(t *testing.T) {
	var out bytes.Buffer
	(&screen{w: &out}).consideration(&memsidecarv1.Consideration{
		Id: "con_1", DecidedBy: "rules", FallbackReason: "the model refused", DroppedChanges: []string{"ops[0]: a", "ops[1]: b"}, ForgetEverything: true,
		Changes: []*memsidecarv1.MemoryChange{{Action: memsidecarv1.MemoryAction_MEMORY_ACTION_NOT_FOUND, Text: "the oboe"}},
	})
	for _, want := range []string{
		"decided by     rules\n", "rules because  the model refused\n", "not done       ops[0]: a; ops[1]: b\n", "forget everything  yes\n",
		"not found          the oboe",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	out.Reset()
	(&screen{w: &out}).consideration(&memsidecarv1.Consideration{Id: "con_2"})
	for _, word := range []string{"rules because", "not done", "forget everything"} {
		if strings.Contains(out.String(), word) {
			t.Errorf("%q is in\n%s", word, out.String())
		}
	}
}

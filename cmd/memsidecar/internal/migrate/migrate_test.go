package migrate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/encoding/simplifiedchinese"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/migrate"
)

var options = migrate.Options{Zone: time.FixedZone("Shanghai", 8*3600), Now: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)}

// reading collects the results of a reader, one per line.
type reading struct {
	items []migrate.Item
	left  []migrate.Skipped
}

func (r *reading) sink() migrate.Sink {
	return migrate.Sink{
		Item: func(i migrate.Item) error { r.items = append(r.items, i); return nil },
		Skip: func(l migrate.Skipped) { r.left = append(r.left, l) },
	}
}

func (r *reading) String() string {
	var b strings.Builder
	for _, i := range r.items {
		kind := strings.ToLower(strings.TrimPrefix(i.Memory.GetKind().String(), "MEMORY_KIND_"))
		fmt.Fprintf(&b, "%d %s: %s", i.Line, kind, i.Memory.GetText())
		if t := i.Memory.GetObserveTime(); t != nil {
			fmt.Fprintf(&b, " @%s", t.AsTime().Format(time.RFC3339Nano))
		}
		b.WriteString("\n")
	}
	for _, l := range r.left {
		fmt.Fprintf(&b, "%d left: %s\n", l.Line, l.Reason)
	}
	return b.String()
}

func rows(text string) (*reading, error) {
	r := &reading{}
	fields := migrate.Fields{Text: []string{"text"}, Time: []string{"time"}, User: []string{"meta.user"}, ID: []string{"id"}}
	return r, migrate.Rows(strings.NewReader(text), "JSONL", fields, true, options, r.sink())
}

func TestTimes(t *testing.T) {
	for value, want := range map[string]string{
		`"2026-02-03T10:00:00Z"`:             `2026-02-03T10:00:00Z`,
		`"2026-02-03T10:00:00.5"`:            `2026-02-03T02:00:00.5Z`,
		`"2026-02-03 10:00:00+00:00"`:        `2026-02-03T10:00:00Z`,
		`"2026-02-03T10:00:00.146390-07:00"`: `2026-02-03T17:00:00.14639Z`,
		`"2026-02-03 10:00"`:                 `2026-02-03T02:00:00Z`,
		`"2026-02-03"`:                       `2026-02-02T16:00:00Z`,
		`"2026-02-03 10:00:00.5 +0000 UTC"`:  `2026-02-03T10:00:00.5Z`,
		`1700000000`:                         `2023-11-14T22:13:20Z`,
		`1700000000.25`:                      `2023-11-14T22:13:20.25Z`,
		`1700000000000`:                      `2023-11-14T22:13:20Z`,
		`1700000000000000`:                   `2023-11-14T22:13:20Z`,
		`1700000000000000000`:                `2023-11-14T22:13:20Z`,
		`"1700000000"`:                       `2023-11-14T22:13:20Z`,
		`-1000000000`:                        `1938-04-24T22:13:20Z`,
		`"2026-02-19 09:41:42+00"`:           `2026-02-19T09:41:42Z`,
		`"2026-02-19 09:41:42.123456+08"`:    `2026-02-19T01:41:42.123456Z`,
		`"2026-02-19 09:41:42 UTC"`:          `2026-02-19T09:41:42Z`,
		`"2026/02/19"`:                       `2026-02-18T16:00:00Z`,
		`"2026/2/9 9:41"`:                    `2026-02-09T01:41:00Z`,
		`"2026年2月19日"`:                       `2026-02-18T16:00:00Z`,
		`" 20260219 "`:                       `2026-02-18T16:00:00Z`,
		`20260219`:                           `2026-02-18T16:00:00Z`,
		`"Thu, 19 Feb 2026 09:41:42 GMT"`:    `2026-02-19T09:41:42Z`,
		`"Thu Feb 19 2026 17:41:42 GMT+0800 (China Standard Time)"`: `2026-02-19T09:41:42Z`,
		`"02/03/2026"`:                        `"02/03/2026" is not a time`,
		`"2026"`:                              `2026 is not a time`,
		`0`:                                   `0 is not a time`,
		`"yesterday"`:                         `"yesterday" is not a time`,
		`"2026-13-45"`:                        `"2026-13-45" is not a time`,
		`true`:                                `is not a time`,
		`"0001-01-01T00:00:00Z"`:              `is in the year 1`,
		`"2026-11-25T00:00:00Z"`:              `is in the future`,
		`1e300`:                               `is not a time`,
		`"` + strings.Repeat("9", 1000) + `"`: `is not a time`,
		`"` + strings.Repeat("later, ", 99) + `"`: `later…" is not a time`,
	} {
		got, err := rows(`{"text": "x", "time": ` + value + `}`)
		if err != nil || !strings.Contains(got.String(), want) {
			t.Errorf("%s: %v%v, want %s", value, got, err, want)
		}
	}
}

func TestRecordsHaveLineNumbers(t *testing.T) {
	const want = "2 unspecified: a\n4 unspecified: b\n7 unspecified: c\n"
	for name, text := range map[string]string{
		"lines":    "\n" + `{"text": "a"}` + "\n\n" + `{"text": "b"}` + "\n\r\n\n" + `{"text": "c"}`,
		"list":     "[\n" + `{"text": "a"},` + "\n\n" + `{"text": "b"},` + "\n\n\n" + `{"text":` + "\n" + `"c"}]`,
		"bom":      "\ufeff\n" + `{"text": "a"}` + "\n\n" + `{"text": "b"}` + "\n\n\n" + `{"text": "c"}`,
		"last cut": "\n" + `{"text": "a"}` + "\n\n" + `{"text": "b"}` + "\n\n\n" + `{"text": "c"}` + "\n" + `{"text`,
	} {
		got, err := rows(text)
		if err != nil || !strings.HasPrefix(got.String(), want) {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
	one, err := rows("{\n  \"text\": \"a\",\n  \"meta\": {\"user\": 7}\n}\n")
	if err != nil || one.String() != "1 unspecified: a\n" || one.items[0].User != "7" {
		t.Errorf("one object: %v %v", one, err)
	}
}

func TestUnusableFilesAreRefused(t *testing.T) {
	gbk, err := simplifiedchinese.GB18030.NewEncoder().String(`{"text": "我对花生过敏，你有什么菜推荐吗？"}`)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 17<<20)
	for name, test := range map[string]struct{ text, says string }{
		"empty":           {"", "is empty"},
		"blank":           {"\n \n", "is empty"},
		"gbk line":        {`{"text": "a"}` + "\n" + gbk, "line 2: is not UTF-8 but looks like GBK"},
		"gbk first":       {gbk, "line 1: is not UTF-8 but looks like GBK"},
		"gbk list":        {"[\n" + gbk + "]", "line 2: is not UTF-8 but looks like GBK"},
		"utf-16":          {"\xff\xfe{\x00", "is UTF-16"},
		"gzip":            {"\x1f\x8b\x08\x00", "is compressed"},
		"parquet":         {"PAR1\x15", "is Parquet"},
		"cut list":        {"[\n" + `{"text": "a"},` + "\n" + `{"te`, "line 3: the file ends before its end"},
		"not JSON":        {"# Memory\n", "line 1: is not JSON"},
		"a word":          {"null", "line 1: is neither a JSON object nor a list"},
		"more":            {"[]\n[]", "line 2: there is more after the end"},
		"long in a list":  {"[\n" + `{"text": "` + long + `"}]`, "a record is longer than 16 MiB"},
		"long in a field": {"{\n" + `"text": "` + long + `"}`, "a record is longer than 16 MiB"},
	} {
		if got, err := rows(test.text); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q, and read %v", name, err, test.says, got)
		}
	}
	got, err := rows(`{"text": "a"}` + "\n" + `{"text": "` + long + "\"}\n{\"text\": \"caf\xe9 na\xefve\"}\n" + `{"text": "b"}`)
	if want := "1 unspecified: a\n4 unspecified: b\n2 left: is longer than 16 MiB\n3 left: is not UTF-8\n"; err != nil ||
		got.String() != want {
		t.Errorf("lines of many: %.300v %v", got, err)
	}
}

// TestReadErrorsAreNotMistakesOfTheFile: A read error of the disk is not blamed on the file's content.
func TestReadErrorsAreNotMistakesOfTheFile(t *testing.T) {
	broken := errors.New("the disk is broken")
	for _, begun := range []string{"", `{"text": "a"}` + "\n", "[\n"} {
		r := &reading{}
		err := migrate.Rows(io.MultiReader(strings.NewReader(begun), failing{broken}), "JSONL", migrate.LanceDB, false, options, r.sink())
		if !errors.Is(err, broken) {
			t.Errorf("%q: %v", begun, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestOrigin(t *testing.T) {
	got, err := rows(
		`{"id": 9007199254740993, "text": "x", "vector": [1e-3, 2], "embeddings": [[-1], [2]], "tags": ["a"], "none": null, "n": 9007199254740993}`,
	)
	if err != nil || len(got.items) != 1 {
		t.Fatal(got, err)
	}
	reason := got.items[0].Memory.GetProvenance().GetReason()
	if want := `imported from JSONL, id 9007199254740993, with {"n":9007199254740993,"tags":["a"]}`; reason != want {
		t.Errorf("%s, want %s", reason, want)
	}
	big, err := rows(`{"text": "x", "about": "` + strings.Repeat("y", 9000) + `"}`)
	if err != nil || !strings.Contains(big.items[0].Memory.GetProvenance().GetReason(), "which were not kept") {
		t.Errorf("%v %v", big, err)
	}
}

func TestNotes(t *testing.T) {
	const text = `---
title: front matter
---
# 长期记忆
## 用户偏好
1. 喜欢 **清淡** 的菜
2. [x] 不吃香菜
* 2026-02-03: 喜欢爬山
	- 特别是黄山
## Contacts
- family:
  - sister:
    - 小红 lives in Chengdu
  - brother: 小明
- 老王
<!-- a comment
- of two lines
-->
A paragraph that goes
on here.

| Server | Purpose |
|:------|---:|
| nas | backups |
| web | pages | nginx |
| a |
## Plans
(nothing yet)
（暂无）
- N/A
- See [the docs](https://example.com)
`
	r := &reading{}
	if err := migrate.Notes(strings.NewReader(text), "MEMORY.md", time.Time{}, options, r.sink()); err != nil {
		t.Fatal(err)
	}
	const want = `6 preference: 喜欢 清淡 的菜
7 preference: 不吃香菜
8 preference: 喜欢爬山 @2026-02-03T04:00:00Z
9 preference: 特别是黄山
13 relationship: sister: 小红 lives in Chengdu
14 relationship: family: brother: 小明
15 relationship: 老王
19 relationship: A paragraph that goes on here.
24 relationship: nas: backups
25 relationship: web; pages; nginx
26 relationship: a
31 plan: See [the docs](https://example.com)
28 left: it is a placeholder of the template
29 left: it is a placeholder of the template
30 left: it is a placeholder of the template
`
	if got := r.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestSkippedNotesAreReported: Every part of the notes that is not imported is reported.
func TestSkippedNotesAreReported(t *testing.T) {
	for text, want := range map[string]string{
		"---\n- likes tea\n- has a cat\n": "1 left: a header begins here, with three dashes, and does not end: take them out, or end it " +
			"with three more\n",
		"- Contacts:\n\nHer motto is:\n\n- 爱好：\n  - 钓鱼\n- Pets:\n  - cats:\n": "6 fact: 爱好： 钓鱼\n1 left: it ends with a colon, and nothing " +
			"stands below it\n" +
			"8 left: it ends with a colon, and nothing stands below it\n7 left: it ends with a colon, and nothing stands below it\n",
		"- Food:\n# Next\n- x\n": "3 fact: x\n1 left: it ends with a colon, and nothing stands below it\n",
	} {
		r := &reading{}
		if err := migrate.Notes(strings.NewReader(text), "MEMORY.md", time.Time{}, options, r.sink()); err != nil {
			t.Fatal(err)
		}
		if got := r.String(); got != want {
			t.Errorf("%q: got\n%s\nwant\n%s", text, got, want)
		}
	}
}

// FuzzReaders checks that any file is read to its end or refused, and that everything read can be stored.
func FuzzReaders(f *testing.F) {
	for _, seed := range []string{
		`{"results": [{"id": "a", "memory": "x", "created_at": "2025-01-01"}], "next": null}`, "[1, {}]", "{\"text\": \"x\"}\n{",
		"# A\n- b:\n  - c\n|a|b|\n|-|-|\n```\n",
		"[2026-01-01 10:00] x\n\ny", `{"role": "user", "content": [{"type": "text", "text": "x"}], "tool_calls": [{"function": ` +
			`{"arguments": "{"}}]}`, "\xff\xfe", "\xce\xd2\xb6\xd4",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		sink := migrate.Sink{Skip: func(migrate.Skipped) {}, Item: func(i migrate.Item) error {
			if i.Line < 1 || strings.TrimSpace(i.Memory.GetText()) == "" ||
				!json.Valid([]byte(`"`+i.SourceID+`"`)) && !strings.ContainsAny(i.SourceID, `"\`) {
				t.Errorf("%+v", i)
			}
			return nil
		}}
		in := func() io.Reader { return strings.NewReader(string(data)) }
		_ = migrate.Mem0(in(), options, sink)
		_ = migrate.Rows(in(), "LanceDB", migrate.LanceDB, false, options, sink)
		_ = migrate.Notes(in(), "MEMORY.md", time.Time{}, options, sink)
		for _, lines := range []bool{false, true} {
			if file, err := migrate.NanobotHistory(in(), "log", lines, options, sink.Skip); err == nil &&
				len(file.Messages) != len(file.Lines) {
				t.Errorf("%d messages on %d lines", len(file.Messages), len(file.Lines))
			}
		}
		_, _ = migrate.NanobotSession(in(), "x", options, sink.Skip)
		if text, err := migrate.Text(in()); err == nil {
			_, _ = io.ReadAll(text)
		}
	})
}

func TestText(t *testing.T) {
	long := strings.Repeat("我对花生过敏，", 10_000)
	for text, want := range map[string]string{
		"\ufeffa\nb": "a\nb", long: long, "a\n" + long + "\n": "a\n" + long + "\n",
	} {
		in, err := migrate.Text(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(in); err != nil || string(got) != want {
			t.Errorf("%.20q: %d bytes, %v", text, len(got), err)
		}
	}
	for text, says := range map[string]string{"a\nb\xff": "line 2: is not UTF-8", long + "\n\xe6": "line 2: is not UTF-8"} {
		in, err := migrate.Text(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(in); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.20q: %v, want %s", text, err, says)
		}
	}
}

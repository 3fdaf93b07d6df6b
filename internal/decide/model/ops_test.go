package model

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/llm/answer"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// ops is a good answer with these ops.
func ops(list ...string) string { return `{"ops":[` + strings.Join(list, ",") + `]}` }

// add is a good op.
const add = `{"op":"add","ids":[],"text":"The user moved to Berlin.","kind":"fact","importance":0.7,"about":"user","holds":"now","until":"",` +
	`"asked":false,"from":["m2"]}`

// with is the good op with a field replaced, or without it.
func with(field, value string) string {
	before, rest, _ := strings.Cut(add, `"`+field+`":`)
	end := strings.Index(rest, `,"`)
	if field == "from" {
		end = len(rest) - 1
	}
	if value == "" {
		return strings.Replace(before+`"":0`+rest[end:], `"":0`, `"x":0`, 1)
	}
	return before + `"` + field + `":` + value + rest[end:]
}

// berlin is a dialogue with two earlier messages, three new ones, and three known memories.
func berlin() decide.Input {
	return knowing(after(2, talk("A: And where do you live?", "Just a second", "I moved to Berlin!", "A: Great.", "I love it")),
		"The user lives in Bonn.", "The user plays the oboe.", "! The user has a cat.")
}

func TestExtract(t *testing.T) {
	in := berlin()
	in.Dialogue.Messages[4].ID = "msg-7"
	m := answers(ops(
		`{"op":"update","ids":["k0"],"text":"The user moved to Berlin on 2026-03-04.","kind":"fact","importance":0.7,"about":"user",`+
			`"holds":"now","until":"","asked":true,"from":["m0","m2"],"reason":"a move"}`,
		`{"op":"same","ids":["k1"],"text":"","kind":"preference","importance":0.4,"about":"user","holds":"now","until":"","asked":false,"from":["m4"]}`,
		`{"op":"forget","ids":["k2"],"text":"has a cat","kind":"fact","importance":0,"about":"user","holds":"now","until":"","asked":false,"from":["m4"]}`,
		`{"op":"add","ids":[],"text":"The user sees the dentist on 2026-03-05.","kind":"appointment","importance":0.6,"about":"user","holds":"future",`+
			`"until":"2026-03-05","asked":false,"from":["m2","m3"],"quote":"I  moved"}`,
	))
	got, err := newExtractor(t, m, Options{}).Extract(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	at := func(message int) time.Time { return noon.Add(time.Duration(message) * time.Minute).UTC() }
	want := []decide.Op{
		{Action: decide.OpUpdate, IDs: []string{"mem_0"}, Reason: "it is brought up to date", Statement: memory.Statement{
			Text: "The user moved to Berlin on 2026-03-04.", Language: "en", Kind: memory.KindFact, Importance: 1, Explicit: true,
			MessageIDs: []string{in.Ref(0), "#0"}, Quote: "I moved to Berlin!", ObservedAt: at(2), Reason: "a move",
		}},
		{Action: decide.OpSame, IDs: []string{"mem_1"}, Statement: memory.Statement{
			Text: "The user plays the oboe.", Language: "en", Kind: memory.KindPreference, Importance: 0.4,
			MessageIDs: []string{"msg-7"}, Quote: "I love it", ObservedAt: at(4),
		}},
		{Action: decide.OpForget, IDs: []string{"mem_2"}, Reason: "the user asked for it to be forgotten", Statement: memory.Statement{
			Text: "has a cat", Language: "en", Kind: memory.KindFact, Explicit: true, Forget: true,
			MessageIDs: []string{"msg-7"}, Quote: "I love it", ObservedAt: at(4),
		}},
		{Action: decide.OpAdd, Statement: memory.Statement{
			Text: "The user sees the dentist on 2026-03-05.", Language: "en", Kind: memory.KindAppointment, Importance: 0.6,
			MessageIDs: []string{"#0", "#1"}, Quote: "I moved", ObservedAt: at(3),
			ValidTo: time.Date(2026, 3, 6, 0, 0, 0, 0, shanghai),
		}},
	}
	for i := range want {
		if i >= len(got.Ops) || !reflect.DeepEqual(got.Ops[i], want[i]) {
			t.Errorf("op %d is\n%+v, want\n%+v", i, got.Ops, want[i])
		}
	}
	if len(got.Ops) != len(want) || len(got.Dropped) > 0 || got.Checked || got.Reason != "the model found something worth remembering" {
		t.Errorf("got %+v", got)
	}
	if len(m.prompts) != 1 || m.last.SchemaName != "memory" {
		t.Errorf("%d calls, the last one %+v", len(m.prompts), m.last)
	}
}

// TestMalformedAnswers: Answers that are not what was asked for are read as what they mean, without another call.
func TestMalformedAnswers(t *testing.T) {
	const good = "add||The user moved to Berlin.|#0"
	for name, c := range map[string]struct{ answer, want string }{
		"importance missing":       {ops(with("importance", "")), good},
		"importance in a word":     {ops(with("importance", `"high"`)), good},
		"importance in percent":    {ops(with("importance", `"70%"`)), good},
		"importance from 1 to 10":  {ops(with("importance", "7")), good},
		"importance of ten":        {ops(with("importance", `"7/10"`)), good},
		"importance as a string":   {ops(with("importance", `" 0.7 "`)), good},
		"importance is a list":     {ops(with("importance", `[]`)), good},
		"an empty object":          {`{}`, ""},
		"an empty array":           {"```json\n[]\n```", ""},
		"null":                     {`null`, ""},
		"null in a fence":          {"```json\nnull\n```", ""},
		"null as a string":         {`"null"`, ""},
		"None":                     {`None`, ""},
		"an empty list":            {`{"ops": []}`, ""},
		"ops is null":              {`{"ops": null}`, ""},
		"ops is an empty object":   {`{"ops": {}}`, ""},
		"ops is a word":            {`{"ops": "none"}`, ""},
		"an op that says nothing":  {ops(`{"op": "none"}`), ""},
		"ops as an object":         {`{"ops": ` + add + `}`, good},
		"ops as a string":          {`{"ops": "[` + strings.ReplaceAll(add, `"`, `\"`) + `]"}`, good},
		"an op alone":              {add, good},
		"ops alone, one by one":    {add + "\n" + with("text", `"The user loves Berlin."`), good + "; add||The user loves Berlin.|#0"},
		"a bare list":              {"[" + add + "]", good},
		"the object in an array":   {"[" + ops(add) + "]", good},
		"another name of the list": {`{"statements": [` + add + `]}`, good},
		"a range of messages":      {ops(with("from", `"m2-m4"`)), "add||The user moved to Berlin.|#0,#1,#2"},
		"a range beyond the end":   {ops(with("from", `["m1..m99"]`)), "add||The user moved to Berlin.|" + berlin().Ref(1) + ",#0,#1,#2"},
		"unknown ids":              {ops(with("ids", `["k9", "mem_1", "x", ""]`)), good},
		"unknown messages":         {ops(with("from", `["m9", "the first", "m2"]`)), good},
		"only unknown messages":    {ops(with("from", `["m9"]`)), "add||The user moved to Berlin.|#2"},
		"no messages":              {ops(with("from", "")), "add||The user moved to Berlin.|#2"},
		"two objects":              {ops(with("text", `"The user is in Rome."`)) + "\nNo, wait:\n" + ops(add), good},
		"the form, then the list":  {`{"op":"add, update, same or forget","ids":["k0"]}` + ops(add), good},
		"an op after the list":     {ops(add) + ` For example {"op":"forget","ids":["*"]} would be wrong.`, good},
		"empty ones after it":      {ops(add) + " I hope {} and [] help.", good},
		"text missing in an update": {
			ops(`{"op":"update","ids":["k0"],"from":["m2"]}`, add), good,
		},
		"kind unknown":             {ops(with("kind", `"relocation"`)), good},
		"kind missing":             {ops(with("kind", "")), good},
		"until invalid":            {ops(with("until", `"someday"`)), good},
		"prose around it":          {"Sure! {see below} Here you are: " + ops(add) + " Anything else?", good},
		"a fence":                  {"```json\n" + ops(add) + "\n```", good},
		"trailing commas":          {`{"ops":[` + strings.Replace(add, "]}", "],}", 1) + `,],}`, good},
		"a line end in a string":   {ops(with("text", "\"The user\n moved to\tBerlin.\"")), good},
		"thinking before it":       {"<think>" + ops(with("text", `"No."`)) + "</think>" + ops(add), good},
		"a byte order mark":        {"\ufeff" + ops(add), good},
		"ids as numbers":           {ops(strings.Replace(with("ids", "[0, 1]"), `"add"`, `"update"`, 1)), "update|mem_0,mem_1|The user moved to Berlin.|#0"},
		"one id as a string":       {ops(strings.Replace(with("ids", `"[k0]"`), `"add"`, `"update"`, 1)), "update|mem_0|The user moved to Berlin.|#0"},
		"several ids in a string":  {ops(strings.Replace(with("ids", `"k0, k1"`), `"add"`, `"update"`, 1)), "update|mem_0,mem_1|The user moved to Berlin.|#0"},
		"numbers for messages":     {ops(with("from", "[2]")), good},
		"one number for a message": {ops(with("from", "2")), good},
		"wrong case": {
			ops(strings.NewReplacer(`"op"`, `"Op"`, "add", "ADD", `"text"`, `"Text"`, `"m2"`, `"M2"`, `"fact"`, `"FACT"`).Replace(add)), good,
		},
		"another word for add":    {ops(with("op", `"create"`)), good},
		"another word for update": {ops(strings.Replace(with("ids", `["K0"]`), `"add"`, `"REPLACE"`, 1)), "update|mem_0|The user moved to Berlin.|#0"},
		"another word for forget": {ops(`{"op":"delete","ids":["k1"],"text":"the oboe","from":["m4"]}`), "forget|mem_1|the oboe|#2"},
		"op missing":              {ops(with("op", "")), good},
		"an unknown op":           {ops(with("op", `"merge"`), add), good},
		"something in the list":   {ops(`"add"`, `null`, `5`, add), good},
		"the same twice":          {ops(add, with("text", `"the user moved to berlin"`)), good},
		"control characters":      {ops(with("text", `"The user\u0000 moved to\u0007 Berlin."`)), good},
		"citations in the text":   {ops(with("text", `"The user moved to Berlin [m2]."`)), good},
		"unknown fields":          {ops(with("holds", `{"x": []}`)), good},
		"same without an id":      {ops(`{"op":"same","ids":[],"text":"","from":["m2"]}`, add), good},
		"everything is updated":   {ops(strings.Replace(with("ids", `["*"]`), `"add"`, `"update"`, 1)), "update||The user moved to Berlin.|#0"},
		"everything is forgotten": {ops(`{"op":"forget","ids":["*", "k1"],"text":"all","from":["m4"]}`), "forget|*|all|#2"},
		"nothing meant":           {ops(`{"op":"forget","ids":[],"text":"the car","from":["m4"]}`), "forget||the car|#2"},
		"forget without a text":   {ops(`{"op":"forget","ids":["k1"],"from":["m4"]}`), "forget|mem_1|I love it|#2"},
	} {
		m := answers(c.answer)
		got, err := newExtractor(t, m, Options{}).Extract(t.Context(), berlin())
		if err != nil || outline(got) != c.want || len(m.prompts) != 1 {
			t.Errorf("%s: %q, dropped %q, %v; want %q\n%s", name, outline(got), got.Dropped, err, c.want, c.answer)
			continue
		}
		importance := map[bool]float64{true: 0.5, false: 0.7}[name == "importance missing" || name == "importance is a list"]
		if name == "importance in a word" {
			importance = 0.8
		}
		if c.want == good && (got.Ops[0].Statement.Kind != memory.KindFact || got.Ops[0].Statement.Importance != importance ||
			got.Ops[0].Statement.Quarantine != "" || !got.Ops[0].Statement.ValidTo.IsZero()) {
			t.Errorf("%s: %+v", name, got.Ops[0].Statement)
		}
	}
}

// TestDroppedOps: Each op is checked alone. The others hold, and the outcome names what was left out.
func TestDroppedOps(t *testing.T) {
	for _, c := range []struct{ op, problem string }{
		{`"add"`, "ops[0]: it is not an object"},
		{with("op", `"merge"`), `ops[0]: "merge" is none of add, update, same, forget and private`},
		{`{"op":null,"ids":["k0"],"text":"x"}`, `ops[0]: "" is none of`},
		{with("text", `"  "`), `ops[0]: "text" is required`},
		{with("text", `"`+strings.Repeat("长", memory.MaxTextRunes+1)+`"`), "longer than 4000"},
		{`{"op":"same","ids":["k9"],"text":"","from":["m2"]}`, `"same" names no known memory`},
		{with("from", `["m3"]`), `"from" names none of the user's messages`},
		{with("from", `["m1"]`), `"from" names none of the new messages`},
		{with("from", `["m0", "m1"]`), `"from" names none of the new messages`},
	} {
		good := with("text", `"The user loves Berlin."`)
		got, err := newExtractor(t, answers(ops(c.op, good)), Options{}).Extract(t.Context(), berlin())
		if err != nil || outline(got) != "add||The user loves Berlin.|#0" || len(got.Dropped) != 1 || !strings.Contains(got.Dropped[0], c.problem) {
			t.Errorf("%.60s: %q, dropped %q, %v", c.op, outline(got), got.Dropped, err)
		}
		// Alone it is no answer, and neither means that there is nothing.
		m := answers(ops(c.op), ops(good))
		if got, err = newExtractor(t, m, Options{}).Extract(t.Context(), berlin()); err != nil || len(got.Ops) != 1 || len(m.prompts) != 2 ||
			!strings.Contains(strings.TrimPrefix(m.prompts[1], m.prompts[0]), c.problem) {
			t.Errorf("%.60s alone: %q, %v after %d calls", c.op, outline(got), err, len(m.prompts))
		}
	}
}

// TestUnusableAnswers are asked for once more. Two of them are an error, by which the local extractor decides, and never mean that
// there is nothing.
func TestUnusableAnswers(t *testing.T) {
	var many []string
	for i := range maxOps + 1 {
		many = append(many, with("text", fmt.Sprintf(`"The user has %d cats."`, i)))
	}
	for _, c := range []struct{ broken, problem string }{
		{"I will remember that.", "no valid JSON"},
		{"Nothing to do {", "breaks off"},
		{"", "gave no answer"},
		{`{"ops": tr`, "breaks off"},
		{`{"ops": 5}`, `no object with "ops"`},
		{`{"ops": "later"}`, `no object with "ops"`},
		{`{"remember": true}`, `no object with "ops"`},
		{`["The user moved to Berlin."]`, `no object with "ops"`},
		{`{'ops': []}`, `no object with "ops"`},
		{`{"ops":[{"op":"add","ids":[],"text":"The user mo`, `no object with "ops"`},            // [] is not the answer
		{`{"ops":[{"op":"add","ids":[],"importance":NaN,"text":"x"}]}`, `no object with "ops"`}, // nor here
		{ops(many...), "101 ops"},
	} {
		m := answers(c.broken, ops(add))
		if got, err := newExtractor(t, m, Options{}).Extract(t.Context(), berlin()); err != nil || len(got.Ops) != 1 || len(m.prompts) != 2 {
			t.Errorf("%.60s: not asked again: %q, %v", c.broken, outline(got), err)
			continue
		}
		if again := strings.TrimPrefix(m.prompts[1], m.prompts[0]); !strings.Contains(again, c.problem) {
			t.Errorf("%.60s: the second prompt does not say %q: %s", c.broken, c.problem, again)
		}
		m = answers(c.broken, c.broken, ops(add))
		got, err := newExtractor(t, m, Options{}).Extract(t.Context(), berlin())
		if _, transient := errors.AsType[*memory.TransientError](err); !errors.Is(err, answer.ErrUnusable) || transient ||
			len(got.Ops) > 0 || len(m.prompts) != 2 {
			t.Errorf("%.60s: the second failure gives %q, %v after %d calls", c.broken, outline(got), err, len(m.prompts))
		}
	}
}

// TestHalfAnAnswer is asked for once more. When the second one breaks off, too, the ops that are whole count, and the outcome says that
// there may be more.
func TestHalfAnAnswer(t *testing.T) {
	half := ops(add, with("text", `"The user loves Berlin."`))
	half = half[:len(half)-100]
	m := answers(half, ops(add, with("text", `"The user loves Berlin."`)))
	got, err := newExtractor(t, m, Options{}).Extract(t.Context(), berlin())
	if err != nil || len(got.Ops) != 2 || len(got.Dropped) != 0 || !strings.Contains(m.prompts[1], "breaks off") {
		t.Errorf("then whole: %q, dropped %q, %v", outline(got), got.Dropped, err)
	}
	m = answers(half, half)
	got, err = newExtractor(t, m, Options{}).Extract(t.Context(), berlin())
	if err != nil || len(got.Ops) != 1 || len(got.Dropped) != 1 || !strings.Contains(got.Dropped[0], "breaks off") {
		t.Errorf("twice half: %q, dropped %q, %v", outline(got), got.Dropped, err)
	}
}

func TestImportance(t *testing.T) {
	for written, want := range map[string]float64{
		"0": 0, "1": 1, "0.25": 0.25, "1e-3": 0.001, "5": 0.5, "10": 1, "85": 0.85, "500": 1, "-3": 0.5, `"50 %"`: 0.5, `"1/2"`: 0.5, `"3/0"`: 0.3,
		`"HIGH"`: 0.8, `"低"`: 0.25, `"NaN"`: 0.5, `"inf"`: 1, "1e999": 0.5, "null": 0.5, "true": 0.5, `""`: 0.5, `"?"`: 0.5,
	} {
		if got := (given{"importance": []byte(written)}).importance(); got != want {
			t.Errorf("%s is read as %v, want %v", written, got, want)
		}
	}
}

func TestKinds(t *testing.T) {
	for written, want := range map[string]memory.Kind{
		"偏好": memory.KindPreference, "Appointments": memory.KindAppointment, "todo": memory.KindTask, "Facts": memory.KindFact, "": memory.KindFact,
	} {
		if got := kindOf(written); got != want {
			t.Errorf("%s is read as %s", written, got)
		}
	}
}

func TestQuotes(t *testing.T) {
	long := strings.Repeat("我喜欢吃苹果和香蕉。", 50)
	tr := talk("我住在  上海\n浦东，喜欢 Jazz", "A: 你是素食者，对吗？", "B: 我住在北京", "对", long,
		strings.Repeat("啊", 290)+"👨‍👩‍👧"+strings.Repeat("哦", 20)).Transcript
	for _, c := range []struct {
		cited        []int
		given, quote string
	}{
		{[]int{0}, "喜欢 Jazz", "喜欢 Jazz"},
		{[]int{0}, "我住在上海浦东", "我住在  上海\n浦东"},
		{[]int{0}, "喜欢 jazz", "我住在  上海\n浦东，喜欢 Jazz"}, // not verbatim
		{[]int{0}, "", "我住在  上海\n浦东，喜欢 Jazz"},
		{[]int{1, 3}, "你是素食者，对吗？", "你是素食者，对吗？"},
		{[]int{1, 3}, "我是素食者", "对"},
		{[]int{0, 3}, "", "对"},
		{[]int{2, 3}, "我住在北京", "对"}, // never another person's words
		{[]int{0, 3}, "我住在北京", "对"},
		{[]int{4}, "", strings.Repeat("我喜欢吃苹果和香蕉。", 30)},
		{[]int{4}, long, strings.Repeat("我喜欢吃苹果和香蕉。", 30)},
		{[]int{5}, "", strings.Repeat("啊", 290) + "👨‍👩‍👧" + strings.Repeat("哦", 5)},
	} {
		if got := quote(tr, c.cited, c.given); got != c.quote {
			t.Errorf("%v, %.30q: %q, want %q", c.cited, c.given, got, c.quote)
		}
	}
	for limit, want := range map[int]string{4: "a", 6: "a👨‍👩‍👧", 9: "a👨‍👩‍👧 bc"} {
		if got := cutText("a👨‍👩‍👧 bcdefghijklm", limit); got != want {
			t.Errorf("cut to %d: %q, want %q", limit, got, want)
		}
	}
	if got := cutText("我住在上海浦东。我喜欢吃苹果", 12); got != "我住在上海浦东。" {
		t.Errorf("cut to %q, not after the sentence", got)
	}
	if got := cutText("a"+strings.Repeat("\u0301", 100), 10); len([]rune(got)) != 10 {
		t.Errorf("one enormous character is cut to %q", got)
	}
}

// TestPrivateMessages: The op private names the user's messages that are not to be kept, earlier ones too, and is no change of memory.
func TestPrivateMessages(t *testing.T) {
	in := after(2, talk("I am quitting in May", "A: oh", "don't save that"))
	for from, want := range map[string][]string{`["m0","m1","m2"]`: {in.Ref(0), in.Ref(2)}, `[]`: {in.Ref(2)}} {
		found, err := newExtractor(t, answers(ops(`{"op":"private","from":`+from+`}`)), Options{}).Extract(t.Context(), in)
		if err != nil || len(found.Ops) != 0 || !slices.Equal(found.Private, want) || !strings.Contains(found.Reason, "asked not to remember") {
			t.Errorf("%s: found %+v, %v", from, found, err)
		}
	}
}

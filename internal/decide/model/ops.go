package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/lang/lexical"
	"github.com/memsidecar/memsidecar/internal/llm/answer"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// maxOps is the most that one answer may hold.
const maxOps = 100

// usualImportance is that of a memory whose importance the model does not give.
const usualImportance = 0.5

// reader reads answers about one page.
type reader struct {
	in   decide.Input
	page page
}

// given is an op as the model gives it. Its fields are read one by one, because models deviate from the schema.
type given map[string]json.RawMessage

// read reads {"ops": […]}. Nothing is an empty list, null, {} or []; of several objects the last one counts, since models correct
// themselves.
func (r *reader) read(text string) (decide.Extraction, error) {
	list, err := opList(text)
	if err != nil {
		return decide.Extraction{}, err
	}
	if len(list) > maxOps {
		return decide.Extraction{}, fmt.Errorf("it has %d ops, more than %d: give the important ones", len(list), maxOps)
	}
	var found decide.Extraction
	seen := map[string]bool{}
	for i, raw := range list {
		var g given
		if json.Unmarshal(raw, &g) != nil {
			found.Dropped = append(found.Dropped, fmt.Sprintf("ops[%d]: it is not an object", i))
			continue
		}
		if name := g.action(); name == "skip" || name == "private" {
			found.Private = append(found.Private, r.skipped(g)...)
			continue
		}
		op, err := r.op(g)
		if err != nil {
			found.Dropped = append(found.Dropped, fmt.Sprintf("ops[%d]: %v", i, err))
			continue
		}
		key := string(op.Action) + "\x00" + strings.Join(op.IDs, " ") + "\x00" + strings.ToLower(strings.TrimRight(op.Statement.Text, ".。!！ "))
		if !seen[key] {
			seen[key] = true
			found.Ops = append(found.Ops, op)
		}
	}
	switch n := len(found.Ops); {
	case n == 0 && len(found.Private) > 0:
		found.Reason = "the user asked not to remember this"
	case n == 0 && len(found.Dropped) > 0:
		return found, errors.New(strings.Join(found.Dropped[:min(len(found.Dropped), 3)], "; "))
	case n == 0:
		found.Reason = "the model found nothing worth remembering"
	default:
		found.Reason = "the model found something worth remembering"
	}
	return found, nil
}

// opList finds the list of ops in an answer.
func opList(text string) ([]json.RawMessage, error) {
	if bare := strings.ToLower(strings.Trim(strings.TrimSpace(text), "`\"'. ")); bare == "null" || bare == "none" {
		return nil, nil
	}
	values, err := answer.Values(text)
	if err != nil {
		return nil, err
	}
	var list []json.RawMessage
	usable := false
	for _, value := range values {
		var fields map[string]json.RawMessage
		switch {
		case json.Unmarshal(value, &fields) == nil && fields["ops"] != nil:
			var one []json.RawMessage
			ops := fields["ops"]
			switch {
			case json.Unmarshal(ops, &one) == nil: // null is an empty list
			case ops[0] == '{':
				one = []json.RawMessage{ops}
			default:
				return nil, errors.New(`"ops" is not an array`)
			}
			list, usable = one, true
		case json.Unmarshal(value, &fields) == nil && fields["op"] != nil: // one op alone, or several after one another
			list, usable = append(list, value), true
		case len(fields) == 0 && value[0] == '{':
			usable = true
		case value[0] == '[':
			var one []json.RawMessage
			if json.Unmarshal(value, &one) == nil && !slices.ContainsFunc(one, func(v json.RawMessage) bool { return v[0] != '{' }) {
				list, usable = one, true
			}
		}
	}
	if !usable {
		return nil, errors.New(`it holds no object with "ops"`)
	}
	return list, nil
}

// actions are the names that models give to ops.
var actions = map[string]decide.OpAction{
	"add": decide.OpAdd, "create": decide.OpAdd, "insert": decide.OpAdd, "new": decide.OpAdd, "remember": decide.OpAdd,
	"update": decide.OpUpdate, "replace": decide.OpUpdate, "correct": decide.OpUpdate, "supersede": decide.OpUpdate,
	"same": decide.OpSame, "repeat": decide.OpSame, "reinforce": decide.OpSame,
	"forget": decide.OpForget, "delete": decide.OpForget, "remove": decide.OpForget, "withdraw": decide.OpForget,
}

func (r *reader) op(g given) (op decide.Op, err error) {
	name := g.action()
	op.Action = actions[name]
	if op.Action == "" {
		return op, fmt.Errorf("%q is none of add, update, same, forget and skip", name)
	}
	op.IDs = r.ids(g)
	s := &op.Statement
	s.Text = clean(g.text("text"))
	if err := r.cite(s, g); err != nil {
		return op, err
	}
	switch {
	case op.Action == decide.OpForget:
		s.Forget, s.Explicit, s.Kind = true, true, memory.KindFact
		if s.Text == "" {
			s.Text = s.Quote
		}
		op.Reason = "the user asked for it to be forgotten"
	case op.Action == decide.OpSame && len(op.IDs) == 0 && s.Text == "":
		return op, errors.New(`"same" names no known memory in "ids"`)
	case op.Action == decide.OpSame && len(op.IDs) > 0:
		s.Text = r.page.textOf(op.IDs[0])
	}
	if problem := memory.TextProblem(s.Text); problem != "" {
		return op, fmt.Errorf(`"text" %s`, problem)
	}
	s.Language = lexical.Language(s.Text)
	if op.Action == decide.OpForget {
		return op, nil
	}
	s.Kind = kindOf(g.text("kind"))
	s.Importance = g.importance()
	s.ValidTo = until(g["until"], s.Kind, s.ObservedAt, r.in.Location)
	if s.Explicit = g.text("asked") == "true" || string(g["asked"]) == "true"; s.Explicit {
		s.Importance = 1
	}
	s.Quarantine = g.doubt(s.Text)
	s.Reason = cutText(clean(g.text("reason")), maxReasonRunes)
	if op.Action == decide.OpUpdate {
		op.Reason = "it is brought up to date"
	}
	return op, nil
}

func (g given) action() string { return strings.ToLower(strings.TrimSpace(g.text("op"))) }

// skipped returns the user's messages that an op asks not to keep. One that cites none means the newest.
func (r *reader) skipped(g given) (refs []string) {
	for _, i := range r.cited(g) {
		if spokenBy(r.in.Dialogue.Messages[i], r.in.Speaker) {
			refs = append(refs, r.in.Ref(i))
		}
	}
	return refs
}

// text returns a field's string; a number or a boolean is written out.
func (g given) text(name string) string {
	raw := g[name]
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	if len(raw) == 0 || raw[0] == '{' || raw[0] == '[' || string(raw) == "null" {
		return ""
	}
	return string(raw)
}

// list returns the strings of a field, which may be a single one, numbers, or several in one string.
func (g given) list(names ...string) (out []string) {
	for _, name := range names {
		var items []json.RawMessage
		if json.Unmarshal(g[name], &items) != nil {
			items = []json.RawMessage{g[name]}
		}
		for _, item := range items {
			for _, part := range strings.FieldsFunc((given{"": item}).text(""), func(c rune) bool { return c == ',' || c == ' ' || c == ';' || c == '，' }) {
				out = append(out, strings.Trim(part, "[]()\"'"))
			}
		}
	}
	return out
}

// levels are words for an importance.
var levels = map[string]float64{
	"trivial": 0.1, "low": 0.25, "minor": 0.25, "medium": 0.5, "moderate": 0.5, "normal": 0.5, "high": 0.8, "important": 0.8,
	"very high": 0.9, "critical": 1, "vital": 1, "低": 0.25, "中": 0.5, "高": 0.8,
}

// importance reads a number from 0 to 1, or from 1 to 10 or 100, or a word.
func (g given) importance() float64 {
	text := strings.ToLower(strings.TrimSpace(g.text("importance")))
	if level, ok := levels[text]; ok {
		return level
	}
	percent := strings.HasSuffix(text, "%")
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	switch {
	case err != nil || math.IsNaN(n) || n < 0:
		return usualImportance
	case percent || n > 10:
		return min(n/100, 1)
	case n > 1:
		return n / 10
	}
	return n
}

// doubt says why a statement is not to be trusted by what the model itself says of it, or "".
func (g given) doubt(string) string {
	switch strings.ToLower(g.text("holds")) {
	case "wish", "unsure", "no":
		return "the model says that it is not so, or not certain"
	}
	return ""
}

var (
	memoryRef  = lazyregexp.New(`^[kK]?(\d{1,4})$`)
	messageRef = lazyregexp.New(`^[mM]?(\d{1,4})$`)
	rangeRef   = lazyregexp.New(`^[mM]?(\d{1,4})(?:-|–|\.\.|~|to)[mM]?(\d{1,4})$`)
)

// ids are the memories that an op names. Unknown ones are left out.
func (r *reader) ids(g given) (ids []string) {
	for _, ref := range g.list("ids", "id") {
		if ref == decide.Everything {
			return []string{decide.Everything}
		}
		if k := number(memoryRef, ref, len(r.page.known)); k >= 0 && !slices.Contains(ids, r.page.known[k].Memory.ID) {
			ids = append(ids, r.page.known[k].Memory.ID)
		}
	}
	return ids
}

// number returns the number in a reference, or -1 if it is not one below the limit.
func number(form *lazyregexp.Regexp, ref string, limit int) int {
	parts := form.FindStringSubmatch(ref)
	if parts == nil {
		return -1
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil || n >= limit {
		return -1
	}
	return n
}

// cite fills in the messages on which a statement rests. Unknown ones are left out. A statement that names none rests on the speaker's
// newest message; one that names only earlier or other people's messages rests on nothing.
func (r *reader) cite(s *memory.Statement, g given) error {
	t := r.in.Transcript
	cited := r.cited(g)
	own, fresh := false, false
	for _, i := range cited {
		m := t.Dialogue.Messages[i]
		s.MessageIDs = append(s.MessageIDs, t.Ref(i))
		if m.Time.After(s.ObservedAt) {
			s.ObservedAt = m.Time
		}
		own, fresh = own || spokenBy(m, t.Speaker), fresh || t.New(i)
	}
	switch {
	case !own:
		return errors.New(`"from" names none of the user's messages`)
	case !fresh:
		return errors.New(`"from" names none of the new messages: the last turns were dealt with`)
	}
	s.Quote = quote(t, cited, g.text("quote"))
	return nil
}

func newestOf(t decide.Transcript) int {
	for i, m := range slices.Backward(t.Dialogue.Messages) {
		if spokenBy(m, t.Speaker) {
			return i
		}
	}
	return 0
}

// cited returns the messages that an op names, in order: the speaker's newest message if it names none.
func (r *reader) cited(g given) []int {
	shown := func(i int) bool { return i >= 0 && i < len(r.page.shown) && r.page.shown[i] }
	var cited []int
	for _, ref := range g.list("from", "messages") {
		if bounds := rangeRef.FindStringSubmatch(ref); bounds != nil {
			from, to := number(messageRef, bounds[1], len(r.page.shown)), number(messageRef, bounds[2], len(r.page.shown))
			for i := max(from, 0); i <= to; i++ {
				cited = append(cited, i)
			}
			continue
		}
		cited = append(cited, number(messageRef, ref, len(r.page.shown)))
	}
	cited = slices.DeleteFunc(cited, func(i int) bool { return !shown(i) })
	if len(cited) == 0 {
		cited = []int{newestOf(r.in.Transcript)}
	}
	slices.Sort(cited)
	return slices.Compact(cited)
}

// clean makes a model's words one line without control characters.
func clean(text string) string {
	return memory.CleanText(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, trailingRefs.ReplaceAllString(text, "$1")))
}

// trailingRefs are citations that a model puts into the text although they have a place of their own.
var trailingRefs = lazyregexp.New(`\s*[\[(（【]m\d+(?:\s*[,，、]\s*m\d+)*[\])）】]([.。]?)$`)

// kindNames are other names that models give the kinds, Chinese ones in Chinese dialogues.
var kindNames = map[string]memory.Kind{
	"事实": memory.KindFact, "偏好": memory.KindPreference, "关系": memory.KindRelationship, "计划": memory.KindPlan,
	"约定": memory.KindAppointment, "预约": memory.KindAppointment, "日程": memory.KindAppointment, "决定": memory.KindDecision,
	"经历": memory.KindExperience, "任务": memory.KindTask, "问题": memory.KindProblem, "请求": memory.KindRequest, "要求": memory.KindRequest,
	"habit": memory.KindPreference, "goal": memory.KindPlan, "event": memory.KindExperience, "todo": memory.KindTask,
	"issue": memory.KindProblem, "instruction": memory.KindRequest, "relation": memory.KindRelationship,
}

// kindOf is the kind of that name. An unknown or missing one is a fact, which every statement is: the kind only groups memories, and
// refusing a true statement for its label would lose more than a coarse label does.
func kindOf(name string) memory.Kind {
	name = strings.ToLower(strings.TrimSpace(name))
	for _, candidate := range []string{name, strings.TrimSuffix(name, "s")} {
		if k := memory.Kind(candidate); k.Valid() {
			return k
		}
		if k, ok := kindNames[candidate]; ok {
			return k
		}
	}
	return memory.KindFact
}

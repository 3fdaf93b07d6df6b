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
	cut  bool // an answer that broke off was read
}

// given is an object of an answer. Its fields are read one by one, because models deviate from the schema. Their names are in lower case.
type given map[string]json.RawMessage

// object reads an object; ok is false if it is none.
func object(raw json.RawMessage) (g given, ok bool) {
	var fields map[string]json.RawMessage
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &fields) != nil {
		return nil, false
	}
	g = given{}
	for name, value := range fields {
		g[strings.ToLower(strings.TrimSpace(name))] = value
	}
	return g, true
}

// read reads {"ops": […]}. Nothing is an empty list, null, {} or []. Of several lists the last one counts that holds anything but
// objects without ops, since models correct themselves. An answer that breaks off is asked for once more; of the second one the ops
// that are whole count.
func (r *reader) read(text string) (decide.Extraction, error) {
	list, whole, err := opList(text)
	if err != nil {
		return decide.Extraction{}, err
	}
	return r.readList(list, whole)
}

// readList reads the ops of the reader's user.
func (r *reader) readList(list []json.RawMessage, whole bool) (decide.Extraction, error) {
	var found decide.Extraction
	if !whole {
		if !r.cut {
			r.cut = true
			return found, errors.New("its JSON breaks off before it ends: answer in fewer words")
		}
		found.Dropped = append(found.Dropped, "the model's answer breaks off: what follows is unknown")
	}
	if len(list) > maxOps {
		return decide.Extraction{}, fmt.Errorf("it has %d ops, more than %d: give the important ones", len(list), maxOps)
	}
	seen := map[string]bool{}
	for i, raw := range list {
		g, ok := object(raw)
		if !ok {
			found.Dropped = append(found.Dropped, fmt.Sprintf("ops[%d]: it is not an object", i))
			continue
		}
		if g.action() == "private" {
			found.Private = append(found.Private, r.private(g)...)
			continue
		}
		op, err := r.op(g)
		switch {
		case err != nil:
			found.Dropped = append(found.Dropped, fmt.Sprintf("ops[%d]: %v", i, err))
			continue
		case op.Action == noChange:
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

// opList finds the list of ops in an answer. Whole is false if only single ops of a list that breaks off are there.
func opList(text string) (list []json.RawMessage, whole bool, err error) {
	if strings.TrimSpace(text) != "" && saysNothing(text) {
		return nil, true, nil
	}
	values, err := answer.Values(text)
	if err != nil {
		return nil, false, err
	}
	usable, alone := false, false
	for _, value := range values {
		ops, single, ok := opsOf(value)
		switch {
		case !ok:
		case single && alone: // one after another
			list = append(list, ops...)
		case single && usable: // an example, or a remark about one of the list
		default:
			list, usable, alone = ops, true, single
		}
	}
	switch {
	case usable:
		return list, !alone || !strings.Contains(strings.ToLower(text), `"ops"`), nil
	case len(values) == 1 && empty(values[0]) && strings.Count(text, "{")+strings.Count(text, "[") == 1:
		return nil, true, nil // in an answer that breaks off, [] may be the beginning of an op
	}
	return nil, false, errors.New(`it holds no object with "ops"`)
}

// opsOf reads the ops of one JSON value. Single is set when the value is itself an op.
func opsOf(value json.RawMessage) (ops []json.RawMessage, single, ok bool) {
	if g, isObject := object(value); isObject {
		switch {
		case g["ops"] != nil:
			ops, ok = listOf(g["ops"])
			return ops, false, ok
		case g["op"] != nil:
			return []json.RawMessage{value}, true, true
		case len(g) == 1: // {"statements": […]}
			for _, only := range g {
				if ops, ok = listOf(only); !ok || len(ops) == 0 || ops[0][0] != '{' {
					return nil, false, false
				}
			}
			return ops, false, true
		}
		return nil, false, false
	}
	if json.Unmarshal(value, &ops) != nil || len(ops) == 0 || slices.ContainsFunc(ops, func(v json.RawMessage) bool { return v[0] != '{' }) {
		return nil, false, false
	}
	if len(ops) == 1 {
		if inner, _, ok := opsOf(ops[0]); ok {
			return inner, false, true
		}
	}
	return ops, false, true
}

// listOf reads a list, or what stands for one: null, an op without brackets, or a list written as a string.
func listOf(raw json.RawMessage) (list []json.RawMessage, ok bool) {
	var text string
	switch {
	case json.Unmarshal(raw, &list) == nil: // null is an empty list
		return list, true
	case empty(raw):
		return nil, true
	case raw[0] == '{':
		return []json.RawMessage{raw}, true
	case json.Unmarshal(raw, &text) != nil:
		return nil, false
	case saysNothing(text):
		return nil, true
	}
	return list, json.Unmarshal([]byte(text), &list) == nil
}

// saysNothing reports whether a text is a word for nothing.
func saysNothing(text string) bool {
	bare := strings.TrimSpace(strings.TrimPrefix(strings.ToLower(strings.Trim(strings.TrimSpace(text), "`\"'. \n")), "json\n"))
	return bare == "null" || bare == "none" || bare == ""
}

// empty reports whether a value is {} or [].
func empty(value json.RawMessage) bool {
	bare := strings.Join(strings.Fields(string(value)), "")
	return bare == "{}" || bare == "[]"
}

// noChange is an op that says that nothing changes.
const noChange = decide.OpAction("none")

// actions are the names that models give to ops.
var actions = map[string]decide.OpAction{
	"none": noChange, "noop": noChange, "no_op": noChange, "nothing": noChange, "skip": noChange, "ignore": noChange,
	"add": decide.OpAdd, "create": decide.OpAdd, "insert": decide.OpAdd, "new": decide.OpAdd, "remember": decide.OpAdd,
	"update": decide.OpUpdate, "replace": decide.OpUpdate, "correct": decide.OpUpdate, "supersede": decide.OpUpdate,
	"same": decide.OpSame, "repeat": decide.OpSame, "reinforce": decide.OpSame,
	"forget": decide.OpForget, "delete": decide.OpForget, "remove": decide.OpForget, "withdraw": decide.OpForget,
}

func (r *reader) op(g given) (op decide.Op, err error) {
	name := g.action()
	op.Action = actions[name]
	if name == "" && len(g.list("ids", "id")) == 0 && g.text("text") != "" {
		op.Action = decide.OpAdd
	}
	if op.Action == "" {
		return op, fmt.Errorf("%q is none of add, update, same, forget and private", name)
	}
	if op.Action == noChange {
		return op, nil
	}
	op.IDs = r.ids(g, op.Action)
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
	s.Standing = g.standing()
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

// private returns the user's messages that an op asks not to keep. One that cites none means the newest.
func (r *reader) private(g given) (refs []string) {
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
				out = append(out, strings.Trim(part, "[]()\"':."))
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
	text, of, fraction := strings.Cut(strings.TrimSuffix(text, "%"), "/")
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if whole, problem := strconv.ParseFloat(strings.TrimSpace(of), 64); fraction && problem == nil && whole > 0 { // 7/10
		n /= whole
	}
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

// standing reads the class; an unknown one is none.
func (g given) standing() memory.StandingClass {
	if class := memory.StandingClass(strings.ToLower(strings.TrimSpace(g.text("standing")))); class.Valid() {
		return class
	}
	return ""
}

// doubt says why a statement is not to be trusted by what the model itself says of it, or "". What is about another person must name that
// person, and what is past, wished, uncertain or denied must say so.
func (g given) doubt(text string) string {
	text = strings.ToLower(text)
	if about := strings.ToLower(g.text("about")); about != "" {
		names := false
		words := lexical.QueryTerms(withoutUser.ReplaceAllString(about, " "))
		for _, word := range words {
			names = names || strings.Contains(text, word)
		}
		if len(words) > 0 && !names && ofUser.MatchString(text) && inScript(about, text) {
			return fmt.Sprintf("the model says that it is about %q, and the statement does not say so", about)
		}
	}
	state := strings.ToLower(g.text("holds"))
	if shown := holds[state]; shown != nil && !shown.MatchString(text) {
		language := lexical.Language(text)
		if language == chinese || language == english && (state != "past" || present.MatchString(text)) {
			return fmt.Sprintf("the model says %q of it, and the statement does not say so", g.text("holds"))
		}
	}
	return ""
}

// ofUser matches a statement whose subject is the user, and not somebody or something of the user's.
var ofUser = lazyregexp.New(`^(the user([^'’]|$)|用[户戶]([^的]|$))`)

// inScript reports whether both texts have Chinese characters, or neither: words of different scripts cannot be compared.
func inScript(a, b string) bool {
	han := func(text string) bool {
		return strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Han, r) })
	}
	return han(a) == han(b)
}

// present matches an English statement in the present tense.
var present = lazyregexp.New(`^the user(['’]s \w+)? (is|are|has|have|does|\w+s)\b`)

// withoutUser matches the words for the user, in whose relation others are named: "user's sister".
var withoutUser = lazyregexp.New(`\b(the )?users?('s|’s)?\b|用[户戶]的?|自己|\b(self|themselves)\b`)

// holds are the words by which a statement in English or Chinese says that something is not simply so.
var holds = map[string]*lazyregexp.Regexp{
	"past": lazyregexp.New(`\b(was|were|had|did|used to|former|formerly|previously|ex|once|until|ago|no longer|\w+ed)\b|曾|以前|之前|过|前|原来|原先|了`),
	"wish": lazyregexp.New(`\b(wish\w*|want\w*|would|hope\w*|dream\w*|consider\w*|think\w*|might|may|could|like to|plan\w*)\b|` +
		`想|希望|打算|考虑|要是|梦|愿|計劃|计划`),
	"unsure": lazyregexp.New(`\b(may|might|maybe|perhaps|probably|possibly|seems?|thinks?|unsure|not sure|suspects?|about|considering)\b|可能|也许|或许|好像|大概|` +
		`不确定|怀疑|似乎|应该`),
	"no": lazyregexp.New(`\b(no|not|never|neither|nor|without|none|isn't|doesn't|don't|can't|cannot|won't|refuses?|denies|stopped|quit)\b|n't|n’t|` +
		`不|没|沒|无|無|非|别|戒`),
}

var (
	memoryRef  = lazyregexp.New(`^[kK]?(\d{1,4})$`)
	messageRef = lazyregexp.New(`^[mM]?(\d{1,4})$`)
	rangeRef   = lazyregexp.New(`^[mM]?(\d{1,4})(?:-|–|\.\.|~|to)[mM]?(\d{1,4})$`)
)

// ids are the memories that an op names. Unknown ones are left out. Only a request to forget can mean all memories.
func (r *reader) ids(g given, action decide.OpAction) (ids []string) {
	for _, ref := range g.list("ids", "id") {
		if ref == decide.Everything && action == decide.OpForget {
			return []string{decide.Everything}
		}
		if k := number(memoryRef, ref, len(r.page.known)); r.page.knows(k, r.in.Speaker) && !slices.Contains(ids, r.page.known[k].Memory.ID) {
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
			from, _ := strconv.Atoi(bounds[1]) // they are digits
			to, _ := strconv.Atoi(bounds[2])
			for i := from; i <= min(to, len(r.page.shown)-1); i++ {
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

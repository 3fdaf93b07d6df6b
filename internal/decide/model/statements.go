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

// maxStatements is the most that one answer may hold; a model that gives more has lost the thread.
const maxStatements = 100

// draft is a statement of the model that was checked.
type draft struct {
	memory.Statement
	cited []int  // messages, ascending; at least one is the speaker's
	given string // the model's own quotation
}

// reader reads summaries of one transcript.
type reader struct {
	t decide.Transcript
	p page
	v decide.Verdict
	// rest is what could be used of an answer in which some statements could not: of the one with the most that could.
	rest struct {
		drafts []draft
		faults []string
	}
}

// answered is a statement as the model gives it.
type answered struct {
	Text       *string         `json:"text"`
	Kind       *string         `json:"kind"`
	Importance json.RawMessage `json:"importance"`
	Messages   json.RawMessage `json:"messages"`
	Quote      *string         `json:"quote"`
	Until      json.RawMessage `json:"until"`
	Reason     *string         `json:"reason"` // not asked for; taken if it is there
}

// read reads {"statements": […]}, or the bare list, which models sometimes return. One wrong statement makes the whole answer wrong: the
// model gets a second chance, because leaving the statement out would lose it silently. Correct statements are kept for the case that
// the second answer is no better.
func (r *reader) read(text string) ([]draft, error) {
	values, err := answer.Values(text)
	if err != nil {
		return nil, err
	}
	list, err := statementList(values)
	if err != nil {
		return nil, err
	}
	var out []draft
	var faults []string
	seen := map[string]bool{}
	for i, raw := range list {
		d, err := r.statement(raw)
		if err != nil {
			faults = append(faults, fmt.Sprintf("statements[%d]: %v", i, err))
			continue
		}
		key := strings.ToLower(strings.TrimRight(squeeze(d.Text), ".。!！"))
		if seen[key] {
			continue
		}
		seen[key] = true
		out = append(out, d)
	}
	switch {
	case len(out) > maxStatements:
		return nil, fmt.Errorf("it has %d statements, more than %d: give the important ones", len(out), maxStatements)
	case len(faults) == 0:
		return out, nil
	case len(out) >= len(r.rest.drafts):
		r.rest.drafts, r.rest.faults = out, faults
	}
	return nil, errors.New(firstOf(faults, maxFaults))
}

// maxFaults is how many faults of an answer are reported.
const maxFaults = 3

func firstOf(faults []string, most int) string {
	text := strings.Join(faults[:min(len(faults), most)], "; ")
	if n := len(faults) - most; n > 0 {
		text += fmt.Sprintf("; and %d more", n)
	}
	return text
}

func statementList(values []json.RawMessage) ([]json.RawMessage, error) {
	var list []json.RawMessage
	fields, err := answer.ObjectWith(values, "statements")
	switch {
	case err == nil && fields["statements"][0] == '[':
		err = json.Unmarshal(fields["statements"], &list)
	case err == nil:
		err = errors.New(`"statements" is not an array`)
	case len(values) == 1 && isStatements(values[0]):
		err = json.Unmarshal(values[0], &list)
	}
	return list, err
}

// isStatements reports whether a value is an array of objects with texts. The empty array is not: it may be anything.
func isStatements(value json.RawMessage) bool {
	var list []map[string]json.RawMessage
	if json.Unmarshal(value, &list) != nil || len(list) == 0 {
		return false
	}
	return !slices.ContainsFunc(list, func(m map[string]json.RawMessage) bool { return m["text"] == nil })
}

// trailingRefs are citations that a model puts into the text although they have a place of their own.
var trailingRefs = lazyregexp.New(`\s*[\[(（【]m\d+(?:\s*[,，、]\s*m\d+)*[\])）】]([.。]?)$`)

func (r *reader) statement(raw json.RawMessage) (draft, error) {
	var a answered
	if json.Unmarshal(raw, &a) != nil || raw[0] != '{' {
		return draft{}, errors.New("it is no object with the demanded types")
	}
	d := draft{}
	d.Text = trailingRefs.ReplaceAllString(clean(deref(a.Text)), "$1")
	if problem := memory.TextProblem(d.Text); problem != "" {
		return draft{}, fmt.Errorf(`"text" %s`, problem)
	}
	d.Kind = kindOf(deref(a.Kind))
	var err error
	if d.Importance, err = importance(a.Importance); err != nil {
		return draft{}, err
	}
	if d.cited, err = r.cited(a.Messages); err != nil {
		return draft{}, err
	}
	var own []string
	for _, i := range d.cited {
		m := r.t.Dialogue.Messages[i]
		d.MessageIDs = append(d.MessageIDs, r.t.Dialogue.MessageRef(i))
		if m.Time.After(d.ObservedAt) {
			d.ObservedAt = m.Time
		}
		if spokenBy(m, r.t.Speaker) {
			own = append(own, m.Content)
		}
	}
	if len(own) == 0 {
		return draft{}, errors.New(`"messages" names none of the user's: give only what rests on the user's own words, and cite them`)
	}
	d.Language = lexical.Language(d.Text)
	if wrongLanguage(d.Language, r.p.language, own) {
		return draft{}, fmt.Errorf(`"text" is in %s, but the conversation is in %s: write it in %[2]s`, languageName(d.Language), languageName(r.p.language))
	}
	d.ValidTo = until(a.Until, d.Kind, d.ObservedAt, r.t.Location)
	d.given = deref(a.Quote)
	d.Quote = quote(r.t, d.cited, d.given)
	if d.Reason = cutText(clean(deref(a.Reason)), maxReasonRunes); d.Reason == "" {
		d.Reason = r.v.Reason
	}
	return d, nil
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// clean makes a model's words one line without control characters.
func clean(text string) string {
	return memory.CleanText(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text))
}

// kindNames are other names that models give the kinds, Chinese ones in Chinese dialogues.
var kindNames = map[string]memory.Kind{
	"事实": memory.KindFact, "偏好": memory.KindPreference, "关系": memory.KindRelationship, "计划": memory.KindPlan,
	"约定": memory.KindAppointment, "预约": memory.KindAppointment, "日程": memory.KindAppointment, "决定": memory.KindDecision,
	"经历": memory.KindExperience, "任务": memory.KindTask, "问题": memory.KindProblem, "请求": memory.KindRequest, "要求": memory.KindRequest,
	"habit": memory.KindPreference, "goal": memory.KindPlan, "event": memory.KindExperience, "todo": memory.KindTask,
	"issue": memory.KindProblem, "instruction": memory.KindRequest, "relation": memory.KindRelationship,
}

// kindOf is the kind of that name. An unknown or missing one is a fact, which every statement is: the kind only groups
// memories, and to refuse a true statement for its label would lose more than a coarse label does.
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

// importance reads a number, which may be written as a string, and moves it to between 0 and 1.
func importance(raw json.RawMessage) (float64, error) {
	text := string(raw)
	var s string
	if json.Unmarshal(raw, &s) == nil {
		text = strings.TrimSpace(s)
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0, errors.New(`"importance" is not a number from 0 to 1`)
	}
	return min(max(n, 0), 1), nil
}

// ref is how a model may write a message's number: m3, M3, [m3], 3.
var ref = lazyregexp.New(`^\[?[mM]?(\d{1,4})\]?$`)

// cited reads the numbers of the messages that a statement rests on. All must be in the transcript.
func (r *reader) cited(raw json.RawMessage) ([]int, error) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw} // one message, not in an array
	}
	var out []int
	for _, item := range list {
		text := string(item)
		var s string
		if json.Unmarshal(item, &s) == nil {
			text = strings.TrimSpace(s)
		}
		parts := ref.FindStringSubmatch(text)
		if parts == nil {
			return nil, errors.New(`"messages" is not a list of messages such as ["m0", "m2"]`)
		}
		i, err := strconv.Atoi(parts[1])
		if err != nil || i >= len(r.p.shown) || !r.p.shown[i] {
			return nil, fmt.Errorf(`"messages" names m%s, which the transcript does not have`, parts[1])
		}
		out = append(out, i)
	}
	if len(out) == 0 {
		return nil, errors.New(`"messages" is empty: cite the messages that the statement rests on`)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

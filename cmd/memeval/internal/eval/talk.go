package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dlclark/regexp2"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// TalkOptions configure Talk.
type TalkOptions struct {
	Files  []string
	TopK   int32
	Misses Misses
	// Together hands calls over as a bot does: it waits for no outcome, and calls without a pause of this length between them are considered
	// together. Whether a single one of them is left clean is then not measured. 0 waits for each.
	Together time.Duration
}

// With TalkOptions.Together, so many calls and pauses end the waiting, as in the sidecar's defaults.
const (
	togetherCalls  = 10
	togetherPauses = 5
)

// Talk plays conversations in the talk format, and measures what is kept, dropped, forgotten, answered, and left alone. The shares and
// their names are those of testdata/talk/talk_eval.py. In addition it counts for each kind of step how many steps have all that they
// expect.
func Talk(ctx context.Context, s *Sidecar, o TalkOptions) (Report, error) {
	var people []person
	for _, path := range o.Files {
		read, err := readPeople(path)
		if err != nil {
			return nil, err
		}
		people = append(people, read...)
	}
	t := &talkRun{TalkOptions: o, sidecar: s, shares: map[talkShare][]bool{}, steps: map[string][]bool{}, namespaces: map[string]bool{}}
	step, done := s.Progress(len(people), "users")
	defer done()
	for i := range people {
		if err := t.play(ctx, &people[i]); err != nil {
			return nil, fmt.Errorf("user %s: %w", people[i].User, err)
		}
		step()
	}
	return t.report(ctx)
}

// person is a user with what happens to them.
type person struct {
	User     string     `json:"user"`
	Language string     `json:"lang"`
	TimeZone string     `json:"time_zone"`
	Steps    []talkStep `json:"steps"`

	namespace string
}

// talkStep is one hand-over to the memory, or one question.
type talkStep struct {
	At      time.Time     `json:"at"`
	Call    []talkMessage `json:"call"`
	Channel *struct {
		Kind string `json:"kind"`
		ID   string `json:"id"`
	} `json:"channel"`
	Keep    []pattern `json:"keep"`
	Drop    []pattern `json:"drop"`
	Gone    []pattern `json:"gone"`
	Cancels []pattern `json:"cancels"`
	Nothing bool      `json:"nothing"`
	Ask     string    `json:"ask"`
	Want    []pattern `json:"want"`
	Avoid   []pattern `json:"avoid"`
	Kind    string    `json:"kind"`

	wrong bool // something that the step expects does not hold
}

type talkMessage struct {
	Role    string    `json:"role"`
	Content string    `json:"content"`
	Speaker string    `json:"speaker"`
	At      time.Time `json:"at"`
}

// pattern is a regular expression in Python's syntax, which has look-ahead.
type pattern struct {
	text string
	re   *regexp2.Regexp
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *pattern) UnmarshalJSON(data []byte) (err error) {
	if err := json.Unmarshal(data, &p.text); err != nil {
		return err
	}
	p.re, err = regexp2.Compile(p.text, regexp2.None)
	return err
}

// MarshalJSON implements json.Marshaler.
func (p pattern) MarshalJSON() ([]byte, error) { return json.Marshal(p.text) }

func (p pattern) matches(text string) bool {
	ok, err := p.re.MatchString(text)
	return ok && err == nil
}

func (p pattern) matchesAny(texts []string) bool { return slices.ContainsFunc(texts, p.matches) }

func anyMatches(patterns []pattern, text string) bool {
	return slices.ContainsFunc(patterns, func(p pattern) bool { return p.matches(text) })
}

var notWord = regexp.MustCompile(`\W`)

func readPeople(path string) (people []person, err error) {
	lines, err := readLines(path)
	if err != nil {
		return nil, err
	}
	for _, l := range lines {
		var p person
		if err := json.Unmarshal(l.data, &p); err != nil {
			return nil, jsonError(path, l.number, l.data, err, "each line is a user in the talk format")
		}
		if p.User == "" || len(p.Steps) == 0 {
			return nil, &InputError{File: path, Line: l.number, Problem: `each line needs "user" and "steps"`}
		}
		if p.Language == "" {
			p.Language = "en"
		}
		p.namespace = "talk/" + notWord.ReplaceAllString(filepath.Base(path), "")
		people = append(people, p)
	}
	return people, nil
}

// talkShare names a share: what is measured, in which language.
type talkShare struct{ name, language string }

// The shares, in the order of the table.
var talkShares = []string{"kept", "dropped", "gone", "clean", "answered", "answered, of those stored", "avoided", "quiet"}

const (
	allLanguages = "all"
	maxQuiet     = 600 // characters of the block of an unrelated question
)

type talkRun struct {
	TalkOptions

	sidecar  *Sidecar
	shares   map[talkShare][]bool
	steps    map[string][]bool // by kind
	memories int
	users    int

	namespaces map[string]bool
}

// rule is an expression with the step that expects it.
type rule struct {
	pattern
	step    *talkStep
	number  int
	excused []pattern // a text with one of these is not held against the rule
}

// miss is an expectation that does not hold.
type talkMiss struct {
	User     string   `json:"user"`
	Language string   `json:"lang"`
	Step     int      `json:"step"`
	Kind     string   `json:"kind"`
	What     string   `json:"what"`
	Pattern  string   `json:"pattern,omitempty"`
	Ask      string   `json:"ask,omitempty"`
	Said     []string `json:"said,omitempty"`
	Texts    []string `json:"texts,omitempty"`
}

// personRun is one person's conversation.
type personRun struct {
	*talkRun
	*person

	keep, gone, drop []rule
	ever             map[string]bool // texts of memories that were active at some time
	open             bool            // the next call is considered together with this one
	many             bool            // this call is considered together with the one before
}

func (t *talkRun) play(ctx context.Context, p *person) error {
	if p.TimeZone != "" {
		_, err := t.sidecar.Users.UpdateUserSettings(ctx, &memsidecarv1.UpdateUserSettingsRequest{
			Scope: &memsidecarv1.Scope{Namespace: p.namespace, UserId: p.User}, Settings: &memsidecarv1.UserSettings{TimeZone: p.TimeZone},
			UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"time_zone"}},
		})
		if err != nil {
			return err
		}
	}
	t.namespaces[p.namespace] = true
	r := &personRun{talkRun: t, person: p, ever: map[string]bool{}}
	var first, last time.Time // of the calls that are considered together
	together := 0
	for i := range p.Steps {
		var err error
		if s := &p.Steps[i]; len(s.Call) > 0 {
			if s.At.Sub(last) >= t.Together || s.At.Sub(first) >= togetherPauses*t.Together || together == togetherCalls {
				first, together = s.At, 0
			}
			last, together = s.At, together+1
			next := i + 1
			r.open = next < len(p.Steps) && len(p.Steps[next].Call) > 0 && p.Steps[next].At.Sub(last) < t.Together &&
				p.Steps[next].At.Sub(first) < togetherPauses*t.Together && together < togetherCalls
			err = r.call(ctx, i, s)
		} else {
			err = r.ask(ctx, i, s)
		}
		if err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	texts, err := r.active(ctx)
	if err != nil {
		return err
	}
	r.judge("kept", true, r.keep, texts)
	r.judge("gone", false, r.gone, texts)
	r.judge("dropped", false, r.drop, texts)
	t.memories, t.users = t.memories+len(texts), t.users+1
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Kind != "" {
			t.steps[s.Kind] = append(t.steps[s.Kind], !s.wrong)
		}
	}
	return nil
}

func (r *personRun) scope(s *talkStep) *memsidecarv1.Scope {
	scope := &memsidecarv1.Scope{
		Namespace: r.namespace, UserId: r.User, ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT, ChannelId: "dm-" + r.User,
	}
	if s != nil && s.Channel != nil && s.Channel.Kind == "group" {
		scope.ChannelKind, scope.ChannelId = memsidecarv1.ChannelKind_CHANNEL_KIND_GROUP, s.Channel.ID
	}
	return scope
}

// active returns the texts of the user's memories that are active or expired.
func (r *personRun) active(ctx context.Context) (texts []string, err error) {
	memories, err := r.activeByID(ctx)
	return slices.Collect(maps.Values(memories)), err
}

func (r *personRun) activeByID(ctx context.Context) (map[string]string, error) {
	memories, token := map[string]string{}, ""
	for {
		page, err := r.sidecar.Memories.ListMemories(ctx, &memsidecarv1.ListMemoriesRequest{Scope: r.scope(nil), PageSize: 1000, PageToken: token})
		if err != nil {
			return nil, err
		}
		for _, m := range page.GetMemories() {
			switch m.GetState() {
			case memsidecarv1.MemoryState_MEMORY_STATE_ACTIVE, memsidecarv1.MemoryState_MEMORY_STATE_EXPIRED:
				memories[m.GetId()] = m.GetText()
			default:
			}
		}
		if token = page.GetNextPageToken(); token == "" {
			return memories, nil
		}
	}
}

// add counts a result, and remembers which step is wrong.
func (r *personRun) add(name string, s *talkStep, ok bool) {
	key := talkShare{name, r.Language}
	r.shares[key] = append(r.shares[key], ok)
	s.wrong = s.wrong || !ok
}

func (r *personRun) miss(number int, s *talkStep, miss talkMiss) {
	miss.User, miss.Language, miss.Step, miss.Kind = r.User, r.Language, number, s.Kind
	for _, m := range s.Call {
		miss.Said = append(miss.Said, m.Content)
	}
	r.Misses.add(miss)
}

var talkRoles = map[string]memsidecarv1.Role{
	"user": memsidecarv1.Role_ROLE_USER, "assistant": memsidecarv1.Role_ROLE_ASSISTANT, "system": memsidecarv1.Role_ROLE_SYSTEM,
	"tool": memsidecarv1.Role_ROLE_TOOL,
}

// call hands over a step's messages and waits for the outcome.
func (r *personRun) call(ctx context.Context, number int, s *talkStep) error {
	before, err := r.activeByID(ctx)
	if err != nil {
		return err
	}
	request := &memsidecarv1.ConsiderMemorizingRequest{Scope: r.scope(s), Wait: durationpb.New(time.Minute)}
	for _, m := range s.Call {
		at := m.At
		if at.IsZero() {
			at = s.At
		}
		sent := &memsidecarv1.Message{Role: talkRoles[m.Role], Content: m.Content, SendTime: timestamppb.New(at)}
		if m.Role == "user" {
			sent.SpeakerId = m.Speaker
		}
		request.Messages = append(request.Messages, sent)
	}
	alone := !r.open && !r.many
	if r.many = r.open; r.open {
		request.Wait = nil
		_, err = r.sidecar.Memories.ConsiderMemorizing(ctx, request)
		if err != nil {
			return err
		}
	} else if err := r.settle(ctx, number, s, request); err != nil {
		return err
	}
	after, err := r.activeByID(ctx)
	if err != nil {
		return err
	}
	if s.Nothing && alone {
		var added []string
		for id, text := range after {
			if before[id] != text {
				added = append(added, text)
			}
		}
		if r.add("clean", s, len(added) == 0); len(added) > 0 {
			r.miss(number, s, talkMiss{What: "not clean", Texts: added})
		}
	}
	r.expect(s, number, after)
	return nil
}

// settle hands a call over and waits for its outcome.
func (r *personRun) settle(ctx context.Context, number int, s *talkStep, request *memsidecarv1.ConsiderMemorizingRequest) error {
	considered, err := r.outcome(ctx, request)
	if err != nil {
		return err
	}
	switch considered.GetState() {
	case memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED, memsidecarv1.ConsiderationState_CONSIDERATION_STATE_SKIPPED:
	default:
		r.miss(number, s, talkMiss{What: "state " + considered.GetState().String(), Texts: []string{considered.GetReason(), considered.GetError()}})
	}
	return nil
}

// expect adds what a call is expected to leave, or to end.
func (r *personRun) expect(s *talkStep, number int, after map[string]string) {
	ended := slices.Concat(s.Gone, s.Cancels)
	r.keep = slices.DeleteFunc(r.keep, func(k rule) bool {
		return slices.ContainsFunc(ended, func(p pattern) bool { return p.text == k.text })
	})
	for _, g := range s.Gone { // what takes its place may quote what is over: "7:45, not 7:15"
		r.gone = append(r.gone, rule{g, s, number, s.Keep})
	}
	for _, text := range after {
		r.ever[text] = true
	}
	for _, k := range s.Keep {
		r.keep = append(r.keep, rule{k, s, number, nil})
	}
	for _, d := range s.Drop {
		r.drop = append(r.drop, rule{d, s, number, nil})
	}
}

// outcome waits longer than the server does: a model may be slow.
func (r *personRun) outcome(ctx context.Context, request *memsidecarv1.ConsiderMemorizingRequest) (*memsidecarv1.Consideration, error) {
	answer, err := r.sidecar.Memories.ConsiderMemorizing(ctx, request)
	if err != nil {
		return nil, err
	}
	c := answer.GetConsideration()
	limit := time.Now().Add(considerLimit)
	for {
		switch c.GetState() {
		case memsidecarv1.ConsiderationState_CONSIDERATION_STATE_PENDING, memsidecarv1.ConsiderationState_CONSIDERATION_STATE_RUNNING:
		default:
			return c, nil
		}
		if time.Now().After(limit) {
			return c, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
		got, err := r.sidecar.Memories.GetConsideration(ctx, &memsidecarv1.GetConsiderationRequest{Scope: request.GetScope(), ConsiderationId: c.GetId()})
		if err != nil {
			return nil, err
		}
		c = got.GetConsideration()
	}
}

// ask asks the memory what helps with a question.
func (r *personRun) ask(ctx context.Context, number int, s *talkStep) error {
	answer, err := r.sidecar.Memories.Retrieve(ctx, &memsidecarv1.RetrieveRequest{
		Scope: r.scope(s), Query: s.Ask, TopK: &r.TopK, ReadTime: timestamppb.New(s.At),
	})
	if err != nil {
		return err
	}
	if len(answer.GetDegraded()) > 0 {
		return errors.Join(errDegraded, errors.New(answer.GetDegraded()[0].GetReason()))
	}
	var hits []string
	for _, h := range answer.GetMemories() {
		hits = append(hits, h.GetMemory().GetText())
	}
	for _, h := range answer.GetMessages() {
		hits = append(hits, h.GetMessage().GetMessage().GetContent())
	}
	lines := append(slices.Clone(hits), strings.FieldsFunc(answer.GetPromptContext(), func(c rune) bool { return c == '\n' || c == '\r' })...)
	if len(s.Want) == 0 {
		quiet := len(hits) == 0 && len([]rune(answer.GetPromptContext())) <= maxQuiet
		if r.add("quiet", s, quiet); !quiet {
			r.miss(number, s, talkMiss{What: "noise", Ask: s.Ask, Texts: hits})
		}
	} else if err := r.answered(ctx, number, s, hits, lines); err != nil {
		return err
	}
	if len(s.Avoid) > 0 {
		r.avoided(number, s, hits, lines)
	}
	return nil
}

func (r *personRun) answered(ctx context.Context, number int, s *talkStep, hits, lines []string) error {
	all := func(texts []string) bool {
		return !slices.ContainsFunc(s.Want, func(p pattern) bool { return !p.matchesAny(texts) })
	}
	right := all(lines)
	r.add("answered", s, right)
	byKind := talkShare{"answered: " + s.Kind, allLanguages}
	r.shares[byKind] = append(r.shares[byKind], right)
	stored, err := r.active(ctx)
	if err != nil {
		return err
	}
	if all(stored) {
		r.add("answered, of those stored", s, right)
	}
	if !right {
		r.miss(number, s, talkMiss{What: "not answered", Ask: s.Ask, Texts: hits})
	}
	return nil
}

func (r *personRun) avoided(number int, s *talkStep, hits, lines []string) {
	others := slices.DeleteFunc(slices.Clone(lines), func(text string) bool { return anyMatches(s.Want, text) })
	bad := slices.ContainsFunc(s.Avoid, func(p pattern) bool { return p.matchesAny(others) })
	stored := slices.ContainsFunc(s.Avoid, func(p pattern) bool { return p.matchesAny(slices.Collect(maps.Keys(r.ever))) })
	if bad || stored { // what was never stored cannot be avoided
		r.add("avoided", s, !bad)
	}
	if bad {
		r.miss(number, s, talkMiss{What: "should not have come", Ask: s.Ask, Texts: hits})
	}
}

// judge compares rules with the texts at the end.
func (r *personRun) judge(name string, wanted bool, rules []rule, texts []string) {
	ever := slices.Collect(maps.Keys(r.ever))
	for _, rule := range rules {
		counted := slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return anyMatches(rule.excused, text) })
		ok := rule.matchesAny(counted) == wanted
		if name == "gone" && ok && !rule.matchesAny(ever) {
			continue // it was never stored: nothing was taken back, and "kept" has counted that
		}
		if r.add(name, rule.step, ok); ok {
			continue
		}
		holding := slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return !rule.matches(text) })
		r.miss(rule.number, rule.step, talkMiss{What: "not " + name, Pattern: rule.text, Texts: holding})
	}
}

// report makes the report.
func (t *talkRun) report(ctx context.Context) (Report, error) {
	r := Report{kindName: string(KindTalk), "files": names(t.Files), "memories_per_user": float64(t.memories) / float64(t.users)}
	for key, results := range t.shares {
		if strings.HasPrefix(key.name, "answered: ") {
			r.share(key.name, shareOf(results))
		} else {
			r.share(key.name+"."+key.language, shareOf(results))
			r["count."+key.name+"."+key.language] = len(results)
		}
	}
	for _, name := range talkShares {
		var all []bool
		for key, results := range t.shares {
			if key.name == name {
				all = append(all, results...)
			}
		}
		if len(all) > 0 {
			r.share(name+"."+allLanguages, shareOf(all))
			r["count."+name+"."+allLanguages] = len(all)
		}
	}
	for kind, results := range t.steps {
		right := 0
		for _, ok := range results {
			if ok {
				right++
			}
		}
		r["steps."+kind+".right"], r["steps."+kind+".count"] = right, len(results)
	}
	remembering, restraint := r.meanOf("kept", "answered"), r.meanOf("dropped", "gone", "clean", "avoided", "quiet")
	score := 0.0
	if remembering+restraint > 0 {
		score = 2 * remembering * restraint / (remembering + restraint)
	}
	r.share("score", score)
	return r, t.costs(ctx, r)
}

// costs adds what models cost, if any was asked.
func (t *talkRun) costs(ctx context.Context, r Report) error {
	if err := t.sidecar.WaitIdle(ctx); err != nil {
		return err
	}
	for namespace := range t.namespaces {
		status, err := t.sidecar.Admin.GetStatus(ctx, &memsidecarv1.GetStatusRequest{
			Scope: &memsidecarv1.Scope{Namespace: namespace}, UsageDays: 2, // a run may pass midnight
		})
		if err != nil {
			return err
		}
		add := func(name string, value float64) {
			before, _ := r[name].(float64)
			r[name] = before + value
		}
		for _, day := range status.GetUsage().GetDays() {
			for _, m := range day.GetModels() {
				add("calls."+m.GetPart(), float64(m.GetCallCount()))
				add("input_tokens."+m.GetPart(), float64(m.GetInputTokenCount()))
				add("output_tokens."+m.GetPart(), float64(m.GetOutputTokenCount()))
			}
			for _, cost := range day.GetCosts() {
				add("cost."+cost.GetCurrency(), cost.GetAmount())
			}
		}
	}
	return nil
}

func shareOf(results []bool) float64 {
	right := 0
	for _, ok := range results {
		if ok {
			right++
		}
	}
	return ratio(right, len(results))
}

// meanOf returns the mean of the shares of all languages that were measured.
func (r Report) meanOf(names ...string) float64 {
	sum, n := 0.0, 0
	for _, name := range names {
		if value, ok := r.number(name + "." + allLanguages); ok {
			sum, n = sum+value, n+1
		}
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// talk returns the tables of a report.
func (c cells) talk() []Table {
	languages := []string{}
	for name := range c.report {
		if rest, ok := strings.CutPrefix(name, "count."); ok {
			if _, language, ok := strings.Cut(rest, "."); ok && language != allLanguages && !slices.Contains(languages, language) {
				languages = append(languages, language)
			}
		}
	}
	slices.Sort(languages)
	languages = append(languages, allLanguages)
	shares := Table{Columns: append([]string{"share"}, languages...), Words: 1}
	for _, name := range talkShares {
		row := []string{name}
		for _, language := range languages {
			cell := c.show(name+"."+language, "%.2f")
			if cell != "" {
				cell += " of " + c.show("count."+name+"."+language, wholeNumber)
			}
			row = append(row, cell)
		}
		shares.Rows = append(shares.Rows, row)
	}
	asked := Table{Columns: []string{"question", "answered"}, Words: 1}
	steps := Table{Columns: []string{"kind of step", "right", "of"}, Words: 1}
	models := Table{Columns: []string{"model of", "calls", "input tokens", "output tokens"}, Words: 1}
	for _, name := range sortedKeys(c.report) {
		if kind, ok := strings.CutPrefix(name, "answered: "); ok {
			asked.Rows = append(asked.Rows, c.row(kind, "%.2f", name))
		}
		if kind, ok := strings.CutSuffix(name, ".count"); ok {
			if kind, ok = strings.CutPrefix(kind, "steps."); ok {
				steps.Rows = append(steps.Rows, c.row(kind, wholeNumber, "steps."+kind+".right", name))
			}
		}
		if part, ok := strings.CutPrefix(name, "calls."); ok {
			models.Rows = append(models.Rows, c.row(part, wholeNumber, name, "input_tokens."+part, "output_tokens."+part))
		}
	}
	total := Table{Columns: []string{"", ""}, Words: 1, Rows: [][]string{
		c.row("score (harmonic mean of remembering and restraint)", thousandths, "score"),
		c.row("memories a user", "%.1f", "memories_per_user"),
	}}
	return []Table{shares, asked, steps, models, total}
}

package local

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/decide/classify"
	"github.com/memsidecar/memsidecar/internal/lang/compare"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/lang/lexical"
	"github.com/memsidecar/memsidecar/internal/lang/sentences"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// candidate is a memory that a sentence may concern: a known one, or one of an earlier sentence of the same dialogue.
type candidate struct {
	id       string
	text     string
	slot     string
	kind     memory.Kind
	messages []string // that it rests on
	justNow  bool     // it was made of the last turns, or of the new messages
	known    *memory.Memory
	terms    map[string]bool
	gone     bool // replaced or forgotten
}

// matcher finds the memories that sentences concern.
type matcher struct {
	t          decide.Transcript
	candidates []candidate // oldest first
	holders    map[string]int
	done       []decide.Op
	onlyForget bool
	alone      func(text string) bool // reports whether a text is understood, and worth keeping, without what stood beside it
}

func newMatcher(t decide.Transcript, known []decide.Known, onlyForget bool, e *Extractor) *matcher {
	m := &matcher{t: t, onlyForget: onlyForget, alone: e.alone, holders: map[string]int{}}
	for i := range known {
		k := &known[i].Memory
		slot := k.Provenance.Slot
		if slot == "" && (k.Provenance.Quote == "" || !strings.Contains(k.Text, k.Provenance.Quote)) { // a model, the bot or an earlier version wrote it
			slot = e.model.Read(classify.Unit{Message: k.Text, End: len(k.Text), Count: 1}).Slot()
		}
		m.add(candidate{
			id: k.ID, text: k.Text, slot: slot, kind: k.Kind, messages: k.Provenance.MessageIDs, justNow: known[i].JustNow, known: k,
		})
	}
	return m
}

func (m *matcher) add(c candidate) {
	c.terms = termsOf(c.text)
	for t := range c.terms {
		m.holders[t]++
	}
	m.candidates = append(m.candidates, c)
}

func termsOf(text string) map[string]bool {
	terms := map[string]bool{}
	for _, t := range lexical.QueryTerms(text) {
		terms[t] = true
	}
	return terms
}

// ops returns the changes, in the order in which the things were said.
func (m *matcher) ops(r *read) []decide.Op {
	next := 0
	for i := range r.kept {
		for ; next < len(r.commands) && r.commands[next].at <= i; next++ {
			m.forget(r, r.commands[next])
		}
		m.keep(&r.kept[i])
	}
	for ; next < len(r.commands); next++ {
		m.forget(r, r.commands[next])
	}
	return m.done
}

func (m *matcher) push(op decide.Op) string {
	m.done = append(m.done, op)
	return decide.OpID(len(m.done) - 1)
}

// keep stores a statement: as new, as a repetition, or in the place of another.
func (m *matcher) keep(k *kept) {
	s := k.statement
	op := decide.Op{Action: decide.OpAdd, Statement: s}
	if same := m.same(k); same != nil {
		op.Action, op.IDs, op.Reason = decide.OpSame, []string{same.id}, "it says the same"
		m.push(op)
		return
	}
	if old := m.replaced(k); old != nil && old.known != nil && old.known.ObservedAt.After(s.ObservedAt) {
		op.Action, op.IDs, op.History = decide.OpUpdate, []string{old.id}, true // an old dialogue that arrives late
		op.Reason = fmt.Sprintf("%q was said later", old.text)
	} else if old != nil {
		op.Action, op.IDs = decide.OpUpdate, []string{old.id}
		op.Reason = fmt.Sprintf("it replaces %q", old.text)
		if k.correction {
			op.Reason = fmt.Sprintf("it corrects %q", old.text)
		}
		if m.incomplete(k, old) {
			op.Statement.Text = shortened(old.text+between+s.Text, DefaultMaxRunes)
			op.Statement.MessageIDs = slices.Compact(slices.Concat(m.refs(old), s.MessageIDs))
			if op.Statement.Slot == "" {
				op.Statement.Slot = old.slot
			}
			if k.correction && old.kind.Valid() {
				op.Statement.Kind = old.kind
			}
		}
		old.gone = true
	}
	id := m.push(op)
	m.add(candidate{id: id, text: op.Statement.Text, slot: s.Slot, kind: s.Kind, messages: s.MessageIDs, justNow: true})
}

// refs are the messages of a candidate that this dialogue can cite.
func (m *matcher) refs(c *candidate) []string {
	var refs []string
	for i := range m.t.Dialogue.Messages {
		if ref := m.t.Ref(i); slices.Contains(c.messages, ref) || c.known != nil && decide.RestsOn(c.known, []string{ref}) {
			refs = append(refs, ref)
		}
	}
	return refs
}

// undated returns a text without the dates in brackets.
func undated(text string) string { return bracketed.ReplaceAllString(text, "") }

var bracketed = lazyregexp.New(` ?\[[0-9/-]+\]`)

// same returns the candidate that says the same.
func (m *matcher) same(k *kept) *candidate {
	text := compare.Prepare(undated(k.statement.Text))
	for i := range slices.Backward(m.candidates) {
		if c := &m.candidates[i]; !c.gone && (text.Same(compare.Prepare(undated(c.text))) || m.confirmed(k, c)) {
			return c
		}
	}
	return nil
}

// confirmed reports whether the speaker only says yes to a question that asks what the candidate says.
func (m *matcher) confirmed(k *kept, c *candidate) bool {
	s := &k.statement
	return s.Question != "" && classify.Length(s.Quote) <= 1 && m.overlap(termsOf(s.Question), c) >= asks
}

// alike is the overlap below which two texts that are about different things have nothing to do with each other.
const alike = .25

// asks is the overlap from which a question is about what a memory says.
const asks = .7

// exclusive are slots of which people have one value at a time.
var exclusive = map[string]bool{"home": true, "name": true, "age": true, "birthday": true, "phone": true, "email": true, "employer": true}

// least is the chance, in a flag's probability, from which a statement may take the place of another.
const (
	least      = .15
	leastMoved = .08 // where both are arranged for different times
	leastSlot  = .05 // where both are about what people have one of
)

// replaced returns the candidate that a statement takes the place of: the more the words say that something changes, the less need the
// two have in common.
func (m *matcher) replaced(k *kept) *candidate {
	correction := k.corrects
	if max(correction, k.updates) < leastSlot || m.onlyForget {
		return nil
	}
	var best *candidate
	most := 0.0
	own := termsOf(k.statement.Text)
	for i := range m.candidates {
		c := &m.candidates[i]
		if c.gone || c.known == nil && slices.Contains(c.messages, m.t.Ref(k.message)) && correction < likely {
			continue
		}
		if score := m.score(k, c, own); score > most || score == most && best != nil { // the newest of equals
			best, most = c, score
		}
	}
	return best
}

// score is how much speaks for a statement to take the place of a candidate; 0 or less is too little.
func (m *matcher) score(k *kept, c *candidate, own map[string]bool) float64 {
	correction, update := k.corrects, k.updates
	overlap, sameSlot := m.overlap(own, c), c.slot != "" && c.slot == k.statement.Slot
	if overlap == 0 && (!sameSlot || !exclusive[c.slot]) && (!c.justNow || !k.hanging && !k.correction) {
		return 0
	}
	need := least
	switch {
	case sameSlot && exclusive[c.slot]:
		need = leastSlot
	case moved(k, c):
		need = leastMoved
	}
	if max(correction, update) < need {
		return 0
	}
	differs := c.slot != "" && k.statement.Slot != "" && !sameSlot && k.SlotChance() >= likely
	others := (c.kind == memory.KindRelationship) != (k.statement.Kind == memory.KindRelationship)
	if differs && (overlap == 0 || others && overlap < alike) {
		return 0
	}
	score := 3*max(correction, update) + 4*overlap - 1.3
	if moved(k, c) {
		score += .7
	}
	if sameSlot {
		score += .6
		if exclusive[c.slot] {
			score += .6
		}
	}
	if differs {
		score -= .5
	}
	if others {
		score -= .5
	}
	if c.justNow {
		score += 2 * correction
		if k.hanging {
			score += .5
		}
	}
	return score
}

// moved reports whether both are of the future and name different times: what is arranged is arranged anew.
func moved(k *kept, c *candidate) bool {
	arranged := func(kind memory.Kind) bool {
		return kind == memory.KindAppointment || kind == memory.KindPlan || kind == memory.KindTask
	}
	if !arranged(k.statement.Kind) || !arranged(c.kind) {
		return false
	}
	mine, theirs := digits.FindAllString(k.statement.Text, -1), digits.FindAllString(c.text, -1)
	return len(mine) > 0 && len(theirs) > 0 && !slices.Equal(mine, theirs)
}

var digits = lazyregexp.New(`[0-9]+`)

// incomplete reports whether the words of an update say too little without those that they replace: they are few, or hang on a pronoun and
// do not name what they are about.
func (m *matcher) incomplete(k *kept, old *candidate) bool {
	if k.hanging {
		return m.overlap(termsOf(k.statement.Text), old) < plain
	}
	return classify.Length(k.statement.Quote) < 8 && k.statement.Question == "" && (!exclusive[old.slot] || old.slot != k.statement.Slot)
}

// overlap is the share of the rarer words of either text that both have, 0 to 1.
func (m *matcher) overlap(own map[string]bool, c *candidate) float64 {
	shared, mine, theirs := 0.0, 0.0, 0.0
	for t := range own {
		w := m.weight(t)
		if mine += w; c.terms[t] {
			shared += w
		}
	}
	for t := range c.terms {
		theirs += m.weight(t)
	}
	if shared == 0 {
		return 0
	}
	return shared / min(mine, theirs)
}

func (m *matcher) weight(term string) float64 {
	return math.Log(1 + float64(len(m.candidates)+2)/float64(m.holders[term]+1))
}

// forget withdraws what a request names.
func (m *matcher) forget(r *read, c command) {
	s := memory.Statement{
		Text: memory.CleanText(c.Text()), Quote: memory.CleanText(c.Text()), Kind: memory.KindFact, Forget: true, Explicit: true,
		Language: lexical.Language(c.Text()), MessageIDs: []string{r.t.Ref(c.message)}, ObservedAt: r.t.Dialogue.Messages[c.message].Time,
		Reason: "the user asked for it to be forgotten",
	}
	var left []decide.Op // what stays of memories of which a part is forgotten
	op := decide.Op{Action: decide.OpForget, Reason: fmt.Sprintf("the user asked for it to be forgotten: %q", s.Text)}
	if c.aside {
		if op.IDs = m.plainlyNamed(c); len(op.IDs) == 0 {
			return
		}
		op.Statement, op.Reason = s, fmt.Sprintf("the user asked not to keep it: %q", s.Text)
		m.push(op)
		return
	}
	switch c.label {
	case classify.ForgetAll:
		op.IDs, op.Reason = m.everything(&s)
	case classify.ForgetLast:
		op.IDs = m.last(r, c)
		if len(op.IDs) > 0 {
			break
		}
		fallthrough
	default:
		ids, words := m.named(c)
		if op.IDs = ids; !words && c.Is(classify.ForgetAll) >= .4*c.Is(forgetLabels...) { // "forget my ex" does not mean everything
			op.IDs, op.Reason = m.everything(&s)
		}
		for _, id := range op.IDs {
			if rest := m.drop(id, c); rest != nil {
				left = append(left, *rest)
			}
		}
	}
	op.Statement = s
	m.push(op)
	for _, rest := range left {
		m.push(rest)
	}
}

// everything marks a request as one to forget everything.
func (m *matcher) everything(s *memory.Statement) (ids []string, reason string) {
	s.Everything = true
	for i := range m.candidates {
		m.candidates[i].gone = true
	}
	return []string{decide.Everything}, "the user asked to forget everything"
}

// last returns the memories made of what was said last.
func (m *matcher) last(r *read, c command) (ids []string) {
	for _, s := range slices.Backward(r.sentences) {
		if s.message > c.message || s.message == c.message && s.Index >= c.Index {
			continue
		}
		ref := r.t.Ref(s.message)
		for k := range m.candidates {
			t := &m.candidates[k]
			rests := slices.Contains(t.messages, ref)
			if t.known != nil {
				rests = t.justNow && decide.RestsOn(t.known, []string{ref})
			}
			if rests && !t.gone {
				t.gone = true
				ids = append(ids, t.id)
			}
		}
		if len(ids) > 0 {
			return ids
		}
	}
	return nil
}

// drop marks a memory as forgotten. If the request names only a part of it, the rest is returned as a new memory.
func (m *matcher) drop(id string, c command) *decide.Op {
	for i := range m.candidates {
		t := &m.candidates[i]
		if t.id != id {
			continue
		}
		t.gone = true
		rest := m.rest(t, termsOf(c.Text()))
		if rest == "" || t.known == nil || c.label != classify.ForgetNamed {
			return nil
		}
		k := t.known
		return &decide.Op{Action: decide.OpAdd, Statement: memory.Statement{
			Text: rest, Quote: rest, Language: k.Language, Kind: k.Kind, Importance: k.Importance, Explicit: k.Explicit,
			MessageIDs: []string{m.t.Ref(c.message)}, ObservedAt: k.ObservedAt, ValidTo: k.ValidTo,
			Reason: fmt.Sprintf("what is left of %q", k.Text),
		}}
	}
	return nil
}

var clauseEnd = lazyregexp.New(`[,;，；、。]\s*|\.\s+|\s+(?:and|&|und|et|y)\s+`)

// rest returns what is left of a memory without the clauses that have one of the words, or "" if that is nothing of its own. Clauses without
// a subject are dropped with the one that began their sentence: "and lives in York" says nothing alone.
func (m *matcher) rest(t *candidate, words map[string]bool) string {
	var left strings.Builder
	dropped, content := 0, 0
	for _, s := range sentences.Of(t.text) {
		sentence := t.text[s.Start:s.End]
		ends := append(clauseEnd.FindAllStringIndex(sentence, -1), []int{len(sentence), len(sentence)})
		from, headless := 0, false
		for i, end := range ends {
			clause := sentence[from:end[0]]
			terms := termsOf(clause)
			named := false
			for w := range terms {
				named = named || words[w]
			}
			switch {
			case named:
				dropped++
				headless = headless || i == 0
			case headless && !hasSubject(clause, sentence): // it goes on about what was dropped
			case len(terms) > 0:
				left.WriteString(sentence[from:end[1]])
				content += len(terms)
			}
			from = end[1]
		}
		left.WriteByte(' ')
	}
	rest := strings.TrimSpace(lastSeparator.ReplaceAllString(strings.TrimSpace(left.String()), ""))
	if dropped == 0 || content < 2 || !m.alone(rest) {
		return ""
	}
	return rest
}

var lastSeparator = lazyregexp.New(`(?:[,;，；、]|\s(?:and|&|und|et|y))$`)

// hasSubject reports whether a clause of a sentence likely names what it is about: it begins with a function word, or as the sentence
// does. In scripts without spaces a clause need not.
func hasSubject(clause, sentence string) bool {
	tokens, first := lexical.Tokens(clause), lexical.Tokens(sentence)
	if len(tokens) == 0 || len(first) == 0 || tokens[0].Function || tokens[0].Term == first[0].Term {
		return true
	}
	return tokens[0].Kind == lexical.Char
}

// plainlyNamed returns the memories that have most of a request's rarer words, and marks them as forgotten.
func (m *matcher) plainlyNamed(c command) (ids []string) {
	own := termsOf(c.Text())
	for i := range m.candidates {
		t := &m.candidates[i]
		if !t.gone && t.known != nil && m.overlap(own, t) >= plain {
			t.gone = true
			ids = append(ids, t.id)
		}
	}
	return ids
}

// plain is the overlap from which a memory is named without doubt.
const plain = .34

// named returns the memories that a request names: those that share its rarer words, or what it is about. words reports whether any
// shares a word.
func (m *matcher) named(c command) (ids []string, words bool) {
	own := termsOf(c.Text())
	scores := make([]float64, len(m.candidates))
	most := 0.0
	for i := range m.candidates {
		t := &m.candidates[i]
		if t.gone {
			continue
		}
		for term := range own {
			if t.terms[term] {
				scores[i] += m.weight(term)
				words = true
			}
		}
		if slot := c.Slot(); slot != "" && slot == t.slot {
			scores[i]++
		}
		most = max(most, scores[i])
	}
	if most == 0 {
		return nil, false
	}
	least := most * .6
	if c.label == classify.ForgetAbout {
		least = most * .3
	}
	for i, score := range scores {
		if score >= least {
			ids = append(ids, m.candidates[i].id)
		}
	}
	return ids, words
}

package rules

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// Rules decides and summarises without a model. It is safe for concurrent use and deterministic.
type Rules struct {
	threshold, maxStatements, maxRunes int

	signals  []Signal
	byName   map[string]int  // into signals
	custom   map[string]bool // names of the operator's own signals
	index    *index          // phrases of all signals; a hit's tag is an index into signals
	explicit *index          // phrases of SignalExplicit
	requests *requests
	zh, en   *grammar
}

var (
	_ decide.Decider    = (*Rules)(nil)
	_ decide.Summarizer = (*Rules)(nil)
)

// New builds the rules; its error names every wrong field of the configuration.
func New(cfg Config) (*Rules, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	known := defaultNames()
	cfg = cfg.resolved()
	r := &Rules{
		threshold: cfg.Threshold, maxStatements: cfg.MaxStatements, maxRunes: cfg.MaxStatementRunes,
		signals: cfg.Signals, byName: map[string]int{}, custom: map[string]bool{}, index: newIndex(), explicit: newIndex(),
		requests: newRequests(), zh: chineseGrammar(), en: englishGrammar(),
	}
	for i, s := range r.signals {
		r.byName[s.Name] = i
		r.custom[s.Name] = !known[s.Name]
		for _, phrases := range s.Phrases {
			for _, p := range phrases {
				r.index.add(p, i)
				if s.Name == SignalExplicit {
					r.explicit.add(p, i)
				}
			}
		}
	}
	r.index.sorted()
	r.explicit.sorted()
	return r, nil
}

// Name is "rules".
func (r *Rules) Name() string { return "rules" }

func (r *Rules) grammarOf(lang string) *grammar {
	if lang == english || lang == unknown {
		return r.en
	}
	return r.zh
}

// Decide reports whether anything that the speaker said reaches the threshold. Its only error is the context's.
func (r *Rules) Decide(ctx context.Context, t decide.Transcript) (decide.Verdict, error) {
	if err := ctx.Err(); err != nil {
		return decide.Verdict{}, err
	}
	kept, private, why := r.read(t)
	if len(kept) == 0 {
		return decide.Verdict{Reason: why, Private: private}, nil
	}
	best := kept[0]
	v := decide.Verdict{Remember: true, Reading: &reading{by: r, of: t, kept: kept}, Private: private}
	for _, u := range kept {
		v.Explicit = v.Explicit || u.explicit
		if u.stronger(best) {
			best = u
		}
	}
	v.Reason = best.reason
	if n := len(kept) - 1; n > 0 {
		v.Reason += fmt.Sprintf("; and %d more", n)
	}
	return v, nil
}

// Summarize returns what reaches the threshold, retold in the third person; nothing when the verdict is not to remember.
// Its only error is the context's.
func (r *Rules) Summarize(ctx context.Context, t decide.Transcript, v decide.Verdict) ([]memory.Statement, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !v.Remember {
		return nil, nil
	}
	var kept []*unit
	if before, ok := v.Reading.(*reading); ok && before.by == r && before.same(t) {
		kept = before.kept
	} else {
		kept, _, _ = r.read(t)
	}
	var out []memory.Statement
	for _, u := range kept {
		s := memory.Statement{
			Text: u.text, Language: u.lang, Kind: u.kind, Standing: r.standingOf(u), Importance: r.importance(u.assessment, u.explicit),
			Explicit: u.explicit, Quote: u.quote, Reason: u.reason, ObservedAt: t.Dialogue.Messages[u.messages[len(u.messages)-1]].Time,
			ValidTo: u.validTo, Forget: u.forget, Everything: u.everything,
		}
		for _, i := range u.messages {
			s.MessageIDs = append(s.MessageIDs, t.Ref(i))
		}
		out = append(out, s)
	}
	return out, nil
}

// standingOf is style for a request to be treated in some way, and safety for a fact about the health.
func (r *Rules) standingOf(u *unit) memory.StandingClass {
	health, known := r.byName[SignalHealth]
	switch {
	case u.forget:
	case u.kind == memory.KindRequest:
		return memory.StandingStyle
	case u.kind == memory.KindFact && known && u.fires(health):
		return memory.StandingSafety
	}
	return ""
}

// reading is what rules found in a transcript.
type reading struct {
	by   *Rules
	of   decide.Transcript
	kept []*unit // not to be changed
}

// same reports whether it is a reading of this very transcript.
func (r *reading) same(t decide.Transcript) bool {
	mine, other := r.of.Dialogue.Messages, t.Dialogue.Messages
	return r.of.Speaker == t.Speaker && r.of.Location == t.Location && len(mine) == len(other) && len(mine) > 0 && &mine[0] == &other[0]
}

// unit is something the speaker said, as large as it takes to stand on its own.
type unit struct {
	assessment
	pieces   []piece // the statement, then the sentences about the same person that follow it
	class    class
	lang     string
	explicit bool
	forget   bool // it is to be forgotten
	// everything is set with forget when all that is known of the speaker is meant.
	everything bool
	own        bool  // without a subject, and about the speaker as what came before it
	intro      piece // of the message before: who the unit is about
	messages   []int
	text       string
	quote      string
	reason     string
	kind       memory.Kind
	validTo    time.Time // when an arrangement is over
}

func (u *unit) stronger(than *unit) bool {
	if u.explicit != than.explicit {
		return u.explicit
	}
	return u.score > than.score
}

// heard is what the reading of one message yields.
type heard struct {
	source    *source
	units     []*unit
	last      piece // the clause that was read last; before the first one, the last of the message just before
	forgotten bool  // the speaker asked not to keep this message
	withheld  bool  // the speaker asked not to keep a sentence of it
	unclear   bool  // the speaker asked to remember, but not what
	// private are the messages that ask not to keep this one or a sentence of it.
	private []int
	// next is set when the request that ends the message is about the speaker's next one.
	next bool
}

// read lists what is to be remembered, in the order in which it was said, or why nothing is, and the messages that are not to be kept.
func (r *Rules) read(t decide.Transcript) (kept []*unit, private []string, why string) {
	all, asked, classes, spoke := r.hearAll(t)
	private = privateRefs(all, t)
	var best *unit
	for _, h := range all {
		for _, u := range h.units {
			switch {
			case !t.New(h.source.index) && (!u.explicit || asked[u]): // considered before, and the new messages ask nothing about it
			case h.forgotten && !u.explicit:
			case r.passes(u):
				kept = append(kept, u)
			case best == nil || u.stronger(best):
				best = u
			}
		}
	}
	if len(kept) == 0 {
		fresh := slices.DeleteFunc(all, func(h *heard) bool { return !t.New(h.source.index) })
		return nil, private, r.whyNot(spoke, fresh, best, classes)
	}
	return r.finish(kept, t), private, ""
}

// hearAll reads the speaker's messages in order. asked has the units of the earlier messages, and whether it was asked there to remember
// them. classes counts the clauses of the new messages; spoke reports whether one of these is the speaker's.
func (r *Rules) hearAll(t decide.Transcript) (all []*heard, asked map[*unit]bool, classes map[class]int, spoke bool) {
	lang, group := dialogueLanguage(t.Dialogue), inGroup(t.Dialogue)
	asked, classes = map[*unit]bool{}, map[class]int{}
	for i, m := range t.Dialogue.Messages {
		if i == t.Earlier {
			classes = map[class]int{}
			for _, u := range unitsOf(all) {
				asked[u] = u.explicit
			}
		}
		if m.Role != memory.RoleUser || m.Speaker != t.Speaker {
			continue
		}
		spoke = spoke || t.New(i)
		if others(t.Dialogue, m) {
			continue
		}
		src := newSource(i, withoutAddress(m.Content))
		src.group = group
		h := r.hear(src, lang, all, classes)
		withoutReports(t.Dialogue, i, h)
		if !slices.ContainsFunc(h.units, r.passes) && !h.forgotten {
			if u := r.confirmed(t.Dialogue, i, h.source, lang); u != nil {
				h.units = append(h.units, u)
			}
		}
		all = append(all, h)
	}
	return all, asked, classes, spoke
}

// privateRefs names the messages that are not to be kept. What was asked in earlier calls about earlier messages was done then.
func privateRefs(all []*heard, t decide.Transcript) (refs []string) {
	for _, h := range all {
		fresh := t.New(h.source.index)
		if len(h.private) > 0 && (fresh || slices.ContainsFunc(h.private, t.New)) {
			refs = append(refs, t.Ref(h.source.index))
		}
	}
	return refs
}

func unitsOf(all []*heard) (units []*unit) {
	for _, h := range all {
		units = append(units, h.units...)
	}
	return units
}

func (r *Rules) passes(u *unit) bool { return u.explicit || u.score >= r.threshold }

// finish words the units, drops repetitions and keeps the strongest.
func (r *Rules) finish(kept []*unit, t decide.Transcript) []*unit {
	type said struct {
		text   string
		forget bool
		day    time.Time
	}
	seen := map[said]bool{}
	var out []*unit
	for _, u := range kept {
		r.word(u)
		// "Yesterday" is another day in another message.
		repeated := said{u.text, u.forget, t.Dialogue.Messages[u.messages[0]].Time}
		if u.text == "" || seen[repeated] {
			continue
		}
		seen[repeated] = true
		r.date(u, t)
		if u.forget { // even what was just said
			out = slices.DeleteFunc(out, func(before *unit) bool { return !before.forget && before.text == u.text })
		}
		key := said{text: u.text, forget: u.forget}
		if seen[key] {
			continue
		}
		seen[key] = true
		out = append(out, u)
	}
	if len(out) > r.maxStatements {
		ranked := slices.Clone(out)
		slices.SortStableFunc(ranked, func(a, b *unit) int {
			switch {
			case a.stronger(b):
				return -1
			case b.stronger(a):
				return 1
			}
			return 0
		})
		strongest := map[*unit]bool{}
		for _, u := range ranked[:r.maxStatements] {
			strongest[u] = true
		}
		out = slices.DeleteFunc(out, func(u *unit) bool { return !strongest[u] })
	}
	return out
}

func (r *Rules) whyNot(spoke bool, all []*heard, best *unit, classes map[class]int) string {
	if !spoke {
		return "no message of this user"
	}
	for _, h := range all {
		switch {
		case h.forgotten, h.withheld:
			return "the user asked not to remember this"
		case h.unclear:
			return "the user asked to remember something, but had said nothing that could be meant"
		}
	}
	if best != nil && (best.score > 0 || best.self && len(best.findings) > 1) {
		quote := []rune(best.pieces[0].raw)
		if len(quote) > 60 {
			quote = append(quote[:60], '…')
		}
		return fmt.Sprintf("nothing the user said reaches the threshold %d: best was %d for %q (%s)", r.threshold, best.score,
			string(quote), r.reason(best.assessment))
	}
	var only []string
	for c := statement; c <= hearsay; c++ {
		if classes[c] > 0 {
			only = append(only, c.String())
		}
	}
	switch {
	case best != nil:
		return fmt.Sprintf("nothing the user said reaches the threshold %d: nothing about the user in it", r.threshold)
	case len(only) == 0:
		return "the user said nothing in words"
	case len(only) == 1:
		return "only " + only[0]
	}
	return "only " + strings.Join(only[:len(only)-1], ", ") + " and " + only[len(only)-1]
}

// dialogueLanguage is the language of most of what people said.
func dialogueLanguage(d memory.Dialogue) string {
	count := map[string]int{}
	for _, m := range d.Messages {
		if m.Role == memory.RoleUser || m.Role == memory.RoleAssistant {
			head := newSource(0, m.Content[:min(len(m.Content), 2000)])
			count[languageOf(head.piece(0, len(head.raw)), "")]++
		}
	}
	best := english
	for _, lang := range []string{chinese, english, japanese, korean} {
		if count[lang] > count[best] {
			best = lang
		}
	}
	return best
}
